"""The question how the score depends on MTD: its shape, and the levels that may be the best."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pandas as pd

from mtdlab.analysis.data.beyond_run import find_beyond, leave_out
from mtdlab.analysis.data.defaults import BEYOND_RUN, LEVEL, MARGIN, BeyondRun
from mtdlab.analysis.data.frames import TRIAL_COLUMNS
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.points import format_component
from mtdlab.analysis.data.questions import MTD, PlannedQuestion, level_in
from mtdlab.analysis.data.runs import completed_runs, has_mtd, mtd_or_0, mtd_value, varied_settings
from mtdlab.analysis.inference.looks import LEADING_LEVEL, leading_levels
from mtdlab.analysis.inference.pairing import LevelScores, level_scores
from mtdlab.analysis.inference.power import Needed, PlannedDesign, design_levels, need_for_verdict
from mtdlab.analysis.inference.verdict import Judgement, VariedHistory, Verdict, judge_levels
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.answer import Answer, QuestionOutcome
from mtdlab.analysis.questions.base import Decision, Question
from mtdlab.analysis.questions.next_steps import (
    NextStep,
    confirm_command,
    new_seeds,
    run_more_seeds,
    step,
)
from mtdlab.analysis.questions.results import at_defaults, find_highest
from mtdlab.analysis.questions.shape_wording import (
    answer_shape,
    describe_certainty,
    describe_these,
    explain_shape,
    find_effect,
    find_obstacle,
    state_shape,
)
from mtdlab.analysis.questions.varied_history import hold
from mtdlab.analysis.statistics.contrasts import choose_candidates

_NO_SETTINGS = frozenset(TRIAL_COLUMNS) - {*PARTS, "initial_queue_size", "queue_slice"}


class ShapeQuestion(Question):
    """How does the score depend on MTD?"""

    is_over_mtd = True
    wider = "Test a wider range of MTD"

    @property
    def sentence(self) -> str:
        return f"How does {self.results.metric} depend on the maximum traceable distance (MTD)?"

    @cached_property
    def scores(self) -> LevelScores:
        """The scores by seed and level that are compared."""
        results = self.results
        if self.basis.numbers is None:
            return results.levels
        return results.tabulate(self.basis.select(results.curve_trials))

    @cached_property
    def judged(self) -> Verdict:
        basis, margin = self.basis, self.results.study.margin
        verdict = judge_levels(self.scores, level=basis.level, margin=margin)
        verdict = self.hold(verdict, self.scores.runs)
        if basis.explores:
            verdict = replace(verdict, leads=())
        return state_shape(verdict, self.scores)

    @property
    def finding(self) -> QuestionOutcome:
        if find_obstacle(self.judged):
            return QuestionOutcome.NOT_TESTED
        return QuestionOutcome.OPEN if self.judged.is_open else QuestionOutcome.SHOWN

    @property
    def family(self) -> str:
        return "the verdict on MTD and, as a family of their own, of the differences of levels"

    @property
    def shows_best(self) -> bool:
        return self.outcome is QuestionOutcome.SHOWN

    @property
    def need(self) -> Needed | None:
        return need_for_verdict(self.scores, self.judged) if self.judged.is_undecided else None

    @cached_property
    def answer(self) -> Answer:
        verdict, results = self.judged, self.results
        settings, runs = results.study.settings, results.traced
        same = runs.loc[at_defaults(runs, varied_settings(runs, settings), settings), MTD]
        return self.reply(
            answer_shape(verdict, self._name_settings()),
            describe_certainty(verdict, float(same.iloc[0]) if len(same) else math.nan),
            number=self._find_best_level(),
            recommendation=self.name_highest("all tested"),
            effect=find_effect(verdict),
            stated=verdict.sentence,
            these=describe_these(verdict),
        )

    def _name_settings(self) -> str:
        """The range of the only setting that makes up MTD, over the levels that may be best."""
        runs, levels = self.results.traced, self.judged.optimal_range
        varied = [name for name in PARTS if runs[name].nunique() > 1]
        if len(varied) != 1 or not levels:
            return ""
        inside = runs.loc[runs[MTD].between(levels[0], levels[-1]), varied[0]]
        ends = dict.fromkeys(map(format_component, (inside.min(), inside.max())))
        return f"{PARTS[varied[0]]} {' to '.join(ends)}"

    def _find_best_level(self) -> int:
        """The first trial of the best configuration at the best level."""
        if self.judged.seeds and self.judged.levels > 1:
            return int(self.choose_candidates()[0]["number"])
        # one beyond the run only where there is no other
        results, within = self.results, self.results.levels.runs
        is_chosen = self.judged.left_out and len(within)
        runs = within if is_chosen else completed_runs(results.curve_trials)
        return find_highest(runs, results.study.settings)

    def choose_candidates(self) -> tuple[pd.Series, pd.Series]:
        trials = self.basis.select(self.results.curve_trials)
        return choose_candidates(self.results.study, trials, self.judged)

    def decide(self, *, is_last: bool) -> Decision:
        """Whether a study ends at a look.

        A peak ends the study, and a trend of which it is shown whether it goes on up to its end:
        more seeds decide an open one. A flat score ends it for futility. Futility is non-binding:
        the error rate also holds if the study is continued nevertheless.
        """
        verdict = self.judged
        if verdict.seeds < 2 or verdict.levels < 2:
            return "no scores"
        if verdict.is_within:
            return "flat"
        if not verdict.is_undecided:
            return "decided"
        return "max_seeds" if is_last else "continue"

    def find_leading(self) -> frozenset[int]:
        study, trials = self.results.study, self.results.curve_trials
        known, _ = leave_out(trials[has_mtd(trials)], study.beyond_run)
        scores = level_scores(trials, study.compared, beyond_run=study.beyond_run)
        optimal = judge_levels(scores, level=LEADING_LEVEL, margin=study.margin).optimal_range
        levels = mtd_or_0(known)
        chosen = leading_levels(sorted(set(levels)), optimal)
        return frozenset(known.loc[levels.isin(chosen), "number"].tolist())

    def find_next_step(self) -> NextStep:
        study = self.results.study
        if self.judged.is_trend and self.judged.is_undecided:
            more = run_more_seeds(self.results, self.need, wider=self.wider, is_paired=True)
            return replace(more, text=f"{self._widen()}{more.text}")
        if not self.shows_best or not (command := confirm_command(study)):
            return super().find_next_step()
        return step(f"{self._widen()}Confirm the best level {new_seeds(study)}", command)

    def _widen(self) -> str:
        """The next step where the best level is at an end of the range."""
        verdict = self.judged
        if verdict.peak_mtd != verdict.end:
            return ""
        if verdict.end == verdict.first:
            return "The best level is the lowest tested: also test lower MTD. "
        if verdict.is_cut:
            return "The best level is the highest within the run: more steps allow a higher MTD. "
        return "The best level is the highest tested: also test higher MTD. "

    def explain(self) -> tuple[str, ...]:
        return explain_shape(self.judged)

    @classmethod
    def plan(cls, planned: PlannedQuestion) -> PlannedDesign | None:
        beyond = find_beyond(planned.rows, planned.beyond_run)
        levels = {level_in(row) for row in planned.rows} - {None, *beyond}
        return PlannedDesign(design_levels(sorted(filter(None, levels))))

    @property
    def fields(self) -> Mapping[str, Any]:
        return list_shape(self.judged)


class QuestionOverShape(Question):
    """A question on MTD that has the candidates of the shape of the score over all runs."""

    is_over_mtd = True

    @cached_property
    def shape(self) -> ShapeQuestion:
        """The question on the shape of the score over MTD, of all runs together."""
        return ShapeQuestion(self.results, self.asked, self.basis)

    @property
    def outcome(self) -> QuestionOutcome:
        return self.finding

    @property
    def judged(self) -> Judgement:
        """What is decided of this question, over the runs of the shape."""
        shape = self.shape.judged
        return self.judge(self.outcome.value, self.find_p(), seeds=shape.seeds, items=shape.items)

    def find_p(self) -> float:
        """The p value of what is shown; NaN where nothing is tested."""
        return math.nan

    @property
    def fields(self) -> Mapping[str, Any]:
        """The numbers of the shape of all runs together."""
        return {"shape": self.shape.judged.label, **self.shape.fields}

    def choose_candidates(self) -> tuple[pd.Series, pd.Series]:
        return self.shape.choose_candidates()


def list_shape(verdict: Verdict) -> Mapping[str, Any]:
    """The numbers of a shape for JSON; distances are in steps."""
    write = verdict.score_format
    leads = [
        {"mtd": mtd_value(lead.mtd), **vars(lead.size.as_read(write))} for lead in verdict.leads
    ]
    interval = verdict.peak_interval
    return {
        "p_trend": verdict.p_trend,
        "peak_excluded": verdict.peak_excluded,
        "bounds": None if verdict.bounds is None else vars(verdict.bounds),
        "peak_mtd": mtd_value(verdict.peak_mtd),
        "peak_interval": None if interval is None else [*map(mtd_value, interval)],
        "optimal_range": [*map(mtd_value, verdict.optimal_range)],
        "runner_up": leads[0] if leads else None,
        "worst": leads[-1] if leads else None,
        "items": verdict.items,
        "left_out": [*verdict.left_out],
    }


def compute_verdict(
    trials: pd.DataFrame,
    settings: Collection[str] | None = None,
    *,
    items: ItemScores | None = None,
    level: float = LEVEL,
    margin: float = MARGIN,
    beyond_run: BeyondRun = BEYOND_RUN,
) -> Verdict:
    """Test the shape of the score against MTD and which levels may be the best.

    With one seed, one level or no score the verdict is "inconclusive". Raises ValueError for a
    level outside [0.5, 1) or a margin that is not above 0, KeyError for a missing column.

    Args:
        trials: a row per trial: seed, mtd, score (x 100) and the settings, as `StudyFrames.trials`.
            If there is a column state, only trials with state COMPLETE are used.
        settings: which columns are settings; by default all columns that are not among the fixed
            columns of `StudyFrames.trials`.
        items: `StudyFrames.items`: where all compared trials have them, the sampling error of the
            evaluation items is counted.
        level: confidence, at least 0.5: the error rate of a peak or a trend is at most about 1 -
            level.
        margin: points (score x 100) below which a difference is treated as no difference.
        beyond_run: "leave-out" or "keep": whether levels beyond the run are compared. Without the
            columns that tell them (steps; ema_decay, or queue_size and batch_size) all are.
    """
    if settings is None:
        settings = [str(name) for name in trials if name not in _NO_SETTINGS]
    levels = level_scores(trials, settings, items, beyond_run=beyond_run)
    verdict = judge_levels(levels, level=level, margin=margin)
    return state_shape(hold(verdict, VariedHistory()), levels)
