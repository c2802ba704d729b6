"""Topic: the baseline, one configuration outside the search, compared with those of the search."""

import math
from dataclasses import dataclass, replace

import pandas as pd

from mtdlab.analysis.data.frames import DIFFERENCE
from mtdlab.analysis.inference.intervals import UNKNOWN, Estimate
from mtdlab.analysis.questions.wording import PERCENT, clean, describe_items
from mtdlab.analysis.report.cells import format_count, make_table
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic
from mtdlab.analysis.statistics.baseline import AgainstBaseline, name_baseline

_MOST_LETTERS = 80


@dataclass(frozen=True)
class Beside:
    """The comparison of a study's baseline with the recommended configuration.

    Attributes:
        name: the settings that the study file gives the baseline, as text.
        comparison: `compare_with_baseline`; None where none of its trials has a score yet.
        best: the number of a trial of the configuration that it is compared with; None without one.
        difference: the baseline less that configuration, in points; NaN where not known.
        seeds: those that the two share.
        sentence: the comparison as text.
    """

    name: str
    comparison: AgainstBaseline | None
    best: int | None = None
    difference: Estimate = UNKNOWN
    seeds: int = 0
    sentence: str = ""


def find_beside(context: StudyContext, best: int | None) -> Beside | None:
    """The baseline compared with the configuration of trial `best`; None without a baseline."""
    study, comparison = context.study, context.against_baseline
    if study.baseline is None:
        return None
    beside = Beside(clean(name_baseline(study), most=_MOST_LETTERS), comparison, best)
    row = None if comparison is None or best is None else comparison.find(study, best)
    if row is not None:
        size = Estimate(*row[list(DIFFERENCE)])
        beside = replace(beside, difference=size, seeds=int(row["seeds"]))
    return replace(beside, sentence=_describe(context, beside))


def _describe(context: StudyContext, beside: Beside) -> str:
    """The difference with its interval, and the mean of the baseline."""
    study, comparison, size = context.study, beside.comparison, beside.difference
    head = f"Baseline, {beside.name}:"
    if comparison is None:
        failed = 0 if study.baseline is None else (study.baseline.trials["state"] == "FAIL").sum()
        why = f"; {format_count(int(failed), 'trial')} failed" if failed else ""
        return f"{head} no trial is complete with a score yet{why}."
    mean = f"Its mean {clean(study.metric, most=40)} is {comparison.mean.estimate.mean:.2f}"
    if math.isnan(size.mean):
        return f"{head} no seed in common with the configurations of the search. {mean}."
    against = f"{size.mean:+.2f} points against the configuration with the highest mean"
    if math.isnan(size.low):
        seeds = format_count(beside.seeds, "common seed")
        return f"{head} {against} ({seeds}: no interval). {mean}."
    interval = f"{PERCENT} CI {size.low:.2f} to {size.high:.2f}"
    covered = f"{beside.seeds} seeds{describe_items(comparison.items)}"
    text = f"{head} {against} ({interval}; {covered}"
    if comparison.compared > 1:
        text += f"; it holds for all {comparison.compared} configurations at once"
    return f"{text}). {mean}."


def build(context: StudyContext) -> Contents | None:
    """The differences, and the trials of the baseline."""
    beside, comparison = context.study.baseline, context.against_baseline
    if beside is None:
        return None
    trials = beside.trials[["number", "seed", "state", "score", "wall_seconds", "reason"]]
    shown = trials if (trials["reason"] != "").any() else trials.drop(columns="reason")
    table, rule = pd.DataFrame(), ""
    if comparison is not None:
        table = comparison.table
    if comparison is not None and comparison.compared:
        rule = (
            "Differences are the baseline less the configuration, with seeds as blocks. Since the "
            "best configuration is chosen by the same scores, the intervals hold for all "
            f"{format_count(comparison.compared, 'configuration')} at once (many-to-one "
            "comparisons)."
        )
    return Contents(
        csv={"baseline": table, "baseline_trials": trials},
        text=(
            "The baseline is one configuration outside the search. It ran with the same seeds; the "
            "verdict, the looks, the choice of the best and the kept model do not count it.",
            rule,
        ),
        tables=(
            make_table(
                table.rename(columns={"difference": "baseline less it"}),
                caption="The baseline less each configuration, in points, the highest mean first.",
                csv="baseline",
                labels=context.labels,
            ),
            make_table(
                shown.rename(columns={"wall_seconds": "wall time, s"}),
                caption="Trials of the baseline.",
                csv="baseline_trials",
            ),
        ),
        folded=True,
    )


TOPIC = Topic("baseline", "Baseline", build, csv=["baseline", "baseline_trials"])
