"""The examination of a database, its studies and their folders, without changing anything."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mtdlab.files import free_bytes
from mtdlab.store import study_names
from mtdlab.store.invariants import Problem, check_database, find_problems
from mtdlab.store.reading import reading
from mtdlab.store.record import read_record
from mtdlab.store.tables import SCHEMA_VERSION
from mtdlab.store.urls import shown, sqlite_file
from mtdlab.sweep.leftovers import find_leftovers, find_notes

PACKAGES = ("mtdlab", "torch", "transformers", "optuna", "sqlalchemy", "numpy", "pandas")


@dataclass(frozen=True)
class Examination:
    """What was found.

    database  problems of the file as a whole; studies: those of each study, by name.
    notes     what is worth to be known of each study, and no problem.
    machine   versions, device, threads, free disk.
    """

    storage: str
    database: tuple[Problem, ...]
    studies: dict[str, tuple[Problem, ...]]
    notes: dict[str, tuple[str, ...]]
    machine: dict[str, Any]

    @property
    def holds(self) -> bool:
        """Whether every invariant holds."""
        return not self.database and not any(self.studies.values())


def examine(url: str, models: Path, study: str | None = None) -> Examination:
    """Check the invariants of one study, or of all studies of a database.

    Without a study, a database that does not exist yet has no problem. Raises StorageError where
    it cannot be read, NothingToReport where there is no such study.
    """
    path = sqlite_file(url)
    if study is None and path is not None and not path.exists():
        return Examination(shown(url), (), {}, {}, describe_machine(models, path))
    names = study_names(url) if study is None else [study]
    with reading(url) as session:
        problems = tuple(check_database(session))
        records = {name: read_record(session, name, url) for name in names}
        studies = {
            name: (*find_problems(record), *find_leftovers(record, models))
            for name, record in records.items()
        }
        notes = {name: tuple(find_notes(record, models)) for name, record in records.items()}
    return Examination(shown(url), problems, studies, notes, describe_machine(models, path))


def describe_machine(models: Path, database: Path | None) -> dict[str, Any]:
    """Versions, device, threads and free disk of this machine.

    disk  free bytes where models and the database are kept.
    """
    import torch

    from mtdlab.device import choose_device
    from mtdlab.settings import TrainerSettings

    folders = {"models": models, **({"database": database.parent} if database else {})}
    return {
        "python": platform.python_version(),
        "system": platform.platform(),
        "versions": {name: version(name) for name in PACKAGES},
        "schema": SCHEMA_VERSION,
        "device": str(choose_device(TrainerSettings())),
        "gpus": torch.cuda.device_count(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "disk": {name: free_bytes(folder) for name, folder in folders.items()},
    }
