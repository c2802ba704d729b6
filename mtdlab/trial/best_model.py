"""The model of a study's best trial: staged before its result is recorded, published after.

A staged model lies beside the trial's checkpoints, and is shared as they are. If the process of the
trial is killed after its result was recorded, the next sweep publishes what it finds there; nothing
is trained again.

    STUDY/models/trial-7-0f3a9c21/   the model of trial 7, as in `models/STUDY`, in the shared place

Each upload has a folder of its own. Which of them is the best trial's is recorded with the study:
the database orders machines that finish at once, as files in such a place cannot.
"""

import platform
import secrets
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtdlab.data_paths import RUN
from mtdlab.errors import StorageError, describe
from mtdlab.files import replace_folder, temporary_folders
from mtdlab.settings import TrainerSettings
from mtdlab.settings.roles import SEARCH
from mtdlab.store.claims import MOST_DEATHS, Claim
from mtdlab.store.ranking import SavedModel
from mtdlab.store.store import Store
from mtdlab.terminal import print_text, warn
from mtdlab.training.export import check_model_folder, locked, save_model
from mtdlab.training.inputs import RunInputs
from mtdlab.training.loop import Outcome
from mtdlab.trial.artifacts import Artifacts, ArtifactsError
from mtdlab.trial.checkpoints import SharedCheckpoints
from mtdlab.trial.model_folders import STAGED, kept_trial, refuse_other_model, remove_checkpoints_of
from mtdlab.trial.study import OpenStudy, TrialRun


@dataclass(frozen=True)
class Trained:
    """A finished run with what saving its model needs, and its identity (`results.save_result`)."""

    settings: TrainerSettings
    inputs: RunInputs
    outcome: Outcome
    facts: dict[str, Any]
    identity: str = ""


def stage_model(
    run: TrialRun, ranking: float, trained: Trained, shared: SharedCheckpoints | None
) -> list[str]:
    """Save the model of a trial that would be the study's best by `ranking`; errors as notes.

    None is kept of a baseline. No error in saving ends the trial; StorageError may be raised.
    """
    best, claim, staged = run.study.store.best_trial(), run.claim, run.folder / STAGED
    if claim.role != SEARCH:
        return []
    # of equal ones the first is the best, as for `Store.best_trial`
    place = (ranking, -claim.number)
    if best is not None and best.ranking is not None and (best.ranking, -best.number) > place:
        return []
    begun = staged.exists() or any(temporary_folders(run.folder, STAGED))
    if begun and claim.deaths == MOST_DEATHS - 1:
        # the next death would fail the trial
        return [
            f"model not saved: the trial's process has died {claim.deaths} times, also while saving"
        ]
    try:
        save_model(staged, trained.settings, trained.inputs, trained.outcome, trained.facts)
        if shared is not None:
            shared.upload_model(staged)
    except Exception as error:
        what = "shared" if isinstance(error, ArtifactsError) else "saved"
        return [f"model not {what}: {describe(error)}"]
    return []


def publish_model(folder: Path, model: Path, store: Store, claim: Claim) -> str:
    """Move the staged model of a recorded trial to `model` if it is the best; an error as a note.

    Of two workers that finish at once, the one with the lower score then finds the other's result
    and leaves the folder alone, whichever of the two holds the folder's lock first. No error in
    saving ends the sweep; StorageError may be raised.
    """
    try:
        with locked(model):
            best = store.best_trial()
            if best is None or best.row != claim.row or not (folder / STAGED).exists():
                return ""
            check_model_folder(model)
            refuse_other_model(model, store.database.url)
            replace_folder(model, folder / STAGED)
            return _record(model, store, claim.number)
    except StorageError:
        raise
    except Exception as error:
        return f"model not saved: {describe(error)}"


def _record(model: Path, store: Store, number: int) -> str:
    """Share a saved model where the study does, and record where it is; returns an error."""
    note = ""
    try:
        if (url := store.artifacts()) is not None:
            share_model(model, store, Artifacts(url))
            return ""
    except ArtifactsError as error:
        note = f"model not shared: {error}"
    store.record_model(number, platform.node(), str(model.absolute()))
    return note


def share_model(folder: Path, store: Store, artifacts: Artifacts) -> None:
    """Upload a saved model and record it, if it is that of the best trial and not shared yet.

    Hold the lock of the folder (`export.locked`). The model that it replaces is removed, or its
    own upload where another machine has finished a better trial meanwhile. Raises ArtifactsError
    and StorageError.
    """
    number = kept_trial(folder, store.database.url)
    best, saved = store.best_trial(), store.saved_model()
    if best is None or number != best.number:
        return
    if saved is not None and saved.trial == number and _name(saved, artifacts) is not None:
        return
    name = f"{folder.name}/models/trial-{number}-{secrets.token_hex(4)}"
    artifacts.upload(folder, name, last=str(RUN))
    replaced = store.record_model(number, platform.node(), f"{artifacts.url}/{name}")
    if replaced is not None and (old := _name(replaced, artifacts)) is not None:
        artifacts.remove(old)


def _name(model: SavedModel, artifacts: Artifacts) -> str | None:
    """The name of a saved model in the shared place; None where it is elsewhere."""
    name = model.folder.removeprefix(f"{artifacts.url}/")
    return None if name == model.folder else name


def publish_left_models(study: OpenStudy) -> None:
    """Publish the best trial's model if a killed process left it staged, here or shared.

    Checkpoints of trials that have ended are removed, also shared ones, and the best trial's model
    is shared if it is on this machine alone. May raise StorageError.
    """
    store, model, names = study.store, study.job.model, frozenset[str]()
    place = store.artifacts()
    artifacts = None if place is None else Artifacts(place)
    try:
        if artifacts is not None:
            if model.exists():
                with locked(model):
                    share_model(model, store, artifacts)
            files = artifacts.files(f"{study.spec.name}/checkpoints/{study.identity}")
            names = frozenset(file.partition("/")[0] for file in files)
        for claim, folder in study.ended(names):
            shared = None
            if artifacts is not None and folder.name in names:
                shared = SharedCheckpoints(artifacts, folder)
            best, saved = store.best_trial(), store.saved_model()
            is_best = best is not None and best.row == claim.row
            if is_best and (saved is None or saved.trial != claim.number):
                if shared is not None and not (folder / STAGED).exists():
                    shared.download_model(folder / STAGED)
                if note := publish_model(folder, model, store, claim):
                    print_text(f"trial {claim.number}: {note}", file=sys.stderr)
            remove_checkpoints_of(folder)
            if shared is not None:
                shared.remove()
    except ArtifactsError as error:
        warn(f"{error}; the next sweep tries it again")
