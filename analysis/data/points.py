"""What a point of a figure stands for, as one line of text, and the trial that it leads to."""

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.metric import POINTS, ScoreFormat
from mtdlab.analysis.data.runs import format_mtd, levels_of
from mtdlab.analysis.measures.trace import MTD_COLUMNS, PARTS

_NAMES = {
    "half_life": "half-life",
    "longest_lag": "half-life above",
    "l1": "L1 distance",
    "l2": "L2 distance",
}
_DECIMALS = {"half_life": 1}
_MOST_VALUES = 4
MOST_MARKED = 6
"""The most groups that have a colour and a marker each; more have a scale of colours."""

Row = Mapping[Hashable, Any]


def format_component(value: float) -> str:
    """A value of η, K or N as it is written in a figure, such as 0.9643 or 1,024."""
    whole = value == round(value) and abs(value) >= 1000
    return f"{value:,.0f}" if whole else f"{value:.4g}"


def describe_runs(
    runs: pd.DataFrame, *, value: str = "score", write: ScoreFormat = POINTS
) -> pd.DataFrame:
    """A line of text and a trial for each run: text, trial, with the index of `runs`.

    A run has number, `value`, and what is known of mtd, ema_decay, queue_size, batch_size, score,
    seed.
    """
    texts = []
    for row in runs.to_dict("records"):
        names = (name for name in {value: 0, "score": 0} if name in row)
        values = [_format_value(name, row[name], write) for name in names]
        parts = [_format_component(name, [row[name]]) for name in MTD_COLUMNS if name in row]
        seed = [f"seed {row['seed']:.0f}"] if "seed" in row else []
        shown = ", ".join(part for part in (*values, *parts, *seed) if part)
        texts.append(f"Trial {row['number']:.0f}: {shown}")
    return pd.DataFrame({"text": texts, "trial": runs["number"].astype("int64")}, index=runs.index)


def _format_value(name: str, value: float, write: ScoreFormat) -> str:
    shown = f"{value:.{_DECIMALS.get(name, 3)}f}" if math.isfinite(value) else "unknown"
    shown = write.score(value) if name == "score" and math.isfinite(value) else shown
    return f"{_NAMES.get(name, name)} {shown}"


def _format_component(name: str, values: Sequence[float]) -> str:
    """MTD, η, K or N with its values; empty where there is none, as of a method without it."""
    known = sorted({value for value in values if math.isfinite(value)})
    if name == "mtd":
        return f"MTD {format_mtd(known[0])}" if known and known[0] > 0 else ""
    shown = ", ".join(format_component(value) for value in known[:_MOST_VALUES])
    more = " …" if len(known) > _MOST_VALUES else ""
    return f"{PARTS[name]} {shown}{more}" if known else ""


def describe_means(
    means: pd.DataFrame,
    runs: pd.DataFrame,
    *,
    by: Sequence[str] = ("mtd",),
    value: str = "score",
    write: ScoreFormat = POINTS,
    before: str = "",
) -> pd.DataFrame:
    """The means with a line of text, `before` in front of it, and a trial each: text, trial.

    The trial is the one with the highest score of the runs of a mean, the first of several. `means`
    have the columns `by`, mean, low, high and seeds, and `runs`, of which they are, the columns
    `by` and those of `describe_runs`.
    """
    if "mtd" in runs:
        runs = runs.assign(mtd=levels_of(runs))
    groups = dict(list(runs.groupby(list(by), dropna=False)))
    keys = means[list(by)].itertuples(index=False, name=None)
    ranking, rows = "score" if "score" in runs else value, []
    for key, mean in zip(keys, means.to_dict("records"), strict=True):
        group = groups[key]
        best = int(np.nanargmax(group[ranking].to_numpy(dtype=np.float64)))
        text = f"{before}{_describe_mean(mean, group, value, write)}"
        rows.append((text, int(group["number"].iloc[best])))
    return means.join(pd.DataFrame(rows, columns=["text", "trial"], index=means.index))


def _describe_mean(mean: Row, runs: pd.DataFrame, value: str, write: ScoreFormat) -> str:
    interval, decimals = "", _DECIMALS.get(value, 3)
    if math.isfinite(mean["low"]):
        bounds = f"{mean['low']:.{decimals}f} to {mean['high']:.{decimals}f}"
        if value == "score":
            bounds = write.interval(mean["low"], mean["high"])
        interval = f" (95 % CI {bounds})"
    components = [
        _format_component(name, runs[name].astype("float64").tolist())
        for name in MTD_COLUMNS
        if name in runs
    ]
    parts = [f"{_format_value(value, mean['mean'], write)}{interval}", *components]
    seeds = format_count(int(mean["seeds"]), "seed")
    return f"Mean of {seeds}: {', '.join(part for part in parts if part)}"
