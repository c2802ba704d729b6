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
from mtdlab.analysis.report.topics.base import Axes, Contents, Drawing, StudyContext, Topic
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
        f"Geometry at the checkpoint that was kept; costs of a trial. Mean with its {PERCENT} CI "
        "over seeds, and the difference to the row with the highest mean score, its CI "
        f"simultaneous for all pairs of rows. {COSTS} The memory of a process includes the loaded "
        "packages and what earlier trials left in it. Durations are comparable where trials ran "
        "on one machine without other load."
    ),
}
_REFERENCE = (
    "values from the papers, not of this study: other training text, encoders and seeds, and test "
    "sets that the study may not have scored"
)


@dataclass(frozen=True)
class Methods:
    """Completed runs, and `compute_methods` with the names of its rows."""

    context: StudyContext
    runs: pd.DataFrame
    table: pd.DataFrame
    names: tuple[str, ...]

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
    return Methods(context, runs, table, names)


def describe_budget(info: Methods) -> str:
    """What is equal for all methods, and what was chosen for each: a phrase; else empty."""
    study = info.context.study
    if (budget := equal_budget(study.trials)) is None:
        return ""
    chosen = join_words([*study.nuisance])
    own = f", each with the {clean(chosen)} chosen for it" if chosen else ""
    return f"at an equal budget of {budget:,} sentences a trial{own}"


def _compare(others: pd.DataFrame, of: str) -> Iterator[str]:
    """A sentence on each method but the best, at its best configuration."""
    for _, row in others.sort_values("method").iterrows():
        low, high = row["difference_low"], row["difference_high"]
        text = "fewer than two common seeds, so the difference is not tested"
        if np.isfinite(low):
            result = "not significant" if row["may_be_best"] else "statistically significant"
            interval = f"{of} CI {low:.2f} to {high:.2f}"
            text = f"paired difference to the best {row['difference']:+.2f} ({interval}), {result}"
        yield f"{row['name']}: mean {row['mean']:.2f}; {text}."


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


def build(context: StudyContext) -> Contents | None:
    """The table with a row for each method and level of MTD, or for each configuration."""
    if (info := context.once(compute)) is None:
        return None
    study, covered = context.study, describe_covered(info.table)
    properties = compute_method_properties(study)
    return Contents(
        csv={"methods": info.table, "method_properties": properties},
        figures={
            "methods": draw(info),
            "method_costs": draw_costs(context, info.table, info.names),
        },
        text=describe(info),
        tables=[
            make_table(
                frame.assign(method=[info.name(method) for method in frame.get("method", ())])
                .drop(columns=["items", "name", "number"], errors="ignore")
                .dropna(axis="columns", how="all"),
                caption=_CAPTIONS[name].format(covered=covered, of=context.of_comparisons),
                csv=name,
                sortable=True,
                labels=context.labels,
            )
            for name, frame in (("methods", info.ranked), ("method_properties", properties))
        ],
    )


def _build_published(context: StudyContext) -> Contents | None:
    """The published rows; None without several methods, and for a table without scores by task."""
    is_other = context.study.table and not len(context.study.scores)
    if not len(context.methods) or is_other:
        return None
    papers = {"STS, Spearman": published_sts(), "Transfer, accuracy": published_transfer()}
    tables = [
        make_table(
            rows.assign(model="published: " + rows["model"]),
            caption=f"Reference rows. {kind} × 100: {_REFERENCE}.",
        )
        for kind, rows in papers.items()
    ]
    return Contents(tables=tables, folded=True)


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


TOPIC = Topic("methods", "Methods", build, csv=["methods", "method_properties"])
PUBLISHED = Topic("published-methods", "Published values of the methods", _build_published)
