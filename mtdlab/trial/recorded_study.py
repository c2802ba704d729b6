"""A study file and the record of its study: what differs, and the study as it was begun."""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from itertools import count
from typing import Any

from mtdlab.analysis.data.invocation import ANY_SWEEP, Invocation
from mtdlab.config import StudySpec
from mtdlab.config.reader import build_study
from mtdlab.config.source import Source
from mtdlab.errors import MtdlabError, NothingToReport, StorageError
from mtdlab.programs import Program
from mtdlab.settings.roles import BASELINE
from mtdlab.store.recorded import read_recorded
from mtdlab.store.tables import StudyRow
from mtdlab.user_code import UserModule

Difference = tuple[str, object, object]
"""The name of a setting, its recorded value and that of the file."""
_MODULE = "imports."
"""What the name begins with where the values are the SHA-256 of an imported module."""


class OtherFile(MtdlabError):
    """A study was begun with another file than the given one."""


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


def refuse_other_settings(
    spec: StudySpec,
    identity: dict[str, Any],
    recorded: StudyRow,
    invocation: Invocation,
    taken: Set[str],
) -> None:
    """Only trials may be added to a study: results of other settings are not comparable.

    `taken` are the names of studies of the database.
    """
    before, now, problem = recorded.objective, identity.get("objective", ""), ""
    if before != now:
        problem = describe_objectives(spec.name, before, now)
    elif differences := list(_differences_from(recorded, spec, identity)):
        shown = "; ".join(map(_describe, differences))
        changed = [name for name, *_ in differences if name.startswith(_MODULE)]
        ways = ["import the modules with their former content"] if changed else []
        if len(changed) < len(differences):
            ways.insert(0, "put the former values back into the file, or give them by --set")
        problem = f"study {spec.name} was begun with another file ({shown})\n"
        problem += f"  to resume it: {'; '.join(ways)}"
    if problem:
        another = as_another_study(spec, invocation, taken)
        raise OtherFile(f"{problem}\n  to run this file as another study: {another}")


def _differences_from(
    recorded: StudyRow, spec: StudySpec, identity: dict[str, Any]
) -> Iterator[Difference]:
    """What differs between the recorded identity of a study and that of its file."""
    new = identity | {"imports": spec.imports}
    old = spec.complete_identity(recorded.identity, identity) | {"imports": recorded.imports}
    before, now = old.pop(BASELINE, None), new.pop(BASELINE, None)
    if before and not now:
        yield BASELINE, recorded.definition.get(BASELINE), None
    elif before and now:
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
    before, now = values
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
    refuse_other_modules(study, recorded, spec.imports)
    return spec, recorded.invocation


def with_recorded_values(spec: StudySpec, url: str) -> StudySpec:
    """The study with what its record decides: chosen nuisance values, and an encoder's pooling.

    What the encoder's files declare of it may have become known since the study was begun. One
    that is not recorded, or was begun with other encoders, stays as it is.
    """
    try:
        recorded = read_recorded(url, spec.name)
    except (NothingToReport, StorageError):
        return spec  # no study or no database yet
    begun = spec.with_recorded_pooling(recorded.identity, recorded.definition.get("trainer") or {})
    return begun if begun.nuisance is None else replace(begun, nuisance_choice=recorded.chosen)


def refuse_other_modules(study: str, recorded: StudyRow, imports: Mapping[str, str]) -> None:
    """Raise MtdlabError where other modules were imported than those of a recorded study."""
    if recorded.imports != imports:
        listed = ", ".join(recorded.imports) or "none"
        raise MtdlabError(
            f"study {study} used other imported modules than these (recorded: {listed}); name "
            "them with --import, and an evaluator with --evaluator"
        )
