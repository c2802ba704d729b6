"""Whole studies: deleted, renamed, exported to a file of their own, imported."""

import platform
import tempfile
from pathlib import Path

from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.data_paths import exists
from mtdlab.errors import MtdlabError, StorageError, refusing
from mtdlab.settings.messages import is_study_name
from mtdlab.store.database import check_file, reading, refuse_damaged, warn_of_network
from mtdlab.store.exchange import delete_records, read_records, rename_records, write_records
from mtdlab.store.facts import has_its_rows
from mtdlab.store.recorded import planned_names, read_recorded, study_names
from mtdlab.store.records import Records, check_records
from mtdlab.store.store import Store, open_store
from mtdlab.store.tables import StudyRow
from mtdlab.store.urls import mask, sqlite_url, storage_url
from mtdlab.terminal import warn
from mtdlab.trial.model_folders import own_folders, remove_checkpoints_of


def delete_study(study: str, url: str, models: Path) -> bool:
    """Delete a study from mtdlab's and Optuna's tables, its plan, and its checkpoints in `models`.

    Its model and its page are kept. A plan is deleted also without a study. Returns whether there
    were checkpoints of this study (`own_folders`). Raises NothingToReport if there is no such
    study, MtdlabError while a sweep runs it, StorageError if the database fails.
    """
    refuse_damaged(url)
    if study not in planned_names(url):
        read_recorded(url, study)
    store = _refuse_live(study, url)
    # a changed database may hold any name, such as a path
    own = own_folders(store, study, models) if is_study_name(study) else []
    checkpoints = [folder for folder in own if folder != models / study]
    delete_records(url, study)
    for folder in checkpoints:
        remove_checkpoints_of(folder)
    return bool(checkpoints)


def rename_study(old: str, new: str, url: str, models: Path) -> list[Path]:
    """Rename a study, and the folders of its model and checkpoints; returns the renamed folders.

    Those of a study in another database stay (`own_folders`). Raises NothingToReport if there is no
    such study; MtdlabError if `new` is not a name of a study or is taken, while a sweep runs the
    study, and if a folder cannot be renamed after the study was; StorageError if the database
    fails.
    """
    for name in (old, new):
        _check_name(name)
    refuse_damaged(url)
    read_recorded(url, old)
    store = _refuse_live(old, url)
    present = {folder: folder.with_name(new) for folder in own_folders(store, old, models)}
    for after in present.values():
        if after.exists():
            raise MtdlabError(f"{after} exists; move it, or choose another name")
    recorded = store and store.study()
    resumed = adapt(recorded.invocation, new) if recorded else NO_INVOCATION
    rename_records(url, old, new, resumed)
    for before, after in present.items():
        what = f"study {old} is renamed to {new}, but {before} could not be renamed"
        with refusing(OSError, what=what, hint=f"rename it to {after} yourself"):
            before.rename(after)
    model = store and store.saved_model()
    here = (platform.node(), str((models / old).absolute()))
    # it may be that of another machine, of another study, or in another folder
    if models / old in present and store and model and (model.host, model.folder) == here:
        store.record_model(model.trial, model.host, str((models / new).absolute()))
    return list(present.values())


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
    read_recorded(url, study)
    with refusing(OSError, what=str(out)):
        building = tempfile.TemporaryDirectory(prefix=f".{out.name}.writing-", dir=out.parent)
    with building as folder:
        file = Path(folder) / out.name
        records = read_records(url, study)
        # what could not be imported is not exported
        check_records(records)
        write_records(sqlite_url(file), records, study, with_digest=True)
        file.rename(out)


def import_study(file: Path, url: str, name: str | None = None) -> str:
    """Add the study of an exported file to a database, as `name`; returns its name.

    Every row is checked before the first is written (`store.records`), and all are written in one
    transaction. A file without a digest of its rows is imported with a warning. Raises MtdlabError
    if the file is damaged, was changed, or has not exactly one study, and if the database has a
    study of that name; StorageError if the database fails.
    """
    records = _read_exported(file)
    [study] = records[StudyRow]
    target = name or study["name"]
    _check_name(target)
    warn_of_network(url)
    resumed = adapt(study["invocation"], "" if target == study["name"] else target, url)
    write_records(url, {**records, StudyRow: [study | {"invocation": resumed}]}, target)
    return target


def _read_exported(file: Path) -> Records:
    """The study of an exported file. Raises MtdlabError."""
    source = sqlite_url(file)
    advice = "import a file of mtdlab export-study"
    if not exists(file):
        raise MtdlabError(f"{file}: no such file; {advice}")
    with refusing(StorageError):
        check_file(file, advice)
        found = study_names(source)
        if len(found) != 1:
            raise MtdlabError(f"{file} holds {len(found)} studies; {advice}")
        if not is_study_name(found[0]):
            raise StorageError(f"{found[0]!r} is not a name of a study")
        refuse_damaged(source)
        records = read_records(source, found[0])
    try:
        check_records(records)
        with reading(source) as session:
            has_rows = has_its_rows(session.connection())
        if has_rows is False:
            raise StorageError("its rows are not those that were exported")
    except StorageError as error:
        raise MtdlabError(f"{file} was changed or is damaged: {error}; {advice}") from None
    if has_rows is None:
        warn(
            f"{file} has no digest of its rows, which export-study writes: whether a row was "
            "changed or deleted is not known"
        )
    return records


def _check_name(name: str) -> None:
    if not is_study_name(name):
        raise MtdlabError(
            f"{name!r}: not a name of a study; use letters, digits, dots and dashes, at most 100"
        )


def _refuse_live(study: str, url: str) -> Store | None:
    """The store of a study, None for a plan alone. Raises MtdlabError while a sweep may run it."""
    store = open_store(url, study)
    if store is None:
        return None
    running = (row.owner or {} for row in store.owned() if not row.is_abandoned)
    live = [*running, *store.live_sweeps()]
    if live:
        hosts = ", ".join(sorted({str(owner.get("host")) for owner in live}))
        raise MtdlabError(f"study {study} is run by a sweep (on {hosts}); stop it first")
    return store


def adapt(invocation: Invocation, new_name: str = "", storage: str = "") -> Invocation:
    """The command that resumes a study; empty for one that cannot do it.

    `new_name` is the study's if it was renamed (only `mtdlab sweep` takes another one), `storage`
    the URL of its database if it was copied to another one.
    """
    if new_name:
        if invocation.command != "sweep":
            return NO_INVOCATION
        values = invocation.options.get("set", ())
        kept = [value for value in values if not value.startswith("study=")]
        invocation = invocation.giving("set", *kept, f"study={new_name}")
    if not storage or not invocation:
        return invocation
    if storage == storage_url(None):
        return invocation.without("storage")
    return invocation.giving("storage", mask(storage))
