"""Topic: the methods of a study that varies them, side by side."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.published import published_sts, published_transfer
from mtdlab.analysis.data.runs import completed_runs, format_mtd, mtd_or_0
from mtdlab.analysis.inference.best import with_methods
from mtdlab.analysis.inference.verdict import join_words
from mtdlab.analysis.report.cells import PERCENT, clean, describe_covered, make_table, number
from mtdlab.analysis.report.topics.base import Axes, Drawing, StudyContext, Table, Topic
from mtdlab.analysis.report.topics.configurations import (
    COSTS,
    draw_costs,
    draw_ranked,
    name_table,
)
from mtdlab.analysis.statistics.configurations import rank_rows
from mtdlab.analysis.statistics.methods import compute_method_properties, equal_budget

MOST_CURVES = 4
"""The most methods in one figure against MTD; there is no space for the legend of more."""
_CAPTIONS = {
    "methods": (
        f"Mean score with its {PERCENT} CI, the difference to the best row with a {{of}} CI "
        "that is simultaneous for all pairs of rows, and whether that CI includes 0. "
        f"CIs cover seeds{{covered}}. {COSTS}"
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
    """Completed runs, `compute_methods` with the names of its rows, `compute_method_properties`.

    Attributes:
        budget: the sentences that every run trained on; None where these differ or are not known.
    """

    context: StudyContext
    runs: pd.DataFrame
    table: pd.DataFrame
    names: tuple[str, ...]
    properties: pd.DataFrame
    budget: int | None

    def name(self, method: object) -> str:
        return clean(self.context.name_method(method))

    @property
    def ranked(self) -> pd.DataFrame:
        """The rows with their names in the column name, the highest estimate first."""
        named = self.table.assign(name=self.names)
        # the best row has no difference to itself
        best = named["difference"].isna() & named["may_be_best"]
        of = best if best.any() else named["mean"]
        return rank_rows(named, int(of.to_numpy().argmax()))


def compute(context: StudyContext) -> Methods | None:
    """The comparison; None unless the completed runs are of several methods."""
    if not len(table := context.methods):
        return None
    study, names = context.study, name_table(context, table)
    if not context.mixed_methods:
        names = tuple(
            f"{name} at MTD {format_mtd(mtd)}" if np.isfinite(mtd) else name
            for name, mtd in zip(names, table["mtd"], strict=True)
        )
    runs = completed_runs(with_methods(study.trials, study.settings))
    properties = compute_method_properties(study)
    budget = equal_budget(study.trials)
    return Methods(context, runs, table, names, properties, budget)


def describe_budget(info: Methods) -> str:
    """What is equal for all methods, and what was chosen for each: a phrase; else empty."""
    if info.budget is None:
        return ""
    chosen = join_words([*info.context.study.nuisance])
    own = f", each with the {clean(chosen)} chosen for it" if chosen else ""
    return f"at an equal budget of {info.budget:,} sentences a trial{own}"


def _compare(others: pd.DataFrame, of: str) -> Iterator[str]:
    """A sentence on each method but the best, at its best configuration."""
    for _, row in others.sort_values("method").iterrows():
        text = f"{row['name']}: mean {row['mean']:.2f}"
        if not np.isfinite(row["difference_low"]):
            yield f"{text}; fewer than two common seeds, so the difference is not tested."
            continue
        result = "not significant" if row["may_be_best"] else "statistically significant"
        yield (
            f"{text}; paired difference to the best {row['difference']:+.2f} ({of} CI "
            f"{row['difference_low']:.2f} to {row['difference_high']:.2f}), "
            f"{result}."
        )


def describe(info: Methods) -> tuple[str, ...]:
    """Sentences on the best method, and on how the others differ from it."""
    ranked = info.ranked.drop_duplicates("method")
    best, budget = ranked.iloc[0], describe_budget(info)
    return (
        f"{best['name']} has the highest mean score, {best['mean']:.2f}{budget and ', '}{budget}.",
        *_compare(ranked.iloc[1:], info.context.of_comparisons),
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
    if "learning_rate" not in info.runs or "learning_rate" in info.context.study.nuisance:
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
    """The table with a row for each method and level of MTD, or for each configuration."""
    frames = {"methods": info.ranked, "method_properties": info.properties}
    return tuple(
        make_table(
            frame.assign(method=[info.name(method) for method in frame.get("method", ())])
            .drop(columns=["items", "name", "number"], errors="ignore")
            .dropna(axis="columns", how="all"),
            caption=_CAPTIONS[name].format(
                covered=describe_covered(info.table), of=info.context.of_comparisons
            ),
            csv=name,
            sortable=True,
            labels=info.context.labels,
        )
        for name, frame in frames.items()
    )


def _find_comparable(context: StudyContext) -> StudyContext | None:
    """The study; None without several methods, and for a table without scores by task."""
    is_other = context.study.table and not len(context.study.scores)
    return context if len(context.methods) and not is_other else None


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
    table, context = info.table, info.context
    title, alt, has_distance = "Score by method", " ".join(describe(info)), table["mtd"].notna()
    is_few = table["method"].nunique() <= MOST_CURVES and not context.mixed_methods
    if not has_distance.any() or not is_few:
        drawn = draw_ranked(context, table, info.names, title=title, alt=alt)
        return replace(drawn, caption=drawn.caption + _describe_rate(info))
    runs = info.runs.assign(mtd=mtd_or_0(info.runs))
    labels = describe_means(table.fillna({"mtd": 0.0}), runs, by=["method", "mtd"])
    labels["text"] = [
        f"{info.name(method)}. {text}"
        for method, text in zip(table["method"], labels["text"], strict=True)
    ]
    names, score = context.study.methods, context.score_label

    def panel(ax: Axes) -> None:
        figures.draw_methods(table.join(labels), ax, names=names, name=score)

    caption = f"Mean over seeds; bars and bands are {PERCENT} CIs over seeds"
    caption += f"{describe_covered(table)}."
    if not has_distance.all():
        caption += " Methods without an MTD are horizontal lines."
    caption += _describe_rate(info)
    return Drawing(title, [("", panel)], height=4.2, caption=caption, alt=alt)


TOPIC = Topic(
    name="methods",
    title="Methods",
    compute=compute,
    csv={
        "methods": lambda info: info.table,
        "method_properties": lambda info: info.properties,
    },
    figures={
        "methods": draw,
        "method_costs": lambda info: draw_costs(info.context, info.table, info.names),
    },
    text=describe,
    tables=show,
)


PUBLISHED = Topic[StudyContext, StudyContext](
    name="published-methods",
    title="Published values of the methods",
    compute=_find_comparable,
    csv={},
    tables=show_published,
    folded=lambda _: True,
)
