"""What a study is: fixed settings, what varies, seeds, sampler, and the trials that follow."""

import re
from dataclasses import dataclass, field
from typing import Any, Literal

from mtdlab.config.search import Choices, Dimension, Partial, fingerprint, grid, resolve
from mtdlab.config.settings import TrainerSection, TrainerSettings, is_number

Sampler = Literal["grid", "random", "tpe", "qmc"]
Pruner = Literal["none", "median", "hyperband"]
STUDY_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"


@dataclass(frozen=True)
class Unit:
    """One trial to do: a setting with one seed.

    `parameters` is None where the sampler has still to choose them.
    """

    setting: str
    seed: int
    parameters: dict[str, Any] | None


@dataclass(frozen=True)
class StudySpec:
    """A checked study: `trainer` fixed, `search` varied, one trial per setting and seed.

    skip  partial points of the grid that are not run.
    """

    name: str
    metric: str
    trainer: dict[str, Any] = field(hash=False)
    search: dict[str, Dimension] = field(hash=False)
    seeds: tuple[int, ...]
    sampler: Sampler
    pruner: Pruner
    trials: int | None
    text: str
    skip: tuple[Partial, ...] = field(default=(), hash=False)

    def fixed(self) -> TrainerSection:
        """The trainer section with its defaults, whose values may still miss the searched ones."""
        return TrainerSection(**self.trainer)

    def augmentations(self) -> tuple[str, ...]:
        """Every augmentation that a trial may use."""
        searched = self.search.get("augmentation")
        if isinstance(searched, Choices):
            return searched.values
        return (self.fixed().augmentation,)

    def smallest_batch(self) -> int:
        """The fewest sentences that a trial's batch may have."""
        searched = self.search.get("batch_size")
        if searched is None:
            return self.fixed().batch_size
        return int(min(searched.values) if isinstance(searched, Choices) else searched.low)

    def settings(self, parameters: dict[str, Any], seed: int) -> TrainerSettings:
        """The settings of one trial. Raises ValueError where they do not go together."""
        resolved = resolve(self.search, parameters, self.fixed().model_dump())
        return TrainerSettings(**resolved | {"seed": seed})

    def units(self) -> list[Unit]:
        """Every trial of the study, in the order to run them.

        A grid goes seed by seed, so that a study cut short has seen every setting; a sampled
        study goes setting by setting, so that the sampler learns from all seeds.
        """
        if self.sampler == "grid":
            points = {fingerprint(point): point for point in grid(self.search, self.skip)}
            return [Unit(key, seed, point) for seed in self.seeds for key, point in points.items()]
        settings = (f"sample-{index:05d}" for index in range(self.trials or 0))
        return [Unit(setting, seed, None) for setting in settings for seed in self.seeds]

    def identity(self) -> dict[str, Any]:
        """What makes this study this study: a change here would mix two questions.

        What a grid skips is no part of it: skipping less adds trials, and skipping what is
        planned is refused trial by trial, as any other point that the file lost.
        """
        grid = self.sampler == "grid"
        return {
            "metric": self.metric,
            "sampler": self.sampler,
            "pruner": self.pruner,
            "trainer": self.fixed().model_dump(mode="json", exclude={"seed", *self.search}),
            "search": {
                setting: "searched" if grid and self._can_grow(setting) else str(dimension)
                for setting, dimension in self.search.items()
            },
        }

    def _can_grow(self, setting: str) -> bool:
        """Optuna lets the numbers of a study become more, but not its words."""
        return is_number(setting, int) or is_number(setting, float)


def is_study_name(name: str) -> bool:
    """Whether a study may be called so: letters, digits, dots, dashes, at most 100."""
    return re.fullmatch(STUDY_NAME, name) is not None
