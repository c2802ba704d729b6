"""Opening a study for a sweep: its row and trials created, or compared with the study file."""

import json
import logging
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.config.program_study import ProgramSpec
from mtdlab.config.reader import defined_study
from mtdlab.config.study import plan_of, sha256_of
from mtdlab.errors import MtdlabError, NothingToReport, StorageError
from mtdlab.programs import Program
from mtdlab.settings.roles import BASELINE
from mtdlab.store import Store
from mtdlab.store.database import refuse_damaged, writing_engine
from mtdlab.store.names import find_twin, names_in, refuse_foreign
from mtdlab.store.optuna_copy import find_copy, has_tables
from mtdlab.store.optuna_tables import create_tables
from mtdlab.store.plans import record_plan
from mtdlab.store.recorded import read_recorded
from mtdlab.store.store import create_store, open_store
from mtdlab.store.tables import StudyRow
from mtdlab.store.urls import without_passwords
from mtdlab.sweep.samplers import search_space
from mtdlab.user_code import UserModule

_LOG = logging.getLogger(__name__)
Difference = tuple[str, object, object]
"""The name of a setting, its recorded value and that of the file."""
_ANY_COMMAND = "mtdlab sweep FILE"


class OtherFile(MtdlabError):
    """A study was begun with another file than the given one."""


def open_study(
    spec: StudySpec, url: str, command: str, *, notify: Callable[[str], None] = lambda _: None
) -> Store:
    """Create the study or add the file's new trials to it, and repair what killed sweeps left.

    A study in which no trial has begun is replaced where the file differs from the recorded one;
    `notify` then gets a sentence.

    Raises MtdlabError where the file differs in more than added trials from that of a study in
    which a trial has begun, StorageError where the database fails, or has a study of this name
    that another program wrote.
    """
    # messages and the record name it
    command = without_passwords(command)
    # before a table is created: in a damaged database an empty one would replace a lost one
    refuse_damaged(url)
    refuse_foreign(url, spec.name)
    # mtdlab's tables first: a file that is no database is refused before Optuna opens it
    engine = writing_engine(url)
    with engine.connect() as connection:
        has_copy = has_tables(connection) and find_copy(connection, spec.name) is not None
    engine.dispose()
    if not has_copy:
        # before the study is recorded: one without Optuna's tables is taken for a damaged one
        create_tables(url)
    if twin := find_twin(spec.name, names_in(url), url):
        raise MtdlabError(f"{twin}; choose another name")
    if (begun := open_store(url, spec.name)) is not None:
        # before anything is written: a record that cannot be read ends the sweep here
        begun.check_readable()
    try:
        store = _record(spec, url, command)
    except OtherFile:
        recorded = open_store(url, spec.name)
        # a trial that a worker has claimed is not replaced
        if recorded is None or not recorded.forget_unbegun():
            raise
        notify(
            f"study {spec.name} was planned from another file; it is replaced by this one, since "
            "none of its trials has begun"
        )
        store = _record(spec, url, command)
    plan = plan_of(spec)
    record_plan(url, spec.name, plan, sha256_of(plan))
    store.release_dead()
    if differing := store.repair_copy():
        _LOG.warning(
            "study %s: Optuna's tables had another end of %d of its trials; mtdlab's record "
            "decides, and was written over it",
            spec.name,
            differing,
        )
    return store


def _record(spec: StudySpec, url: str, command: str) -> Store:
    """Record a study and its new trials. Raises OtherFile."""
    identity = spec.identity()
    store = create_store(url, spec.name, spec.metric, identity)
    if store is None:
        store = open_store(url, spec.name)
        recorded = None if store is None else store.study()
        if store is None or recorded is None:
            raise MtdlabError(f"study {spec.name} was deleted while this sweep started; rerun it")
        _refuse_other_settings(spec, identity, recorded, command)
    if missing := store.add_units(spec.planned_units(), spec.first_seeds):
        raise OtherFile(
            f"study {spec.name} holds {len(missing)} trials that the file no longer has "
            f"(such as seed {missing[0][1]}); put their values and seeds back, or run the file as "
            f"another study: {_renamed(spec, command)}"
        )
    store.write_study(
        StudyRow(
            name=spec.name,
            metric=spec.metric,
            identity=identity,
            file_text=spec.text,
            command=command,
            description=spec.description,
            imports=spec.imports,
            methods=spec.described_methods(),
            definition=spec.definition,
            folder=None if spec.places.folder is None else str(spec.places.folder),
            distributions=search_space(spec),
        )
    )
    return store


def check_unchanged(spec: StudySpec, recorded: StudyRow | None) -> None:
    """Raise OtherFile where a study was replaced by that of another file.

    A worker calls it when it has claimed a trial: from then on the study can no longer be replaced.
    Another sweep may have added a baseline. `recorded` is None for a study that is gone.
    """
    if recorded is not None and spec.baseline is None:
        recorded.identity = {**recorded.identity, BASELINE: None}
    if recorded is None or next(_differences_from(recorded, spec, spec.identity()), None):
        raise OtherFile(
            f"study {spec.name} was replaced by that of another file before a trial of this sweep "
            "began; rerun the sweep to see what differs"
        )


def _refuse_other_settings(
    spec: StudySpec, identity: dict[str, Any], recorded: StudyRow, command: str
) -> None:
    """Only trials may be added to a study: results of other settings are not comparable."""
    before = recorded.objective
    if before != (now := identity.get("objective", "")):
        raise OtherFile(
            f"{describe_objectives(spec.name, before, now)}\n"
            f"  to run this file as another study: {_renamed(spec, command)}"
        )
    differences = list(_differences_from(recorded, spec, identity))
    if differences:
        shown = "; ".join(f"{name}: was {before}, now {now}" for name, before, now in differences)
        raise OtherFile(
            f"study {spec.name} was begun with another file ({shown})\n"
            f"  to resume it: {_resumed(spec, differences, command)}\n"
            f"  to run this file as another study: {_renamed(spec, command)}"
        )


def _differences_from(
    recorded: StudyRow, spec: StudySpec, identity: dict[str, Any]
) -> Iterator[Difference]:
    """What differs between the recorded identity of a study and that of its file."""
    new = identity | {"imports": spec.imports}
    old = recorded.identity | {"imports": recorded.imports}
    old["trainer"] = _with_added_settings(old["trainer"], new["trainer"], spec)
    before, now = old.pop(BASELINE, None), new.pop(BASELINE, None)
    if before and not now:
        yield BASELINE, recorded.definition.get(BASELINE), None
    elif before and now:
        if not isinstance(spec, ProgramSpec):
            before = _with_defaults(before, now, now["method"], spec)
        yield from _differences(before, now, BASELINE)
    elif now:
        # it may be added, with the module of its method
        new["imports"] = {name: spec.imports.get(name) for name in old["imports"]}
    yield from _differences(old, new)


def refuse_other_objective(study: str, recorded: str, given: str) -> None:
    """Raise MtdlabError where another program than the recorded one, or none, is given."""
    if recorded != given:
        raise MtdlabError(describe_objectives(study, recorded, given))


def describe_objectives(study: str, recorded: str, given: str) -> str:
    """That a study was begun with another objective; both empty for mtdlab's own trainer."""
    before, now = (
        f"--objective {name}" if name else "mtdlab's own trainer" for name in (recorded, given)
    )
    what = f"name it with --objective {recorded}" if recorded else "leave --objective out"
    return f"study {study} was begun with {before}, not {now}; {what} to resume it"


def _resumed(spec: StudySpec, differences: Sequence[Difference], command: str) -> str:
    """The command with the recorded values, where single settings of the trainer differ."""
    given = {
        name: _as_yaml(before)
        for name, before, _ in differences
        if name.startswith("trainer.") and name.count(".") == 1 and "method" not in spec.search
    }
    if len(given) < len(differences) or None in given.values():
        return "put the former values back into the file"
    values = [f"--set {shlex.quote(f'{name}={value}')}" for name, value in given.items()]
    return " ".join([command or _ANY_COMMAND, *values])


def _as_yaml(value: object) -> str | None:
    """A value as --set reads it; None where it might be read as another."""
    if isinstance(value, str):
        return value if re.fullmatch(r"[A-Za-z][\w./-]*", value) else None
    return None if isinstance(value, dict | list) else json.dumps(value)


def _renamed(spec: StudySpec, command: str) -> str:
    """The command with another name for the study: its own with a number, or with the next."""
    numbered = re.fullmatch(r"(.+)-(\d+)", spec.name)
    stem, number = (numbered[1], int(numbered[2]) + 1) if numbered else (spec.name, 2)
    return f"{command or _ANY_COMMAND} --set study={stem}-{number}"


def _with_added_settings(
    recorded: dict[str, Any], new: dict[str, Any], spec: StudySpec
) -> dict[str, Any]:
    """A recorded trainer section with the defaults of settings that its method has gained since.

    A study that searches the method has a section for each.
    """
    if isinstance(spec, ProgramSpec):
        return recorded
    if "method" in spec.search:
        return recorded | {
            name: _with_defaults(section, new[name], name, spec)
            for name, section in recorded.items()
            if name in spec.methods
        }
    return _with_defaults(recorded, new, spec.methods[0], spec)


def _with_defaults(
    recorded: dict[str, Any], new: dict[str, Any], method: str, spec: StudySpec
) -> dict[str, Any]:
    defaults = type(spec.fixed(method))().model_dump(mode="json")
    return {name: defaults[name] for name in new} | recorded


def _differences(old: object, new: object, path: str = "") -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path, old, new


def read_defined(
    study: str, url: str, modules: Sequence[UserModule] = (), program: Program | None = None
) -> tuple[StudySpec, str]:
    """A study with the profile and --set of its last sweep, and the command of that sweep.

    Raises NothingToReport where the study is missing, MtdlabError where it needs other imported
    modules or another program than the given ones, StorageError where the database fails.
    """
    recorded = read_recorded(url, study)
    refuse_other_objective(study, recorded.objective, program.reference if program else "")
    # it may have been renamed since
    definition = {**recorded.definition, "study": study}
    defined = defined_study(definition, recorded.file_text, modules, recorded.file_folder, program)
    spec = as_begun(defined, url)
    refuse_other_modules(study, recorded, spec)
    return spec, recorded.command


def as_begun(spec: StudySpec, url: str) -> StudySpec:
    """The study with the pooling that it was begun with, where its file leaves that to the encoder.

    What the encoder's files declare may have become known since: fetched, or read by a later
    version. A study that is not recorded, or was begun with other encoders, stays as it is.
    """
    try:
        recorded = read_recorded(url, spec.name)
    except (NothingToReport, StorageError):
        return spec  # no study or no database yet
    begun = recorded.identity
    given = {*spec.trainer, *spec.search, *(recorded.definition.get("trainer") or {})}
    if isinstance(spec, ProgramSpec) or "pooling" in given:
        return spec
    for method in spec.methods:
        section = begun["trainer"].get(method, {}) if "method" in spec.search else begun["trainer"]
        if not section:
            continue  # the file has added this method
        now = spec.fixed(method)
        plain = type(now).model_fields["pooling"].default
        # a version without this setting read every encoder with the default
        recorded = section.get("pooling", plain)
        if recorded != now.pooling and section.get("encoder", now.encoder) == now.encoder:
            return replace(spec, encoder_pooling=None if recorded == plain else recorded)
    return spec


def refuse_other_modules(study: str, recorded: StudyRow, spec: StudySpec) -> None:
    """Raise MtdlabError where other modules were imported than those of a recorded study."""
    if recorded.imports != spec.imports:
        listed = ", ".join(recorded.imports) or "none"
        raise MtdlabError(
            f"study {study} used other imported modules than these (recorded: {listed}); name "
            "them with --import"
        )
