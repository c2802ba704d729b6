"""The best trial's model: kept in a folder while the sweep goes on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mtdlab.config import TrainerSettings
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.store import Store
from mtdlab.training.export import save_model
from mtdlab.training.inputs import RunInputs
from mtdlab.training.outcome import Outcome


@dataclass(frozen=True)
class Trained:
    """A finished run with what it takes to save its model."""

    settings: TrainerSettings
    materials: RunInputs
    outcome: Outcome
    facts: dict[str, Any]


def keep_if_best(folder: Path, store: Store, trained: Trained, score: float) -> str:
    """Save a model that beats every finished trial; says what went wrong, or nothing.

    A model that cannot be saved costs the folder, not the trial. Call it under the folder's
    lock and record the trial before letting go, or two trials could both think themselves best.
    """
    best = store.best_score()
    if best is not None and score <= best:
        return ""
    try:
        save_model(folder, trained.settings, trained.materials, trained.outcome, trained.facts)
    except (OSError, MtdlabError, TrialError) as error:
        return f"the model was not saved: {error}"
    return ""
