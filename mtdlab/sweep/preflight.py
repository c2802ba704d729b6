"""What a sweep compares with the record before its first trial."""

from collections.abc import Mapping
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.settings.roles import BASELINE
from mtdlab.store import Store
from mtdlab.store.recorded import read_last_decision, read_states
from mtdlab.store.rules import VERSIONS
from mtdlab.trial.environment import different_versions


def has_trials_left(spec: StudySpec, url: str, *, retry_failed: bool = False) -> bool:
    """Whether a sweep may have to run a trial of this study: if not, nothing has to be checked.

    True also where the database is missing or cannot be read: opening the study reports that.
    """
    try:
        states = read_states(url, spec.name)
        last = read_last_decision(url, spec.name)
    except StorageError:
        return True
    unfinished = {"WAITING", "RUNNING"} | ({"FAIL"} if retry_failed else set())
    # a look that is still to be taken may add trials
    if not unfinished.isdisjoint(states.values()) or (spec.until and last in ("", "continue")):
        return True
    # the baseline runs with all seeds that the search has
    seeds = {seed for _, seed in states} if states else set()
    return any(
        trial.key not in states
        for trial in spec.planned_trials()
        if trial.seed in spec.first_seeds or (trial.role == BASELINE and trial.seed in seeds)
    )


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
