"""Topic: the methods of a study that varies them, side by side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.published import published_sts, published_transfer
from analysis.data.runs import MTD_DECIMALS, completed_runs, format_mtd, has_mtd
from analysis.report.cells import PERCENT, clean, make_table
from analysis.report.context import StudyContext
from analysis.report.drawing import Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.methods import compute_method_properties, with_methods

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_CURVES = 4
"""Methods in one figure against MTD; there is no space for the legend of more."""


@dataclass(frozen=True)
class Methods:
    """table: `compute_methods`; names: how the methods are written; label: of scores.

    Attributes:
        labels: what the rows of the table state in a figure.
        presets: the presets that each method ran with; none where they were not recorded.
        properties: `compute_method_properties`.
    """

    table: pd.DataFrame
    names: Mapping[str, str]
    label: str
    labels: pd.DataFrame
    presets: Mapping[str, tuple[str, ...]]
    properties: pd.DataFrame

    def name(self, method: object) -> str:
        """A method as it is written in text."""
        return clean(self.names.get(str(method), str(method)))


def compute(context: StudyContext) -> Methods | None:
    """None unless the completed runs are of several methods."""
    table = context.methods
    if not len(table):
        return None
    runs = completed_runs(with_methods(context.trials, context.study.settings))
    distance = runs["mtd"].astype("float64").where(has_mtd(runs)).round(MTD_DECIMALS)
    labels = describe_means(
        table.fillna({"mtd": 0.0}), runs.assign(mtd=distance.fillna(0.0)), by=["method", "mtd"]
    )
    names = [clean(context.study.methods.get(str(name), str(name))) for name in table["method"]]
    labels["text"] = [f"{name}. {text}" for name, text in zip(names, labels["text"], strict=True)]
    properties = compute_method_properties(
        context.trials, context.study.spectra, context.study.settings
    )
    presets = {
        str(method): tuple(sorted(map(str, group.dropna().unique())))
        for method, group in (runs.groupby("method")["preset"] if "preset" in runs else ())
    }
    return Methods(table, context.study.methods, context.score_label, labels, presets, properties)


def _name_row(info: Methods, row: pd.Series) -> str:
    at = f" at MTD {format_mtd(row['mtd'])}" if np.isfinite(row["mtd"]) else ""
    return info.name(row["method"]) + at


def _compare(info: Methods, best: pd.Series) -> Iterator[str]:
    """A sentence for each other method, at its best level of MTD."""
    others = info.table[info.table["method"] != best["method"]]
    for _, group in others.groupby("method"):
        row = group.iloc[int(group["mean"].argmax())]
        text = f"{_name_row(info, row)}: mean {row['mean']:.2f}"
        if not np.isfinite(row["difference_low"]):
            yield f"{text}; fewer than two common seeds, so the difference is not tested."
            continue
        found = "statistically significant" if row["difference_high"] < 0 else "not significant"
        if found == "not significant" and not row["may_be_best"]:
            found = "significantly worse only in the comparison with the best (Hsu)"
        yield (
            f"{text}; paired difference to the best {row['difference']:+.2f} ({PERCENT} CI "
            f"{row['difference_low']:.2f} to {row['difference_high']:.2f}), "
            f"{found}."
        )


def describe(info: Methods) -> tuple[str, ...]:
    """The best method, and how the others differ from it."""
    best = info.table.iloc[int(info.table["mean"].argmax())]
    return (
        f"{_name_row(info, best)} has the highest mean score, {best['mean']:.2f}.",
        *_compare(info, best),
        *_describe_presets(info),
    )


def _describe_presets(info: Methods) -> Iterator[str]:
    """A sentence: the preset of each method, or the one of all."""
    used = {preset for presets in info.presets.values() for preset in presets}
    known = {name: presets for name, presets in info.presets.items() if presets}
    if len(used) == 1 and known.keys() >= set(info.table["method"]):
        yield f"Every method ran with its preset {clean(used.pop())}."
    elif known:
        each = (f"{info.name(name)} {clean(' and '.join(of))}" for name, of in known.items())
        yield f"Presets: {', '.join(each)}."


def show(info: Methods) -> tuple[Table, ...]:
    """A row for each method and level of MTD; then the published rows, for reference."""
    named = info.table.assign(method=[info.name(method) for method in info.table["method"]])
    caption = (
        f"Mean score with its {PERCENT} CI over seeds, the difference to the best row with a CI "
        "that is simultaneous for all pairs of rows, and whether no row is significantly better."
    )
    return (
        make_table(named, caption=caption, csv="methods"),
        *_show_properties(info),
        *_show_published(),
    )


def _show_properties(info: Methods) -> Iterator[Table]:
    if info.properties.empty:
        return
    named = info.properties.assign(
        method=[info.name(method) for method in info.properties["method"]]
    )
    caption = (
        "Geometry at the checkpoint that was kept; duration of a trial, evaluations included; peak "
        "memory of the trial's process, with the loaded packages and what earlier trials left in "
        "it, or allocated on its GPU. "
        f"Mean with its {PERCENT} CI over seeds, and the difference to the row with the highest "
        "mean score, its CI simultaneous for all pairs of rows. Durations are "
        "comparable where trials ran on one machine without other load."
    )
    yield make_table(named, caption=caption, csv="method_properties")


def _show_published() -> Iterator[Table]:
    note = (
        "values from the papers, not of this study: other training text, encoders and seeds, and "
        "test sets that the study may not have scored"
    )
    kinds = (("STS, Spearman", published_sts()), ("Transfer, accuracy", published_transfer()))
    for kind, rows in kinds:
        marked = rows.assign(model="published: " + rows["model"])
        yield make_table(marked, caption=f"Reference rows. {kind} × 100: {note}.")


def draw(info: Methods) -> Drawing:
    """Score against MTD for each method; by row where none has an MTD or they are many."""
    has_distance = info.table["mtd"].notna()
    traced = bool(has_distance.any()) and info.table["method"].nunique() <= MOST_CURVES

    def panel(ax: "Axes") -> None:
        if traced:
            table = info.table.join(info.labels)
            figures.draw_methods(table, ax, names=info.names, name=info.label)
        else:
            names = [_name_row(info, row) for _, row in info.table.iterrows()]
            figures.draw_rows(
                info.table, ax, names=names, label="method", name=info.label, labels=info.labels
            )

    caption = f"Mean over seeds; bars and bands are {PERCENT} t intervals over seeds."
    if traced and not has_distance.all():
        caption += " Methods without an MTD are horizontal lines."
    return Drawing(
        "Score by method",
        [("", panel)],
        height=4.2 if traced else 1.3 + 0.5 * len(info.table),
        rigid=not traced,
        caption=caption,
        alt=" ".join(describe(info)),
    )


TOPIC = Topic(
    name="methods",
    title="Methods",
    compute=compute,
    csv={
        "methods": lambda info: info.table,
        "method_properties": lambda info: info.properties,
    },
    figures={"methods": draw},
    text=describe,
    tables=show,
)
