"""Spectra of sentence embeddings by level of MTD, and their effective rank.

Letters: N embeddings, D dimension, R trials. Source: MoCoSE, figure 7 (singular values of
the matrix of sentence embeddings); Roy and Vetterli (2007), equation 3 (effective rank).
"""

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy import special

from analysis.intervals import summarise
from analysis.runs import MTD_DECIMALS, traced_runs

Floats = NDArray[np.float64]


def find_width(spectra: pd.DataFrame) -> int | None:
    """The dimension of a study's embeddings; None without a spectrum, or where they differ.

    spectra  `StudyFrames.spectra`, of at least as many sentences as dimensions.
    """
    widths = set(spectra.notna().sum(axis=1).tolist())
    return int(widths.pop()) if len(widths) == 1 else None


def effective_rank(values: ArrayLike) -> float:
    """Exponential of the entropy of the singular values' shares, from 1 to their number.

    values  (D,) singular values, not negative, at least one above 0.

    Raises ValueError for any other values.
    """
    sizes = np.asarray(values, dtype=np.float64)
    if sizes.ndim != 1 or not np.all(np.isfinite(sizes) & (sizes >= 0)) or not sizes.any():
        raise ValueError("singular values must be a row of finite numbers >= 0, not all 0")
    return float(_effective_ranks(sizes[None])[0])


def _effective_ranks(spectra: Floats) -> Floats:
    """The effective rank of each row of (R, D)."""
    shares = spectra / spectra.sum(axis=1, keepdims=True)
    return np.asarray(np.exp(special.entr(shares).sum(axis=1)), dtype=np.float64)


def _usable(spectra: pd.DataFrame) -> pd.DataFrame:
    """The rows with finite values, the largest above 0."""
    values = spectra.to_numpy(dtype=np.float64)
    usable = np.isfinite(values).all(axis=1) & (values.max(axis=1, initial=0) > 0)
    return spectra.iloc[np.flatnonzero(usable)]


def _with_distance(trials: pd.DataFrame, spectra: pd.DataFrame) -> pd.DataFrame:
    """Number, moment, mtd and seed of each spectrum of a run that completed with a score."""
    index = spectra.index.set_names(["number", "moment"]).to_frame(index=False)
    runs = traced_runs(trials)[["number", "mtd", "seed"]]
    return index.reset_index(names="row").merge(runs, on="number", how="inner")


def compute_spectra(trials: pd.DataFrame, spectra: pd.DataFrame) -> pd.DataFrame:
    """Mean spectrum before training, and after it at each level of MTD.

    trials   `StudyFrames.trials`.
    spectra  `StudyFrames.spectra`, (2R, D) or empty.

    Returns a row per (moment, mtd), mtd NaN before training; each spectrum is divided by its
    largest value before the mean over runs is taken, so that column 0 is 1.
    """
    if spectra.empty:
        return pd.DataFrame()
    usable = _usable(spectra)
    labels = _with_distance(trials, usable)
    values = usable.to_numpy(dtype=np.float64)[labels["row"].to_numpy(dtype=np.intp)]
    relative = pd.DataFrame(values / values[:, :1])
    level = labels["mtd"].round(MTD_DECIMALS).mask(labels["moment"] == "before")
    return relative.groupby([labels["moment"], level], dropna=False, sort=True).mean()


def compute_effective_ranks(
    trials: pd.DataFrame, spectra: pd.DataFrame, *, level: float = 0.95
) -> pd.DataFrame:
    """Effective rank before and after training at each MTD, with its interval over seeds.

    Returns moment, mtd, n, seeds, mean, low, high (see `summarise`). Raises ValueError for
    a level outside (0, 1).
    """
    columns = ["moment", "mtd", "seed", "rank"]
    if spectra.empty:
        ranked = pd.DataFrame(columns=columns, dtype="float64")
    else:
        usable = _usable(spectra)
        labels = _with_distance(trials, usable)
        ranks = _effective_ranks(usable.to_numpy(dtype=np.float64))
        ranked = labels.assign(rank=ranks[labels["row"].to_numpy(dtype=np.intp)])
    return summarise(ranked, by=["moment", "mtd"], value="rank", level=level)
