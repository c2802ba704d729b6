"""The question how the score depends on MTD: its shape, and the levels that may be the best."""

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any

import pandas as pd

from mtdlab.analysis.data.beyond_run import describe_left_out, find_beyond, leave_out
from mtdlab.analysis.data.defaults import BEYOND_RUN, LEVEL, MARGIN, BeyondRun
from mtdlab.analysis.data.frames import TRIAL_COLUMNS
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.points import format_component
from mtdlab.analysis.data.questions import MTD, PlannedQuestion, level_in
from mtdlab.analysis.data.runs import (
    CONDITIONS,
    completed_runs,
    format_mtd,
    has_mtd,
    mtd_or_0,
    mtd_value,
    name_levels,
    traced_runs,
    varied_settings,
)
from mtdlab.analysis.inference.looks import LEADING_LEVEL, leading_levels
from mtdlab.analysis.inference.pairing import LevelScores, level_scores
from mtdlab.analysis.inference.power import Needed, PlannedDesign, design_levels, need_for_verdict
from mtdlab.analysis.inference.verdict import Judgement, Verdict, judge_levels
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.answer import Answer, Difference, QuestionOutcome
from mtdlab.analysis.questions.base import Decision, Question
from mtdlab.analysis.questions.next_steps import NextStep, confirm_command, new_seeds, step
from mtdlab.analysis.questions.results import at_defaults, find_highest
from mtdlab.analysis.questions.wording import (
    describe_over_looks,
    format_p,
    join_words,
    list_above,
    over_all_looks,
    state_p,
)
from mtdlab.analysis.statistics.contrasts import choose_candidates

_NO_SETTINGS = frozenset(TRIAL_COLUMNS) - {*PARTS, "initial_queue_size", "queue_slice"}


_GIVEN_ITEMS = (
    "The evaluation data are taken as given: intervals and tests cover other seeds, not other "
    "evaluation data."
)


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
        verdict = judge_levels(
            self.scores, level=basis.level, margin=margin, over_looks=basis.over_looks
        )
        return state_shape(verdict, self.scores.runs)

    @property
    def outcome(self) -> QuestionOutcome:
        if find_obstacle(self.judged):
            return QuestionOutcome.NOT_TESTED
        if self.judged.is_flat:
            return QuestionOutcome.EQUIVALENT
        return QuestionOutcome.OPEN if self.judged.is_open else QuestionOutcome.SHOWN

    @property
    def family(self) -> str:
        return "the verdict on MTD and, as a family of their own, of the differences of levels"

    @property
    def shows_best(self) -> bool:
        return self.outcome is QuestionOutcome.SHOWN

    @property
    def need(self) -> Needed | None:
        return need_for_verdict(self.scores, self.judged) if self.judged.is_open else None

    @cached_property
    def answer(self) -> Answer:
        verdict, results = self.judged, self.results
        settings, runs = results.study.settings, results.traced
        same = runs.loc[at_defaults(runs, varied_settings(runs, settings), settings), MTD]
        heading = "Highest mean, not confirmed as best"
        if verdict.is_flat:
            heading = "Highest mean; all tested are equivalent"
        elif self.shows_best:
            heading = "Recommended configuration"
        return self.reply(
            answer_shape(verdict, self._name_settings()),
            describe_certainty(verdict, float(same.iloc[0]) if len(same) else math.nan),
            number=self._find_best_level(),
            recommendation=heading,
            effect=find_effect(verdict),
            stated=verdict.sentence,
            these=_describe_these(verdict),
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

        A peak ends the study. A trend ends it if the level at that end has the highest estimate or
        a peak inside the range is excluded, because for a peak off the middle of the range the
        trend often becomes significant first. A flat score ends it for futility. Futility is
        non-binding: the error rate also holds if the study is continued nevertheless.
        """
        verdict = self.judged
        if verdict.seeds < 2 or verdict.levels < 2:
            return "no scores"
        if verdict.is_flat:
            return "flat"
        has_no_peak = verdict.peak_excluded or verdict.peak_mtd == verdict.end
        if verdict.is_peaked or (verdict.is_trend and (is_last or has_no_peak)):
            return "decided"
        return "max_seeds" if is_last else "continue"

    def find_leading(self) -> frozenset[int]:
        study, trials = self.results.study, self.results.curve_trials
        known, _ = leave_out(trials[has_mtd(trials)], study.beyond_run)
        scores = level_scores(trials, study.settings, beyond_run=study.beyond_run)
        optimal = judge_levels(scores, level=LEADING_LEVEL, margin=study.margin).optimal_range
        levels = mtd_or_0(known)
        chosen = leading_levels(sorted(set(levels)), optimal)
        return frozenset(known.loc[levels.isin(chosen), "number"].tolist())

    def find_next_step(self) -> NextStep:
        study = self.results.study
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
        return _explain(self.judged)

    @classmethod
    def plan(cls, planned: PlannedQuestion) -> PlannedDesign | None:
        beyond = find_beyond(planned.rows, planned.beyond_run)
        levels = {level_in(row) for row in planned.rows} - {None, *beyond}
        return PlannedDesign(design_levels(sorted(filter(None, levels))))

    @property
    def fields(self) -> Mapping[str, Any]:
        return list_shape(self.judged)


QUESTION = ShapeQuestion


class QuestionOverShape(Question):
    """A question on MTD that has the candidates of the shape of the score over all runs."""

    is_over_mtd = True

    @cached_property
    def shape(self) -> ShapeQuestion:
        """The question on the shape of the score over MTD, of all runs together."""
        return ShapeQuestion(self.results, self.asked, self.basis)

    @property
    def judged(self) -> Judgement:
        """What is decided of this question, over the runs of the shape."""
        shape = self.shape.judged
        return Judgement(
            self.outcome.value,
            p_value=self.find_p(),
            seeds=shape.seeds,
            items=shape.items,
            level=shape.level,
            margin=shape.margin,
            over_looks=shape.over_looks,
        )

    def find_p(self) -> float:
        """The p value of what is shown; NaN where nothing is tested."""
        return math.nan

    @property
    def fields(self) -> Mapping[str, Any]:
        """The numbers of the shape of all runs together."""
        return {"shape": self.shape.judged.verdict, **self.shape.fields}

    def choose_candidates(self) -> tuple[pd.Series, pd.Series]:
        return self.shape.choose_candidates()


def list_shape(verdict: Verdict) -> Mapping[str, Any]:
    """The numbers of a shape for JSON; distances are in steps."""
    leads = [{"mtd": mtd_value(lead.mtd), **vars(lead.size)} for lead in verdict.leads]
    interval = verdict.peak_interval
    return {
        "p_trend": verdict.p_trend,
        "peak_excluded": verdict.peak_excluded,
        "peak_mtd": mtd_value(verdict.peak_mtd),
        "peak_interval": None if interval is None else [*map(mtd_value, interval)],
        "optimal_range": [*map(mtd_value, verdict.optimal_range)],
        "runner_up": leads[0] if leads else None,
        "lowest": leads[-1] if leads else None,
        "items": verdict.items,
        "left_out": [*verdict.left_out],
    }


def find_effect(verdict: Verdict) -> Difference | None:
    """The difference that the shape rests on; None where nothing is compared.

    It is the level with the highest estimate less another one: where the score rises or falls, less
    the end where it is lower; where it peaks, less the end where it is higher, which the peak has
    to exceed; otherwise less the lowest level, the largest difference that there is.
    """
    if not verdict.leads:
        return None
    ends = [lead for lead in verdict.leads if lead.mtd in (verdict.first, verdict.last)]
    lead, role = verdict.leads[-1], "the lowest mean"
    if ends and (verdict.is_peaked or verdict.is_trend):
        lead = ends[0 if verdict.is_peaked else -1]
        role = "the first level" if lead.mtd == verdict.first else "the last level"
    best, other = (format_mtd(mtd) for mtd in (verdict.peak_mtd, lead.mtd))
    text = f"MTD {best}, the highest mean, less MTD {other}, {role}"
    return Difference(lead.size, verdict.confidence, text, over_all_looks(verdict.over_looks))


def _describe_these(verdict: Verdict) -> str:
    """The verdict without the sampling error of the items, where that is counted; else empty."""
    if (these := verdict.for_these) is None:
        return ""
    test = f" ({format_p(these.p_shown)})" if these.is_peaked or these.is_trend else ""
    return f"For exactly these items: {these.verdict}{test}."


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
    return state_shape(judge_levels(levels, level=level, margin=margin), levels.runs)


def state_shape(verdict: Verdict, runs: pd.DataFrame) -> Verdict:
    """The verdict with its sentence, which says for which runs it holds."""
    scope = _describe_scope(verdict, describe_conditions(runs))
    without = f" {describe_left_out(verdict.left_out)}".rstrip()
    return replace(verdict, sentence=write_sentence(verdict) + without + scope)


def _describe_scope(verdict: Verdict, conditions: str) -> str:
    """A sentence on what the verdict covers: seeds, evaluation items, settings not varied."""
    if verdict.levels < 2 or verdict.seeds < 2:
        return f" This holds {conditions}." if verdict.levels > 1 and conditions else ""
    covered = "these evaluation data"
    if verdict.items:
        covered = f"evaluation data like these {verdict.items:,} items"
    return f" This holds for {covered}{conditions and ', '}{conditions}."


def write_sentence(verdict: Verdict) -> str:
    """The verdict as text, with its numbers: its answer, what it rests on, the best levels."""
    texts = [f"{answer_shape(verdict)}."]
    if find_obstacle(verdict):
        return texts[0]
    if effect := find_effect(verdict):
        texts.append(effect.sentence)
    texts.append(describe_certainty(verdict))
    if not verdict.is_flat:
        texts.append(
            f"Statistically indistinguishable from the best of {verdict.levels} levels "
            f"({100 * verdict.confidence:.3g} % confidence{over_all_looks(verdict.over_looks)}): "
            f"{name_levels(verdict.optimal_range)}."
        )
    if verdict.is_trend:
        beyond = f"above {format_mtd(verdict.last)}", "compared" if verdict.is_cut else "tested"
        if verdict.end == verdict.first:
            beyond = f"below {format_mtd(verdict.first)}", "tested"
        texts.append(
            f"A peak of at least {verdict.margin:g} points inside the range is "
            f"{'' if verdict.peak_excluded else 'not '}excluded; MTDs {beyond[0]} were not "
            f"{beyond[1]}."
        )
    return " ".join(texts)


def answer_shape(verdict: Verdict, settings: str = "") -> str:
    """The shape of the score over MTD in a few words, and the levels that may be the best.

    `settings` are those of the lowest and the highest of these levels, such as "η 0.9 to 0.97".
    """
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    levels = verdict.optimal_range or (verdict.peak_mtd,)
    low, high = format_mtd(levels[0]), format_mtd(levels[-1])
    best = f"at MTD {low}" if low == high else f"between MTD {low} and {high}"
    best += f" ({settings})" if settings else ""
    if verdict.is_peaked:
        if {verdict.first, verdict.last} & {*levels}:
            return f"The score rises and falls inside the range; it is best {best}"
        return f"The score peaks {best}"
    if verdict.is_trend:
        verb = "rises" if verdict.end == verdict.last else "falls"
        if len(verdict.optimal_range) > 1 or verdict.peak_mtd not in (verdict.first, verdict.last):
            return f"The score {verb} overall with MTD; it is best {best}"
        if verb == "falls":
            return f"The score falls with MTD, from {first}, the lowest tested"
        compared = "within the run" if verdict.is_cut else "tested"
        return f"The score rises with MTD, up to {last}, the highest {compared}"
    if verdict.is_flat:
        return f"MTD makes no difference between {first} and {last}"
    none = f"no effect of MTD between {first} and {last} is significant"
    return f"Inconclusive: {find_obstacle(verdict) or none}"


def find_obstacle(verdict: Verdict) -> str:
    """Why no levels are compared, in a few words; empty where some are."""
    if verdict.left_out and verdict.levels_run - len(verdict.left_out) < 2:
        return "fewer than two levels of MTD are within the run"
    if not verdict.levels_run:
        return "no completed trial with an MTD has a score yet"
    if verdict.levels_run == 1:
        return "all scored trials have the same MTD"
    if verdict.seeds == 1:
        best = format_mtd(verdict.peak_mtd)
        return f"one seed cannot separate MTD from chance; the highest score is at MTD {best}"
    if verdict.levels < 2 or not (verdict.seeds or verdict.known_errors):
        return "no two seeds were run at the same two levels of MTD"
    return ""


def describe_certainty(verdict: Verdict, default: float = math.nan) -> str:
    """The certainty of the shape as text: difference to the lowest level, p value or margin, n.

    `default`: the level of the default settings, in steps; NaN where it was not run.
    """
    if find_obstacle(verdict):
        return "Not tested."
    over = over_all_looks(verdict.over_looks)
    tests = f"{format_p(verdict.p_value)} for a peak, {format_p(verdict.p_trend)} for a trend"
    if verdict.is_peaked:
        tests = f"{state_p(verdict)} for a peak (multiplicity-adjusted)"
    elif verdict.is_trend:
        tests = f"{state_p(verdict)} for a trend"
    elif verdict.is_flat:
        tests = (
            f"Any two levels differ by less than {verdict.margin:g} points (equivalence tests at "
            f"{100 * (1 - verdict.confidence):.3g} %{over})"
        )
    last, effect, above = len(verdict.leads) - 1, find_effect(verdict), {}
    for place, lead in enumerate(verdict.leads):
        roles = {"the runner-up": not place, "the lowest": place == last}
        roles["the default"] = lead.mtd == default
        named = [role for role, holds in roles.items() if holds]
        if named and effect and lead.size is not effect.size:
            above[f"{join_words(named)}, MTD {format_mtd(lead.mtd)}"] = lead.size
    span = f"MTD {format_mtd(verdict.first)} to {format_mtd(verdict.last)}"
    levels = f"{verdict.levels} levels, {span}"
    if verdict.left_out:
        levels += f" ({len(verdict.left_out)} beyond the run left out)"
    ends = f"{verdict.seeds} seeds, {levels}."
    if verdict.known_errors:
        ends = f"{levels}, standard errors as given."
    looks = describe_over_looks(verdict.over_looks)
    return f"{list_above(above, verdict.confidence, over)}{tests}; {ends}{looks and ' '}{looks}"


_WHERE_FIXED = ("ema_decay", "queue_size")


def describe_conditions(trials: pd.DataFrame) -> str:
    """Learning rate, steps and batch size of the completed runs with an MTD, as text.

    Before the batch size stand the EMA decay and the queue size where they were fixed: with it they
    make up MTD. For example "at learning rate 0.001, 160 steps, queue size 512 and batch size 64".
    Settings that are not columns are left out; the text is empty if none is a column.
    """
    runs = traced_runs(trials)
    parts = []
    for name in (*CONDITIONS, *_WHERE_FIXED, "batch_size"):
        values = sorted(runs[name].dropna().unique()) if name in runs else []
        if values and not (name in _WHERE_FIXED and len(values) > 1):
            listed = join_words([f"{float(value):g}" for value in values])
            noun = name.replace("_", " ").replace("ema", "EMA") + "s" * (len(values) > 1)
            parts.append(f"{listed} steps" if name == "steps" else f"{noun} {listed}")
    return f"at {join_words(parts)}" if parts else ""


def _explain(verdict: Verdict) -> tuple[str, ...]:
    """Sentences on the tests of the shape over MTD, the data they hold for, and the best levels."""
    items = _GIVEN_ITEMS
    if verdict.items:
        items = (
            f"Intervals and tests also cover the sampling of the {verdict.items:,} evaluation "
            "items: the variance of a difference is that between seeds plus that of its influence "
            "over the items, which all seeds share. Items count as independent: where sentences "
            "stand in several evaluation pairs, these intervals are too narrow."
        )
    return (
        "The verdict on MTD comes from a model of the score with an effect of the seed and one of "
        "the level of MTD. It is “flat” if any two levels are shown to differ by less than "
        f"{verdict.margin:g} points (equivalence tests); if not, “peaked” if the slope of the "
        "score on log MTD up to an inner level and the slope down from it are both significant, "
        "adjusted for the choice of that level; if not, “rising” or “falling” if the slope over "
        "all levels is significant and that end is statistically indistinguishable from the best "
        "level; otherwise “inconclusive”. A test uses the least significant of three variances: "
        "that of the levels compared, that typical of all levels, and that between seeds, each of "
        "which may have a slope and a curvature of its own. Critical values are simulated for this "
        "design, with independent errors, with errors correlated between neighbouring levels, and "
        "with seeds that have slopes of their own.",
        items,
        "The levels that are statistically indistinguishable from the best come from multiple "
        "comparisons with the best: the best level is among them with a probability of at least "
        f"{100 * verdict.confidence:.3g} %{over_all_looks(verdict.over_looks)}.",
    )
