"""Topics: the published experiments that a study varied, one for each entry of the catalogue."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.experiments import (
    EXPERIMENTS,
    Comparison,
    Experiment,
    compare,
    compute_experiment_tasks,
)
from analysis.report.cells import make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Drawing
from analysis.report.page import Table
from analysis.report.text import LEVEL
from analysis.report.topics.base import Topic
from analysis.report.topics.experiment_figure import draw_experiment
from analysis.report.topics.experiment_text import describe_comparison, is_diagonal, warn_mixed


@dataclass(frozen=True)
class ExperimentInfo:
    """comparison: with the published values; tasks: `compute_experiment_tasks`.

    label     of scores.
    is_curve  whether its rows are the levels of MTD, whose means another section has.
    """

    comparison: Comparison
    tasks: pd.DataFrame
    label: str
    is_curve: bool


def compute(context: StudyContext, experiment: Experiment) -> ExperimentInfo | None:
    """None where the study did not vary what the experiment is about."""
    study = context.study
    comparison = compare(
        study.trials,
        experiment,
        study.settings,
        curves=study.curves,
        width=context.width,
        level=LEVEL,
    )
    if comparison is None:
        return None
    tasks = compute_experiment_tasks(comparison, study.scores, level=LEVEL)
    levels = comparison.table["n"].tolist() == context.curve["n"].tolist()
    same = levels and np.allclose(comparison.table["mean"], context.curve["mean"])
    is_curve = same and set(experiment.by) <= {"ema_decay", "queue_size", "batch_size"}
    return ExperimentInfo(comparison, tasks, context.score_label, is_curve)


def draw(info: ExperimentInfo) -> Drawing | None:
    """The experiment's figure; none of a grid without a row or a column to compare."""
    diagonal = is_diagonal(info.comparison)
    return None if diagonal else draw_experiment(info.comparison, info.label)


def show(info: ExperimentInfo) -> tuple[Table, ...]:
    """Means with the published values, and the same by task where there are such."""
    return (*_table(info), *_table_tasks(info))


def _readable(comparison: Comparison) -> pd.DataFrame:
    """The table with named values where they have a name, and shares in percent."""
    experiment, first = comparison.experiment, comparison.experiment.by[0]
    table = comparison.table
    shown = table.copy()
    if experiment.value_names:
        shown[first] = pd.Series(
            [experiment.label(value) for value in table[first]], index=table.index, dtype="str"
        )
    if experiment.measured:
        shown[experiment.measured] = 100 * shown.get(experiment.measured, pd.Series(dtype=float))
    return shown


def _table(info: ExperimentInfo) -> Iterator[Table]:
    comparison = info.comparison
    experiment = comparison.experiment
    shown = _readable(comparison)
    if not comparison.same_method:
        shown = shown.drop(columns="published", errors="ignore")
    if info.is_curve:
        # the section on MTD has the means
        if "published" not in shown or shown["published"].isna().all():
            return
        yield make_table(
            shown[[*experiment.by, "published"]],
            caption=f"Published values at the levels of this study: {experiment.source}.",
            csv=experiment.name,
            labels=comparison.labels,
        )
        return
    rows, remark = thin_rows(shown, "rows")
    common = f" ({experiment.fixed})" if experiment.fixed else ""
    published = f"published: {experiment.source}{common}, on other data and another encoder."
    if not comparison.same_method:
        published = "no published values for this method."
    yield make_table(
        rows,
        caption=f"Mean score with its interval over seeds; {published}{remark}",
        csv=experiment.name,
        labels=comparison.labels,
    )


def _table_tasks(info: ExperimentInfo) -> tuple[Table, ...]:
    """Means by task, each value's row followed by the published one."""
    experiment, tasks = info.comparison.experiment, info.tasks
    if not len(tasks):
        return ()
    by = list(experiment.by)
    names = list(tasks["task"].unique())
    parts = [
        tasks.pivot(index=by, columns="task", values=value)[names].assign(source=source)
        for value, source in (("mean", "this study"), ("published", "published"))
    ]
    wide = pd.concat(parts).sort_index(kind="stable").reset_index()
    caption = (
        "The same by task, Spearman x 100; published: BERT-base, Wikipedia. The CSV has trials, "
        "seeds and intervals."
    )
    return (
        make_table(
            wide[[*by, "source", *names]],
            caption=caption,
            csv=f"{experiment.name}_tasks",
            labels=info.comparison.labels,
        ),
    )


def make_topic(experiment: Experiment) -> Topic[ExperimentInfo]:
    """The topic of one entry of the catalogue."""
    return Topic(
        name=experiment.anchor,
        title=experiment.title,
        compute=lambda context: compute(context, experiment),
        csv={
            experiment.name: lambda info: info.comparison.table,
            f"{experiment.name}_tasks": lambda info: info.tasks,
        },
        figures={experiment.name: draw},
        text=lambda info: describe_comparison(info.comparison),
        warnings=lambda info: warn_mixed(info.comparison),
        tables=show,
    )


EXPERIMENT_TOPICS = tuple(make_topic(experiment) for experiment in EXPERIMENTS)
