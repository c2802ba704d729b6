"""mtdlab's own trainer as the objective of a study: trials of its methods, with models kept."""

import json
from functools import partial
from pathlib import Path

from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.config.paths import located
from mtdlab.errors import StorageError
from mtdlab.settings import RunSettings
from mtdlab.store import Result, Store
from mtdlab.sweep.best_model import Trained, save_if_best
from mtdlab.sweep.checkpoints import SAME, TrialCheckpoints, describe_run
from mtdlab.sweep.environment import PACKAGES, environment
from mtdlab.sweep.heartbeat import ClaimLost
from mtdlab.sweep.machine import describe_versions
from mtdlab.sweep.monitor import TrialMonitor, TrialRun
from mtdlab.sweep.objective import Ended, Objective
from mtdlab.sweep.precision import fix_precision
from mtdlab.sweep.preflight import check_training
from mtdlab.sweep.results import complete, ended_early
from mtdlab.sweep.same_inputs import VERSIONS
from mtdlab.sweep.signals import Interrupted, StopRequest
from mtdlab.sweep.slots import take_gpu
from mtdlab.sweep.spool import load_result, save_result
from mtdlab.sweep.tracking import track
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train


class Trainer(Objective):
    """Trains a method on a corpus, and keeps the best trial's model."""

    def check(self, spec: StudySpec, models: Path) -> dict[str, str]:
        """Check encoder, texts, evaluation data, device, and the folder of models."""
        return check_training(spec, models) | {VERSIONS: describe_versions(PACKAGES)}

    def prepare(self, spec: StudySpec, store: Store) -> str:
        """Fix what `precision: auto` means in all trials of the study."""
        return fix_precision(spec, store)

    def run(self, spec: StudySpec, settings: RunSettings, run: TrialRun) -> Ended:
        """Train; resumes from the trial's last checkpoint."""
        assert isinstance(settings, TrainerSettings), "those of a method"
        take_gpu()
        checkpoints = TrialCheckpoints(run.folder)
        monitor = TrialMonitor(
            run.study, run.claim, run.trial, run.stop, settings, checkpoints, run.heartbeat
        )
        result, trained = train_trial(spec, settings, monitor)
        if trained is None:
            # a result that was kept is recorded before its model is saved
            unsaved = result.state == "COMPLETE"
            return Ended(result, tuple(checkpoints.notes), leaves_folder=unsaved)
        return Ended(result, tuple(checkpoints.notes), partial(_keep, spec, run, trained))

    def restore(
        self, spec: StudySpec, url: str, models: Path, store: Store, stop: StopRequest
    ) -> None:
        """Save the best trial's model if a killed process left it unsaved."""
        # it imports this module
        from mtdlab.sweep.restore import restore_model

        restore_model(spec, url, models, store, stop)


def _keep(spec: StudySpec, run: TrialRun, trained: Trained) -> list[str]:
    """Save the model if it is the best, and write the training curves."""
    notes = [save_if_best(run.study.model, run.study.store, run.claim, trained)]
    if spec.tracking == "tensorboard":
        name, number = run.study.model.name, run.trial.number
        notes.append(track(name, number, trained.settings, trained.outcome))
    return notes


def train_trial(
    spec: StudySpec, settings: TrainerSettings, monitor: TrialMonitor
) -> tuple[Result, Trained | None]:
    study = monitor.study
    settings = _with_precision(settings, study.precision)
    try:
        inputs = load_inputs(located(settings, spec.places))
        run = describe_run(settings, inputs)
        identity = json.dumps([spec.metric, study.select_by, *(run[name] for name in SAME)])
        if (kept := load_result(monitor.checkpoints.folder, identity)) is not None:
            monitor.checkpoints.notes.append("its result was kept on the disk")
            return kept, None
        state = start(settings, inputs)
        with monitor.checkpoints.continued(state, run):
            outcome = train(settings, inputs, monitor, state)
            facts = environment(settings, inputs)
        result = complete(spec.metric, study.select_by, outcome, facts)
    except (Interrupted, ClaimLost, StorageError):
        raise
    except Exception as error:
        # any other error ends this trial, not the study
        return ended_early(error, monitor.step), None
    if result.state != "COMPLETE":
        return result, None
    monitor.heartbeat.beat()
    monitor.heartbeat.check()
    save_result(monitor.checkpoints.folder, result, identity)
    select_by = study.select_by or spec.metric
    origin = {
        "study": spec.name,
        "trial": monitor.trial.number,
        "chosen": f"for the highest {select_by} of the study's trials",
        "file": spec.text,
    }
    return result, Trained(settings, inputs, outcome, origin | facts)


def _with_precision(settings: TrainerSettings, precision: str | None) -> TrainerSettings:
    """`precision: auto` replaced by what it means in this study, on whichever machine."""
    if settings.precision != "auto" or precision is None:
        return settings
    return settings.model_copy(update={"precision": precision})
