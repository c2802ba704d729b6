"""This package is the study database, mtdlab's tables in an Optuna database; all SQL is in it."""

from mtdlab.store.claims import Claim, Result
from mtdlab.store.owner import Owner
from mtdlab.store.progress import StudyOverview, list_studies
from mtdlab.store.ranking import FinishedTrial, SavedModel
from mtdlab.store.recorded import study_names
from mtdlab.store.store import Store

__all__ = [
    "Claim",
    "FinishedTrial",
    "Owner",
    "Result",
    "SavedModel",
    "Store",
    "StudyOverview",
    "list_studies",
    "study_names",
]
