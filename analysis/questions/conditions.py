"""The question whether the optimum in MTD is the same at other learning rates and steps."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import pandas as pd

from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.questions import MTD, PlannedQuestion, list_conditions
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.inference.power import PlannedDesign
from mtdlab.analysis.questions.answer import Answer, QuestionOutcome
from mtdlab.analysis.questions.base import WITHIN
from mtdlab.analysis.questions.results import Basis, StudyResults
from mtdlab.analysis.questions.shape import QuestionOverShape, ShapeQuestion
from mtdlab.analysis.questions.varied_history import hold, measure_variation
from mtdlab.analysis.statistics.history import compute_half_lives, compute_retained
from mtdlab.analysis.statistics.robustness import Condition, compute_conditions


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


QUESTION = ConditionsQuestion


def find_conditions(results: StudyResults, basis: Basis | None = None) -> tuple[Condition, ...]:
    """`compute_conditions`; empty unless learning rate or steps vary beside MTD.

    They are judged at 95 % confidence unless a basis is given.
    """
    used = basis or Basis(1 - LEVEL)
    half_lives = compute_half_lives(compute_retained(results.study.probes))
    trials = used.select(results.curve_trials)
    return hold_conditions(
        results, compute_conditions(results.study, trials, half_lives, used.level)
    )


def hold_conditions(
    results: StudyResults, conditions: Sequence[Condition]
) -> tuple[Condition, ...]:
    """The conditions, whose verdicts say what is known of history between their levels."""
    held, study = [], results.study
    for each in conditions:
        known, _ = leave_out(each.runs, study.beyond_run)
        verdict = hold(each.verdict, measure_variation(study, known, [MTD]))
        held.append(replace(each, verdict=verdict))
    return tuple(held)
