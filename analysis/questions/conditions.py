"""The question whether the optimum in MTD is the same at other learning rates and steps."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.questions import MTD, PlannedQuestion, list_conditions
from mtdlab.analysis.data.runs import CONDITIONS, format_mtd, traced_runs
from mtdlab.analysis.inference.intervals import share_level
from mtdlab.analysis.inference.pairing import compute_paired_curve, summarise_scores
from mtdlab.analysis.inference.power import PlannedDesign
from mtdlab.analysis.inference.verdict import Verdict, judge_levels
from mtdlab.analysis.questions.answer import Answer, QuestionOutcome
from mtdlab.analysis.questions.base import WITHIN
from mtdlab.analysis.questions.results import Basis, StudyResults
from mtdlab.analysis.questions.shape import QuestionOverShape, ShapeQuestion
from mtdlab.analysis.questions.varied_history import hold, measure_variation
from mtdlab.analysis.statistics.history import compute_half_lives, compute_retained

_NAMES = {"learning_rate": "learning rate {:g}", "steps": "{:g} steps"}


@dataclass(frozen=True)
class Condition:
    """The runs of one condition.

    Attributes:
        name: such as "learning rate 0.001, 160 steps".
        runs: its completed runs with an MTD.
        curve: `summarise_scores` by MTD.
        paired: `compute_paired_curve`.
        verdict: at a confidence by which all conditions together have one error rate.
    """

    name: str
    runs: pd.DataFrame
    curve: pd.DataFrame
    paired: pd.DataFrame
    verdict: Verdict

    @property
    def half_life(self) -> float:
        """Mean measured half-life of keys at the best level, in steps; NaN if not measured."""
        at_best = np.isclose(self.runs["mtd"], self.verdict.peak_mtd)
        return float(self.runs.loc[at_best, "half_life"].astype("float64").mean())


class ConditionsQuestion(QuestionOverShape):
    """Is the shape over MTD the same at each learning rate and number of steps?"""

    @property
    def sentence(self) -> str:
        metric = self.results.metric
        return f"How does {metric} depend on MTD at each learning rate and number of steps?"

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The verdict of each condition; they share the error rate."""
        return find_conditions(self.results, self.basis)

    @property
    def finding(self) -> QuestionOutcome:
        verdicts = [condition.verdict for condition in self.conditions]
        if not verdicts or all(verdict.seeds < 2 for verdict in verdicts):
            return QuestionOutcome.NOT_TESTED
        if any(verdict.is_undecided for verdict in verdicts):
            return QuestionOutcome.OPEN
        if not self.is_within:
            return QuestionOutcome.SHOWN
        # that of the condition whose history is known least
        found = {WITHIN[verdict.verdict] for verdict in verdicts}
        order = QuestionOutcome.OPEN, QuestionOutcome.WITHIN, QuestionOutcome.EQUIVALENT
        return next(outcome for outcome in order if outcome in found)

    @property
    def is_within(self) -> bool:
        return bool(self.conditions) and all(each.verdict.is_within for each in self.conditions)

    @property
    def family(self) -> str:
        return "the verdicts of all conditions together"

    @cached_property
    def answer(self) -> Answer:
        verdicts = [condition.verdict for condition in self.conditions]
        number = self.results.highest
        if not verdicts:
            return self.reply(
                "Not tested: fewer than two conditions have levels of MTD",
                "",
                topic=None,
                number=number,
            )
        peaks = sorted(verdict.peak_mtd for verdict in verdicts)
        ends = " to ".join(dict.fromkeys(map(format_mtd, (peaks[0], peaks[-1]))))
        kinds = pd.Series([self.write.say(verdict.verdict) for verdict in verdicts]).value_counts()
        listed = ", ".join(f"{amount} {kind}" for kind, amount in kinds.items())
        seeds = format_count(max(verdict.seeds for verdict in verdicts), "seed")
        return self.reply(
            f"The {self.write.say('highest')} mean is at MTD {ends} in {len(verdicts)} conditions",
            f"Verdicts by condition: {listed}, each at {100 * verdicts[0].level:.4g} % confidence, "
            f"all together at {100 * self.basis.level:.3g} %; {seeds}.",
            number=number,
        )

    @classmethod
    def plan(cls, planned: PlannedQuestion) -> PlannedDesign | None:
        """The levels of a condition, of which all share the error rate."""
        shape = ShapeQuestion.plan(planned)
        return shape and replace(shape, shared=len(list_conditions(planned.rows)))

    def find_p(self) -> float:
        """The largest of the conditions', adjusted for their number; NaN where one has none."""
        values = [condition.verdict.p_shown for condition in self.conditions]
        return float(np.minimum(1.0, len(values) * np.max(values))) if values else math.nan


def find_conditions(results: StudyResults, basis: Basis | None = None) -> tuple[Condition, ...]:
    """`judge_conditions` of each learning rate and number of steps of a study that varies them.

    Of all trials, at 95 % confidence, unless a basis is given. Conditions with fewer than two
    levels of MTD are left out; empty with fewer than two conditions. A value that was chosen for a
    level makes no condition.
    """
    used = basis or Basis(1 - LEVEL)
    half_lives = compute_half_lives(compute_retained(results.study.probes))
    runs = traced_runs(used.select(results.curve_trials))
    runs = runs.merge(half_lives, on="number", how="left")
    varied = list_varied_conditions(runs, results.study.nuisance)
    groups = [
        (", ".join(_NAMES[name].format(float(group[name].iloc[0])) for name in varied), group)
        for _, group in (runs.groupby(varied) if varied else ())
        if group["mtd"].nunique() > 1
    ]
    return judge_conditions(results, groups, used.level) if len(groups) > 1 else ()


def list_varied_conditions(runs: pd.DataFrame, nuisance: Collection[str]) -> list[str]:
    """Which of learning rate and steps differ between runs, but for values that were chosen."""
    possible = [name for name in CONDITIONS if name in runs and name not in nuisance]
    return [name for name in possible if runs[name].nunique() > 1]


def judge_conditions(
    results: StudyResults, groups: Sequence[tuple[str, pd.DataFrame]], level: float = LEVEL
) -> tuple[Condition, ...]:
    """Verdict and curves of each condition: its name, and its completed runs with an MTD.

    The conditions share the error rate 1 - `level` (Bonferroni): it is divided by their number.
    """
    conditions, study = [], results.study
    for name, runs in groups:
        levels = results.tabulate(runs)
        verdict = judge_levels(levels, level=share_level(len(groups), level), margin=study.margin)
        verdict = hold(verdict, measure_variation(study, levels.runs, [MTD]))
        curve = summarise_scores(runs, by=["mtd"], items=study.items)
        conditions.append(Condition(name, runs, curve, compute_paired_curve(levels), verdict))
    return tuple(conditions)
