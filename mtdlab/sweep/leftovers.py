"""What holds of the folders of a study: the saved model, checkpoints and temporary folders."""

from collections.abc import Iterator, Set
from pathlib import Path

from mtdlab.files import temporary_folders
from mtdlab.store import Claim, Store
from mtdlab.store.invariants import RERUN, Problem
from mtdlab.store.owner import is_dead
from mtdlab.store.record import Record
from mtdlab.store.saved_model import SavedModel
from mtdlab.sweep.model_folders import CHECKPOINTS, read_kept_trial
from mtdlab.sweep.spool import RESULT


def find_leftovers(record: Record, models: Path) -> list[Problem]:
    """The problems of a study in the folder of models."""
    return [problem for check in LEFTOVERS for problem in check(record, models)]


def model_is_that_of_the_best_trial(record: Record, models: Path) -> Iterator[Problem]:
    """`models/STUDY` is the model of the best trial, unless saving it was noted to have failed.

    Where all machines share models, another one may have shared it.
    """
    name, folder = "the saved model is that of the best trial", models / record.study.name
    if (best := record.best) is None:
        if folder.exists():
            found = f"{folder} is there, but no trial is complete"
            yield Problem(name, found, f"move {folder} away")
        return
    shared = SavedModel.of(record.study.model)
    if shared is not None and shared.is_shared and shared.trial == best.number:
        return
    if not folder.exists():
        return  # saved in another folder or on another machine, or the study was imported
    again = f"mtdlab reproduce {record.study.name} {best.number} computes its scores again"
    try:
        kept = read_kept_trial(folder)
    except (OSError, ValueError, KeyError, TypeError) as error:
        found = f"{folder} holds no model of trial {best.number} ({type(error).__name__})"
        yield Problem(name, found, f"move {folder} away; {again}")
        return
    # not by the study's name, which may have changed since
    if kept != best.number:
        found = f"{folder} holds trial {kept}, the best is trial {best.number}"
        yield Problem(name, found, f"see the note of trial {best.number}; {again}")


def checkpoints_belong_to_unfinished_trials(record: Record, models: Path) -> Iterator[Problem]:
    """Every folder of checkpoints is that of a trial that waits, runs or may be resumed."""
    unfinished = {
        f"{row.setting}-{row.seed}"
        for row in record.trials
        if row.state in ("WAITING", "RUNNING") or row.reason_code == "interrupted"
    }
    for folder in sorted((models / CHECKPOINTS / record.study.name).glob("*")):
        if folder.name not in unfinished:
            found = f"{folder} holds checkpoints of a trial that has ended or is not planned"
            yield Problem("checkpoints are those of unfinished trials", found, RERUN)


def nothing_temporary_is_left(record: Record, models: Path) -> Iterator[Problem]:
    """Without a running trial there are no temporary folders of models, checkpoints or claims."""
    if any(
        row.state == "RUNNING" and not is_dead(row.owner or {}, row.silent) for row in record.trials
    ):
        return
    name, checkpoints = record.study.name, models / CHECKPOINTS / record.study.name
    found = [*temporary_folders(models, name), *models.glob(f".{name}.claim")]
    for trial in checkpoints.glob("*"):
        found += temporary_folders(trial, RESULT)
    for pattern in ("*/.step-*", "**/*.claim"):
        found += checkpoints.glob(pattern)
    for path in sorted(found):
        text = f"{path} was left by a process that was killed"
        yield Problem("no temporary folder is left", text, f"rm -r {path}")


def folders_of_ended(
    store: Store, checkpoints: Path, shared: Set[str] = frozenset()
) -> Iterator[tuple[Claim, Path]]:
    """The trials that have ended and have a folder in that of the checkpoints.

    shared  the names of folders that are elsewhere, of which those of ended trials are added.
    """
    if shared or checkpoints.exists():
        for claim in store.ended():
            folder = checkpoints / f"{claim.setting}-{claim.seed}"
            if folder.name in shared or folder.exists():
                yield claim, folder


def find_notes(record: Record, models: Path) -> Iterator[str]:
    """What is as it should be, and worth to be known: a model elsewhere, results to be recorded."""
    name, model = record.study.name, SavedModel.of(record.study.model)
    if model is not None and (model.is_shared or not (models / name).exists()):
        yield str(model)
    for row in record.trials:
        result = models / CHECKPOINTS / name / f"{row.setting}-{row.seed}" / RESULT
        if row.state in ("WAITING", "RUNNING") and result.exists():
            yield f"{result} holds the result of a trial, which the next sweep records"


LEFTOVERS = (
    model_is_that_of_the_best_trial,
    checkpoints_belong_to_unfinished_trials,
    nothing_temporary_is_left,
)
