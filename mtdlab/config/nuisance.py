"""Nuisance settings: those whose value is chosen for each configuration, before it is compared.

A learning rate that suits one configuration may not suit another. The values are chosen on dev
data, with seeds of their own, so that the scores that are compared took no part in the choice.
"""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mtdlab.config.source import OF_PROGRAM, Source
from mtdlab.settings.roles import BASELINE

if TYPE_CHECKING:
    # they import this module
    from mtdlab.config.study import StudySpec
    from mtdlab.config.study_file import StudyFile

NUISANCE = "nuisance"
SEEDS, PER = "seeds", "per"
Choice = Mapping[str, Mapping[str, Any]]
"""The chosen values by setting, by group."""


@dataclass(frozen=True)
class Nuisance:
    """The section `nuisance` of a study file.

    Attributes:
        values: of each nuisance setting the values among which one is chosen.
        seeds: those of the trials by which they are chosen.
        per: settings whose values share a choice; empty: every configuration has its own.
    """

    values: Mapping[str, tuple[Any, ...]] = field(hash=False)
    seeds: tuple[int, ...]
    per: tuple[str, ...] = ()

    def candidates(self) -> Iterator[dict[str, Any]]:
        """Every combination of values."""
        for values in itertools.product(*self.values.values()):
            yield dict(zip(self.values, values, strict=True))

    def identity(self) -> dict[str, Any]:
        """The values that identify the study, as JSON has them."""
        values = {name: list(values) for name, values in self.values.items()}
        return values | {SEEDS: list(self.seeds), PER: list(self.per)}


def nuisance_values(section: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a section and what is written as their values."""
    return {name: given for name, given in section.items() if name not in (SEEDS, PER)}


def read_nuisance(top: "StudyFile", spec: "StudySpec", source: Source) -> Nuisance | None:
    """The section of a study file; None where it has a mistake."""
    if spec.sampler != "grid":
        message = f"needs sampler: grid; {spec.sampler} has no configurations before it runs"
        source.add((NUISANCE,), message)
    if spec.select_by in (spec.metric, "sts_test"):
        message = f"its values would be chosen by {spec.select_by}, which is no score on dev data"
        source.add((NUISANCE,), f"{message}; name one under select_by")
    others = {"trainer": top.trainer, "search": top.search, BASELINE: top.baseline or {}}
    section: dict[str, Any] = source.values[NUISANCE]
    values = nuisance_values(section)
    if not values:
        example = "{learning_rate: [3e-4, 1e-3]}"
        source.add((NUISANCE,), f"name a setting and its values, as in {example}")
    for name, given in values.items():
        path = (NUISANCE, name)
        if elsewhere := [key for key, settings in others.items() if name in settings]:
            source.add(path, f"is given under {elsewhere[0]} too; take it out of one")
        elif name not in spec.known:
            source.collect([source.unknown(path, spec.known, OF_PROGRAM)])
        elif not isinstance(given, list) or len({*map(repr, given)}) < 2:
            source.add(path, f"{given!r}: write a list of two values or more")
        elif wrong := [each for each in given if not isinstance(each, str | int | float)]:
            source.add(path, f"{wrong[0]!r} is not a single value")
    own = source.attempt(lambda: _read_seeds(source, section.get(SEEDS), spec.seeds))
    per = source.attempt(lambda: _read_per(source, section.get(PER), top.search))
    if own is None or per is None or not source.sound(NUISANCE):
        return None
    return Nuisance({name: tuple(dict.fromkeys(given)) for name, given in values.items()}, own, per)


def _read_seeds(source: Source, given: Any, seeds: Sequence[int]) -> tuple[int, ...]:
    """The seeds of the choice; by default two from the next multiple of 1,000 on."""
    if given is None:
        first = 1000 * (max(seeds) // 1000 + 1)
        return tuple(range(first, first + 2))
    path = (NUISANCE, SEEDS)
    if not isinstance(given, list) or not given or any(type(seed) is not int for seed in given):
        raise source.error(path, f"{given!r}: write a list of seeds, as in [900, 901]")
    for seed in given:
        if seed < 0:
            raise source.error(path, f"{seed}: a seed is 0 or more")
        if seed in seeds:
            raise source.error(path, f"{seed} is a seed of the study too; its own differ from all")
    return tuple(dict.fromkeys(given))


def _read_per(source: Source, given: Any, search: Mapping[str, Any]) -> tuple[str, ...]:
    names = [] if given is None else given if isinstance(given, list) else [given]
    for name in names:
        if name not in search:
            listed = ", ".join(search) or "nothing"
            raise source.error((NUISANCE, PER), f"{name!r} is not searched; search has {listed}")
    return tuple(names)
