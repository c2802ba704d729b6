"""The study of a program of the user: its settings are those that its file names.

Names are free; the values of a setting tell what it is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from mtdlab.analysis.measures.trace import COMPONENTS, NOTATION, Notation
from mtdlab.config.checks import check_sampler, check_strata
from mtdlab.config.nuisance import NUISANCE, nuisance_values
from mtdlab.config.search import STRATA, Dimension, Range, read_dimension, resolve
from mtdlab.config.source import KeyPath, Source
from mtdlab.config.study import StudySpec
from mtdlab.config.study_file import StudyFile
from mtdlab.programs import Program, ProgramSettings
from mtdlab.settings import Setting
from mtdlab.settings.roles import BASELINE, OF_BASELINE, SEARCH


@dataclass(frozen=True, kw_only=True)
class ProgramSpec(StudySpec):
    """A checked study whose trials a program trains; `named` are the settings of its file."""

    trained_by: ClassVar[str] = "program"
    keeps_models: ClassVar[bool] = False
    unknown_cost: ClassVar[str] = "how long a program takes is known once its trials have run"

    program: Program
    named: Mapping[str, Setting] = field(hash=False)

    @property
    def methods(self) -> tuple[str, ...]:
        return (self.program.reference,)

    @property
    def known(self) -> Mapping[str, Setting]:
        return self.named

    def settings(
        self, parameters: dict[str, Any], seed: int, role: str = SEARCH
    ) -> ProgramSettings:
        if role in OF_BASELINE:
            return ProgramSettings(self.program.reference, seed, self.trainer | parameters)
        # a multiple is one of a setting that the file names
        given = self.trainer | self.nuisance_of(parameters)
        values = resolve(self.search, parameters, given, lambda name, _: self.trainer[name])
        return ProgramSettings(self.program.reference, seed, values)

    def parameters_of(self, point: Mapping[str, Any]) -> dict[str, Any]:
        return dict(point)

    def identity(self) -> dict[str, Any]:
        """The identity of a study with its program."""
        return super().identity() | {"objective": self.program.reference}

    @property
    def imports(self) -> dict[str, str]:
        return {self.program.module.name: self.program.module.sha256}

    def ensure_imported(self) -> None:
        self.program.load()

    def described_methods(self) -> dict[str, Any]:
        settings = {name: setting.describe() for name, setting in self.named.items()}
        reference = self.program.reference
        return {reference: {"title": reference, "settings": settings}}

    def _dump(self, method: str) -> dict[str, Any]:  # noqa: ARG002
        return {name: value for name, value in self.trainer.items() if name not in self.search}


_SCORE_NAME = r"[A-Za-z0-9][\w.@/-]{0,99}"
_NUMBERS = (*NOTATION, "steps", "evaluate_every")
"""The settings that mtdlab reads for MTD, figures and progress; they have to be numbers."""


def check_program_top_level(top: StudyFile, source: Source) -> None:
    """Check the rules of the keys at the top level, where a program returns the scores."""
    if source.is_correct("sampler", "trials"):
        check_sampler(top, source)
    if "metric" not in top.model_fields_set:
        message = "name the score of the program to maximise, as in metric: accuracy"
        source.add(("metric",), message)
    for key, name in (("metric", top.metric), ("select_by", top.select_by)):
        if source.is_correct(key) and not re.fullmatch(_SCORE_NAME, name):
            rule = "a score's name has letters, digits and _ . @ / -, at most 100"
            source.add((key,), f"{name!r}: {rule}")
    if top.tracking != "none":
        message = "only mtdlab's own trainer writes these files; take the key out"
        source.add(("tracking",), message)


def read_program_settings(top: StudyFile, source: Source) -> dict[str, Setting]:
    """Check the sections trainer and search, and return the settings that they name."""
    known: dict[str, Setting] = {}
    for name, value in top.trainer.items():
        path: KeyPath = ("trainer", name)
        _check_name(path, source)
        if (kind := _kind_of([value])) is None:
            rule = "write a number, a text, true or false"
            source.add(path, f"{value!r} is no single value; {rule}")
        else:
            known[name] = _setting(name, kind)
    for name, values in nuisance_values(top.nuisance or {}).items():
        _check_name((NUISANCE, name), source)
        known[name] = _setting(name, _kind_of(values if isinstance(values, list) else []) or str)
    search = {name: entry for name, entry in top.search.items() if name != STRATA}
    for name, entry in search.items():
        path = ("search", name)
        _check_name(path, source)
        if name in top.trainer:
            source.add(path, "also fixed under trainer; keep one of the two")
        known[name] = _setting(
            name, int if _keyword(entry) else _searched_kind(path, entry, source)
        )
    for name, entry in search.items():
        if (keyword := _keyword(entry)) is None or not source.is_correct(("search", name)):
            continue
        fixed = [name for name in (*top.trainer, *search) if _keyword(search.get(name)) is None]
        plain = [name for name in fixed if name in known and known[name].is_integer]
        if (base := entry[keyword]) in plain:
            known[name] = _setting(name, int, base)
        else:
            allowed = ", ".join(plain) or "none that this file has"
            message = f"{base!r}; allowed is a setting of whole numbers: {allowed}"
            source.add(("search", name, keyword), message)
    for name in _NUMBERS:
        if name in known and not known[name].is_number:
            section = "search" if name in top.search else "trainer"
            source.add((section, name), "mtdlab reads it as a number; write numbers")
    if STRATA in top.search:
        if "batch_size" not in known:
            message = "strata need a batch_size, under trainer or search"
            source.add(("search", STRATA), message)
        for name, kind in zip(COMPONENTS, (float, int), strict=True):
            known[name] = _setting(name, kind)
        check_strata(top, known, source)
    return known


def check_program_baseline(
    top: StudyFile, known: Mapping[str, Setting], search: Mapping[str, Dimension], source: Source
) -> None:
    """Check the section `baseline`: a value for each searched setting, which has no default."""
    given = top.baseline or {}
    for name, value in given.items():
        path = (BASELINE, name)
        if name not in known:
            source.collect([source.unknown(path, known)])
        elif (kind := _kind_of([value])) is None:
            source.add(path, "a baseline is one configuration; write a single value")
        elif kind is not (expected := known[name].annotation) and (kind, expected) != (int, float):
            named = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
            source.add(path, f"{value!r}: write {named[expected]}, as elsewhere in the file")
    if missing := [name for name in search if name not in given]:
        message = f"give it a value of {', '.join(missing)}, which the search varies"
        source.add((BASELINE,), message)


def _setting(name: str, kind: type, base: str = "") -> Setting:
    symbol, unit, description = NOTATION.get(name, Notation())
    return Setting(name, kind, None, description, symbol=symbol, unit=unit, relative_to=base)


def _kind_of(values: Iterable[Any]) -> type | None:
    """The one type of all values; None where they differ, or are no single values."""
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return float
    return next(iter(kinds)) if len(kinds) == 1 and kinds <= {bool, int, float, str} else None


def _searched_kind(path: KeyPath, entry: Any, source: Source) -> type:
    """The type of what an entry of the search tries; text where it has a mistake."""
    number = _setting(str(path[-1]), float)
    dimension = source.try_read(lambda: read_dimension(source, number, entry))
    if isinstance(dimension, Range):
        whole = entry.get("distribution", "int_uniform") in ("int_uniform", "q_uniform")
        bounds = [dimension.low, dimension.high, dimension.step or 1]
        return int if whole and _kind_of(bounds) is int else float
    kind = None if dimension is None else _kind_of(dimension.values)
    if dimension is not None and kind is None:
        source.add(path, "values of several kinds; write numbers, or texts, or true and false")
    return kind or str


def _check_name(path: KeyPath, source: Source) -> None:
    # it imports pandas
    from mtdlab.analysis.data.frames import TAKEN_NAMES, TRIAL_COLUMNS

    recorded, name = {*TRIAL_COLUMNS, "method", "note"}, str(path[-1])
    if path[0] != "trainer":
        # columns beside the settings that vary, and those of a choice
        recorded |= {*TAKEN_NAMES, "group", "configuration", "selected"}
    if not name.isidentifier():
        source.add(path, "a setting's name has letters, digits and _, and no digit first")
    elif name == "seed":
        source.add(path, "a study takes its seeds from seeds: [0, 1, 2]")
    elif name in recorded - {*_NUMBERS, "queue_slice"}:
        source.add(path, "mtdlab records something else under this name; choose another")


def _keyword(entry: Any) -> str | None:
    """The key by which an entry of the search is in multiples of another setting; else None."""
    keys = entry if isinstance(entry, dict) else ()
    return next((word for word in ("times", "share_of") if word in keys), None)
