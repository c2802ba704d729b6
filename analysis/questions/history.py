"""The question how long keys stay similar, as it was measured, beside MTD."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.runs import completed_runs, format_mtd
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.questions.answer import Answer, QuestionOutcome
from mtdlab.analysis.questions.results import StudyResults
from mtdlab.analysis.questions.shape import QuestionOverShape
from mtdlab.analysis.questions.wording import describe_interval
from mtdlab.analysis.statistics.history import (
    compute_half_lives,
    compute_history_runs,
    compute_retained,
    compute_retained_curves,
    correlate_history,
    summarise_half_lives,
)

NAMES = {"half_life": "half-life", "mtd": "MTD"}


class HistoryQuestion(QuestionOverShape):
    """How does the measured half-life of keys go with MTD?"""

    @property
    def sentence(self) -> str:
        return "How does the measured half-life of keys go with MTD?"

    @property
    def finding(self) -> QuestionOutcome:
        """A range and a correlation are described, and not tested."""
        return QuestionOutcome.NOT_TESTED

    @cached_property
    def answer(self) -> Answer:
        number, info = self.results.highest, self.results.once(measure_history)
        if info is None or not len(info.runs):
            return self.reply("No half-life of a key was measured", "", topic=None, number=number)
        seeds = format_count(info.runs["seed"].nunique(), "seed")
        trials = f"{format_count(len(info.runs), 'trial')}, {seeds}."
        certainty = describe_association(self.results, info) or trials
        return self.reply(describe_range(info), certainty, number=number)


@dataclass(frozen=True)
class History:
    """The measured history of a study's keys; `every` has the runs without an MTD too."""

    every: pd.DataFrame
    runs: pd.DataFrame
    retained: pd.DataFrame
    curve: pd.DataFrame
    correlations: pd.DataFrame


def measure_history(results: StudyResults) -> History | None:
    """The half-lives; None where no completed run was probed."""
    retained = compute_retained(results.study.probes)
    done = completed_runs(results.trials)[["number"]]
    every = compute_half_lives(retained).merge(done, on="number")
    if not len(every):
        return None
    runs = compute_history_runs(results.curve_trials, every)
    return History(
        every,
        runs,
        compute_retained_curves(runs, retained),
        summarise_half_lives(runs),
        correlate_history(runs),
    )


def describe_range(info: History) -> str:
    """Where the half-life is longest and shortest, without a full stop."""
    medians = info.curve["median"]
    if not np.isfinite(medians).any():
        return "The median half-life of a key is longer than the longest lag at every MTD"
    lowest, highest = (info.curve.iloc[int(at)] for at in (medians.argmin(), medians.argmax()))
    text = f"The median half-life of a key is {_steps(lowest)}"
    if len(info.curve) > 1:
        text += f", the shortest, and {_steps(highest)}, the longest"
    return text


def _steps(level: pd.Series) -> str:
    median = level["median"]
    length = f"{median:.1f} steps" if np.isfinite(median) else "longer than the longest lag"
    return f"{length} at MTD {format_mtd(level['mtd'])}"


def describe_association(results: StudyResults, info: History) -> str:
    """A sentence on the rank correlations of the half-life; empty without one."""
    rows = info.correlations[info.correlations["first"] == "half_life"]
    if not len(rows):
        return ""
    names = {**results.labels, **NAMES}
    correlations = []
    for second, *estimate in rows[["second", "mean", "low", "high"]].itertuples(index=False):
        interval = describe_interval(size := Estimate(*estimate), LEVEL)
        shown = f"{size.mean:.2f}{interval and f' ({interval})'}"
        correlations.append(f"with {names.get(second, second)} {shown}")
    seeds = format_count(int(rows["seeds"].max()), "seed")
    return f"Rank correlation of the half-life, mean over {seeds}: {', '.join(correlations)}."
