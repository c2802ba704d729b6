"""What a study asks: the questions of a study file, and the one that follows from what varies.

A worker reads a study file too: nothing here imports pandas. How a kind of question is judged and
answered stands in the module of `mtdlab.analysis.questions` that is called like it.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mtdlab.analysis.data.defaults import BeyondRun
from mtdlab.analysis.data.runs import CONDITIONS, level_of
from mtdlab.analysis.measures.trace import PARTS

MTD, METHOD, ANY = "mtd", "method", "configuration"
"""What a question may be about beside settings."""
WITHIN = "within"
Rows = Sequence[Mapping[str, Any]]
"""Every setting and the mtd (None for none) of each configuration, planned or run.

Under `ANY` stands its name, where the study file names configurations (None for none)."""


class QuestionError(ValueError):
    """A question that cannot be read, or that the configurations of a study cannot answer."""


@dataclass(frozen=True)
class Declared:
    """A question as a study file declares it.

    Attributes:
        kind: its key, one of `KINDS`.
        names: what it is about: `mtd`, `method`, `configuration`, settings, or configurations by
            their names.
        values: the values of its setting that are compared, where its kind names some.
        within: the settings that are held at one value, with that value.
    """

    kind: str
    names: tuple[str, ...]
    values: tuple[Any, ...] = ()
    within: Mapping[str, Any] = field(default_factory=dict, hash=False)

    @classmethod
    def read(cls, written: object) -> "Declared":
        """The question of a mapping with one key. Raises QuestionError."""
        if not isinstance(written, dict) or len(written) != 1:
            raise QuestionError(f"{written!r}: write one kind and what it is about: shape: mtd")
        [(kind, about)] = written.items()
        if kind not in KINDS:
            raise QuestionError(f"{kind!r} is no kind of question; known: {', '.join(KINDS)}")
        form = KINDS[kind]
        asked = cls(kind, *form.parse(about))
        names = asked.names
        is_named = all(isinstance(name, str) for name in (*names, *asked.within))
        parts = (*asked.values, *asked.within.values())
        is_plain = not any(isinstance(value, list | dict) for value in parts)
        unlike = f"{about!r}: write {kind}: {form.example}"
        if form.names:
            if not is_named or not is_plain or len({*names}) != form.names:
                raise QuestionError(unlike)
        elif not is_named:
            raise QuestionError(f"{unlike}, and quote 1 or true")
        elif not 2 <= len(names) == len({*names}):
            raise QuestionError(f"{about!r}: name two configurations or more, each once")
        if len({*map(repr, asked.values)}) != form.values:
            raise QuestionError(f"{about!r}: name {form.values} values; {kind}: {form.example}")
        if form.only and names != (form.only,):
            raise QuestionError(f"{about!r}: it is about {form.only}; write {kind}: {form.only}")
        return asked

    def write(self) -> dict[str, Any]:
        """The mapping of a study file, as JSON."""
        about: Any = self.names[0] if len(self.names) == 1 else [*self.names]
        if self.values:
            about = {self.names[0]: [*self.values]}
            about |= {WITHIN: dict(self.within)} if self.within else {}
        return {self.kind: about}

    @property
    def is_tested(self) -> bool:
        """Whether its answer is decided by a test."""
        return KINDS[self.kind].is_tested

    def select(self, rows: Rows) -> list[Mapping[str, Any]]:
        """The configurations that are compared: those that have the values it names."""
        kept = [row for row in rows if all(row.get(n) == v for n, v in self.within.items())]
        return [row for row in kept if not self.values or row.get(self.names[0]) in self.values]

    def check(self, rows: Rows, nuisance: Collection[str] = ()) -> None:
        """Raise QuestionError where the configurations cannot answer the question."""
        held = [(name, value) for name, value in self.within.items()]
        for name, value in [*held, *((self.names[0], value) for value in self.values)]:
            if value not in (found := values_of(rows, name)):
                listed = ", ".join(map(str, found)) or "none: it is no setting of this study"
                raise QuestionError(f"{name} has no value {value}; its values are {listed}")
        if chosen := [name for name in (*self.names, *self.within) if name in nuisance]:
            raise QuestionError(
                f"{chosen[0]} is chosen for each configuration, so its values are not compared"
            )
        KINDS[self.kind].check(self, self.select(rows))


@dataclass(frozen=True)
class Form:
    """How a kind of question is written, and what a study needs to be asked it.

    Attributes:
        example: what stands behind its key.
        check: raises QuestionError where the configurations cannot answer it.
        names: how many names it is about; 0: two or more, each once.
        only: the one that it may be about, or empty.
        values: how many values of its setting it names; with some, it may have `within`.
        is_tested: whether its answer is decided by a test.
    """

    example: str
    check: Callable[[Declared, Rows], None]
    names: int = 1
    only: str = ""
    values: int = 0
    is_tested: bool = True

    def parse(self, about: Any) -> tuple[tuple[Any, ...], tuple[Any, ...], Mapping[str, Any]]:
        """Names, values and what is held of what stands behind the key; unchecked."""
        if not self.values:
            return tuple(about) if isinstance(about, list) else (about,), (), {}
        section = dict(about) if isinstance(about, dict) else {}
        within = section.pop(WITHIN, {})
        lists = [values for values in section.values() if isinstance(values, list)]
        values = tuple(lists[0]) if lists else ()
        return (tuple(section), values, within) if isinstance(within, dict) else ((), (), {})


def level_in(row: Mapping[str, Any]) -> float | None:
    """The level of MTD of a configuration; None without one."""
    distance = row.get(MTD)
    return level_of(distance) if distance is not None and 0 < distance < math.inf else None


def values_of(rows: Rows, name: str) -> list[Any]:
    """The values of a setting in the configurations, each once, in their order."""
    return [*dict.fromkeys(row[name] for row in rows if row.get(name) is not None)]


def _levels(rows: Iterable[Mapping[str, Any]]) -> set[float]:
    return {level for row in rows if (level := level_in(row)) is not None}


def _need_varied(asked: Declared, rows: Rows) -> None:
    for name in asked.names:
        if len(found := values_of(rows, name)) < 2:
            what = f"is {found[0]} everywhere" if found else "is no setting of this study"
            raise QuestionError(f"{name} {what}; a question is about what varies")


def _need_levels(_: Declared, rows: Rows) -> None:
    if len(_levels(rows)) < 2:
        raise QuestionError("fewer than two levels of MTD; a question is about what varies")


def _need_parts(_: Declared, rows: Rows) -> None:
    traced = [row for row in rows if level_in(row) is not None]
    ratios = {row["queue_size"] / row["batch_size"] for row in traced}
    if len(ratios) < 2 or len(values_of(traced, "ema_decay")) < 2:
        raise QuestionError("needs an MTD that is divided between ema_decay and queue in two ways")


def _need_conditions(_: Declared, rows: Rows) -> None:
    if len(list_conditions(rows)) < 2:
        both = " or ".join(CONDITIONS)
        raise QuestionError(f"needs two values of {both}, each with two levels of MTD")


def _need_probes(asked: Declared, rows: Rows) -> None:
    _need_levels(asked, rows)
    if not any(row.get("probe_every") for row in rows):
        raise QuestionError("needs trainer.probe_every, with which the age of keys is measured")


def _need_several(asked: Declared, rows: Rows) -> None:
    name = asked.names[0]
    if name != ANY:
        _need_varied(asked, rows)
    if len(rows) < 2:
        raise QuestionError("one configuration; there is nothing to compare")
    if name == ANY and len(values_of(rows, METHOD)) > 1:
        raise QuestionError(f"methods vary; write best: {METHOD}")
    beside = (name, MTD, ANY)
    varied = [n for n in dict.fromkeys(n for row in rows for n in row) if n not in beside]
    varied = [other for other in varied if len(values_of(rows, other)) > 1]
    if name not in (ANY, METHOD) and varied:
        raise QuestionError(f"{', '.join(varied)} vary too; write best: {ANY}, or effect: {name}")


def _need_crossed(asked: Declared, rows: Rows) -> None:
    _need_varied(asked, rows)
    cells = {tuple(row.get(name) for name in asked.names) for row in rows}
    first, second = asked.names
    every = len(values_of(rows, first)) * len(values_of(rows, second))
    if sum(None not in cell for cell in cells) < every:
        raise QuestionError(f"not every value of {first} runs with every value of {second}")


def _need_called(asked: Declared, rows: Rows) -> None:
    called = values_of(rows, ANY)
    for name in asked.names:
        if name not in called:
            listed = f"names has {', '.join(called)}" if called else "the file has no names"
            raise QuestionError(f"no configuration is called {name}; {listed}")


KINDS: Mapping[str, Form] = {
    "shape": Form("mtd", _need_levels, only=MTD),
    "best": Form("method", _need_several),
    "contrast": Form(
        "{ema_decay: [0.75, 0.95], within: {queue_size: 512}}", _need_varied, values=2
    ),
    "effect": Form("ema_decay", _need_varied),
    "interaction": Form("[ema_decay, queue_size]", _need_crossed, names=2),
    "additions": Form("[SimCSE, with a queue, with heads]", _need_called, names=0),
    "sufficiency": Form("mtd", _need_parts, only=MTD),
    "conditions": Form("mtd", _need_conditions, only=MTD),
    "history": Form("mtd", _need_probes, only=MTD, is_tested=False),
}
"""The kinds of question; a module of `mtdlab.analysis.questions` has the name of its kind."""


def derive(rows: Iterable[Mapping[str, Any]], nuisance: Collection[str] = ()) -> Declared:
    """The question of a study that declares none, from its configurations, planned or run.

    Several methods ask for the best. MTD asks for its shape, at each learning rate and number of
    steps where these vary too. Other settings ask for the best configuration.
    """
    rows = list(rows)
    if len({row.get(METHOD) for row in rows}) > 1:
        return Declared("best", (METHOD,))
    if len(list_conditions(rows, nuisance)) > 1:
        return Declared("conditions", (MTD,))
    return Declared("shape", (MTD,)) if len(_levels(rows)) > 1 else Declared("best", (ANY,))


def list_conditions(rows: Iterable[Mapping[str, Any]], nuisance: Collection[str] = ()) -> list[Any]:
    """The values of learning rate and steps at which there are several levels of MTD."""
    groups: dict[Any, list[Mapping[str, Any]]] = {}
    for row in rows:
        condition = tuple(row.get(name) for name in CONDITIONS if name not in nuisance)
        groups.setdefault(condition, []).append(row)
    return [condition for condition, group in groups.items() if len(_levels(group)) > 1]


@dataclass(frozen=True)
class PlannedQuestion:
    """A question, and the configurations that a study file plans to answer it with.

    Attributes:
        rows: their settings and MTD.
        searched: the names that the file's search gives.
        beyond_run: whether levels of MTD beyond the run are compared.
    """

    asked: Declared
    rows: Rows
    searched: Collection[str]
    beyond_run: BeyondRun

    def count_compared(self) -> int:
        """How many configurations are compared; 0 for levels of MTD.

        Of methods these are their levels of MTD where each is one configuration there, whatever
        makes up its MTD.
        """
        rows = self.asked.select(self.rows)
        if self.asked.names == (MTD,):
            return 0
        if len({row.get(METHOD) for row in rows}) < 2:
            return len(rows)
        levels, apart = set(), set()
        for row in rows:
            level = row[METHOD], level_in(row)
            names = [name for name in self.searched if not level[1] or name not in PARTS]
            levels.add(level)
            apart.add((level, *(str(row.get(name)) for name in names)))
        return len(apart) if len(apart) == len(levels) else len(rows)
