"""Nuisance settings: those whose value is chosen for each configuration, before it is compared.

A learning rate that suits one configuration may not suit another. The values are chosen on dev
data, with seeds of their own, so that the scores that are compared took no part in the choice.
"""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

NUISANCE = "nuisance"
SEEDS, PER = "seeds", "per"
Choice = Mapping[str, Mapping[str, Any]]
"""The chosen values by setting, by group."""

_SCORING = "decides what is scored, or at which step, so each value would be scored differently"
_COMPARED = "is what configurations are compared in; search it, or write it under trainer"
_LENGTH = "is the length of training, in which configurations would differ; search it"
NEVER = {
    **dict.fromkeys(("evaluation", "tasks", "select_on", "evaluate_every"), _SCORING),
    **dict.fromkeys(("method", "encoder", "encoder_layers", "corpus"), _COMPARED),
    **dict.fromkeys(("steps", "sentences", "epochs"), _LENGTH),
    **dict.fromkeys(("device", "precision"), "decides how a trial is computed, not what"),
    "seed": "varies chance alone; a study takes its seeds from seeds: [0, 1, 2]",
    "probe_every": "changes no score",
    "preset": "only fills what a file leaves open",
}
"""The settings whose value is never chosen for each configuration, and why."""


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
