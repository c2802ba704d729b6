"""Score, alignment and uniformity as functions of the maximum traceable distance (MTD).

Source of the curves: MoCoSE, figures 2 (score), 3 (by batch size) and 4 (distance of
alignment and uniformity from a fixed point).
"""

import numpy as np
import pandas as pd

from analysis.intervals import summarise
from analysis.runs import traced_runs

# The reference point of the distances: identical embeddings of positive pairs, and a uniform
# distribution on a sphere of high dimension (the lowest uniformity at t = 2).
IDEAL_ALIGNMENT = 0.0
IDEAL_UNIFORMITY = -4.0
CONFIGURATION = ("mtd", "ema_decay", "queue_size", "batch_size")
GEOMETRY = ("alignment", "uniformity", "l1", "l2")


def compute_mtd_curve(
    trials: pd.DataFrame, *, value: str = "score", level: float = 0.95
) -> pd.DataFrame:
    """Mean of `value` at each level of MTD, with its t interval over seeds.

    Returns mtd, n (runs), seeds, mean, low, high, a row per level in rising order; low and high
    are NaN for one seed, and there are no rows without a usable run. Raises ValueError for a level
    outside (0, 1).
    """
    return summarise(traced_runs(trials, value=value), by=["mtd"], value=value, level=level)


def compute_cells(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Mean score of each combination of ema_decay, queue_size and batch_size.

    Returns mtd, ema_decay, queue_size, batch_size, n, seeds, mean, low, high, by MTD. Raises
    ValueError for a level outside (0, 1).
    """
    return summarise(traced_runs(trials), by=CONFIGURATION, level=level)


def compute_batch_curves(trials: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """The score's curve for each batch size: batch_size, then as `compute_mtd_curve`."""
    return summarise(traced_runs(trials), by=["batch_size", "mtd"], level=level)


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


def compute_geometry(distances: pd.DataFrame, *, level: float = 0.95) -> pd.DataFrame:
    """Mean alignment, uniformity, L1 and L2 by MTD, in long format.

    distances  `compute_distances`.

    Returns measure, mtd, n, seeds, mean, low, high. Raises ValueError for a level outside
    (0, 1).
    """
    curves = [
        compute_mtd_curve(distances, value=measure, level=level).assign(measure=measure)
        for measure in GEOMETRY
    ]
    columns = ["measure", "mtd", "n", "seeds", "mean", "low", "high"]
    return pd.concat(curves, ignore_index=True)[columns]
