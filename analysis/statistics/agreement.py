"""Whether the answer of one study holds in another: the order of levels and the best one.

The first study is the small one: a small encoder, few steps or little text. Both are compared at
their levels of MTD, in steps or in half-lives of each study's own keys
(`analysis.statistics.history`).

Letters: S seeds, L levels of MTD of a study, M levels of the first study that lie within the range
of the other one, P = M (M - 1) / 2 pairs of them.

Each study contributes confidence statements at (1 + level) / 2, so that those on both hold at
`level` (Bonferroni; the studies need not be independent). Half-lives count as known: their sampling
error is not in the intervals.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.data.frames import StudyFrames
from analysis.data.runs import traced_runs, varied_settings
from analysis.inference.intervals import Estimate, check_level, summarise
from analysis.inference.pairing import (
    LevelScores,
    compute_paired_curve,
    level_scores,
    merge_levels,
)
from analysis.measures import Floats
from analysis.statistics.configurations import name_configuration, number_configurations
from analysis.statistics.history import compute_half_lives, compute_history_runs, compute_retained

UNITS = ("steps", "half-lives")
MIN_LEVELS = 3
"""Common levels below which there is no order to speak of."""
_RELATIVE = 1e-6
"""Tolerance of comparisons that a rounding error must not decide."""


@dataclass(frozen=True)
class Levels:
    """A study's levels of MTD that can be compared.

    Attributes:
        place: (L,) MTD in the unit of the comparison, NaN where the half-life is not known.
    """

    name: str
    of: LevelScores
    place: Floats

    @property
    def best(self) -> int:
        """The level with the highest estimated score."""
        return int(self.of.fit.effects.argmax())

    def optimal(self, alpha: float) -> Floats:
        """The places of the levels that may be the best, (1 to L,); see `find_optimal`."""
        return self.place[self.of.tests.find_optimal(self.of.fit, alpha)]


@dataclass(frozen=True)
class Agreement:
    """What the first study says of the other one in one unit of MTD.

    Attributes:
        unit: of `UNITS`.
        first, other: names of the studies.
        levels: M.
        order: Kendall's tau (a) of the mean scores of these levels; the other study's scores are
            interpolated in log MTD where it has other levels. Its interval takes every pair of
            levels whose difference is not significant in both studies as undecided: it covers the
            tau of the true means with probability `level`. NaN with fewer than 3 levels.
        alike, opposite: pairs that are significant in both studies, in the same or opposite
            direction.
        pairs: P.
        best: of each study: the best level, then the lowest and highest that may be the best.
        ratio: the other's best level divided by the first's, with its interval.
    """

    unit: str
    first: str
    other: str
    levels: int
    order: Estimate
    alike: int
    opposite: int
    pairs: int
    best: tuple[Estimate, Estimate]
    ratio: Estimate

    @property
    def same_best(self) -> bool:
        """Whether the best levels may be the same: the interval of their ratio contains 1."""
        return self.ratio.low <= 1 + _RELATIVE and self.ratio.high >= 1 - _RELATIVE


def compute_agreements(
    first: StudyFrames, other: StudyFrames, *, level: float = 0.95
) -> tuple[Agreement, ...]:
    """How the levels of two studies agree, in each unit in which both are known.

    Empty unless both have two levels of MTD with two seeds each. Raises ValueError for a level
    outside (0, 1).
    """
    alpha = (1 - check_level(level)) / 2
    found = []
    for unit in UNITS:
        both = _levels(first, unit), _levels(other, unit)
        if all(each.of.comparable and np.isfinite(each.place).any() for each in both):
            found.append(compare_levels(unit, *both, alpha))
    return tuple(found)


def _levels(study: StudyFrames, unit: str) -> Levels:
    levels = level_scores(study.trials, study.settings, study.items)
    place = levels.distance
    if unit == "half-lives":
        place = place / _half_lives(study).reindex(place).to_numpy(dtype=np.float64)
        # a half-life beyond the longest lag is not known
        place = np.where(place > 0, place, np.nan)
    return Levels(study.name, levels, place)


def _half_lives(study: StudyFrames) -> pd.Series:
    """The median half-life of the trials of each level, by MTD."""
    if study.probes.empty:
        return pd.Series(dtype="float64")
    measured = compute_half_lives(compute_retained(study.probes))
    runs = compute_history_runs(study.trials, measured)
    medians: pd.Series = runs.groupby(merge_levels(runs["mtd"]))["half_life"].median()
    return medians


def compare_levels(unit: str, first: Levels, other: Levels, alpha: float) -> Agreement:
    """How the levels of two studies agree. alpha: error rate of the statements on one study."""
    own, others = _best(first, alpha), _best(other, alpha)
    chosen, weights = match_levels(first.place, other.place)
    pairs = [(i, j) for j in range(len(chosen)) for i in range(j)]
    order, alike, opposite = Estimate(np.nan, np.nan, np.nan), 0, 0
    if len(chosen) >= MIN_LEVELS:
        rows = np.eye(len(first.place))[chosen]
        tests = [_signs(first, rows, pairs, alpha), _signs(other, weights, pairs, alpha)]
        estimated, decided = np.prod(tests, axis=0)
        alike, opposite = int((decided > 0).sum()), int((decided < 0).sum())
        low, high = 2 * alike / len(pairs) - 1, 1 - 2 * opposite / len(pairs)
        order = Estimate(float(estimated.mean()), low, high)
    return Agreement(
        unit=unit,
        first=first.name,
        other=other.name,
        levels=len(chosen),
        order=order,
        alike=alike,
        opposite=opposite,
        pairs=len(pairs),
        best=(own, others),
        ratio=Estimate(others.mean / own.mean, others.low / own.high, others.high / own.low),
    )


def match_levels(first: Floats, other: Floats) -> tuple[Sequence[int], Floats]:
    """The levels of the first study within the range of the other one, and their interpolation.

    Args:
        first, other: (L,) places; NaN where not known.

    Returns:
        M indices of `first`, and weights (M, L of the other) of the other's levels that interpolate
        linearly in the logarithm of the place.
    """
    known = np.flatnonzero(np.isfinite(other))
    order = known[np.argsort(other[known], kind="stable")]
    low, high = other[order[0]] * (1 - _RELATIVE), other[order[-1]] * (1 + _RELATIVE)
    chosen = [index for index, place in enumerate(first) if low <= place <= high]
    points = np.log(other[order])
    rows = np.zeros((len(chosen), len(other)))
    for row, index in zip(rows, chosen, strict=True):
        for at, weight in zip(order, _hat(points, np.log(first[index])), strict=True):
            row[at] = weight
    return chosen, rows


def _hat(points: Floats, place: float) -> Floats:
    """Weights (L,) of ascending points in the linear interpolation at a place."""
    return np.array([np.interp(place, points, unit) for unit in np.eye(len(points))])


def _signs(study: Levels, rows: Floats, pairs: Sequence[tuple[int, int]], alpha: float) -> Floats:
    """Signs (2, P) of differences of the scores `rows` (M, L): estimated; 0 if not significant."""
    family = study.of.tests.simultaneous(np.array([rows[j] - rows[i] for i, j in pairs]))
    comparison = family.compare(study.of.fit)
    width = comparison.half_width(family.critical(alpha))
    sign = np.sign(comparison.estimate)
    return np.array([sign, np.where(np.abs(comparison.estimate) > width, sign, 0.0)])


def _best(study: Levels, alpha: float) -> Estimate:
    """The best level, and the lowest and highest that may be; NaN where a place is not known."""
    places = study.optimal(alpha)
    return Estimate(float(study.place[study.best]), float(places.min()), float(places.max()))


def compute_unit_curve(study: StudyFrames, unit: str, *, level: float = 0.95) -> pd.DataFrame:
    """`compute_paired_curve` with MTD in a unit of `UNITS`, without levels that have no place."""
    levels = level_scores(study.trials, study.settings, study.items)
    curve = compute_paired_curve(levels, level=level)
    if unit == "half-lives":
        half_lives = _half_lives(study).reindex(curve["mtd"]).to_numpy(dtype=np.float64)
        curve["mtd"] /= half_lives
    return curve[curve["mtd"] > 0].sort_values("mtd", ignore_index=True)


def compute_candidates(
    first: StudyFrames, other: StudyFrames, *, level: float = 0.95
) -> pd.DataFrame:
    """The first study's configurations that may be the best, for running them as in the other.

    Returns:
        configuration, mtd; in the other study status ("not run", "may be the best", "not the
        best"), other_n (trials at that MTD) and other_mean; then in the first n, seeds, mean, low,
        high, the highest mean first. No rows without two levels and two seeds in the first.
    """
    columns = ["configuration", "mtd", "status", "other_n", "other_mean"]
    columns += ["n", "seeds", "mean", "low", "high"]
    own, others = _levels(first, "steps"), _levels(other, "steps")
    if not own.of.comparable:
        return pd.DataFrame(columns=columns)
    alpha = (1 - check_level(level)) / 2
    runs = traced_runs(first.trials)
    runs = runs[merge_levels(runs["mtd"]).isin(own.optimal(alpha))]
    varied = varied_settings(traced_runs(first.trials), first.settings)
    runs = runs.assign(place=number_configurations(runs, varied))
    table = summarise(runs, by=["place", "mtd"], level=level)
    named = runs.drop_duplicates("place").set_index("place")
    texts = [name_configuration(named.loc[place, varied]) for place in table["place"]]
    there = traced_runs(other.trials).groupby("mtd")["score"].agg(["size", "mean"])
    table = table.assign(
        configuration=texts,
        other_n=table["mtd"].map(there["size"]).fillna(0).astype("int64"),
        other_mean=table["mtd"].map(there["mean"]),
    )
    optimal = others.optimal(alpha) if others.of.comparable else table["mtd"]
    may = np.where(table["mtd"].isin(optimal), "may be the best", "not the best")
    table["status"] = np.where(table["other_n"] > 0, may, "not run")
    return table.sort_values("mean", ascending=False, kind="stable", ignore_index=True)[columns]
