"""Whole studies: deleted, renamed, exported to a file of their own, imported."""

import os
import platform
import shutil
import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import optuna
from optuna.exceptions import DuplicatedStudyError
from optuna.storages import RDBStorage

from mtdlab.config.study import is_study_name
from mtdlab.errors import MtdlabError, NothingToReport, StorageError, nearest
from mtdlab.store import Store, study_names
from mtdlab.store.damage import refuse_damaged
from mtdlab.store.database import explained, writing_engine
from mtdlab.store.names import find_conflict, find_id, has_plan, names_in
from mtdlab.store.owner import is_dead
from mtdlab.store.transfer import (
    StudyRecords,
    delete_records,
    read_records,
    rename_records,
    write_optuna,
    write_records,
)
from mtdlab.store.urls import shown
from mtdlab.sweep.model_folders import CHECKPOINTS
from mtdlab.sweep.optuna_study import open_storage
from mtdlab.sweep.recorded_command import adapt_command


def delete_study(study: str, url: str, models: Path) -> None:
    """Delete a study from mtdlab's and Optuna's tables, its plan, and its checkpoints in `models`.

    Its model and its page are kept. A plan is deleted also without a study. Raises NothingToReport
    if there is no such study, MtdlabError while a sweep runs it, StorageError if the database
    fails.
    """
    refuse_damaged(url)
    if not has_plan(url, study):
        _find(study, url)
    _refuse_live(study, url)
    # Optuna's study first: if this process is killed in between, the next sweep of that name
    # deletes our rows, or the command is repeated
    with explained(url):
        storage = open_storage(url)
        ids = {each.study_name: each._study_id for each in storage.get_all_studies()}
        if study in ids:
            storage.delete_study(ids[study])
    delete_records(url, study)
    # Optuna's own studies may have any name, such as a path
    if is_study_name(study):
        shutil.rmtree(models / CHECKPOINTS / study, ignore_errors=True)


def rename_study(old: str, new: str, url: str, models: Path) -> list[Path]:
    """Rename a study, and the folders of its model and checkpoints; returns the renamed folders.

    Raises NothingToReport if there is no such study, MtdlabError if `new` is not a name of a study
    or a folder of that name exists, while a sweep runs the study, and if a folder cannot be renamed
    after the study was; StorageError if the database fails or `new` is taken.
    """
    for name in (old, new):
        _check_name(name)
    refuse_damaged(url)
    _find(old, url)
    store = _refuse_live(old, url)
    folders = {each / old: each / new for each in (models, models / CHECKPOINTS)}
    present = {before: after for before, after in folders.items() if before.exists()}
    for after in present.values():
        if after.exists():
            raise MtdlabError(f"{after} exists; move it, or choose another name")
    recorded = store and store.study()
    rename_records(url, old, new, adapt_command(recorded.command, new) if recorded else "")
    try:
        for before, after in present.items():
            before.rename(after)
    except OSError as error:
        raise MtdlabError(
            f"study {old} is renamed to {new}, but {before} could not be renamed "
            f"({(error.strerror or str(error)).lower()}); rename it to {after} yourself"
        ) from None
    if store is not None:
        _record_folder(store, models / old, models / new)
    return list(present.values())


def _record_folder(store: Store, before: Path, after: Path) -> None:
    """Record the new folder of a study's model, if it is the one that was renamed."""
    model = store.saved_model()
    here = (platform.node(), str(before.absolute()))
    if model is not None and (model.host, model.folder) == here:
        store.record_model(model.trial, model.host, str(after.absolute()))


def export_study(study: str, url: str, out: Path) -> None:
    """Write a study with everything that is recorded of it to a new SQLite file.

    Models and checkpoints are not part of it; a running trial is exported as a waiting one. The
    study is read as it is at one moment, while sweeps may go on. Raises NothingToReport if there is
    no such study, MtdlabError if `out` exists or cannot be written, StorageError if the database
    fails.
    """
    if out.exists():
        raise MtdlabError(f"{out} exists; choose another file with --out")
    refuse_damaged(url)
    _find(study, url)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{out.name}.writing-", dir=out.parent)
    except OSError as error:
        raise MtdlabError(f"{out}: {(error.strerror or str(error)).lower()}") from None
    os.close(handle)
    building = Path(name)
    # an empty file would be refused as a damaged database
    building.unlink()
    try:
        _write(read_records(url, study), f"sqlite:///{building}")
        building.rename(out)
    finally:
        building.unlink(missing_ok=True)


def import_study(file: Path, url: str, name: str | None = None) -> str:
    """Add the study of an exported file to a database, as `name`; returns its name.

    Raises StorageError if the file or the database cannot be used, MtdlabError if the database
    has a study of that name or the file has not exactly one.
    """
    source = f"sqlite:///{file}"
    found = study_names(source)
    if len(found) != 1:
        raise MtdlabError(
            f"{file} holds {len(found)} studies; import a file of mtdlab export-study"
        )
    target = name or found[0]
    _check_name(target)
    writing_engine(url).dispose()
    if conflict := find_conflict(url, target):
        raise MtdlabError(f"{conflict}; import it under another name with --name")
    # Optuna opens a database for writing: the file itself stays as it is
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "study.db"
        shutil.copyfile(file, copy)
        _copy(found[0], f"sqlite:///{copy}", url, target)
    return target


def _write(records: StudyRecords, target: str) -> None:
    """Write a study to a new database."""
    name, study_id = records.study["name"], records.study["id"]
    if not records.optuna.get("studies"):
        raise MtdlabError(f"study {name} was deleted through Optuna; there is nothing to export")
    with explained(target):
        writing_engine(target).dispose()
        open_storage(target).engine.dispose()
    write_optuna(target, records)
    known = {row["trial_id"]: row["trial_id"] for row in records.optuna["trials"]}
    write_records(target, records, name, study_id, known)


def _copy(study: str, source: str, target: str, name: str) -> None:
    """Copy a study from one database to another that has none of this name."""
    refuse_damaged(source)
    records = read_records(source, study)
    new_name = "" if name == study else name
    command = adapt_command(records.study["command"], new_name, target)
    records = replace(records, study=records.study | {"command": command})
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with explained(target):
        before, after = open_storage(source), open_storage(target)
        try:
            optuna.copy_study(
                from_study_name=study, from_storage=before, to_storage=after, to_study_name=name
            )
            study_id = after.get_study_id_from_name(name)
            numbers = _trial_ids(before, before.get_study_id_from_name(study))
            new = {number: identity for identity, number in _trial_ids(after, study_id).items()}
            ids = {identity: new[number] for identity, number in numbers.items()}
            write_records(target, records, name, study_id, ids)
        except DuplicatedStudyError:
            raise StorageError(f"{shown(target)} has a study {name} already") from None
        except BaseException:
            with suppress(KeyError):
                after.delete_study(after.get_study_id_from_name(name))
            raise
        finally:
            before.engine.dispose()
            after.engine.dispose()


def _trial_ids(storage: RDBStorage, study_id: int) -> dict[int, int]:
    """The number of each of Optuna's trials by its id."""
    trials = storage.get_all_trials(study_id, deepcopy=False)
    return {trial._trial_id: trial.number for trial in trials}


def _find(study: str, url: str) -> None:
    known = names_in(url)
    if study not in known:
        raise NothingToReport(f"no study {study} in {shown(url)}; {nearest(study, known)}")


def _check_name(name: str) -> None:
    if not is_study_name(name):
        raise MtdlabError(
            f"{name!r}: not a name of a study; use letters, digits, dots and dashes, at most 100"
        )


def _refuse_live(study: str, url: str) -> Store | None:
    """The store of a study, None for one of Optuna's only.

    Raises MtdlabError while a process that may be alive runs a sweep or a trial of the study.
    """
    identity = find_id(url, study)
    if identity is None:
        return None
    store = Store(url, identity)
    live = [each.owner for each in store.owned() if not is_dead(each.owner, each.silent)]
    live += store.live_sweeps()
    if live:
        hosts = ", ".join(sorted({str(owner.get("host")) for owner in live}))
        raise MtdlabError(f"study {study} is run by a sweep (on {hosts}); stop it first")
    return store
