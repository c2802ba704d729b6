"""What a study measured as a function of the maximum traceable distance (MTD).

Letters: S seeds, L levels of MTD. Source of the curves: MoCoSE, figures 2 (score), 3 (by
batch size) and 4 (distance of alignment and uniformity from a fixed point).
"""

import numpy as np
import pandas as pd

from analysis.intervals import check_level, half_width, summarise

# Settings that give the same distance differ in the last bits; 26/3 is printed as 8.667.
MTD_DECIMALS = 3

# The fixed point of the distances: positive pairs that coincide, and embeddings spread
# uniformly over a sphere of many dimensions (the least uniformity at t = 2).
IDEAL_ALIGNMENT = 0.0
IDEAL_UNIFORMITY = -4.0

_PAIRED = ["mtd", "seeds", "mean", "low", "high"]
_RESULTS = frozenset(
    {
        "number",
        "state",
        "reason",
        "seed",
        "score",
        "alignment",
        "uniformity",
        "mean_cosine",
        "score_before",
        "best_step",
        "wall_seconds",
    }
)


def format_mtd(distance: float) -> str:
    """A distance as it is printed, 14.667 or 12; a dash for one that is not finite."""
    if not np.isfinite(distance):
        return "–"
    return f"{distance:.{MTD_DECIMALS}f}".rstrip("0").rstrip(".")


def completed_runs(trials: pd.DataFrame, *, value: str = "score") -> pd.DataFrame:
    """The rows of COMPLETE trials with a finite `value`, whatever their method."""
    done = trials["state"] == "COMPLETE"
    return trials[done & np.isfinite(trials[value].astype("float64"))]


def traced_runs(trials: pd.DataFrame, *, value: str = "score") -> pd.DataFrame:
    """The completed runs that have a queue to trace, with MTD rounded to its level.

    Where there is a column `method`, only "mocose" counts: the other methods have no MTD,
    or one that means something else.
    """
    runs = completed_runs(trials, value=value)
    runs = runs[np.isfinite(runs["mtd"].astype("float64"))]
    if "method" in runs:
        # trials recorded before there was a choice have none
        runs = runs[runs["method"].fillna("mocose") == "mocose"]
    return runs.assign(mtd=runs["mtd"].astype("float64").round(MTD_DECIMALS))


def simcse_runs(trials: pd.DataFrame) -> pd.DataFrame:
    """The completed runs of method "simcse": no queue and no EMA, drawn at an MTD of 0."""
    runs = completed_runs(trials)
    return runs[runs["method"] == "simcse"] if "method" in runs else runs.iloc[:0]


def compute_mtd_curve(
    trials: pd.DataFrame, *, value: str = "score", level: float = 0.95
) -> pd.DataFrame:
    """Mean of `value` at each level of MTD, with its t interval over seeds.

    Returns mtd, n (runs), seeds, mean, low, high, a row per level in rising order; one seed
    leaves low and high NaN, no usable run leaves no row. Raises ValueError for a level
    outside (0, 1).
    """
    return summarise(traced_runs(trials, value=value), by=["mtd"], value=value, level=level)


def compute_batch_curves(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """The score's curve for each batch size: batch_size, then as `compute_mtd_curve`."""
    return summarise(traced_runs(trials), by=["batch_size", "mtd"], level=level)


def compute_paired_batch_curves(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """For each batch size what `compute_paired_curve` gives, after a column batch_size."""
    runs = traced_runs(trials)
    curves = [
        compute_paired_curve(batch, level=level).assign(batch_size=size)
        for size, batch in runs.groupby("batch_size")
    ]
    columns = ["batch_size", *_PAIRED]
    return pd.concat(curves, ignore_index=True)[columns] if curves else _no_rows(columns)


def _no_rows(columns: list[str]) -> pd.DataFrame:
    return pd.DataFrame(columns=columns, dtype="float64")


def compute_distances(trials: pd.DataFrame) -> pd.DataFrame:
    """L1 and L2 distance of each run's (alignment, uniformity) from the ideal (0, -4).

    Returns number, state, seed, mtd, alignment, uniformity, l1, l2, a row per run that has
    both measures.
    """
    runs = traced_runs(trials, value="alignment")
    runs = runs[np.isfinite(runs["uniformity"].astype("float64"))]
    across = runs["alignment"] - IDEAL_ALIGNMENT
    down = runs["uniformity"] - IDEAL_UNIFORMITY
    distances = runs.assign(l1=across.abs() + down.abs(), l2=np.hypot(across, down))
    columns = ["number", "state", "seed", "mtd", "alignment", "uniformity", "l1", "l2"]
    return distances[columns]


def varied_settings(trials: pd.DataFrame) -> list[str]:
    """The columns that are settings, not results, and differ between these trials."""
    names = [str(name) for name in trials if name not in _RESULTS]
    return [name for name in names if trials[name].nunique(dropna=False) > 1]


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


def pair_by_seed(trials: pd.DataFrame) -> pd.DataFrame:
    """Scores of the seeds and levels that can be compared without a hole, (S, L).

    A setting counts only with every seed that is kept, so that all levels rest on the same
    seeds; the emptiest seeds and settings are left out first. Settings of one level are
    averaged. Index seed, columns mtd.
    """
    runs = traced_runs(trials)
    keys = sorted({*varied_settings(runs), "mtd"})
    runs = runs.assign(setting=runs.groupby(keys, dropna=False).ngroup())
    if runs["seed"].nunique() > 1:
        runs = runs[runs.groupby("setting")["seed"].transform("nunique") > 1]
    table = runs.pivot_table(index="seed", columns=["mtd", "setting"], values="score")
    return complete_block(table).T.groupby(level="mtd").mean().T


def compute_paired_curve(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Score at each MTD less the same seed's mean over all levels: the seed effect removed.

    Returns mtd, seeds, mean, low, high, with the t interval over seeds. The seeds and
    levels are those of `pair_by_seed`. Raises ValueError for a level outside (0, 1).
    """
    check_level(level)
    block = pair_by_seed(trials)
    scores = block.to_numpy(dtype=np.float64)
    if not scores.size:
        return _no_rows(_PAIRED)
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
