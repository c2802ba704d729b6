"""The size of a new study: as many values, seeds and steps as a machine runs in some hours."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # it imports torch
    from mtdlab.cost.estimate import CostEstimate

FEWEST, MOST_SEEDS = 3, 5
"""The values and seeds that stay for a test, and the seeds of a study that has the time."""


@dataclass(frozen=True)
class Size:
    """The values, by setting, and the number of seeds of a study; `part` divides its steps."""

    vary: Mapping[str, list[Any]]
    seeds: int = MOST_SEEDS
    part: int = 1

    @property
    def trials(self) -> int:
        """How many there are where all settings go together."""
        return self.seeds * math.prod(map(len, self.vary.values()))


def list_sizes(
    vary: Mapping[str, list[Any]], usual: Mapping[str, list[Any]], seeds: int | None
) -> list[Size]:
    """The sizes of a study, the preferred first: whole runs, then many trials, then many seeds.

    The first has everything. What was not asked for may be less: lists that are `usual` ones, the
    seeds if None, and the steps, of which half stay.
    """
    values = [
        [_thin(listed, count) for count in range(FEWEST, len(listed) + 1)]
        if listed is usual.get(name)
        else [listed]
        for name, listed in vary.items()
    ]
    sizes = (
        Size(dict(zip(vary, chosen, strict=True)), count, part)
        for part in ([1] if "steps" in vary else [1, 2])
        for chosen in itertools.product(*values)
        for count in ([seeds] if seeds else range(FEWEST, MOST_SEEDS + 1))
    )
    return sorted(sizes, key=lambda size: (size.part, -size.trials, -size.seeds))


def _thin(values: list[Any], count: int) -> list[Any]:
    """So many of the values: of numbers evenly, with both ends; of names the first."""
    if isinstance(values[0], str):
        return values[:count]
    return [values[round(at * (len(values) - 1) / (count - 1))] for at in range(count)]


def choose_size(sizes: Sequence[Size], costs: "CostEstimate", hours: float) -> tuple[Size, float]:
    """The first size of at most so many hours, or the last, and its seconds; costs of the first."""
    mean = (costs.seconds[1] - costs.start) * costs.workers / costs.trials
    evaluation = min(costs.evaluation, mean)
    for size in sizes:
        rounds = math.ceil(costs.trials * size.trials / sizes[0].trials / costs.workers)
        seconds = costs.start + rounds * (evaluation + (mean - evaluation) / size.part)
        if seconds <= 3600 * hours:
            break
    return size, seconds
