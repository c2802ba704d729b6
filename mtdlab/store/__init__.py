"""What a study leaves behind, in one database with Optuna's own tables. The only SQL."""

from mtdlab.store.frames import list_studies, load_study
from mtdlab.store.store import Claim, Owner, Result, Store
from mtdlab.store.watch import FINISHED, Watcher, Working

__all__ = [
    "FINISHED",
    "Claim",
    "Owner",
    "Result",
    "Store",
    "Watcher",
    "Working",
    "list_studies",
    "load_study",
]
