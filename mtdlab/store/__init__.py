"""The study database: mtdlab's tables in an Optuna database. All SQL is in this package."""

from mtdlab.store.claims import Claim, Owner, Result
from mtdlab.store.frames import list_studies, load_study
from mtdlab.store.looks import Look
from mtdlab.store.progress import FINISHED, ProgressReader, RunningTrial
from mtdlab.store.store import FinishedRow, Store

__all__ = [
    "FINISHED",
    "Claim",
    "FinishedRow",
    "Look",
    "Owner",
    "ProgressReader",
    "Result",
    "RunningTrial",
    "Store",
    "list_studies",
    "load_study",
]
