"""Paired comparison of levels of MTD: seeds as blocks, so that seed effects cancel.

Letters: S seeds, L levels of MTD.
"""

from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from analysis.blocks import Blocks, Floats, connected_table
from analysis.inference import shape_tests
from analysis.intervals import Estimate, check_level, estimate, estimate_over_items
from analysis.items import ItemScores, influences
from analysis.runs import MTD_DECIMALS, traced_runs, varied_settings

_COLUMNS = ["mtd", "seeds", "mean", "low", "high", "low_all", "high_all"]
MOST_LEVELS = 30
"""More distinct levels, as random samplers produce, are merged with their neighbours."""


def complete_block(table: pd.DataFrame) -> pd.DataFrame:
    """The table without missing values; rows and columns with the most are dropped first."""
    missing = table.isna().to_numpy()
    rows, columns = np.arange(missing.shape[0]), np.arange(missing.shape[1])
    while (left := missing[np.ix_(rows, columns)]).any():
        by_row, by_column = left.mean(axis=1), left.mean(axis=0)
        if by_row.max() > by_column.max():
            rows = np.delete(rows, by_row.argmax())
        else:
            columns = np.delete(columns, by_column.argmax())
    return table.iloc[rows, columns]


def select_configuration(runs: pd.DataFrame, varied: list[str], chosen: pd.Series) -> pd.DataFrame:
    """The runs of the configuration of `chosen`, a row of `runs`."""
    same = np.ones(len(runs), dtype=bool)
    for name in varied:
        equal = runs[name].isna() if pd.isna(chosen[name]) else runs[name] == chosen[name]
        same &= equal.to_numpy()
    return runs[same]


def estimate_difference(
    first: pd.DataFrame,
    second: pd.DataFrame,
    items: Sequence[ItemScores | None],
    *,
    level: float = 0.95,
) -> tuple[Estimate, int]:
    """Mean score of runs less that of others, paired by seed, and the number of shared seeds.

    first, second  seed, number and score; the runs of a seed are averaged.
    items          of both: where they are of the same evaluation data and all runs have them, the
                   interval covers their sampling too.

    NaN without a shared seed, its bounds with one.
    """
    values = first.groupby("seed")["score"].mean() - second.groupby("seed")["score"].mean()
    values = values.dropna()
    if not len(values):
        return Estimate(np.nan, np.nan, np.nan), 0
    scores = values.to_numpy(dtype=np.float64)
    sides = [
        _seed_influences(runs, values.index, each)
        for runs, each in zip((first, second), items, strict=True)
    ]
    same = len({each.digest for each in items if each is not None}) == 1
    if same and sides[0] is not None and sides[1] is not None:
        return estimate_over_items(scores, sides[0] - sides[1], level), len(values)
    return estimate(scores, level), len(values)


def _seed_influences(
    runs: pd.DataFrame, seeds: pd.Index, items: ItemScores | None
) -> Floats | None:
    """Mean influence of each item on the runs of each seed, (S, P); None where not known."""
    runs = runs[runs["seed"].isin(seeds)]
    if (found := _run_influences(runs, items)) is None:
        return None
    share = (runs["seed"].to_numpy() == seeds.to_numpy()[:, None]).astype(np.float64)
    return np.asarray(share @ found / share.sum(axis=1, keepdims=True))


def _run_influences(runs: pd.DataFrame, items: ItemScores | None) -> Floats | None:
    """Influence of each item on each run, (N, P); None where a run has no items, or no scatter."""
    if items is None or not runs["number"].isin(items.numbers).all():
        return None
    found = influences(items.of(runs["number"].tolist()))
    return found if np.isfinite(found).all() else None


def score_table(trials: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """Scores of the seeds and levels that can be compared, (S, L), NaN where there is no run.

    settings  which columns are settings.

    Index seed, columns mtd in rising order. Several configurations at one level are averaged, over
    the complete block of configurations and seeds (`complete_block`). A level needs two seeds and a
    seed two levels; with one seed, all its levels are kept. More than 30 levels are merged with
    their neighbours into 30, at the geometric mean of their MTD.
    """
    return _tabulate(_weigh_runs(trials, settings))


def _tabulate(runs: pd.DataFrame) -> pd.DataFrame:
    """The table of scores of weighted runs."""
    cells = (runs["score"] * runs["weight"]).groupby([runs["seed"], runs["level"]]).sum()
    table = cells.unstack("level").astype("float64").rename_axis(columns="mtd")
    if len(table) < 2:
        return table.dropna(axis="columns")
    seeds, kept = connected_table(table.to_numpy())
    return table.loc[seeds, kept]


def _weigh_runs(trials: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """The runs that are in cells of the table: number, seed, score, level, weight.

    The score of a seed at a level is the sum of its runs' scores, each times its weight.
    """
    runs = traced_runs(trials)
    keys = sorted({*varied_settings(runs, settings), "mtd"})
    runs = runs.assign(
        setting=runs.groupby(keys, dropna=False).ngroup(), level=merge_levels(runs["mtd"])
    )
    if runs["seed"].nunique() > 1:
        runs = runs[runs.groupby("setting")["seed"].transform("nunique") > 1]
    runs = runs.assign(weight=0.0)
    for _, level in runs.groupby("level"):
        counts = level.pivot_table(index="seed", columns="setting", values="score", aggfunc="size")
        block = complete_block(counts)
        inside = level[level["seed"].isin(block.index) & level["setting"].isin(block.columns)]
        repeated = inside.groupby(["seed", "setting"])["score"].transform("size")
        runs.loc[inside.index, "weight"] = 1 / (repeated * len(block.columns))
    return runs[runs["weight"] > 0]


def item_covariance(
    trials: pd.DataFrame, settings: Collection[str], items: ItemScores | None
) -> Floats | None:
    """Covariance of the level effects of `score_table` due to the evaluation items, (L, L).

    In points squared; None where a run of the table has no items, or one without scatter.
    """
    if items is None:
        return None
    runs = _weigh_runs(trials, settings)
    return cell_covariance(runs, _tabulate(runs), "level", items)


def cell_covariance(
    runs: pd.DataFrame, table: pd.DataFrame, column: str, items: ItemScores | None
) -> Floats | None:
    """Covariance of the column effects of a table due to the evaluation items, (C, C).

    runs    number, seed, the column named `column`, and weight, by which a run counts in its cell;
            without it, the runs of a cell count equally.
    table   (S, C) by seed and that column, NaN where there is no run; other runs are left out.

    In points squared; None where a run has no items, or one without scatter.
    """
    runs = runs[runs["seed"].isin(table.index) & runs[column].isin(table.columns)]
    if min(table.shape) < 2 or (found := _run_influences(runs, items)) is None:
        return None
    weight = 1 / runs.groupby(["seed", column])["number"].transform("size")
    if "weight" in runs:
        weight = runs["weight"]
    found = found * weight.to_numpy()[:, None]
    values = np.zeros((*table.shape, found.shape[1]))
    rows, columns = pd.Index(runs["seed"]), pd.Index(runs[column])
    places = table.index.get_indexer(rows), table.columns.get_indexer(columns)
    np.add.at(values, places, found)
    return Blocks(table.notna().to_numpy()).item_covariance(np.moveaxis(values, -1, 0))


def merge_levels(distance: pd.Series) -> pd.Series:
    """The level of each run: its MTD, or that of its group where more than 30 levels are merged."""
    levels = distance.drop_duplicates().sort_values().to_numpy()
    if len(levels) <= MOST_LEVELS:
        return distance
    centres = {
        level: round(float(np.exp(np.log(group).mean())), MTD_DECIMALS)
        for group in np.array_split(levels, MOST_LEVELS)
        for level in group
    }
    return distance.map(centres)


def compute_paired_curve(
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    items: ItemScores | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """Score at each level of MTD less the mean over all levels, seeds as blocks.

    items  `StudyFrames.items`; without them the intervals hold for these evaluation data.

    Returns mtd, seeds, mean, with a pointwise interval (low, high) and a simultaneous one for all
    levels (low_all, high_all). The seeds and levels are those of `score_table`; with one
    seed the intervals are NaN. Raises ValueError for a level outside (0, 1).
    """
    check_level(level)
    table = score_table(trials, settings)
    scores, distance = table.to_numpy(), table.columns.to_numpy(dtype=np.float64)
    if not scores.size:
        return _no_rows(_COLUMNS)
    frame = pd.DataFrame({"mtd": distance, "seeds": np.isfinite(scores).sum(axis=0)})
    if min(scores.shape) < 2:
        frame["mean"] = scores.mean(axis=0) - scores.mean()
        return frame.reindex(columns=_COLUMNS)
    tests = shape_tests(scores, distance, item_covariance(trials, settings, items))
    offsets = tests.estimate_offsets(tests.fit(scores), 1 - level)
    return frame.assign(
        mean=offsets.mean,
        low=offsets.mean - offsets.pointwise,
        high=offsets.mean + offsets.pointwise,
        low_all=offsets.mean - offsets.simultaneous,
        high_all=offsets.mean + offsets.simultaneous,
    )


def compute_paired_batch_curves(
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    items: ItemScores | None = None,
    level: float = 0.95,
) -> pd.DataFrame:
    """`compute_paired_curve` of each batch size: batch_size, then its columns."""
    runs = traced_runs(trials)
    curves = [
        compute_paired_curve(batch, settings, items=items, level=level).assign(batch_size=size)
        for size, batch in runs.groupby("batch_size")
    ]
    columns = ["batch_size", *_COLUMNS]
    return pd.concat(curves, ignore_index=True)[columns] if curves else _no_rows(columns)


def _no_rows(columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns=columns, dtype="float64")
