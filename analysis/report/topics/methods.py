"""Topic: the methods of a study that varies them, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.published import published_sts, published_transfer
from analysis.data.runs import completed_runs, format_mtd, mtd_or_0
from analysis.inference.best import with_methods
from analysis.report.cells import PERCENT, clean, describe_covered, make_table, number
from analysis.report.topics.base import Axes, Drawing, StudyContext, Table, Topic
from analysis.statistics.configurations import rank_rows
from analysis.statistics.methods import compute_method_properties

MOST_CURVES = 4
"""The most methods in one figure against MTD; there is no space for the legend of more."""
_CAPTIONS = {
    "methods": (
        f"Mean score with its {PERCENT} CI, the difference to the best row with a {{of}} CI "
        "that is simultaneous for all pairs of rows, and whether no row is significantly better. "
        "CIs cover seeds{covered}."
    ),
    "method_properties": (
        "Geometry at the checkpoint that was kept; duration of a trial, evaluations included; peak "
        "memory of the trial's process, with the loaded packages and what earlier trials left in "
        f"it, or allocated on its GPU. Mean with its {PERCENT} CI over seeds, and the difference "
        "to the row with the highest mean score, its CI simultaneous for all pairs of rows. "
        "Durations are comparable where trials ran on one machine without other load."
    ),
}
_REFERENCE = (
    "values from the papers, not of this study: other training text, encoders and seeds, and test "
    "sets that the study may not have scored"
)


@dataclass(frozen=True)
class Methods:
    """Completed runs, `compute_methods` and `compute_method_properties`."""

    context: StudyContext
    runs: pd.DataFrame
    table: pd.DataFrame
    properties: pd.DataFrame

    @property
    def ranked(self) -> pd.DataFrame:
        """The rows of the table, the best first: it has no difference to itself."""
        best = self.table["difference"].isna() & self.table["may_be_best"]
        of = best if best.any() else self.table["mean"]
        return rank_rows(self.table, int(of.to_numpy().argmax()))

    def name(self, method: object) -> str:
        return clean(self.context.name_method(method))


def compute(context: StudyContext) -> Methods | None:
    """The comparison; None unless the completed runs are of several methods."""
    if not len(context.methods):
        return None
    study = context.study
    runs = completed_runs(with_methods(study.trials, study.settings))
    properties = compute_method_properties(study.trials, study.spectra, study.settings)
    return Methods(context, runs, context.methods, properties)


def name_row(info: Methods, row: pd.Series) -> str:
    """A method at its level of MTD, where it has one."""
    at = f" at MTD {format_mtd(row['mtd'])}" if np.isfinite(row["mtd"]) else ""
    return info.name(row["method"]) + at


def _compare(info: Methods, best: pd.Series) -> Iterator[str]:
    """A sentence on each method but the best, at its best level of MTD."""
    ranked, of = info.ranked, info.context.of_comparisons
    for _, group in ranked[ranked["method"] != best["method"]].groupby("method"):
        row = group.iloc[0]
        text = f"{name_row(info, row)}: mean {row['mean']:.2f}"
        if not np.isfinite(row["difference_low"]):
            yield f"{text}; fewer than two common seeds, so the difference is not tested."
            continue
        result = "statistically significant" if row["difference_high"] < 0 else "not significant"
        if result == "not significant" and not row["may_be_best"]:
            result = "significantly worse only in the comparison with the best (Hsu)"
        yield (
            f"{text}; paired difference to the best {row['difference']:+.2f} ({of} CI "
            f"{row['difference_low']:.2f} to {row['difference_high']:.2f}), "
            f"{result}."
        )


def describe(info: Methods) -> tuple[str, ...]:
    """Sentences on the best method, and on how the others differ from it."""
    best = info.ranked.iloc[0]
    return (
        f"{name_row(info, best)} has the highest mean score, {best['mean']:.2f}.",
        *_compare(info, best),
        f"Confidence intervals cover seeds{describe_covered(info.table)}.",
        *_describe_presets(info),
    )


def _describe_presets(info: Methods) -> Iterator[str]:
    """A sentence on the preset of each method, or on the one that all have."""
    recorded = info.runs[info.runs["preset"].notna()] if "preset" in info.runs else info.runs[:0]
    presets = {
        name: sorted(map(str, group["preset"].unique()))
        for name, group in (recorded.groupby("method") if len(recorded) else ())
    }
    different = {preset for used in presets.values() for preset in used}
    if len(different) == 1 and presets.keys() >= set(info.table["method"]):
        yield f"Every method ran with its preset {clean(different.pop())}."
    elif presets:
        described = (f"{info.name(name)} {clean(' and '.join(of))}" for name, of in presets.items())
        yield f"Presets: {', '.join(described)}."


def _describe_rate(info: Methods) -> str:
    """A sentence that all methods ran with one learning rate; empty where that is not so."""
    if "learning_rate" not in info.runs:
        return ""
    rates = pd.to_numeric(info.runs["learning_rate"], errors="coerce").unique()
    if len(rates) != 1 or not np.isfinite(rates[0]):
        return ""
    rate = number(float(rates[0]))
    return (
        f" One learning rate, {rate}, served all methods; the study tuned it for none of them, so "
        "that the means do not rank the methods at their best."
    )


def show(info: Methods) -> tuple[Table, ...]:
    """The table with a row for each method and level of MTD."""
    frames = {"methods": info.table, "method_properties": info.properties}
    return tuple(
        make_table(
            frame.assign(method=[info.name(method) for method in frame.get("method", ())]).drop(
                columns="items", errors="ignore"
            ),
            caption=_CAPTIONS[name].format(
                covered=describe_covered(info.table), of=info.context.of_comparisons
            ),
            csv=name,
        )
        for name, frame in frames.items()
    )


def show_published(_: StudyContext) -> tuple[Table, ...]:
    """The table of the published rows, for reference."""
    papers = {"STS, Spearman": published_sts(), "Transfer, accuracy": published_transfer()}
    return tuple(
        make_table(
            rows.assign(model="published: " + rows["model"]),
            caption=f"Reference rows. {kind} × 100: {_REFERENCE}.",
        )
        for kind, rows in papers.items()
    )


def draw(info: Methods) -> Drawing:
    """The figure of score against MTD by method; rows where none has an MTD or they are many."""
    table, names, score = info.table, info.context.study.methods, info.context.score_label
    has_distance = table["mtd"].notna()
    traced = bool(has_distance.any()) and table["method"].nunique() <= MOST_CURVES
    runs = info.runs.assign(mtd=mtd_or_0(info.runs))
    labels = describe_means(table.fillna({"mtd": 0.0}), runs, by=["method", "mtd"])
    labels["text"] = [
        f"{info.name(method)}. {text}"
        for method, text in zip(table["method"], labels["text"], strict=True)
    ]

    def panel(ax: Axes) -> None:
        if traced:
            figures.draw_methods(table.join(labels), ax, names=names, name=score)
        else:
            rows = [name_row(info, row) for _, row in table.iterrows()]
            figures.draw_rows(table, ax, names=rows, label="method", name=score, labels=labels)

    covered = describe_covered(table)
    caption = f"Mean over seeds; bars and bands are {PERCENT} CIs over seeds{covered}."
    if traced and not has_distance.all():
        caption += " Methods without an MTD are horizontal lines."
    caption += _describe_rate(info)
    return Drawing(
        "Score by method",
        [("", panel)],
        height=4.2 if traced else 1.3 + 0.5 * len(table),
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


PUBLISHED = Topic[StudyContext, StudyContext](
    name="published-methods",
    title="Published values of the methods",
    compute=lambda context: context if len(context.methods) else None,
    csv={},
    tables=show_published,
    folded=lambda _: True,
)
