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
from mtdlab.sweep.artifacts import Artifacts, ArtifactsError
from mtdlab.sweep.best_model import save_if_best
from mtdlab.sweep.checkpoints import TrialCheckpoints
from mtdlab.sweep.heartbeat import Heartbeat
from mtdlab.sweep.leftovers import folders_of_ended
from mtdlab.sweep.model_folders import CHECKPOINTS, kept_trial, remove_checkpoints_of
from mtdlab.sweep.monitor import OpenStudy, TrialMonitor
from mtdlab.sweep.shared_checkpoints import (
    SharedCheckpoints,
    checkpoints_place,
    shared_checkpoints,
)
from mtdlab.sweep.shared_models import is_shared, share_model
from mtdlab.sweep.signals import Interrupted, StopRequest
from mtdlab.sweep.slots import take_gpu
from mtdlab.sweep.spool import RESULT
from mtdlab.terminal import print_text
from mtdlab.training.export import locked


def restore_model(spec: StudySpec, url: str, models: Path, store: Store, stop: StopRequest) -> None:
    """Save the best trial's model if a killed process left it unsaved on this machine.

    The trial is continued from its last checkpoint, or trained again, and its record stays as it
    is. Checkpoints of other trials that have ended are removed, also those in the place that all
    machines share, and the best trial's model is shared if it is here alone. May raise
    StorageError.
    """
    place = store.artifacts()
    artifacts = None if place is None else Artifacts(place)
    try:
        _restore(spec, url, models, store, stop, artifacts)
    except ArtifactsError as error:
        print_text(f"mtdlab: {error}; the next sweep tries it again", file=sys.stderr)


def _restore(
    spec: StudySpec,
    url: str,
    models: Path,
    store: Store,
    stop: StopRequest,
    artifacts: Artifacts | None,
) -> None:
    model = models / spec.name
    if artifacts is not None and model.exists():
        with locked(model):
            share_model(model, store, artifacts)
    # another sweep may be sharing a model now, and would need its checkpoints if it were killed
    is_alone = artifacts is None or len(store.live_sweeps()) <= 1
    shared = _shared_names(spec.name, artifacts) if artifacts and is_alone else frozenset()
    for claim, folder in folders_of_ended(store, models / CHECKPOINTS / spec.name, shared):
        best = store.best_trial()
        if best is not None and best.row == claim.row:
            if not is_alone:
                continue
            # another process that is saving the model now has the lock
            with locked(model):
                is_saved = _is_saved(model, best.number, store, artifacts)
            is_left = folder.exists() or folder.name in shared
            if is_left and not is_saved and not _save(spec, url, models, claim, stop):
                continue
        remove_checkpoints_of(folder)
        if folder.name in shared and artifacts is not None:
            SharedCheckpoints.of(artifacts, folder).remove()


def _shared_names(study: str, artifacts: Artifacts) -> frozenset[str]:
    """The trials that have shared checkpoints, as their folders are named."""
    files = artifacts.files(checkpoints_place(study))
    return frozenset(each.partition("/")[0] for each in files)


def _is_saved(model: Path, number: int, store: Store, artifacts: Artifacts | None) -> bool:
    """Whether the model of a trial is saved, on this machine or where it is shared."""
    if kept_trial(model) == number:
        return True
    return artifacts is not None and is_shared(number, store, artifacts)


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
    folder = study.checkpoints / f"{claim.setting}-{claim.seed}"
    checkpoints = TrialCheckpoints(folder, shared_checkpoints(study.store, folder))
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
