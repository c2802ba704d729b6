"""Opening a study for a sweep: its row, trials and inputs created, or compared with the record."""

import logging
from collections.abc import Callable, Mapping, Set
from typing import Any

from optuna.distributions import distribution_to_json

from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.config.study import StudySpec, plan_of, sha256_of
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.store.database import create_tables, refuse_damaged, warn_of_network
from mtdlab.store.recorded import (
    find_twin,
    names_in,
    read_last_decision,
    read_planned,
    refuse_foreign,
)
from mtdlab.store.rules import VERSIONS
from mtdlab.store.store import Store, create_store, open_store, record_plan
from mtdlab.store.tables import StudyRow
from mtdlab.store.urls import without_password
from mtdlab.trial.environment import different_versions
from mtdlab.trial.recorded_study import OtherFile, refuse_missing, refuse_other_settings
from mtdlab.trial.samplers import distributions

_LOG = logging.getLogger(__name__)


def has_trials_left(spec: StudySpec, url: str, *, retry_failed: bool = False) -> bool:
    """Whether a study may have trials to run; true if its database cannot be read."""
    try:
        trials = read_planned(url, spec.name)
        last = read_last_decision(url, spec.name)
    except StorageError:
        return True
    unfinished = {"WAITING", "RUNNING"} | ({"FAIL"} if retry_failed else set())
    # a choice and a look that are still to come add trials
    is_open = bool(spec.unchosen_groups) or (spec.until is not None and last in ("", "continue"))
    if is_open or not unfinished.isdisjoint(row.state for row in trials.values()):
        return True
    seeds = {seed for _, seed in trials}
    new = (trial for trial in spec.planned_trials() if trial.key not in trials)
    return any(spec.begins_with(trial, seeds) for trial in new)


def open_study(
    spec: StudySpec,
    url: str,
    invocation: Invocation = NO_INVOCATION,
    *,
    changed_code: bool = False,
    notify: Callable[[str], None] = lambda _: None,
) -> Store:
    """Create the study or add the file's new trials to it, and repair what killed sweeps left.

    A study in which no trial has begun is replaced where the file differs from the recorded one;
    `notify` then gets a sentence. With `changed_code` modules of the user may have changed, if a
    trial has failed; each trial records those that it ran with.

    Raises MtdlabError where the file differs in more than added trials from that of a study in
    which a trial has begun, StorageError where the database fails, or has a study of this name
    that another program wrote.
    """
    # messages and the record name it
    invocation = invocation.changed(without_password)
    # before a table is created: in a damaged database an empty one would replace a lost one
    refuse_damaged(url)
    refuse_foreign(url, spec.name)
    warn_of_network(url)
    # before the study is recorded: one without Optuna's tables is taken for a damaged one
    create_tables(url, spec.name)
    names = names_in(url)
    if twin := find_twin(spec.name, names, url):
        raise MtdlabError(f"{twin}; choose another name")
    if (begun := open_store(url, spec.name)) is not None:
        # before anything is written: a record that cannot be read ends the sweep here
        begun.check_readable()
    try:
        store = _record(spec, url, invocation, names, changed_code=changed_code)
    except OtherFile:
        recorded = open_store(url, spec.name)
        # a trial that a worker has claimed is not replaced
        if recorded is None or not recorded.delete_if_unbegun():
            raise
        notify(
            f"study {spec.name} was planned from another file; it is replaced by this one, since "
            "none of its trials has begun"
        )
        store = _record(spec, url, invocation, names)
    plan = plan_of(spec)
    record_plan(url, spec.name, plan, sha256_of(plan))
    store.release_abandoned()
    if differing := store.repair_copy():
        _LOG.warning(
            "study %s: Optuna's tables had another end of %d of its trials; mtdlab's record "
            "decides, and was written over it",
            spec.name,
            differing,
        )
    return store


def _record(
    spec: StudySpec,
    url: str,
    invocation: Invocation,
    taken: Set[str],
    *,
    changed_code: bool = False,
) -> Store:
    """Record a study and its new trials; `taken` are names of studies. Raises OtherFile."""
    identity = spec.identity()
    store, is_new = create_store(url, spec.name, spec.metric, identity)
    if not is_new:
        if (recorded := store.study()) is None:
            raise MtdlabError(f"study {spec.name} was deleted while this sweep started; rerun it")
        has_failed = bool(store.counts().get("FAIL"))
        if changed_code and has_failed:
            shared = recorded.imports.keys() & spec.imports.keys()
            recorded.imports = recorded.imports | {name: spec.imports[name] for name in shared}
        refuse_other_settings(spec, identity, recorded, invocation, taken, has_failed=has_failed)
    missing = store.add_trials(spec.planned_trials(), spec.begins_with)
    refuse_missing(spec, missing, invocation, taken)
    store.write_study(
        StudyRow(
            name=spec.name,
            metric=spec.metric,
            identity=identity,
            file_text=spec.text,
            invocation=invocation,
            description=spec.description,
            imports=spec.imports,
            methods=spec.described_methods(),
            definition=spec.definition,
            folder=None if spec.places.folder is None else str(spec.places.folder),
            distributions={
                name: distribution_to_json(kind) for name, kind in distributions(spec).items()
            },
        )
    )
    return store


def check_same_inputs(study: str, store: Store, found: Mapping[str, Any]) -> str:
    """Record the inputs that this process has found, unless another process has before it.

    `found` is `Objective.check` of this process: digests by what they are of, and its versions.
    Returns a sentence where versions differ, else an empty string. Raises MtdlabError where a text
    or an encoder differs, since trials of one study would not be comparable.
    """
    recorded = store.record_once("inputs", found)
    differ = [name for name, digest in found.items() if recorded[name] != digest]
    others = [name for name in differ if name != VERSIONS]
    if others:
        listed = "; ".join(
            f"{name}: SHA-256 {recorded[name][:12]} there, {found[name][:12]} here"
            for name in others
        )
        raise MtdlabError(
            f"study {study}: not the inputs that its first sweep found ({listed}); use the same "
            "files on every machine, or run this file as another study with --set study=NAME"
        )
    if not differ:
        return ""
    before, here = different_versions(recorded[VERSIONS], found[VERSIONS])
    return (
        f"study {study} began with {before or 'fewer packages'}; here {here or 'fewer packages'}: "
        "its numbers may differ in the last bits"
    )
