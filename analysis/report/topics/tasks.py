"""Topic: the tasks of the published tables, where any was scored."""

import pandas as pd

from analysis.data.tasks import STS
from analysis.report.cells import make_table
from analysis.report.topics.base import StudyContext, Table, Topic
from analysis.statistics.curves import compute_tasks
from analysis.statistics.methods import varies_method, with_methods


def compute(context: StudyContext) -> pd.DataFrame | None:
    """The scores by task (`compute_tasks`), by method where that varies; None without a task."""
    study = context.study
    trials = with_methods(study.trials, study.settings)
    by = ["method"] if varies_method(trials, study.settings) else []
    table = compute_tasks(trials, study.scores, by=by)
    return table if len(table) else None


def show(info: pd.DataFrame) -> tuple[Table, ...]:
    """The table with a row per MTD and a column per task."""
    by = [name for name in ("method", "mtd") if name in info]
    wide = info.pivot(index=by, columns="task", values="mean")[list(info["task"].unique())]
    missing = [name for name in STS if name not in wide]
    if missing:
        average = f"No average: the study was not scored on {', '.join(missing)}."
    else:
        wide.insert(7, "STS average", wide[list(STS)].mean(axis=1))
        average = "The average is that of the seven STS tasks."
    caption = (
        "Mean score of each task by MTD, x 100: Spearman for STS, accuracy for transfer "
        f"tasks. {average} The CSV has trials, seeds and "
        "intervals over seeds, for these items."
    )
    return (make_table(wide.reset_index(), caption=caption, csv="tasks", many="levels"),)


TOPIC = Topic(
    name="tasks",
    title="Scores by task",
    group="Training",
    compute=compute,
    csv={"tasks": lambda info: info},
    tables=show,
)
