"""The model of a best trial whose process was killed before the model was saved.

A trial's checkpoints and kept result are removed after its model is saved. Those of a trial that
has ended are therefore left by a killed process, or another process is saving the model now.
"""

import shutil
import sys
from pathlib import Path
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.store import Claim, Store
from mtdlab.sweep import trainer, worker
from mtdlab.sweep.best_model import save_if_best
from mtdlab.sweep.checkpoints import TrialCheckpoints
from mtdlab.sweep.heartbeat import Heartbeat
from mtdlab.sweep.leftovers import folders_of_ended
from mtdlab.sweep.model_folders import CHECKPOINTS, kept_trial, remove_checkpoints_of
from mtdlab.sweep.monitor import OpenStudy, TrialMonitor
from mtdlab.sweep.signals import Interrupted, StopRequest
from mtdlab.sweep.slots import take_gpu
from mtdlab.sweep.spool import RESULT
from mtdlab.terminal import print_text
from mtdlab.training.export import locked


def restore_model(spec: StudySpec, url: str, models: Path, store: Store, stop: StopRequest) -> None:
    """Save the best trial's model if a killed process left it unsaved on this machine.

    The trial is continued from its last checkpoint, or trained again, and its record stays as it
    is. Checkpoints of other trials that have ended are removed. May raise StorageError.
    """
    for claim, folder in folders_of_ended(store, models / CHECKPOINTS / spec.name):
        best = store.best_trial()
        if best is not None and best.row == claim.row:
            # another process that is saving the model now has the lock
            with locked(models / spec.name):
                is_saved = kept_trial(models / spec.name) == best.number
            if folder.exists() and not is_saved and not _save(spec, url, models, claim, stop):
                continue
        remove_checkpoints_of(folder)


def _save(spec: StudySpec, url: str, models: Path, claim: Claim, stop: StopRequest) -> bool:
    """Train a trial again and save its model; False if this was interrupted or failed."""
    print_text(
        f"trial {claim.number} is the best, but its process ended before its model was saved; it "
        "is continued from its last checkpoint, or trained again",
        file=sys.stderr,
    )
    take_gpu()
    spec.ensure_imported()
    study = worker.open_in_process(url, spec, models)
    settings = spec.trainer_settings(claim.parameters or {}, claim.seed)
    checkpoints = TrialCheckpoints(study.checkpoints / f"{claim.setting}-{claim.seed}")
    # it would be taken for the end of the training
    shutil.rmtree(checkpoints.folder / RESULT, ignore_errors=True)
    monitor = _Watch(study, claim, stop, settings, checkpoints)
    try:
        result, trained = trainer.train_trial(spec, settings, monitor)
    except Interrupted:
        return False
    if trained is None:
        note = f"it could not be trained again: {result.reason}"
    else:
        note = save_if_best(study.model, study.store, claim, trained)
    if note:
        print_text(f"trial {claim.number}: {note}", file=sys.stderr)
    return trained is not None


class _NoHeartbeat(Heartbeat):
    """No trial is claimed."""

    def beat(self) -> None:
        """Nothing to record."""

    def check(self) -> None:
        """Nothing to lose."""


class _Watch(TrialMonitor):
    """Stops and saves as for a trial that runs, and reports and prunes nothing."""

    def __init__(
        self,
        study: OpenStudy,
        claim: Claim,
        stop: StopRequest,
        settings: Any,
        checkpoints: TrialCheckpoints,
    ) -> None:
        assert claim.optuna_id is not None, "a trial that has a result has begun"
        trial: Any = study.optuna.storage.get_trial(claim.optuna_id)
        heartbeat = _NoHeartbeat(study.store, claim, {})
        super().__init__(study, claim, trial, stop, settings, checkpoints, heartbeat)

    def evaluated(self, step: int, score: float) -> None:
        """The trial's evaluations are recorded already."""
