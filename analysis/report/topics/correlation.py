"""Topic: rank correlations of the score with MTD."""

import pandas as pd

from analysis.report.cells import PERCENT, count, make_table
from analysis.report.topics.base import StudyContext, Table, Topic
from analysis.statistics.curves import compute_correlations


def compute(context: StudyContext) -> pd.DataFrame | None:
    """The correlations; None where no seed has enough levels of MTD."""
    table = compute_correlations(context.curve_trials)
    return table if len(table) else None


def describe(table: pd.DataFrame) -> tuple[str, ...]:
    """A sentence on what the measures show, and on the largest value that xi can take."""
    levels = int(table["levels"].min())
    return (
        "Spearman and Kendall measure whether the score rises or falls with MTD: both are near 0 "
        "for an inverted U. Chatterjee's xi measures whether the score depends on MTD in any way, "
        f"an inverted U included; with {levels} levels it is at most "
        f"{(levels - 2) / (levels + 1):.2f}, and near 0 without a relation.",
    )


def show(table: pd.DataFrame) -> tuple[Table, ...]:
    seeds = int(table["seeds"].min())
    interval = (
        f"with its {PERCENT} t interval for these items" if seeds > 1 else "without an interval"
    )
    caption = (
        f"Rank correlation of score and MTD within a seed, mean over {count(seeds, 'seed')}, "
        f"{interval}."
    )
    return (make_table(table, caption=caption, csv="correlation"),)


TOPIC = Topic(
    name="correlation",
    title="Correlation of score and MTD",
    compute=compute,
    csv={"correlation": lambda table: table},
    text=describe,
    tables=show,
)
