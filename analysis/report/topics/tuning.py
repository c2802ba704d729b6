"""Topic: how the values of nuisance settings were chosen for each configuration."""

from dataclasses import dataclass

import pandas as pd

from mtdlab.analysis.data.frames import Tuning
from mtdlab.analysis.data.runs import chosen_settings
from mtdlab.analysis.report.cells import clean, make_table
from mtdlab.analysis.report.topics.base import StudyContext, Table, Topic
from mtdlab.analysis.report.topics.configurations import name_table
from mtdlab.analysis.statistics.tuning import compute_tuning


@dataclass(frozen=True)
class Choice:
    """The trials of the choice, and `compute_tuning` with the names of its groups."""

    tuning: Tuning
    table: pd.DataFrame
    score: str

    @property
    def settings(self) -> str:
        """The nuisance settings, as text."""
        return clean(" and ".join(self.tuning.names), most=80)


def compute(context: StudyContext) -> Choice | None:
    """The choice; None for a study without nuisance settings, and before a trial of it began."""
    study = context.study
    if (tuning := study.tuning) is None or not len(tuning.trials):
        return None
    table = compute_tuning(tuning)
    names = _name_groups(context, tuning)
    table["group"] = [names[group] for group in table["group"]]
    return Choice(tuning, table, study.select_by)


def _name_groups(context: StudyContext, tuning: Tuning) -> dict[str, str]:
    """The groups by what they differ in."""
    varied = chosen_settings(tuning.trials, context.study.compared)
    shown = [name for name in varied if not tuning.per or name in tuning.per]
    first = tuning.trials.drop_duplicates("group")
    names = name_table(context, first[["number", *shown]])
    return dict(zip(first["group"].astype("str"), names, strict=True))


def describe(choice: Choice) -> tuple[str, ...]:
    """What was chosen by what, and what the other sections therefore compare."""
    tuning = choice.tuning
    of = f"value of {' and '.join(tuning.per)}" if tuning.per else "configuration"
    seeds = ", ".join(map(str, sorted(tuning.trials["seed"].unique())))
    score = clean(choice.score, most=40)
    return (
        f"The value of {choice.settings} was chosen for each {of} before the trials that the other "
        f"sections count: the one with the highest mean {score}, over seeds that only the choice "
        f"has ({seeds}). Differences between configurations are differences at their chosen "
        "values; other values, or a choice over more seeds, could change them.",
        "A difference of two values is clear where it is at least twice its standard error.",
    )


def tabulate(choice: Choice) -> tuple[Table, ...]:
    """The tried values of each configuration."""
    score = f"mean {clean(choice.score, most=40)}"
    shown = choice.table.rename(
        columns={"group": "configuration", "mean": score, "difference_se": "its standard error"}
    )
    caption = f"The tried values of {choice.settings}; a difference is to the highest mean."
    return (make_table(shown, caption=caption, csv="tuning", many="rows"),)


TOPIC = Topic[StudyContext, Choice](
    name="tuning",
    title="Choice of nuisance settings",
    compute=compute,
    csv={"tuning": lambda choice: choice.table},
    text=describe,
    tables=tabulate,
    folded=lambda _: True,
)
