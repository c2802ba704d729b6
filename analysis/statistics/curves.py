"""Score, tasks, alignment, uniformity and spectra by maximum traceable distance (MTD).

Sources: MoCoSE, figures 2 (score), 3 (by batch size), 4 (distance of alignment and uniformity from
a fixed point) and 7 (singular values of the matrix of sentence embeddings); Roy and Vetterli
(2007), equation 3 (effective rank); of rank correlations of the score with MTD within each seed,
Spearman (1904), Kendall (1938, tau-b) and Chatterjee (JASA 2021, xi). Spearman and Kendall measure
a monotone relation and are near 0 for an inverted U; xi measures whether the score is a function of
MTD, monotone or not. Letters: N embeddings, D dimension, R trials, S seeds, L levels of MTD.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd
import scipy
from numpy.typing import ArrayLike

from mtdlab.analysis.data.runs import completed_runs, mtd_or_0, traced_runs
from mtdlab.analysis.data.tasks import TASKS
from mtdlab.analysis.inference.intervals import estimate, summarise

# The reference point of the distances: identical embeddings of positive pairs, and a uniform
# distribution on a sphere of high dimension (the lowest uniformity at t = 2).
IDEAL_ALIGNMENT = 0.0
IDEAL_UNIFORMITY = -4.0
GEOMETRY = ("alignment", "uniformity", "l1", "l2")


def compute_mtd_curve(trials: pd.DataFrame, *, value: str = "score") -> pd.DataFrame:
    """Mean of `value` at each level of MTD, in rising order: mtd, n, seeds, mean, low, high."""
    return summarise(traced_runs(trials, value=value), by=["mtd"], value=value)


def compute_distances(trials: pd.DataFrame) -> pd.DataFrame:
    """L1 and L2 distance from the ideal (0, -4) of each run that has alignment and uniformity.

    Columns: number, state, seed, mtd, alignment, uniformity, l1, l2.
    """
    runs = traced_runs(trials, value="alignment")
    runs = runs[np.isfinite(runs["uniformity"].astype("float64"))]
    return measure_distances(runs)[["number", "state", "seed", "mtd", *GEOMETRY]]


def measure_distances(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs with l1 and l2, the distances of their alignment and uniformity from the ideal."""
    across = runs["alignment"].astype("float64") - IDEAL_ALIGNMENT
    down = runs["uniformity"].astype("float64") - IDEAL_UNIFORMITY
    return runs.assign(l1=across.abs() + down.abs(), l2=np.hypot(across, down))


def compute_geometry(distances: pd.DataFrame) -> pd.DataFrame:
    """Mean of each of `GEOMETRY` by MTD: measure, mtd, n, seeds, mean, low, high.

    `distances` is `compute_distances`.
    """
    curves = {measure: compute_mtd_curve(distances, value=measure) for measure in GEOMETRY}
    return pd.concat(curves, names=["measure"]).reset_index("measure").reset_index(drop=True)


def compute_tasks(
    trials: pd.DataFrame, scores: pd.DataFrame, *, by: Sequence[str] = ()
) -> pd.DataFrame:
    """Score on every task of the published tables by MTD; runs without an MTD have an MTD of 0.

    Columns: task, those of `by`, which are columns of trials, mtd, n, seeds, mean, low, high; tasks
    in published order.
    """
    runs = completed_runs(trials)
    runs = runs[["number", "seed", *by]].assign(mtd=mtd_or_0(runs))
    named = scores[scores["task"].isin(TASKS) & scores["score"].notna()]
    table = summarise(runs.merge(named, on="number"), by=["task", *by, "mtd"])
    return table.sort_values(
        "task", key=lambda tasks: tasks.map(TASKS.index), kind="stable", ignore_index=True
    )


def find_width(spectra: pd.DataFrame) -> int | None:
    """The dimension of a study's embeddings; None without a spectrum, or where they differ.

    Spectra must be of at least as many sentences as dimensions.
    """
    widths = set(spectra.notna().sum(axis=1).tolist())
    return int(widths.pop()) if len(widths) == 1 else None


def effective_rank(values: ArrayLike) -> float:
    """Exponential of the entropy of the singular values' shares, from 1 to their number.

    Raises ValueError unless the values (D,) are not negative, at least one above 0.
    """
    sizes = np.asarray(values, dtype=np.float64)
    if sizes.ndim != 1 or not np.all(np.isfinite(sizes) & (sizes >= 0)) or not sizes.any():
        raise ValueError("singular values must be a row of finite numbers >= 0, not all 0")
    return float(np.exp(scipy.special.entr(sizes / sizes.sum()).sum()))


def rank_spectra(spectra: pd.DataFrame, moment: str) -> pd.Series:
    """The effective rank of the spectra at a moment, "before" or "after", by the number of the run.

    Spectra with values that are not finite, or all 0, are left out.
    """
    if spectra.empty:
        return pd.Series(dtype="float64")
    chosen = _select_usable(spectra[spectra.index.get_level_values(1) == moment].droplevel(1))
    ranks = [effective_rank(row) for row in chosen.to_numpy(dtype=np.float64)]
    return pd.Series(ranks, index=chosen.index, dtype="float64")


def _select_usable(spectra: pd.DataFrame) -> pd.DataFrame:
    """The spectra (R, D) without those with values that are not finite, or all 0."""
    values = spectra.to_numpy(dtype=np.float64)
    usable = np.isfinite(values).all(axis=1) & (values.max(axis=1, initial=0) > 0)
    known: pd.DataFrame = spectra[usable]
    return known


def compute_spectra(trials: pd.DataFrame, spectra: pd.DataFrame) -> pd.DataFrame:
    """Mean spectrum before training, and after it at each level of MTD, of scored runs with an MTD.

    Returns:
        A row per (moment, mtd), mtd NaN before training; each spectrum is divided by its largest
        value before the mean over runs is taken, so that column 0 is 1.
    """
    if spectra.empty:
        return pd.DataFrame()
    known = _select_usable(spectra).rename_axis(["number", "moment"]).reset_index()
    merged = known.merge(traced_runs(trials)[["number", "mtd"]], on="number")
    relative = merged[spectra.columns].div(merged[spectra.columns[0]], axis="index")
    level = merged["mtd"].mask(merged["moment"] == "before")
    return relative.groupby([merged["moment"], level], dropna=False, sort=True).mean()


def compute_effective_ranks(trials: pd.DataFrame, spectra: pd.DataFrame) -> pd.DataFrame:
    """Effective rank before and after training: moment, mtd, n, seeds, mean, low, high."""
    runs = traced_runs(trials)
    ranked = pd.concat(
        runs.assign(moment=moment, rank=runs["number"].map(rank_spectra(spectra, moment)))
        for moment in ("after", "before")
    )
    return summarise(ranked.dropna(subset="rank"), by=["moment", "mtd"], value="rank")


MIN_LEVELS = 6
"""The fewest levels of a rank correlation: with three, xi is -0.125 for every peak and valley."""


def compute_correlations(trials: pd.DataFrame) -> pd.DataFrame:
    """Rank correlations of score and MTD within each seed, as means over seeds.

    A seed's runs at one level are averaged first, so that each level counts once; seeds with fewer
    than `MIN_LEVELS` levels, or with all scores equal, are left out. Returns measure, seeds, levels
    (the smallest number of a seed), mean, low, high: a row per measure with the t interval over
    seeds, NaN for one seed; no rows without a usable seed. xi of L levels is at most
    (L - 2) / (L + 1), its value for every strictly monotone relation.
    """
    means = traced_runs(trials).groupby(["seed", "mtd"])["score"].mean().reset_index()
    usable = [
        (seed["mtd"].to_numpy(dtype=np.float64), seed["score"].to_numpy(dtype=np.float64))
        for _, seed in means.groupby("seed")
        if len(seed) >= MIN_LEVELS and seed["score"].nunique() > 1
    ]
    # scipy.stats is imported by its first use, which takes longer than a figure
    names = {"Spearman": "spearmanr", "Kendall": "kendalltau", "Chatterjee xi": "chatterjeexi"}
    rows = []
    for name, function in names.items() if usable else ():
        measure = getattr(scipy.stats, function)
        interval = estimate(np.array([measure(mtd, score).statistic for mtd, score in usable]))
        fewest = min(len(mtd) for mtd, _ in usable)
        rows.append((name, len(usable), fewest, interval.mean, interval.low, interval.high))
    return pd.DataFrame(rows, columns=["measure", "seeds", "levels", "mean", "low", "high"])
