"""This package is the study database, mtdlab's tables in an Optuna database; all SQL is in it."""

from mtdlab.store.claims import Claim, Result
from mtdlab.store.names import study_names
from mtdlab.store.owner import Owner
from mtdlab.store.progress import ProgressReader, StudyOverview, list_studies
from mtdlab.store.ranking import FinishedTrial, SavedModel
from mtdlab.store.store import Look, Store
from mtdlab.store.tables import FINISHED

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
    "study_names",
]
