"""Topic: how the values of nuisance settings were chosen for each configuration."""

from collections.abc import Sequence

from mtdlab.analysis.data.frames import NuisanceTrials
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.runs import free_settings
from mtdlab.analysis.questions.best import name_table
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic
from mtdlab.analysis.statistics.nuisance import compare_nuisance_values


def _name_groups(context: StudyContext, nuisance: NuisanceTrials) -> dict[str, str]:
    varied = free_settings(nuisance.trials, context.study.compared)
    shown = [name for name in varied if not nuisance.per or name in nuisance.per]
    first = nuisance.trials.drop_duplicates("group")
    names: Sequence[str] = name_table(context, first[["number", *shown]])
    if not nuisance.per:
        names = [*map(clean, context.study.call(first["number"], names))]
    return dict(zip(first["group"].astype("str"), names, strict=True))


def build(context: StudyContext) -> Contents | None:
    """What was chosen by what; None without nuisance settings, and before a trial of them began."""
    nuisance = context.study.tuning
    if nuisance is None or not len(nuisance.trials):
        return None
    table, names = compare_nuisance_values(nuisance), _name_groups(context, nuisance)
    table["group"] = [names[group] for group in table["group"]]
    settings = clean(" and ".join(nuisance.names), most=80)
    unit = f"value of {' and '.join(nuisance.per)}" if nuisance.per else "configuration"
    seeds = ", ".join(map(str, nuisance.seeds))
    write = ScoreFormat(context.study.select_by, context.study.margin)
    table = write.frame(table)
    score = f"mean {clean(write.name, most=40)}"
    shown = table.rename(
        columns={"group": "configuration", "mean": score, "difference_se": "its standard error"}
    )
    highest = write.say("highest")
    caption = f"The tried values of {settings}; a difference is to the {highest} mean."
    text = (
        f"The value of {settings} was chosen for each {unit} before the trials that the other "
        f"sections count: the one with the {highest} {score}, over seeds that only the choice "
        f"has ({seeds}). Differences between configurations are differences at their chosen "
        "values; other values, or a choice over more seeds, could change them.",
        "A difference of two values is clear where it is at least twice its standard error.",
    )
    tables = [make_table(shown, caption=caption, csv="tuning")]
    return Contents(csv={"tuning": table}, text=text, tables=tables, folded=True)


TOPIC = Topic("tuning", "Choice of nuisance settings", build, csv=["tuning"])
