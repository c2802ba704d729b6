"""Opening a study for a sweep: its row and trials created, or compared with the study file."""

import json
import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.config.plan import plan_of, sha256_of
from mtdlab.config.program_study import ProgramSpec
from mtdlab.config.study import known_settings
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import BUILTIN
from mtdlab.store import Store
from mtdlab.store.damage import refuse_damaged
from mtdlab.store.database import writing_engine
from mtdlab.store.names import find_twin, names_in
from mtdlab.store.plans import record_plan
from mtdlab.store.setting_names import present_identity
from mtdlab.store.tables import StudyRow
from mtdlab.store.urls import without_passwords
from mtdlab.sweep.optuna_study import OptunaStudy

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
    which a trial has begun, StorageError where the database fails.
    """
    # messages and the record name it
    command = without_passwords(command)
    # before a table is created: in a damaged database an empty one would replace a lost one
    refuse_damaged(url)
    # mtdlab's tables first: a file that is no database is refused before Optuna opens it
    writing_engine(url)
    if twin := find_twin(spec.name, names_in(url), url):
        raise MtdlabError(f"{twin}; choose another name")
    optuna_study = OptunaStudy(url, spec)
    store = Store(url, optuna_study.study_id)
    store.forget_vanished()
    store.forget_deleted(spec.name)
    try:
        identity = _record(store, spec, command)
    except OtherFile:
        # a trial is claimed in mtdlab's tables before it is created in Optuna's
        if store.optuna_ids() or not store.forget_unbegun():
            raise
        notify(
            f"study {spec.name} was planned from another file; it is replaced by this one, since "
            "none of its trials has begun"
        )
        identity = _record(store, spec, command)
    plan = plan_of(spec)
    record_plan(url, spec.name, plan, sha256_of(plan))
    optuna_study.name_scores(identity.get("select_by", spec.metric))
    optuna_study.record_folder(spec.places.folder)
    optuna_study.synchronise(store)
    return store


def _record(store: Store, spec: StudySpec, command: str) -> dict[str, Any]:
    """Record a study and its new trials; returns its identity. Raises OtherFile."""
    recorded = store.study()
    identity = spec.identity()
    if recorded is None:
        _write(store, spec, identity, command)
    else:
        if _keeps_metric(spec, recorded):
            del identity["select_by"]
        _refuse_other_settings(spec, identity, recorded, command)
    if missing := store.add_units(spec.units(), {unit.seed for unit in spec.first_units()}):
        raise OtherFile(
            f"study {spec.name} holds {len(missing)} trials that the file no longer has "
            f"(such as seed {missing[0][1]}); put their values and seeds back, or run the file as "
            f"another study: {_renamed(spec, command)}"
        )
    _write(store, spec, identity, command)
    return identity


def check_unchanged(spec: StudySpec, store: Store) -> None:
    """Raise OtherFile where a study was replaced by that of another file.

    A worker calls it when it has claimed a trial: from then on the study can no longer be replaced.
    """
    recorded = store.study()
    if recorded is None or next(_differences_from(recorded, spec, _identity(spec)), None):
        raise OtherFile(
            f"study {spec.name} was replaced by that of another file before a trial of this sweep "
            "began; rerun the sweep to see what differs"
        )


@lru_cache(maxsize=1)
def _identity(spec: StudySpec) -> dict[str, Any]:
    return spec.identity()


def describe_ranking(spec: StudySpec, store: Store) -> str:
    """A sentence where a study ranks its trials by another score than its file would now."""
    recorded = store.study()
    if recorded is None or recorded.select_by or spec.select_by == recorded.metric:
        return ""
    return (
        f"study {spec.name} was begun without select_by: its trials are still ranked by its "
        f"metric, {recorded.metric}; under another name they would be ranked by {spec.select_by}"
    )


def _keeps_metric(spec: StudySpec, recorded: StudyRow) -> bool:
    """Whether a study was begun without `select_by`, so that its metric goes on ranking it.

    Otherwise trials of one study would be ranked by different scores. A file that names another
    score is refused, as for any other setting.
    """
    other = spec.select_by_given and spec.select_by != recorded.metric
    return recorded.select_by is None and not other


def _write(store: Store, spec: StudySpec, identity: dict[str, Any], command: str) -> None:
    store.write_study(
        spec.name,
        spec.metric,
        identity,
        spec.text,
        command,
        description=spec.description,
        imports=spec.imports,
        methods=spec.described_methods(),
        definition=spec.definition,
    )


def _refuse_other_settings(
    spec: StudySpec, identity: dict[str, Any], recorded: StudyRow, command: str
) -> None:
    """Only trials may be added to a study: results of other settings are not comparable."""
    before = recorded.identity.get("objective", "")
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
    if _keeps_metric(spec, recorded):
        new.pop("select_by", None)
    old = present_identity(recorded.identity) | {"imports": recorded.imports}
    old["trainer"] = _with_present_settings(old["trainer"], new["trainer"], spec)
    if "select_by" in new:
        old.setdefault("select_by", recorded.metric)
    return _differences(old, new)


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


def _with_present_settings(
    recorded: dict[str, Any], new: dict[str, Any], spec: StudySpec
) -> dict[str, Any]:
    """A recorded trainer section with the settings that its method has now.

    A study that searches the method has a section for each. A setting that did not exist yet when
    the study was begun had its default value. One that is now another method's alone had one
    possible value with this method.
    """
    if isinstance(spec, ProgramSpec):
        return recorded
    if "method" in spec.search:
        sections = {name: recorded[name] for name in recorded if name in spec.methods}
        return recorded | {
            name: _with_defaults(section, new[name], name, spec)
            for name, section in sections.items()
        }
    return _with_defaults(recorded, new, spec.methods[0], spec)


def _with_defaults(
    recorded: dict[str, Any], new: dict[str, Any], method: str, spec: StudySpec
) -> dict[str, Any]:
    defaults = type(spec.fixed(method))().model_dump(mode="json")
    lacking = recorded.keys() - defaults.keys()
    # the settings of all methods are in modules that import torch
    of_others = lacking & known_settings(tuple(BUILTIN)).keys() if lacking else set()
    kept = {name: value for name, value in recorded.items() if name not in of_others}
    return {name: defaults[name] for name in new} | kept


def _differences(old: object, new: object, path: str = "") -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path, old, new
