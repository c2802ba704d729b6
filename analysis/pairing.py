"""Scores compared seed by seed: what a seed adds to all its runs drops out.

Letters: S seeds, L levels of MTD.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd

from analysis.intervals import check_level, half_width
from analysis.runs import traced_runs, varied_settings

_COLUMNS = ["mtd", "seeds", "mean", "low", "high"]


def complete_block(table: pd.DataFrame) -> pd.DataFrame:
    """The table without the rows and columns that have holes, the emptiest dropped first."""
    holes = table.isna().to_numpy()
    rows, columns = np.arange(holes.shape[0]), np.arange(holes.shape[1])
    while (left := holes[np.ix_(rows, columns)]).any():
        by_row, by_column = left.mean(axis=1), left.mean(axis=0)
        if by_row.max() > by_column.max():
            rows = np.delete(rows, by_row.argmax())
        else:
            columns = np.delete(columns, by_column.argmax())
    return table.iloc[rows, columns]


def pair_by_seed(trials: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """Scores of the seeds and levels that can be compared without a hole, (S, L).

    settings  which columns are settings.

    A configuration counts only with every seed that is kept, so that all levels rest on the
    same seeds; the emptiest seeds and configurations are left out first. Configurations of one
    level are averaged. Index seed, columns mtd.
    """
    runs = traced_runs(trials)
    keys = sorted({*varied_settings(runs, settings), "mtd"})
    runs = runs.assign(setting=runs.groupby(keys, dropna=False).ngroup())
    if runs["seed"].nunique() > 1:
        runs = runs[runs.groupby("setting")["seed"].transform("nunique") > 1]
    table = runs.pivot_table(index="seed", columns=["mtd", "setting"], values="score")
    return complete_block(table).T.groupby(level="mtd").mean().T


def compute_paired_curve(
    trials: pd.DataFrame, settings: Collection[str], *, level: float = 0.95
) -> pd.DataFrame:
    """Score at each MTD less the same seed's mean over all levels.

    Returns mtd, seeds, mean, low, high, with the t interval over seeds. The seeds and
    levels are those of `pair_by_seed`. Raises ValueError for a level outside (0, 1).
    """
    check_level(level)
    block = pair_by_seed(trials, settings)
    scores = block.to_numpy(dtype=np.float64)
    if not scores.size:
        return _no_rows(_COLUMNS)
    offsets = scores - scores.mean(axis=1, keepdims=True)
    seeds = len(scores)
    mean = offsets.mean(axis=0)
    deviation = offsets.std(axis=0, ddof=1) if seeds > 1 else np.full_like(mean, np.nan)
    width = half_width(deviation, seeds, level=level)
    return pd.DataFrame(
        {
            "mtd": block.columns.to_numpy(dtype=np.float64),
            "seeds": seeds,
            "mean": mean,
            "low": mean - width,
            "high": mean + width,
        }
    )


def compute_paired_batch_curves(
    trials: pd.DataFrame, settings: Collection[str], *, level: float = 0.95
) -> pd.DataFrame:
    """For each batch size what `compute_paired_curve` gives, after a column batch_size."""
    runs = traced_runs(trials)
    curves = [
        compute_paired_curve(batch, settings, level=level).assign(batch_size=size)
        for size, batch in runs.groupby("batch_size")
    ]
    columns = ["batch_size", *_COLUMNS]
    return pd.concat(curves, ignore_index=True)[columns] if curves else _no_rows(columns)


def _no_rows(columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns=columns, dtype="float64")
