"""The examination of a database, its studies and their folders, without changing anything."""

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from mtdlab.files import free_bytes, temporary_folders
from mtdlab.settings.messages import is_study_name
from mtdlab.store import database
from mtdlab.store.invariants import RERUN, ExaminedStudy, Problem, examine_database
from mtdlab.store.recorded import read_identity
from mtdlab.store.tables import IMPORTED, SCHEMA_VERSION, living_state
from mtdlab.store.urls import mask, sqlite_file
from mtdlab.trial.model_folders import RESULT, STAGED, checkpoints_of, kept_trial, read_run

PACKAGES = ("mtdlab", "torch", "transformers", *database.PACKAGES, "numpy", "pandas")


@dataclass(frozen=True)
class Examination:
    """What was found.

    Attributes:
        database: problems of the file as a whole.
        studies: those of each study, by name.
        notes: of each study what a reader should know that is no problem.
        machine: versions, device, threads, free disk.
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
        return Examination(mask(url), (), {}, {}, describe_machine(models, path))
    problems, records = examine_database(url, study)
    studies = {record.study.name: of_record for record, of_record in records}
    notes: dict[str, tuple[str, ...]] = dict.fromkeys(studies, ())
    for record, _ in records:
        is_copy = {row.sweep for row in record.trials} == {IMPORTED}
        # a changed database may hold any name, such as a path, or one too long for a folder
        if is_study_name(name := record.study.name) and not is_copy:
            checkpoints = checkpoints_of(models, read_identity(url), name)
            studies[name] += (
                *model_is_that_of_the_best_trial(record, models, url),
                *checkpoints_belong_to_unfinished_trials(record, checkpoints),
                *nothing_temporary_is_left(record, models, checkpoints),
            )
            notes[name] = tuple(find_notes(record, models, checkpoints))
    return Examination(mask(url), problems, studies, notes, describe_machine(models, path))


def describe_machine(models: Path, database: Path | None) -> dict[str, Any]:
    """Versions, device, threads, and free bytes where models and the database are kept."""
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


def model_is_that_of_the_best_trial(
    record: ExaminedStudy, models: Path, url: str
) -> Iterator[Problem]:
    """`models/STUDY` is the model of the best trial, unless saving it was noted to have failed."""
    name, folder = "the saved model is that of the best trial", models / record.study.name
    if (best := record.best) is None:
        if folder.exists():
            found = f"{folder} is there, but no trial is complete"
            yield Problem(name, found, f"move {folder} away")
        return
    shared = record.model
    if shared is not None and shared.is_shared and shared.trial == best.number:
        return
    if not folder.exists():
        return  # saved in another folder or on another machine, or the study was imported
    again = f"mtdlab reproduce {record.study.name} {best.number} computes its scores again"
    # not by the study's name, which may have changed since
    kept, run = kept_trial(folder, url), read_run(folder)
    if kept is None and run:
        found = (
            f"{folder} holds a model whose seed and scores are not those of trial {run['trial']}: "
            "it is of a study in another database, or of a deleted one"
        )
        yield Problem(name, found, f"move {folder} away; {again}")
    elif kept is None:
        found = f"{folder} holds no model of trial {best.number}, or a damaged one"
        yield Problem(name, found, f"move {folder} away; {again}")
    elif kept != best.number:
        found = f"{folder} holds trial {kept}, the best is trial {best.number}"
        yield Problem(name, found, f"see the note of trial {best.number}; {again}")


def checkpoints_belong_to_unfinished_trials(
    record: ExaminedStudy, checkpoints: Path
) -> Iterator[Problem]:
    """Every folder of checkpoints is that of a trial that waits, runs or may be resumed."""
    unfinished = {
        f"{row.configuration}-{row.seed}"
        for row in record.trials
        if row.state in ("WAITING", "RUNNING") or row.reason_code == "interrupted"
    }
    for folder in sorted(checkpoints.glob("*")):
        if folder.name not in unfinished:
            found = f"{folder} holds checkpoints of a trial that has ended or is not planned"
            yield Problem("checkpoints are those of unfinished trials", found, RERUN)


def nothing_temporary_is_left(
    record: ExaminedStudy, models: Path, checkpoints: Path
) -> Iterator[Problem]:
    """Without a running trial there are no temporary folders of models and checkpoints."""
    if any(living_state(row) == "RUNNING" for row in record.trials):
        return
    found = [*temporary_folders(models, record.study.name), *checkpoints.glob("*/.step-*")]
    for trial in checkpoints.glob("*"):
        found += [*temporary_folders(trial, RESULT), *temporary_folders(trial, STAGED)]
    for path in sorted(found):
        text = f"{path} was left by a process that was killed"
        yield Problem("no temporary folder is left", text, f"rm -r {path}")


def find_notes(record: ExaminedStudy, models: Path, checkpoints: Path) -> Iterator[str]:
    """What is no problem: a model on another machine, results that are still to be recorded."""
    name, model = record.study.name, record.model
    if model is not None and (model.is_shared or not (models / name).exists()):
        yield str(model)
    for row in record.trials:
        result = checkpoints / f"{row.configuration}-{row.seed}" / RESULT
        if row.state in ("WAITING", "RUNNING") and result.exists():
            yield f"{result} holds the result of a trial, which the next sweep records"
