"""A study file and the record of its study: what differs, and the study as it was begun."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import count
from typing import Any

import yaml

from mtdlab.analysis.data.invocation import ANY_SWEEP, Invocation
from mtdlab.analysis.data.metric import as_read, direction_of, is_in_points, is_loss
from mtdlab.config.reader import build_study
from mtdlab.config.source import Source
from mtdlab.config.study import SEARCHED, StudySpec
from mtdlab.errors import MtdlabError, NothingToReport, StorageError
from mtdlab.programs import Program
from mtdlab.settings.roles import BASELINE
from mtdlab.store.recorded import names_in, read_planned, read_recorded
from mtdlab.store.tables import StudyRow
from mtdlab.user_code import UserModule

Difference = tuple[str, object, object]
"""The name of a setting, its recorded value and that of the file."""
_MODULE = "imports."
"""What the name begins with where the values are the SHA-256 of an imported module."""
_POINTS = ("search.", "configurations")
"""What the names begin with of what identifies the points of a search, in no words of a file."""


class OtherFile(MtdlabError):
    """A study was begun with another file than the given one."""


def check_unchanged(spec: StudySpec, recorded: StudyRow | None) -> None:
    """Raise OtherFile where a study was replaced by that of another file.

    A worker calls it when it has claimed a trial: from then on the study can no longer be replaced.
    Another sweep may have added values, seeds or a baseline, which the trials have with them; not a
    method. `recorded` is None for a study that is gone.
    """
    if recorded is not None and spec.baseline is None:
        recorded.identity = {**recorded.identity, BASELINE: None}
    if recorded is None or next(_differences_from(recorded, spec, spec.identity()), None):
        raise OtherFile(
            f"study {spec.name} was replaced by that of another file, or was given a method or "
            "changed code, since this sweep began; rerun the sweep to see what differs"
        )


def refuse_other_settings(
    spec: StudySpec,
    identity: dict[str, Any],
    recorded: StudyRow,
    invocation: Invocation,
    taken: Set[str],
    *,
    has_failed: bool = False,
) -> None:
    """Only trials may be added to a study: results of other settings are not comparable.

    `has_failed`: whether trials have, which changed modules may mend. `taken` are the names of
    studies of the database.
    """
    before, now, problem = recorded.objective, identity.get("objective", ""), ""
    if before != now:
        problem = describe_objectives(spec.name, before, now)
    elif differences := list(_differences_from(recorded, spec, identity)):
        shown = "; ".join(map(_describe, differences))
        changed = [name for name, *_ in differences if name.startswith(_MODULE)]
        ways = ["import the modules with their former content"] if changed else []
        if has_failed and recorded.imports.keys() & {
            name.removeprefix(_MODULE) for name in changed
        }:
            again = (invocation or ANY_SWEEP).retrying(changed_code=True)
            ways.append(f"where a mistake in them was mended, run failed trials again: {again}")
        if len(changed) < len(differences):
            ways.insert(0, "put the former values back into the file, or give them by --set")
        problem = f"study {spec.name} was begun with another file ({shown})\n"
        problem += f"  to resume it: {'; '.join(ways)}"
    if problem:
        another = as_another_study(spec, invocation, taken)
        raise OtherFile(f"{problem}\n  to run this file as another study: {another}")


def refuse_missing(
    spec: StudySpec,
    missing: Mapping[tuple[str, int], Mapping[str, Any] | None],
    invocation: Invocation,
    taken: Set[str],
) -> None:
    """Raise OtherFile where a study holds trials, by key, that its file no longer has."""
    for (_, seed), parameters in missing.items():
        values = [f"{name} {value}" for name, value in (parameters or {}).items()]
        what = "values and seeds" if spec.sampler == "grid" else "number of trials and seeds"
        raise OtherFile(
            f"study {spec.name} holds {len(missing)} trials that the file no longer has (such as "
            f"{', '.join([*values, f'seed {seed}'])}); put their {what} back, or run the file as "
            f"another study: {as_another_study(spec, invocation, taken)}"
        )


def refuse_other_file(spec: StudySpec, url: str, invocation: Invocation) -> None:
    """Raise OtherFile where a sweep would: nothing is written."""
    try:
        recorded, trials = read_recorded(url, spec.name), read_planned(url, spec.name)
    except (NothingToReport, StorageError):
        return
    if any(row.number is not None for row in trials.values()):
        taken, has_failed = names_in(url), any(row.state == "FAIL" for row in trials.values())
        known = (spec, spec.identity(), recorded, invocation, taken)
        refuse_other_settings(*known, has_failed=has_failed)
        planned = {trial.key for trial in spec.planned_trials()}
        missing = {key: row.parameters for key, row in trials.items() if key not in planned}
        refuse_missing(spec, missing, invocation, taken)


def _differences_from(
    recorded: StudyRow, spec: StudySpec, identity: dict[str, Any]
) -> Iterator[Difference]:
    """What differs between the recorded identity of a study and that of its file, but additions."""
    new = identity | {"imports": spec.imports}
    old = spec.complete_identity(recorded.identity, identity) | {"imports": recorded.imports}
    before, now = old.pop(BASELINE, None), new.pop(BASELINE, None)
    if before and not now:
        yield BASELINE, recorded.definition.get(BASELINE), None
    elif before and now:
        yield from _differences(before, now, BASELINE)
    # of the module of a baseline or a method that is added
    is_added = bool(now and not before)
    is_grid = spec.sampler == "grid" == old["sampler"]
    if is_grid:
        # earlier versions recorded the values of what is no number
        old["search"] = dict.fromkeys(old["search"], SEARCHED)
    had, has = ("method" in each["search"] and each["trainer"] for each in (old, new))
    if had and has:
        if is_grid and had.keys() - has:
            yield "search.method", [*had], [*has]
        is_added |= is_grid and bool(has.keys() - had)
        shared = had.keys() & has
        old["trainer"], new["trainer"] = (
            {name: each[name] for name in shared} for each in (had, has)
        )
    elif had or has:
        # a section for each method, beside one of a single method
        del old["trainer"], new["trainer"]
    if is_added:
        new["imports"] = {name: spec.imports.get(name) for name in old["imports"]}
    for each, metric in ((old, recorded.metric), (new, spec.metric)):
        each["direction"] = direction_of(metric)
        each |= {name: as_read(each[name]) for name in ("metric", "select_by") if name in each}
    differences = list(_differences(old, new))
    if any(name.startswith(_POINTS) for name, *_ in differences):
        # the identity has no words for them: as the files have it
        begun, given = (
            {key: defined.definition.get(key) for key in ("search", "skip")}
            for defined in (recorded, spec)
        )
        kept = [each for each in differences if not each[0].startswith(_POINTS)]
        differences = [*kept, *_differences(begun, given)] or differences
    yield from differences


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


def as_another_study(spec: StudySpec, invocation: Invocation, taken: Set[str]) -> str:
    """The command with another name for the study: its own with the next number that is free."""
    numbered = re.fullmatch(r"(.+)-(\d+)", spec.name)
    stem, first = (numbered[1], int(numbered[2]) + 1) if numbered else (spec.name, 2)
    name = next(free for number in count(first) if (free := f"{stem}-{number}") not in taken)
    return str((invocation or ANY_SWEEP).adding("set", f"study={name}"))


def _describe(difference: Difference) -> str:
    name, *values = difference
    if name.startswith(_MODULE):
        values = [digest and f"SHA-256 {str(digest)[:12]}" for digest in values]
    before, now = (
        yaml.safe_dump(value, default_flow_style=True, width=math.inf).strip()
        if isinstance(value, dict | list)
        else value
        for value in values
    )
    return f"{name}: was {before}, now {now}"


def _differences(old: object, new: object, path: str = "") -> Iterator[Difference]:
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from _differences(old.get(key), new.get(key), f"{path}.{key}" if path else key)
    elif old != new:
        yield path, old, new


def read_defined(
    study: str, url: str, modules: Sequence[UserModule] = (), program: Program | None = None
) -> tuple[StudySpec, Invocation]:
    """A study with the profile and --set of its last sweep, and the command of that sweep.

    Raises NothingToReport where the study is missing, MtdlabError where it needs other imported
    modules or another program than the given ones, StorageError where the database fails.
    """
    recorded = read_recorded(url, study)
    refuse_other_objective(study, recorded.objective, program.reference if program else "")
    # it may have been renamed since
    definition = {**recorded.definition, "study": study}
    source = Source(f"study {study}", recorded.file_text, definition)
    spec = with_recorded_values(build_study(source, modules, recorded.file_folder, program), url)
    refuse_other_modules(study, recorded.imports, spec.imports)
    return spec, recorded.invocation


def with_recorded_values(spec: StudySpec, url: str) -> StudySpec:
    """The study with what its record decides: chosen nuisance values, and an encoder's pooling.

    What the encoder's files declare of it may have become known since the study was begun. One
    that is not recorded, or was begun with other encoders, stays as it is.
    """
    try:
        recorded = read_recorded(url, spec.name)
    except (NothingToReport, StorageError):
        # no study or no database yet
        _refuse_unstated(spec)
        return spec
    begun = spec.with_recorded_pooling(recorded.identity, recorded.definition.get("trainer") or {})
    return begun if begun.nuisance is None else replace(begun, nuisance_choice=recorded.chosen)


def _refuse_unstated(spec: StudySpec) -> None:
    """Raise MtdlabError for a new study that does not say how its scores are judged."""
    losses = [name for name in (spec.metric, spec.select_by) if is_loss(name)]
    if losses and "direction" not in spec.definition:
        raise MtdlabError(
            f"study {spec.name}: lower is better of a score with the name {losses[0]}; write "
            "direction: minimize into the study file, or direction: maximize if higher is better"
        )
    is_own = not is_in_points(spec.metric)
    if is_own and "direction" not in spec.definition:
        raise MtdlabError(
            f"study {spec.name}: the name {spec.metric} does not tell whether higher or lower is "
            "better; write direction: maximize or direction: minimize into the study file"
        )
    if is_own and "margin" not in (spec.definition.get("verdict") or {}):
        raise MtdlabError(
            f"study {spec.name}: {as_read(spec.metric)} has a unit of its own; write verdict: "
            "{margin: NUMBER} into the study file, the difference in this unit that counts as none"
        )


def refuse_other_modules(
    study: str, recorded: Mapping[str, str], imports: Mapping[str, str]
) -> None:
    """Raise MtdlabError where other modules were imported than those recorded, name and SHA-256."""
    if recorded == imports:
        return
    listed = ", ".join(f"{name} {digest[:12]}" for name, digest in recorded.items()) or "none"
    raise MtdlabError(
        f"study {study} used other imported modules than these (recorded: {listed}); name them "
        "with --import, and an evaluator with --evaluator, with their former content"
    )
