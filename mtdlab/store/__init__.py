"""This package is the study database, mtdlab's tables in an Optuna database; all SQL is in it."""

from typing import TYPE_CHECKING, Any

from mtdlab.store.claims import Claim, Result
from mtdlab.store.names import study_names
from mtdlab.store.owner import Owner
from mtdlab.store.progress import ProgressReader, StudyOverview, list_studies
from mtdlab.store.ranking import FinishedTrial, SavedModel
from mtdlab.store.store import Look, Store
from mtdlab.store.tables import FINISHED

if TYPE_CHECKING:
    from mtdlab.store.frames import load_frames

__all__ = [
    "FINISHED",
    "Claim",
    "FinishedTrial",
    "Look",
    "Owner",
    "ProgressReader",
    "Result",
    "SavedModel",
    "Store",
    "StudyOverview",
    "list_studies",
    "load_frames",
    "study_names",
]


def __getattr__(name: str) -> Any:
    # it imports pandas, which listing studies and completing their names does not need
    if name == "load_frames":
        from mtdlab.store.frames import load_frames

        return load_frames
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
