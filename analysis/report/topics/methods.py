"""Topic: the methods of a study that varies them, side by side."""

from dataclasses import replace

import numpy as np
import pandas as pd

from mtdlab.analysis.data.published import published_sts, published_transfer
from mtdlab.analysis.data.questions import ANY
from mtdlab.analysis.inference.best import runs_by_method
from mtdlab.analysis.questions.best import BestQuestion, list_settings, rank
from mtdlab.analysis.questions.wording import PERCENT
from mtdlab.analysis.report.cells import make_table, number
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic
from mtdlab.analysis.report.topics.configurations import COSTS, add_names, draw_ranked, show_ranked
from mtdlab.analysis.statistics.methods import compute_method_properties

_PROPERTIES = (
    f"Geometry at the checkpoint that was kept; costs of a trial. Mean with its {PERCENT} CI over "
    "seeds, and the difference to the row with the best mean score, its CI simultaneous for all "
    f"pairs of rows. {COSTS} The memory of a process includes the loaded packages and what earlier "
    "trials left in it. Durations are comparable where trials ran on one machine without other "
    "load."
)
_REFERENCE = (
    "values from the papers, not of this study: other training text, encoders and seeds, and test "
    "sets that the study may not have scored"
)


def _describe_rate(context: StudyContext) -> str:
    """A sentence that all methods ran with one learning rate; empty where that is not so."""
    study = context.study
    runs = runs_by_method(study.trials, study.settings)
    if "learning_rate" not in runs or "learning_rate" in study.nuisance:
        return ""
    rates = pd.to_numeric(runs["learning_rate"], errors="coerce").unique()
    if len(rates) != 1 or not np.isfinite(rates[0]):
        return ""
    rate = number(float(rates[0]))
    return (
        f" One learning rate, {rate}, served all methods; the study tuned it for none of them, so "
        "that the means do not rank the methods at their best."
    )


def build(context: StudyContext) -> Contents | None:
    """The table with a row for each method and level of MTD, or for each configuration."""
    if not context.compares_methods:
        return None
    best, table = context.best, context.best.table
    named, properties = add_names(context, table), compute_method_properties(context.study)
    if context.study.names and len(properties):
        by = [name for name in (*list_settings(table), "mtd") if name in properties]
        properties = properties.merge(named[[ANY, *by]], on=by, how="left")
        properties.insert(1, ANY, properties.pop(ANY))
    drawn = draw_ranked(context, table, title="Score by method")
    methods = [*map(context.name_method, properties.get("method", ()))]
    shown = properties.assign(method=methods).dropna(axis="columns", how="all")
    return Contents(
        csv={"methods": context.write.frame(named), "method_properties": properties},
        figures={"methods": replace(drawn, caption=drawn.caption + _describe_rate(context))},
        text=best.describe(),
        tables=[
            show_ranked(context, rank(table), "methods"),
            make_table(
                shown,
                caption=_PROPERTIES,
                csv="method_properties",
                sortable=True,
                labels=context.labels,
            ),
        ],
    )


def _build_published(context: StudyContext) -> Contents | None:
    """The published rows; None without several methods, and for a table without scores by task."""
    is_other = context.study.table and not len(context.study.scores)
    if not context.compares_methods or is_other:
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


TOPIC = Topic(
    "methods", "Methods", build, csv=["methods", "method_properties"], answers=(BestQuestion,)
)
PUBLISHED = Topic("published-methods", "Published values of the methods", _build_published)
