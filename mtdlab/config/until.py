"""The sections `until` (when a study ends by itself) and `verdict` (what it is judged by)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from analysis.defaults import ALPHA, MARGIN
from mtdlab.config.source import Source

SHARES = (0.3, 0.5, 0.7, 1.0)
"""Default looks, as shares of max_seeds: 3, 5, 7 and 10 of 10."""
MOST_SEEDS = 1000


@dataclass(frozen=True)
class Until:
    """Seeds are added until the verdict is decided.

    looks  the number of seeds of the leading levels at each look, rising; the last is the most
           that a level gets.
    """

    looks: tuple[int, ...]

    @property
    def max_seeds(self) -> int:
        """The most seeds that a configuration gets."""
        return self.looks[-1]


class UntilSection(BaseModel):
    """The keys of `until`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    decided: Literal[True] = Field(description="end when the verdict is decided")
    max_seeds: int = Field(ge=2, le=MOST_SEEDS, description="seeds at which it ends undecided")
    looks: list[int] | None = Field(
        default=None, min_length=1, description="numbers of seeds at which the verdict is computed"
    )


class VerdictSection(BaseModel):
    """The keys of `verdict`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    margin: float = Field(
        MARGIN, gt=0, le=100, description="points below which a difference counts as none"
    )
    alpha: float = Field(ALPHA, gt=0, le=0.5, description="error rate of a verdict")


def default_looks(max_seeds: int) -> tuple[int, ...]:
    """Looks at about 30, 50, 70 and 100 % of the seeds, none below 3 (below 2 of 2)."""
    least = min(3, max_seeds)
    return tuple(sorted({max(least, math.ceil(share * max_seeds - 1e-9)) for share in SHARES}))


def read_until(source: Source, section: UntilSection, seeds: Sequence[int]) -> Until:
    """The looks of an `until` section. Raises SpecError at the place of a mistake.

    seeds  those that the file lists; the others follow the largest of them.
    """
    if len(seeds) > section.max_seeds:
        raise source.error(
            ("until", "max_seeds"),
            f"{section.max_seeds}: the file lists {len(seeds)} seeds; raise it, or list fewer",
        )
    if section.looks is None:
        return Until(default_looks(section.max_seeds))
    path = ("until", "looks")
    for index, look in enumerate(section.looks):
        if look < 2:
            raise source.error((*path, index), f"{look}: a look needs 2 seeds or more")
        if index and look <= section.looks[index - 1]:
            raise source.error((*path, index), f"{look}: looks are numbers of seeds that rise")
    if section.looks[-1] != section.max_seeds:
        raise source.error(
            (*path, len(section.looks) - 1),
            f"{section.looks[-1]}: the last look is at max_seeds, {section.max_seeds}",
        )
    return Until(tuple(section.looks))


def extended(seeds: Sequence[int], count: int) -> tuple[int, ...]:
    """`count` seeds: the given ones, then whole numbers above the largest of them."""
    first = max(seeds) + 1
    return (*seeds, *range(first, first + count - len(seeds)))
