"""Topic: the baseline, one configuration outside the search, compared with those of the search."""

import math
from dataclasses import dataclass, replace

import pandas as pd

from mtdlab.analysis.data.frames import DIFFERENCE
from mtdlab.analysis.inference.intervals import UNKNOWN, Estimate
from mtdlab.analysis.questions.wording import PERCENT, clean, describe_items
from mtdlab.analysis.report.cells import format_count, make_table
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic
from mtdlab.analysis.statistics.baseline import AgainstBaseline, add_baseline, name_baseline

_MOST_LETTERS = 80


@dataclass(frozen=True)
class BaselineComparison:
    """The comparison of a study's baseline with the recommended configuration.

    Attributes:
        name: the settings that the study file gives the baseline, as text.
        against: `compare_with_baseline`; None where none of its trials has a score yet.
        best: the number of a trial of the configuration that it is compared with; None without one.
        difference: the baseline minus that configuration, in points; NaN where not known.
        seeds: those that the two share.
        sentence: the comparison as text.
    """

    name: str
    against: AgainstBaseline | None
    best: int | None
    difference: Estimate
    seeds: int
    sentence: str = ""


def compare_baseline(context: StudyContext) -> BaselineComparison | None:
    """The baseline compared with the configuration that a page recommends; None without one."""
    study, against, best = context.study, context.against_baseline, context.answer.number
    if study.baseline is None:
        return None
    size, seeds = UNKNOWN, 0
    row = None if against is None or best is None else against.find(study, best)
    if row is not None:
        size, seeds = Estimate(*row[list(DIFFERENCE)]), int(row["seeds"])
    name = clean(name_baseline(study), most=_MOST_LETTERS)
    compared = BaselineComparison(name, against, best, size, seeds)
    return replace(compared, sentence=_describe(context, compared))


def _describe(context: StudyContext, compared: BaselineComparison) -> str:
    """The difference with its interval, and the mean of the baseline."""
    study, against, size = context.study, compared.against, compared.difference
    write = context.write
    head = f"Baseline, {compared.name}:"
    if against is None:
        failed = 0 if study.baseline is None else (study.baseline.trials["state"] == "FAIL").sum()
        why = f"; {format_count(int(failed), 'trial')} failed" if failed else ""
        return f"{head} no trial is complete with a score yet{why}."
    mean = f"Its mean {clean(write.name, most=40)} is {write.score(against.mean.estimate.mean)}"
    if math.isnan(size.mean):
        return f"{head} no seed in common with the configurations of the search. {mean}."
    of = f"against the configuration with the {write.say('highest')} mean"
    text = f"{head} {write.with_unit(write.difference(size.mean))} {of}"
    if math.isnan(size.low):
        return f"{text} ({format_count(compared.seeds, 'common seed')}: no interval). {mean}."
    interval = f"{PERCENT} CI {write.interval(size.low, size.high)}"
    text += f" ({interval}; {compared.seeds} seeds{describe_items(against.items)}"
    if against.compared > 1:
        text += f"; it holds for all {against.compared} configurations at once"
    return f"{text}). {mean}."


def build(context: StudyContext) -> Contents | None:
    """The baseline among the configurations, and its differences to them."""
    against = context.against_baseline
    if context.study.baseline is None:
        return None
    table, rule = pd.DataFrame(), ""
    if against is not None:
        table = add_baseline(against.table.assign(role="search"), against, role="baseline")
    if against is not None and against.compared:
        rule = (
            "Differences are the baseline minus the configuration, with seeds as blocks. Since the "
            "best configuration is chosen by the same scores, the intervals hold for all "
            f"{format_count(against.compared, 'configuration')} at once (many-to-one "
            "comparisons)."
        )
    return Contents(
        csv={"baseline": context.write.frame(table)},
        text=(
            "The baseline is one configuration outside the search. It ran with the same seeds and "
            "is ranked with the others; the verdict, the looks and the kept model do not count it.",
            rule,
        ),
        tables=(
            make_table(
                table.rename(columns={"difference": "baseline minus it"}),
                caption="The configurations and the baseline, the "
                f"{context.write.say('highest')} mean first; the baseline minus each.",
                csv="baseline",
                labels=context.labels,
                write=context.write,
            ),
        ),
        folded=True,
    )


TOPIC = Topic("baseline", "Baseline", build, csv=["baseline"])
