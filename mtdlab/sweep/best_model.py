"""The model of a study's best trial, kept in a folder while the sweep runs, and shared."""

import platform
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtdlab.config import TrainerSettings
from mtdlab.errors import StorageError, describe
from mtdlab.store import Claim, Store
from mtdlab.sweep.artifacts import Artifacts, ArtifactsError
from mtdlab.sweep.shared_models import share_model
from mtdlab.training.export import locked, save_model
from mtdlab.training.inputs import RunInputs
from mtdlab.training.outcome import Outcome


@dataclass(frozen=True)
class Trained:
    """A finished run with everything that saving its model needs."""

    settings: TrainerSettings
    inputs: RunInputs
    outcome: Outcome
    facts: dict[str, Any]


def save_if_best(folder: Path, store: Store, claim: Claim, trained: Trained) -> str:
    """Save the model of a recorded trial if it is the study's best; returns an error as a note.

    The best is that by `select_by`. Call it after the trial's result is recorded. Of two workers
    that finish at once, the one with the lower score then finds the other's result and leaves the
    folder alone, whichever of the two holds the folder's lock first. No error in saving ends the
    sweep; StorageError may be raised.
    """
    try:
        with locked(folder):
            best = store.best_trial()
            if best is not None and best.row == claim.row:
                save_model(folder, trained.settings, trained.inputs, trained.outcome, trained.facts)
                return _record(folder, store, best.number)
    except StorageError:
        raise
    except Exception as error:
        return f"model not saved: {describe(error)}"
    return ""


def _record(folder: Path, store: Store, number: int) -> str:
    """Share a saved model where the study does, and record where it is; returns an error."""
    url, note = store.artifacts(), ""
    if url is not None:
        try:
            share_model(folder, store, Artifacts(url))
            return note
        except ArtifactsError as error:
            note = f"model not shared: {error}"
    store.record_model(number, platform.node(), str(folder.absolute()))
    return note
