"""Collapsed trials at the levels of MTD, and levels whose scores fall into two groups."""

import numpy as np
import pandas as pd

from analysis.experiments.collapse import find_collapsed
from analysis.pairing import score_table
from analysis.report.context import StudyContext
from analysis.report.text import count
from analysis.runs import MTD_DECIMALS, completed_runs, format_mtd, has_mtd

_WIDE = 4.0
"""A gap of so many robust standard deviations separates two groups of scores."""
_NORMAL = 1.4826
"""Ratio of the standard deviation of normal values to their median absolute deviation."""
_LEAST = 4
_MOST_NAMED = 6


def count_collapsed(context: StudyContext) -> pd.DataFrame:
    """How many trials of each level ended or collapsed, and the share in percent.

    Index mtd; columns trials, collapsed, share (NaN where the study records no curves). A trial
    counts where it has a score, or collapsed.
    """
    trials = context.curve_trials[has_mtd(context.curve_trials)]
    collapsed = trials["number"].isin(find_collapsed(context.study))
    known = collapsed | trials["number"].isin(completed_runs(trials)["number"])
    levels = trials["mtd"].astype("float64").round(MTD_DECIMALS)
    found = collapsed[known].groupby(levels[known]).agg(["size", "sum"])
    found.columns = pd.Index(["trials", "collapsed"])
    # without training curves, trials that completed may have collapsed as well
    curves = context.study.curves
    recorded = "mean_cosine" in curves and curves["mean_cosine"].notna().any()
    share = 100 * found["collapsed"] / found["trials"]
    return found.assign(share=share if recorded or collapsed.any() else np.nan)


def warn_of_collapses(context: StudyContext) -> str:
    """That trials of a level collapsed."""
    found = count_collapsed(context)
    found = found[found["collapsed"] > 0]
    if not len(found):
        return ""
    where = ", ".join(
        f"{collapsed} of {trials} trials at MTD {format_mtd(mtd)}"
        for mtd, trials, collapsed, _ in found.head(_MOST_NAMED).itertuples(name=None)
    )
    return (
        f"Trials collapsed: {where}. A mean there depends on how many of its trials collapse; "
        "read the median and the share of collapsed trials beside it."
    )


def warn_of_groups(context: StudyContext) -> str:
    """That scores of a level fall into two groups, as where some trials collapse.

    Rule: among the residuals of a level, after the medians of levels and seeds, neighbours are
    more than four robust standard deviations (1.4826 times the median absolute deviation of all
    residuals) apart; levels of at least four trials.
    """
    table = score_table(context.curve_trials, context.study.settings)
    if min(table.shape) < 2 or len(table) < _LEAST:
        return ""
    residuals = table - table.median()
    residuals = residuals.sub(residuals.median(axis=1), axis=0)
    spread = _NORMAL * float(np.nanmedian(residuals.abs()))
    texts = []
    for mtd, column in residuals.items():
        values = np.sort(column.dropna().to_numpy())
        gaps = np.diff(values)
        if len(values) >= _LEAST and spread > 0 and gaps.max() > _WIDE * spread:
            lower = int(gaps.argmax()) + 1
            texts.append(
                f"at MTD {format_mtd(float(str(mtd)))} {lower} of {count(len(values), 'seed')} lie "
                f"{gaps.max():.1f} points below the others"
            )
    if not texts:
        return ""
    return (
        f"Scores fall into two groups: {'; '.join(texts[:_MOST_NAMED])} (after effects of seed and "
        "level). Means and intervals assume one group."
    )
