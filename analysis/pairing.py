"""Paired comparison of levels of MTD: seeds as blocks, so that seed effects cancel.

Letters: S seeds, L levels of MTD.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd

from analysis.blocks import Floats, connected_table
from analysis.inference import shape_tests
from analysis.intervals import check_level, estimate
from analysis.runs import MTD_DECIMALS, traced_runs, varied_settings

_COLUMNS = ["mtd", "seeds", "mean", "low", "high", "low_all", "high_all"]
# More distinct levels than this, as random samplers produce, are merged with their neighbours.
_MOST_LEVELS = 30


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


def seed_scores(runs: pd.DataFrame, varied: list[str], chosen: pd.Series) -> pd.Series:
    """The score of each seed of the configuration of `chosen`, a row of `runs`."""
    same = np.ones(len(runs), dtype=bool)
    for name in varied:
        equal = runs[name].isna() if pd.isna(chosen[name]) else runs[name] == chosen[name]
        same &= equal.to_numpy()
    return runs[same].groupby("seed")["score"].mean()


def differences_to_best(scores: Floats, best: int, *, level: float, rows: int) -> Floats:
    """Paired differences of columns of scores to column `best`, (R, 3): mean, low, high.

    scores  (S, R), NaN where a seed has no score; rows: of the table that `level` holds for.

    The t intervals over common seeds are adjusted for all pairs of rows (Bonferroni), because the
    best is chosen by the same scores. NaN for the best itself and without a common seed; with one
    common seed the bounds are NaN.
    """
    adjusted = 1 - (1 - level) / max(rows * (rows - 1) / 2, 1)
    table = np.full((scores.shape[1], 3), np.nan)
    for at in range(scores.shape[1]):
        difference = scores[:, at] - scores[:, best]
        difference = difference[np.isfinite(difference)]
        if at != best and len(difference):
            found = estimate(difference, adjusted)
            table[at] = found.mean, found.low, found.high
    return table


def score_table(trials: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """Scores of the seeds and levels that can be compared, (S, L), NaN where there is no run.

    settings  which columns are settings.

    Index seed, columns mtd in rising order. Several configurations at one level are averaged, over
    the complete block of configurations and seeds (`complete_block`). A level needs two seeds and a
    seed two levels; with one seed, all its levels are kept. More than 30 levels are merged with
    their neighbours into 30, at the geometric mean of their MTD.
    """
    runs = traced_runs(trials)
    keys = sorted({*varied_settings(runs, settings), "mtd"})
    runs = runs.assign(
        setting=runs.groupby(keys, dropna=False).ngroup(), level=merge_levels(runs["mtd"])
    )
    if runs["seed"].nunique() > 1:
        runs = runs[runs.groupby("setting")["seed"].transform("nunique") > 1]
    cells = runs.pivot_table(index="seed", columns=["level", "setting"], values="score")
    levels = {
        level: complete_block(cells[level]).mean(axis=1)
        for level in cells.columns.get_level_values("level").unique()
    }
    table = pd.DataFrame(levels, index=cells.index, dtype="float64").rename_axis(columns="mtd")
    if len(table) < 2:
        return table.dropna(axis="columns")
    seeds, kept = connected_table(table.to_numpy())
    return table.loc[seeds, kept]


def merge_levels(distance: pd.Series) -> pd.Series:
    """The level of each run: its MTD, or that of its group where more than 30 levels are merged."""
    levels = distance.drop_duplicates().sort_values().to_numpy()
    if len(levels) <= _MOST_LEVELS:
        return distance
    centres = {
        level: round(float(np.exp(np.log(group).mean())), MTD_DECIMALS)
        for group in np.array_split(levels, _MOST_LEVELS)
        for level in group
    }
    return distance.map(centres)


def compute_paired_curve(
    trials: pd.DataFrame, settings: Collection[str], *, level: float = 0.95
) -> pd.DataFrame:
    """Score at each level of MTD less the mean over all levels, seeds as blocks.

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
    offsets = shape_tests(scores, distance).estimate_offsets(scores, 1 - level)
    return frame.assign(
        mean=offsets.mean,
        low=offsets.mean - offsets.pointwise,
        high=offsets.mean + offsets.pointwise,
        low_all=offsets.mean - offsets.simultaneous,
        high_all=offsets.mean + offsets.simultaneous,
    )


def compute_paired_batch_curves(
    trials: pd.DataFrame, settings: Collection[str], *, level: float = 0.95
) -> pd.DataFrame:
    """`compute_paired_curve` of each batch size: batch_size, then its columns."""
    runs = traced_runs(trials)
    curves = [
        compute_paired_curve(batch, settings, level=level).assign(batch_size=size)
        for size, batch in runs.groupby("batch_size")
    ]
    columns = ["batch_size", *_COLUMNS]
    return pd.concat(curves, ignore_index=True)[columns] if curves else _no_rows(columns)


def _no_rows(columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns=columns, dtype="float64")
