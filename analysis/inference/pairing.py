"""Scores by seed and level of MTD, and what is computed from them with seeds as blocks.

The table of scores, the curve of deviations from the mean over levels, a smooth curve through it
with a simultaneous band, and differences paired by seed. Letters: S seeds, L levels of MTD,
P evaluation items, N runs, G points of the smooth curve.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.defaults import BEYOND_RUN, LEVEL, BeyondRun
from mtdlab.analysis.data.frames import SettingValue
from mtdlab.analysis.data.items import ItemScores, influences
from mtdlab.analysis.data.runs import level_of, traced_runs, varied_settings
from mtdlab.analysis.inference.blocks import Blocks, Fit, connected_table
from mtdlab.analysis.inference.intervals import (
    UNKNOWN,
    Estimate,
    estimate,
    estimate_over_items,
    find_p_above,
    summarise,
    variance_of_items,
    without_impossible,
)
from mtdlab.analysis.inference.shapes import ShapeTests, shape_tests
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.measures.trace import PARTS

OF_LEVELS = frozenset((*PARTS, "mtd", "initial_queue_size", "queue_slice"))
"""MTD, the settings that make it up, and those whose values follow from the size of the queue."""
MOST_LEVELS = 30
"""The most levels that are compared; more, as random samplers produce, are merged."""


def complete_block(table: pd.DataFrame) -> pd.DataFrame:
    """The table without missing values; rows and columns with the most are dropped first."""
    return table.iloc[_choose_complete(table.isna().to_numpy())]


def _choose_complete(missing: NDArray[np.bool_]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows and columns of a table (R, C) that `complete_block` keeps."""
    rows, columns = np.arange(missing.shape[0]), np.arange(missing.shape[1])
    while (left := missing[np.ix_(rows, columns)]).any():
        by_row, by_column = left.mean(axis=1), left.mean(axis=0)
        if by_row.max() > by_column.max():
            rows = np.delete(rows, by_row.argmax())
        else:
            columns = np.delete(columns, by_column.argmax())
    return rows, columns


def select_configuration(
    runs: pd.DataFrame, settings: Collection[str], number: int
) -> pd.DataFrame:
    """The runs of the configuration of run `number`; KeyError where that is none of the runs."""
    varied = varied_settings(runs, settings)
    chosen = runs.set_index("number")[varied].loc[[number]].astype("object").iloc[0]
    same = (runs[varied] == chosen) | (runs[varied].isna() & chosen.isna())
    return runs[same.all(axis=1)]


@dataclass(frozen=True)
class Mean:
    """The mean score of runs over their seeds, in points.

    Attributes:
        seeds: how many it is of.
        items: how many evaluation items its interval covers; 0: it covers seeds alone.
        estimate: interval over seeds and items; NaN bounds with one seed.
    """

    seeds: int
    items: int
    estimate: Estimate


def estimate_mean(runs: pd.DataFrame, items: ItemScores | None) -> Mean:
    """The mean of the means of seeds, of at least one run with number, seed and score.

    Where all runs have `items`, the interval covers their sampling too.
    """
    per_seed = runs.groupby("seed")["score"].mean()
    values = per_seed.to_numpy(dtype=np.float64)
    of_seeds = _seed_influences(runs, per_seed.index, items)
    if of_seeds is None:
        return Mean(len(values), 0, without_impossible(estimate(values), values))
    mean = estimate_over_items(values, of_seeds)
    return Mean(len(values), of_seeds.shape[1], without_impossible(mean, values))


def summarise_scores(
    runs: pd.DataFrame, *, by: Sequence[str], items: ItemScores | None
) -> pd.DataFrame:
    """Summarise the score by group (`summarise`), with the intervals of `estimate_mean`.

    A row of `runs` has number, seed, score and the columns of `by`. After the columns of
    `summarise` comes items: how many evaluation items the interval covers; 0: seeds alone.
    """
    table = summarise(runs, by=by)
    if items is None or not len(table):
        return table.assign(items=0)
    means = [estimate_mean(group, items) for _, group in runs.groupby(list(by))]
    return table.assign(
        low=[mean.estimate.low for mean in means],
        high=[mean.estimate.high for mean in means],
        items=[mean.items for mean in means],
    )


@dataclass(frozen=True, eq=False)
class Paired:
    """One value per seed, as a difference of two sides, (S,), in points.

    Attributes:
        of_items: the variance of their mean due to the evaluation items.
        items: how many items are counted; 0: these items alone.
    """

    values: Floats
    of_items: float = 0.0
    items: int = 0

    @property
    def _shared(self) -> dict[str, float]:
        return {"of_items": self.of_items, "freedom": self.items - 1 if self.items else math.inf}

    def estimate(self, level: float = LEVEL) -> Estimate:
        """Their mean with its interval; NaN without a seed."""
        return estimate(self.values, level, **self._shared) if len(self.values) else UNKNOWN

    def find_p_above(self, bound: float, sign: int = 1) -> float:
        """`find_p_above` of the values, with the other sign for -1."""
        return find_p_above(sign * self.values, bound, **self._shared)


def pair_runs(
    first: pd.DataFrame, second: pd.DataFrame, items: Sequence[ItemScores | None]
) -> Paired:
    """The mean score of each seed's runs minus that of others.

    A run has seed, number and score. Where the `items` of both are of the same evaluation data and
    all runs have them, their sampling is counted.
    """
    values = first.groupby("seed")["score"].mean() - second.groupby("seed")["score"].mean()
    values = values.dropna()
    scores = values.to_numpy(dtype=np.float64)
    same = len({side_items.digest for side_items in items if side_items is not None}) == 1
    if not same or not len(scores):
        return Paired(scores)
    sides = [
        _seed_influences(runs, values.index, side_items)
        for runs, side_items in zip((first, second), items, strict=True)
    ]
    if sides[0] is None or sides[1] is None:
        return Paired(scores)
    return Paired(scores, variance_of_items(sides[0] - sides[1]), sides[0].shape[1])


def _seed_influences(
    runs: pd.DataFrame, seeds: pd.Index, items: ItemScores | None
) -> Floats | None:
    """Mean influence of each item on the runs of each seed, (S, P); None where not known."""
    runs = runs[runs["seed"].isin(seeds)]
    if (by_run := _run_influences(runs, items)) is None:
        return None
    share = (runs["seed"].to_numpy() == seeds.to_numpy()[:, None]).astype(np.float64)
    return np.asarray(share @ by_run / share.sum(axis=1, keepdims=True))


def _run_influences(runs: pd.DataFrame, items: ItemScores | None) -> Floats | None:
    """Influence of each item on each run, (N, P); None where a run has no items, or no scatter."""
    if items is None or not runs["number"].isin(items.numbers).all():
        return None
    by_run = influences(items.of(runs["number"].tolist()))
    return by_run if np.isfinite(by_run).all() else None


@dataclass(frozen=True, eq=False)
class LevelScores:
    """Scores of the seeds and levels of MTD that can be compared.

    Attributes:
        table: (S, L), index seed, columns mtd in rising order, NaN where there is no run.
        covariance: of the level effects due to the evaluation items, (L, L) in points squared; None
            where they are not counted.
        items: how many are counted.
        runs: the completed runs with an MTD, also those that are not in the table.
        left_out: the levels beyond the run, whose runs are not among `runs`.
        uneven: combinations of values of other settings that not all levels have, where all have
            others; their runs are not among `runs` either.
        unbalanced: the numbers of the runs of these, and of those that are in no mean of a level
            since their seed has not run all other combinations there.
        ordered: whether the columns are levels of MTD; else they are configurations, each named by
            the number of its first trial.
    """

    table: pd.DataFrame
    covariance: Floats | None = None
    items: int = 0
    runs: pd.DataFrame = field(default_factory=pd.DataFrame)
    left_out: tuple[float, ...] = ()
    uneven: tuple[Mapping[str, SettingValue], ...] = ()
    unbalanced: frozenset[int] = frozenset()
    ordered: bool = True

    @property
    def scores(self) -> Floats:
        return self.table.to_numpy()

    @property
    def distance(self) -> Floats:
        """The levels, (L,) in steps; of configurations their places from 1."""
        if not self.ordered:
            return np.arange(1.0, self.table.shape[1] + 1)
        return self.table.columns.to_numpy(dtype=np.float64)

    @property
    def comparable(self) -> bool:
        """Whether there are at least two seeds and two levels."""
        return min(self.table.shape) >= 2

    @cached_property
    def tests(self) -> ShapeTests:
        distance = self.distance if self.ordered else None
        return shape_tests(self.scores, distance, self.covariance)

    @cached_property
    def fit(self) -> Fit:
        return self.tests.fit(self.scores)

    def without_items(self) -> "LevelScores":
        return replace(self, covariance=None, items=0)


def level_scores(
    trials: pd.DataFrame,
    settings: Collection[str],
    items: ItemScores | None = None,
    *,
    beyond_run: BeyondRun = BEYOND_RUN,
) -> LevelScores:
    """The scores by seed and level of a study's trials.

    Several configurations at one level are averaged, over the complete block of configurations and
    seeds (`complete_block`), and over the same values of all other settings: where runs of a level
    failed at a high learning rate, its mean would be of easier ones. They are those that all levels
    have, and a seed counts at a level where it has run with all of them; where no values are at all
    levels, these are not balanced. A level needs two seeds and a seed two levels; with one seed,
    all its levels are kept. More than 30 levels are merged with their neighbours into 30, at the
    geometric mean of their MTD. The sampling error of `items` is counted where every run of the
    table has them, each with scatter.
    """
    runs, left_out = leave_out(traced_runs(trials), beyond_run)
    level = merge_levels(runs["mtd"])
    inside, whole, uneven = _balance(runs, level, settings)
    weighted = _weigh_runs(runs[inside & whole], level[inside & whole], settings)
    products = weighted["score"] * weighted["weight"]
    cells = products.groupby([weighted["seed"], weighted["level"]]).sum()
    table = cells.unstack("level").astype("float64").rename_axis(columns="mtd")
    if len(table) < 2:
        table = table.dropna(axis="columns")
    else:
        table = table.loc[*connected_table(table.to_numpy())]
    covariance = cell_covariance(weighted, table, "level", items)
    # a frame of the user may have no numbers
    numbers = runs["number"] if "number" in runs else runs.index.to_series()
    unbalanced = frozenset(numbers[~(inside & whole)].tolist())
    return LevelScores(table, *covariance, runs[inside], left_out, uneven, unbalanced)


def _balance(
    runs: pd.DataFrame, level: pd.Series, settings: Collection[str]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], tuple[Mapping[str, SettingValue], ...]]:
    """Which runs have settings that all levels have, which are in whole cells, and `uneven`.

    A cell is whole where its seed ran all of these settings at the level.
    """
    cells, varied = runs.groupby([runs["seed"], level]), varied_settings(runs, settings)
    names = [
        name
        for name in varied
        if name not in OF_LEVELS and cells[name].nunique(dropna=False).max() > 1
    ]
    if not names:
        every = np.ones(len(runs), dtype=np.bool_)
        return every, every, ()
    condition = runs.groupby(names, dropna=False).ngroup().to_numpy(dtype=np.intp)
    chosen, whole = _choose_conditions(condition, runs["seed"], level)
    inside = np.isin(condition, chosen)
    left: list[Any] = runs.loc[~inside, names].drop_duplicates().to_dict("records")
    return inside, whole, tuple(left)


def _weigh_runs(runs: pd.DataFrame, level: pd.Series, settings: Collection[str]) -> pd.DataFrame:
    """The runs in cells of the table, with their level, and their weight in the cell's score."""
    keys = sorted({*varied_settings(runs, settings), "mtd"})
    runs = runs.assign(setting=runs.groupby(keys, dropna=False).ngroup(), level=level)
    if runs["seed"].nunique() > 1:
        runs = runs[runs.groupby("setting")["seed"].transform("nunique") > 1]
    seeds, _ = pd.factorize(runs["seed"], sort=True)
    settings_of_runs, weight = runs["setting"].to_numpy(), np.zeros(len(runs))
    for at in runs.groupby("level").indices.values():
        rows, row = np.unique(seeds[at], return_inverse=True)
        columns, column = np.unique(settings_of_runs[at], return_inverse=True)
        counts = np.zeros((len(rows), len(columns)))
        np.add.at(counts, (row, column), 1)
        kept_rows, kept_columns = _choose_complete(counts == 0)
        inside = np.isin(row, kept_rows) & np.isin(column, kept_columns)
        weight[at[inside]] = 1 / (counts[row, column][inside] * len(kept_columns))
    return runs.assign(weight=weight)[weight > 0]


def _choose_conditions(
    condition: NDArray[np.integer[Any]], seeds: pd.Series, levels: pd.Series
) -> tuple[NDArray[np.integer[Any]], NDArray[np.bool_]]:
    """The conditions over which levels are compared, and which runs are in cells with all of them.

    Of the conditions that all levels have, those with most missing runs are dropped in turn; those
    are chosen with which most levels have two seeds, or one, and the most of these. All runs where
    no condition is at all levels, as random samplers draw them.
    """
    seed, level = (pd.factorize(column, sort=True)[0] for column in (seeds, levels))
    present = np.zeros([each.max() + 1 for each in (condition, seed, level)], dtype=np.bool_)
    present[condition, seed, level] = True
    left = np.flatnonzero(np.all(np.any(present, axis=1), axis=1))
    if not len(left):
        return np.unique(condition), np.ones(len(condition), dtype=np.bool_)
    choices = list[tuple[int, int, int, NDArray[np.intp]]]()
    while len(left):
        whole_seeds = np.sum(np.all(present[left], axis=0), axis=0)
        of_levels = int(np.sum(whole_seeds > 1)), int(np.sum(whole_seeds > 0))
        choices.append((*of_levels, len(left), left))
        left = np.delete(left, np.sum(~present[left], axis=(1, 2)).argmax())
    chosen = max(choices, key=lambda choice: choice[:3])[3]
    whole = np.asarray(np.all(present[chosen], axis=0))
    return chosen, whole[seed, level]


def cell_covariance(
    runs: pd.DataFrame, table: pd.DataFrame, column: str, items: ItemScores | None
) -> tuple[Floats | None, int]:
    """Covariance of the column effects of a table due to the evaluation items, and their number.

    (C, C) in points squared; None and 0 where a run has no items, or one without scatter. `runs`
    have number, seed, the column named `column`, and weight, by which a run counts in its cell;
    without it, the runs of a cell count equally. `table` is (S, C) by seed and that column, NaN
    where there is no run; other runs are left out.
    """
    runs = runs[runs["seed"].isin(table.index) & runs[column].isin(table.columns)]
    if min(table.shape) < 2 or (by_run := _run_influences(runs, items)) is None:
        return None, 0
    weight = 1 / runs.groupby(["seed", column])["number"].transform("size")
    if "weight" in runs:
        weight = runs["weight"]
    by_run = by_run * weight.to_numpy()[:, None]
    values = np.zeros((*table.shape, by_run.shape[1]))
    rows, columns = pd.Index(runs["seed"]), pd.Index(runs[column])
    places = table.index.get_indexer(rows), table.columns.get_indexer(columns)
    np.add.at(values, places, by_run)
    blocks = Blocks(table.notna().to_numpy())
    return blocks.item_covariance(np.moveaxis(values, -1, 0)), by_run.shape[1]


def merge_levels(distance: pd.Series) -> pd.Series:
    """The level of each run: its MTD, or that of its group where more than 30 levels are merged."""
    levels = distance.drop_duplicates().sort_values().to_numpy()
    if len(levels) <= MOST_LEVELS:
        return distance
    centres = {
        level: level_of(np.exp(np.log(group).mean()))
        for group in np.array_split(levels, MOST_LEVELS)
        for level in group
    }
    return distance.map(centres)


def compute_paired_curve(levels: LevelScores) -> pd.DataFrame:
    """Score at each level of MTD minus the mean over all levels, seeds as blocks.

    Columns: mtd, seeds, mean, with a pointwise interval (low, high) and a simultaneous one for all
    levels (low_all, high_all); with one seed the intervals are NaN.
    """
    scores = levels.scores
    columns = ["mtd", "seeds", "mean", "low", "high", "low_all", "high_all"]
    if not scores.size:
        return pd.DataFrame(columns=columns, dtype="float64")
    frame = pd.DataFrame({"mtd": levels.distance, "seeds": np.isfinite(scores).sum(axis=0)})
    if not levels.comparable:
        frame["mean"] = scores.mean(axis=0) - scores.mean()
        return frame.reindex(columns=columns)
    mean, one, every = levels.tests.estimate_offsets(levels.fit, 1 - LEVEL)
    return frame.assign(
        mean=mean, low=mean - one, high=mean + one, low_all=mean - every, high_all=mean + every
    )


def compute_deviations(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The score of each seed at each configuration minus the seed's mean over all configurations.

    Seeds and configurations with holes are left out, the emptiest first, so that every seed's mean
    is over the same configurations. Returns the columns `by`, seed, deviation. A row of `runs` has
    the columns `by`, seed and score; runs of one seed and configuration are averaged.
    """
    table = complete_block(runs.pivot_table(index="seed", columns=list(by), values="score"))
    deviations = table.sub(table.mean(axis=1), axis=0)
    levels = list(range(len(by)))
    long = pd.Series(deviations.stack(levels, future_stack=True), name="deviation").reset_index()
    return long[[*by, "seed", "deviation"]].dropna(ignore_index=True)


def summarise_deviations(runs: pd.DataFrame, first: str, second: str) -> pd.DataFrame:
    """The mean of `compute_deviations` at each value of two settings, with intervals over seeds.

    Columns: first, second (the values), n, seeds, mean, low, high.
    """
    deviations = compute_deviations(runs, [first, second])
    cells = summarise(deviations, by=[first, second], value="deviation")
    return cells.rename(columns={first: "first", second: "second"})


_MOST_KNOTS = 5
_POINTS = 60


def natural_spline(knots: Floats, points: Floats) -> Floats:
    """Basis of the natural cubic splines with the given knots, at points (G,): (G, knots).

    Column i is 1 at knot i and 0 at the others (mgcv's "cr"); two knots give a line.
    """
    spline = scipy.interpolate.CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    return np.asarray(spline(points), dtype=np.float64)


def place_knots(places: Floats, most: int = _MOST_KNOTS) -> Floats:
    """Knots at evenly spaced quantiles of the distinct places.

    There are at least 2, at most `most`, and fewer than there are places.
    """
    distinct = np.unique(places)
    count = min(most, max(2, len(distinct) - 1))
    return np.quantile(distinct, np.linspace(0, 1, count))


def compute_smooth(levels: LevelScores) -> pd.DataFrame:
    """Natural cubic spline of at most 4 degrees of freedom through the levels, seeds as blocks.

    Columns: mtd, mean (minus the mean over levels), low, high, at 60 points evenly spaced in log
    MTD. low and high are simultaneous for all points of the spline that fits the true levels best
    (Ruppert, Wand and Carroll 2003, section 6.5, with the critical value of
    `mtdlab.analysis.inference.simultaneous`); they do not cover its bias, for example at a kink. No
    rows with fewer than 4 levels or 2 seeds.
    """
    if len(levels.distance) < 4 or len(levels.table) < 2:
        return pd.DataFrame(columns=["mtd", "mean", "low", "high"], dtype="float64")
    places = np.log(levels.distance)
    points = np.linspace(places[0], places[-1], _POINTS)
    knots = place_knots(places)
    at_levels = natural_spline(knots, places)
    # a point of the curve minus the mean over levels is a contrast of the levels
    weights = (natural_spline(knots, points) - at_levels.mean(axis=0)) @ np.linalg.pinv(at_levels)
    curve = levels.tests.band(weights)
    mean, width = curve.intervals(levels.fit, 1 - LEVEL)
    columns = {"mtd": np.exp(points), "mean": mean, "low": mean - width, "high": mean + width}
    return pd.DataFrame(columns)
