"""Training curves as TensorBoard event files: `tracking: tensorboard` in a study file.

A folder for each trial, `tensorboard/STUDY/trial-00012` in the working folder, which `tensorboard
--logdir tensorboard` shows and `wandb sync` reads. It holds every column of the training curve,
the final scores at the step of the best checkpoint, and the settings as hyperparameters.
"""

import math
from importlib.util import find_spec
from pathlib import Path

from mtdlab.config import TrainerSettings
from mtdlab.errors import MtdlabError, describe
from mtdlab.settings.tasks import score_of_selection
from mtdlab.training.loop import Outcome

FOLDER = Path("tensorboard")
SCORE = "score"
"""The column of the curve with the scores on the pairs that choose the checkpoint."""


def check_tracking(tracking: str) -> None:
    """Raise MtdlabError where the package that writes the files is missing."""
    if tracking == "tensorboard" and find_spec("tensorboard") is None:
        raise MtdlabError(
            "tracking: tensorboard needs the package tensorboard; install the extra: "
            "pip install 'mtdlab[tensorboard]', or take the key out"
        )


def track(study: str, number: int, settings: TrainerSettings, outcome: Outcome) -> str:
    """Write a trial's event file: curve, final scores and settings. Returns an error as a note."""
    final = {f"final/{name}": score for name, score in outcome.after.finite().items()}
    try:
        # the package is an extra, and takes a second to import
        from torch.utils.tensorboard import SummaryWriter
        from torch.utils.tensorboard.summary import hparams

        with SummaryWriter(str(FOLDER / study / f"trial-{number:05d}")) as writer:
            for name, column in outcome.curve.items():
                tag = score_of_selection(settings.select_on) if name == SCORE else name
                for step, value in enumerate(column, start=1):
                    if math.isfinite(value):
                        writer.add_scalar(tag, float(value), step)
            for tag, score in final.items():
                writer.add_scalar(tag, score, outcome.best_step)
            for summary in hparams(settings.model_dump(), final):
                writer.file_writer.add_summary(summary)
    except Exception as error:
        return f"training curves not written: {describe(error)}"
    return ""
