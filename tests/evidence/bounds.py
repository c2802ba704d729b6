"""Bounds of the shares of simulated studies in which something is so."""

import pandas as pd
from scipy import stats


def bound_below(shares: pd.Series, studies: pd.Series, cells: int) -> list[float]:
    """Lower 99 % bounds of shares (Clopper and Pearson), together for all cells (Bonferroni).

    `studies` are how many each share is of, `cells` how many cells share the error rate.
    """
    level = 1 - 2 * 0.01 / cells
    return [
        stats.binomtest(round(share * n), n).proportion_ci(level).low
        for share, n in zip(shares, studies, strict=True)
    ]
