"""Frames as tables of a page, with numbers rounded for reading, and phrases of its text."""

import math
from collections.abc import Iterable, Mapping

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL as LEVEL
from mtdlab.analysis.data.durations import format_count as format_count
from mtdlab.analysis.data.metric import BOUNDS, POINTS, ScoreFormat, write_fixed
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.data.settings import format_setting, format_value
from mtdlab.analysis.data.tasks import TASKS
from mtdlab.analysis.questions.wording import PERCENT, clean, describe_items
from mtdlab.analysis.report.page import Column, Table

BAND = f"The band is the {PERCENT} t interval over seeds, for these items."


def describe_covered(means: pd.DataFrame) -> str:
    """What the intervals of means cover beside seeds (`describe_items`), by their column items."""
    return describe_items(int(means["items"].min()))


def describe_curve(curve: pd.DataFrame, what: str, *, decimals: int = 2) -> str:
    """A sentence on where a curve over MTD is highest and lowest."""
    top, bottom = curve.iloc[int(curve["mean"].argmax())], curve.iloc[int(curve["mean"].argmin())]
    if len(curve) == 1:
        return f"{what} {top['mean']:.{decimals}f} at the only MTD, {format_mtd(top['mtd'])}."
    if f"{top['mean']:.{decimals}f}" == f"{bottom['mean']:.{decimals}f}":
        return f"{what} {top['mean']:.{decimals}f} at every MTD."
    return (
        f"{what} highest at MTD {format_mtd(top['mtd'])} ({top['mean']:.{decimals}f}) and "
        f"lowest at MTD {format_mtd(bottom['mtd'])} ({bottom['mean']:.{decimals}f})."
    )


MISSING = "–"
_LABELS: Mapping[str, str] = {
    "number": "trial",
    "mtd": "MTD",
    "n": "trials",
    "low": f"{PERCENT} CI",
    "paired_mean": "deviation",
    "collapsed_share": "collapsed, %",
    "paired_low_all": f"deviation, {PERCENT} CI",
    "half_life": "half-life",
    "fgsm_changed": "entries changed, %",
    "published": "published: BERT-base, Wikipedia, average of seven STS tests",
    "difference": "difference to the best",
    "difference_low": f"difference, {PERCENT} CI",
    "best_step": "best step",
    "seconds": "seconds of a trial",
    "memory": "peak memory, MB",
    "may_be_best": "may be the best",
    "l1": "L1",
    "l2": "L2",
    "chosen_by": "chosen by",
    "at_end": "at an end of its range",
    "value": "score it is chosen by",
    "optimism": "its optimism",
    "score_optimism": "optimism of the score",
    "configuration_mean": "mean score of its configuration",
    "configuration_trials": "over trials",
}
_COUNTS: Mapping[str, str] = {"n": "trial", "seeds": "seed"}
_PAIRED = ("paired_mean", "paired_low", "paired_high", "paired_low_all", "paired_high_all")
_SCORES = frozenset(
    {
        *("score", "mean", "median", "low", "high", "best mean", "baseline minus it", *_PAIRED),
        *("difference", "difference_low", "difference_high", "before", "after"),
        *("value", "optimism", "score_optimism", "configuration_mean"),
    }
)
"""Columns of scores and their differences, which have the decimals of `ScoreFormat`."""
_DECIMALS: Mapping[str, int] = {
    **dict.fromkeys((*TASKS, "STS average", "sts_dev", "sts_test", "sts_average", "published"), 2),
    **dict.fromkeys(("mean_cosine", "alignment", "uniformity", "l1", "l2"), 3),
    "transfer_average": 2,
    "wall time, s": 1,
    "seconds": 1,
    "memory": 0,
    "collapsed_share": 0,
}
_MOST_ROWS = 100
_MOST_VALUES = 12
_NUMBERS = "iuf"
"""The kinds of column that hold numbers."""


def list_values(name: str, values: Iterable[object]) -> str:
    """The values of a setting as text, numbers first and in rising order; many as a range."""

    def order(value: object) -> tuple[float, str]:
        if isinstance(value, int | float | np.number) and math.isfinite(value):
            return (float(value), "")
        return (math.inf, str(value))

    texts = [clean(format_value(name, value)) for value in sorted(values, key=order)]
    if len(texts) > _MOST_VALUES:
        return f"{len(texts):,} values from {texts[0]} to {texts[-1]}"
    return ", ".join(texts)


def number(value: float, decimals: int | None = None) -> str:
    """A number to so many decimals, or to five digits; a dash for one that is not finite."""
    if not math.isfinite(value):
        return MISSING
    return format_setting(value) if decimals is None else write_fixed(value, decimals)


def _cells(column: pd.Series, name: str, of_scores: int) -> list[str]:
    if column.dtype.kind == "b":
        return ["yes" if value else "no" for value in column]
    if column.dtype.kind not in _NUMBERS:
        return [MISSING if pd.isna(value) else clean(str(value)) for value in column]
    if name == "mtd":
        return [format_mtd(float(value)) for value in column]
    places = of_scores if name in _SCORES else _DECIMALS.get(name)
    return [number(float(value), places) for value in column.astype("float64")]


def _join_bounds(cells: dict[str, list[str]]) -> dict[str, list[str]]:
    """The bounds of each interval in one cell, 47.97 to 55.87, below the label of the first."""
    for low, high in (*BOUNDS, ("best_low", "best_high")):
        if low in cells and high in cells:
            ends = zip(cells[low], cells.pop(high), strict=True)
            joined = [f"{one} to {other}" for one, other in ends]
            cells[low] = [MISSING if MISSING in text.split() else text for text in joined]
    return cells


def _state_counts(frame: pd.DataFrame, caption: str) -> tuple[pd.DataFrame, str]:
    """The frame without numbers of trials and seeds that all rows share; the caption has them."""
    if set(_COUNTS) <= set(frame) and frame["n"].equals(frame["seeds"]):
        frame = frame.drop(columns="n")
    counts = frame.columns.intersection([*_COUNTS])
    fixed = [name for name in counts if len(frame) > 1 and frame[name].nunique(dropna=False) == 1]
    if fixed:
        stated = (format_count(int(frame[name].iloc[0]), _COUNTS[name]) for name in fixed)
        caption = f"{caption} Each row: {', '.join(stated)}."
    return frame.drop(columns=fixed), caption


def make_table(
    frame: pd.DataFrame,
    *,
    caption: str,
    csv: str = "",
    sortable: bool = False,
    labels: Mapping[str, str] | None = None,
    most: int = _MOST_ROWS,
    write: ScoreFormat = POINTS,
) -> Table:
    """The frame as a table, a row per row.

    Args:
        labels: of the columns that are settings, or differ from the usual ones.
        most: of more rows, some at even steps are shown, and the caption says so.
        write: how scores and their differences are written.
    """
    if len(frame) > most:
        step = -(-len(frame) // most)
        caption += f" One in {step} of the {len(frame):,} rows; the CSV has all."
        frame = frame.iloc[::step]
    frame, caption = _state_counts(frame, caption)
    named = {**_LABELS, **(labels or {})}
    frame = write.frame(frame)
    texts = {str(name): _cells(frame[name], str(name), write.decimals) for name in frame}
    cells = _join_bounds(texts)
    columns = tuple(
        Column(named.get(name, name), frame[name].dtype.kind in _NUMBERS) for name in cells
    )
    return Table(caption, columns, tuple(zip(*cells.values(), strict=True)), csv, sortable)
