"""mtdlab's own trainer as the objective of a study: trials of its methods, with models kept."""

import json
import math
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from mtdlab.config.method_study import MethodSpec
from mtdlab.config.paths import locate_augmentation, resolve_paths
from mtdlab.data_paths import DATABASE
from mtdlab.device import choose_device
from mtdlab.errors import StorageError, describe, require
from mtdlab.settings import RunSettings, TrainerSettings
from mtdlab.settings.tasks import score_of_selection
from mtdlab.store.claims import Result
from mtdlab.store.recorded import read_planned
from mtdlab.store.rules import VERSIONS
from mtdlab.terminal import warn
from mtdlab.training.export import check_model_folder
from mtdlab.training.inputs import check_inputs, load_inputs
from mtdlab.training.loop import Outcome, start, train
from mtdlab.training.present import check_study, data_warnings
from mtdlab.trial.artifacts import Artifacts
from mtdlab.trial.best_model import Trained, publish_left_models, publish_model, stage_model
from mtdlab.trial.checkpoints import SAME, SharedCheckpoints, TrialCheckpoints, describe_run
from mtdlab.trial.environment import environment_of, machine, packages_of
from mtdlab.trial.model_folders import check_writable, refuse_other_model
from mtdlab.trial.monitor import TrialMonitor
from mtdlab.trial.results import NOT_ENDING, complete, ended_early, load_result, save_result
from mtdlab.trial.slots import take_gpu
from mtdlab.trial.study import Job, Objective, OpenStudy, TrialRun

FOLDER = Path("tensorboard")
"""In the working folder, with a folder of each trial's event files, `STUDY/trial-00012`."""
SCORE = "score"
"""The column of the curve with the scores on the pairs that choose the checkpoint."""


class Trainer(Objective):
    """Trains a method on a corpus, and keeps the best trial's model."""

    def check(self, job: Job) -> dict[str, Any]:
        spec = MethodSpec.of(job.spec)
        if spec.tracking == "tensorboard":
            require("tracking: tensorboard", "tensorboard", "tensorboard")
        check_model_folder(job.model)
        refuse_other_model(job.model, job.url)
        check_writable(job.models)
        augmentations = tuple(
            locate_augmentation(name, spec.places) for name in spec.possible_values("augmentation")
        )
        by_inputs, digests, recorded = spec.trials_by_inputs(), dict[str, Any](), dict[Any, Any]()
        check_study(spec)
        with suppress(StorageError):
            recorded = read_planned(job.url, spec.name)
        for trials in by_inputs.values():
            settings = trials[0]
            found = check_inputs(
                resolve_paths(settings, spec.places),
                augmentations,
                int(min(spec.possible_values("batch_size"))),
                trials,
                (spec.metric, spec.select_by),
                is_new=not recorded,
            )
            named = settings.model_copy(update={"encoder": settings.encoder_name})
            digests |= {f"{name} {getattr(named, name)}": text for name, text in found.items()}
        for warning in data_warnings(spec):
            warn(warning)
        packages = packages_of(*job.spec.methods)
        return digests | {VERSIONS: machine(packages).all_versions}

    def prepare(self, study: OpenStudy) -> str:
        """Record what `precision: auto` means; a sentence where it has another meaning here."""
        spec = MethodSpec.of(study.spec)
        if "auto" not in spec.possible_values("precision"):
            return ""
        here = choose_device(spec.fixed().model_copy(update={"precision": "auto"})).precision
        recorded = study.store.record_once("precision", here)
        if recorded == here:
            return ""
        return (
            f"study {spec.name}: precision {recorded}, as in its earlier trials; "
            f"auto would choose {here} on this machine"
        )

    def run(self, settings: RunSettings, run: TrialRun) -> Sequence[str]:
        """Train; resumes from the trial's last checkpoint. The best trial's model is published."""
        assert isinstance(settings, TrainerSettings), "those of a method"
        take_gpu()
        study, claim = run.study, run.claim
        place = study.row.artifacts
        shared = None if place is None else SharedCheckpoints(Artifacts(place), run.folder)
        checkpoints = TrialCheckpoints(run.folder, shared)
        result, trained = train_trial(TrialMonitor(run, settings, checkpoints))
        notes = checkpoints.notes
        if trained is not None:
            ranking = result.scores[study.row.select_by]
            notes += stage_model(run, ranking, trained, shared)
            run.heartbeat.beat()
            run.heartbeat.check()
            save_result(run.folder, result, trained.identity)
        run.record(result, notes)
        notes = [publish_model(run.folder, study.job.model, study.store, claim)]
        if trained is not None and MethodSpec.of(study.spec).tracking == "tensorboard":
            notes.append(track(study.spec.name, claim.number, trained.settings, trained.outcome))
        # after the model, as those of this machine
        return [*notes, *checkpoints.remove_shared()]

    def restore(self, study: OpenStudy) -> None:
        publish_left_models(study)


OBJECTIVE = Trainer()


def train_trial(monitor: TrialMonitor) -> tuple[Result, Trained | None]:
    """The result of a trial, with what saving its model needs if it was trained to its end here."""
    study, spec, settings = monitor.run.study, monitor.run.study.spec, monitor.settings
    if settings.precision == "auto" and study.row.precision is not None:
        # the same on whichever machine
        settings = settings.model_copy(update={"precision": study.row.precision})
    try:
        inputs = load_inputs(resolve_paths(settings, spec.places))
        run = describe_run(settings, inputs, spec.imports)
        identity = json.dumps([spec.metric, study.row.select_by, *map(run.get, SAME)])
        if (kept := load_result(monitor.checkpoints.folder, identity)) is not None:
            monitor.checkpoints.notes.append("its result was kept on the disk")
            return kept, None
        state = start(settings, inputs)
        with monitor.checkpoints.continued(state, run):
            outcome = train(settings, inputs, monitor, state)
            environment = environment_of(settings, inputs, spec.imports)
        result = complete(spec.metric, study.row.select_by, outcome, environment)
    except NOT_ENDING:
        raise
    except BaseException as error:
        # any other one ends this trial, not the study
        return ended_early(error, monitor), None
    if result.state != "COMPLETE":
        return result, None
    origin = {
        "study": spec.name,
        "trial": monitor.run.claim.number,
        DATABASE: study.identity,
        "chosen": f"for the highest {study.row.select_by} of the study's trials",
        "file": spec.text,
    }
    return result, Trained(settings, inputs, outcome, origin | environment.sentences(), identity)


def track(study: str, number: int, settings: TrainerSettings, outcome: Outcome) -> str:
    """Write a trial's TensorBoard event file: curve, final scores, settings. An error is a note."""
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
