"""The verdict on a study: the shape of its score over MTD, and which levels may be the best."""

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mtdlab.analysis.data.beyond_run import describe_left_out
from mtdlab.analysis.data.defaults import BEYOND_RUN, LEVEL, MARGIN, BeyondRun
from mtdlab.analysis.data.frames import TRIAL_COLUMNS
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.runs import format_mtd, name_levels, traced_runs
from mtdlab.analysis.inference.blocks import Fit
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.pairing import LevelScores, level_scores, merge_levels
from mtdlab.analysis.inference.shapes import Shape, ShapeTests
from mtdlab.analysis.measures.trace import PARTS

_NO_SETTINGS = frozenset(TRIAL_COLUMNS) - {*PARTS, "initial_queue_size", "queue_slice"}


@dataclass(frozen=True)
class Lead:
    """The level with the highest estimate less another one, `mtd`, in points."""

    mtd: float
    size: Estimate


@dataclass(frozen=True)
class OverLooks:
    """What holds over all looks of a study that could have ended at each of them.

    Attributes:
        planned, taken: how many looks were planned, and how many of them were taken.
        confidence: the confidence with which tests and intervals of all looks hold together.
        p_value: of the verdict, by stage-wise ordering; NaN where nothing was tested.
        is_early: whether the verdict ended the study before its last look.
    """

    planned: int
    taken: int
    confidence: float
    p_value: float
    is_early: bool


@dataclass(frozen=True)
class Verdict:
    """What a study shows about its score against MTD.

    Numbers are NaN where there is nothing to compare.

    Attributes:
        verdict: the shape; "inconclusive" where none is significant; sentence: the same as text.
        p_value: of the test of a peak; p_trend: two-sided, of the slope over all levels and of the
            difference of the ends, the larger.
        peak_mtd: the level with the highest estimate, whatever the verdict, in steps.
        peak_interval: lowest and highest level of the optimal range; None unless peaked.
        optimal_range: levels that are statistically indistinguishable from the best: a confidence
            set that contains the best level with probability `level`.
        peak_excluded: whether a peak of at least the margin above both ends is excluded.
        seeds, levels: how many are compared.
        levels_run: how many levels have a score, those left out among them.
        left_out: levels beyond the run, which are not compared.
        first, last: lowest and highest level compared, in steps.
        leads: the level with the highest estimate less each other one, from the runner-up to the
            lowest, in points; the intervals are simultaneous over all pairs of levels, so that
            they hold for levels that are chosen by the same scores.
        level, margin: confidence of tests and intervals, for a look that of this look alone;
            differences below the margin (points) are treated as no difference.
        over_looks: what holds over all looks; None for a verdict that is computed once.
        known_errors: whether means with standard errors were compared, without seeds.
        items: evaluation items (graded pairs, queries) whose sampling error is counted: the verdict
            is for items like these; 0: it is for these evaluation data.
        for_these: the verdict for these items, without their sampling error; None if items is 0.
    """

    verdict: Shape
    sentence: str = ""
    p_value: float = math.nan
    p_trend: float = math.nan
    peak_mtd: float = math.nan
    peak_interval: tuple[float, float] | None = None
    optimal_range: tuple[float, ...] = ()
    peak_excluded: bool = False
    seeds: int = 0
    levels: int = 0
    levels_run: int = 0
    left_out: tuple[float, ...] = ()
    first: float = math.nan
    last: float = math.nan
    leads: tuple[Lead, ...] = ()
    known_errors: bool = False
    items: int = 0
    for_these: "Verdict | None" = None
    level: float = LEVEL
    margin: float = MARGIN
    over_looks: OverLooks | None = None

    @property
    def confidence(self) -> float:
        """The confidence of tests and intervals; over all looks, where there are several."""
        return self.over_looks.confidence if self.over_looks else self.level

    @property
    def is_cut(self) -> bool:
        """Whether levels above the highest that is compared were run, beyond the run."""
        return any(level > self.last for level in self.left_out)


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
    return judge_levels(levels, level=level, margin=margin)


def judge_levels(
    levels: LevelScores,
    *,
    level: float = LEVEL,
    margin: float = MARGIN,
    over_looks: OverLooks | None = None,
) -> Verdict:
    """The verdict (`compute_verdict`) on tabulated scores, at a look of a study or once."""
    if not 0.5 <= level < 1:
        raise ValueError(f"level is {level:g}; a verdict needs at least 0.5, and less than 1")
    if not margin > 0:
        raise ValueError(f"margin is {margin:g}; it must be above 0 points")
    scores, distance = levels.scores, levels.distance
    verdict = Verdict(
        "inconclusive",
        seeds=len(scores) if scores.size else 0,
        levels=len(distance),
        levels_run=int(merge_levels(levels.runs["mtd"]).nunique()) + len(levels.left_out),
        left_out=levels.left_out,
        level=level,
        margin=margin,
        over_looks=over_looks,
    )
    if scores.size:
        verdict = replace(verdict, first=float(distance[0]), last=float(distance[-1]))
    if levels.comparable:
        blank, verdict = verdict, judge(verdict, levels.tests, levels.fit)
        if levels.items:
            these = levels.without_items()
            of_these = judge(blank, these.tests, these.fit)
            verdict = replace(verdict, items=levels.items, for_these=of_these)
    elif scores.size:
        verdict = replace(verdict, peak_mtd=float(distance[scores.mean(axis=0).argmax()]))
    scope = _scope(verdict, describe_conditions(levels.runs))
    without = f" {describe_left_out(verdict.left_out)}".rstrip()
    return replace(verdict, sentence=write_sentence(verdict) + without + scope)


def _scope(verdict: Verdict, conditions: str) -> str:
    """A sentence on what the verdict covers: seeds, evaluation items, settings not varied."""
    if verdict.levels < 2 or verdict.seeds < 2:
        return f" This holds {conditions}." if verdict.levels > 1 and conditions else ""
    covered = "these evaluation data"
    if verdict.items:
        covered = f"evaluation data like these {verdict.items:,} items"
    return f" This holds for {covered}{conditions and ', '}{conditions}."


def describe_over_looks(looks: OverLooks | None) -> str:
    """What "over all looks" means and how an early end biases differences, as text; else empty."""
    if not looks:
        return ""
    text = (
        f"The study could have ended at any of {looks.planned} looks: "
        f"{100 * looks.confidence:.3g} % over all looks is the confidence that the intervals of "
        "every look hold together."
    )
    if looks.is_early:
        text += (
            f" It ended at look {looks.taken}, because differences were large there, so they tend "
            "to be stated too high (in simulations with the scatter of the built-in data by up to "
            "2.4 points on average); mtdlab confirm measures them again with new seeds."
        )
    return text


def over_all_looks(looks: OverLooks | None) -> str:
    """The words after a confidence or an error rate that holds over all looks; else empty."""
    return ", over all looks" if looks else ""


def state_p(verdict: Verdict) -> str:
    """The p value of the shape as text, at a look also over all looks so far; empty if flat."""
    p_value = verdict.p_value if verdict.verdict == "peaked" else verdict.p_trend
    over = verdict.over_looks
    if over is None or over.taken < 2 or math.isnan(over.p_value):
        return format_p(p_value)
    return f"{format_p(p_value)} at this look, {format_p(over.p_value)} over all looks"


def judge(verdict: Verdict, tests: ShapeTests, fit: Fit) -> Verdict:
    """A verdict with the results of all tests on one fitted table."""
    alpha, distance = 1 - verdict.level, tests.distance
    result = tests.classify(fit.part(None), alpha, verdict.margin)
    shape, best = result.shape[0], int(result.best[0])
    optimal = tuple(float(mtd) for mtd in distance[result.optimal[0]])
    differences = -tests.compare_with(fit, best, alpha)
    ranked = [level for level in np.argsort(differences[:, 0], kind="stable") if level != best]
    leads = (
        Lead(float(distance[level]), Estimate(*differences[level, [0, 2, 1]].tolist()))
        for level in ranked
    )
    return replace(
        verdict,
        verdict=shape,
        p_value=float(result.p_peak[0]),
        p_trend=float(result.p_trend[0]),
        peak_mtd=float(distance[best]),
        peak_interval=(optimal[0], optimal[-1]) if shape == "peaked" else None,
        optimal_range=optimal,
        peak_excluded=bool(result.peak_excluded[0]),
        leads=tuple(leads),
    )


def write_sentence(verdict: Verdict) -> str:
    """The verdict as text, with its numbers: its answer, what it rests on, the best levels."""
    texts = [f"{answer_shape(verdict)}."]
    if _find_obstacle(verdict):
        return texts[0]
    if verdict.leads:
        size, over = verdict.leads[0].size, over_all_looks(verdict.over_looks)
        texts.append(f"{name_lead(verdict)}: {describe_points(size, verdict.confidence, over)}.")
    texts.append(describe_certainty(verdict))
    if verdict.verdict != "flat":
        texts.append(
            f"Statistically indistinguishable from the best of {verdict.levels} levels "
            f"({100 * verdict.confidence:.3g} % confidence{over_all_looks(verdict.over_looks)}): "
            f"{name_levels(verdict.optimal_range)}."
        )
    if verdict.verdict in ("rising", "falling"):
        beyond = f"above {format_mtd(verdict.last)}", "compared" if verdict.is_cut else "tested"
        if verdict.verdict == "falling":
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
    if verdict.verdict == "peaked":
        if {verdict.first, verdict.last} & {*levels}:
            return f"The score rises and falls inside the range; it is best {best}"
        return f"The score peaks {best}"
    if verdict.verdict in ("rising", "falling"):
        verb = "rises" if verdict.verdict == "rising" else "falls"
        if len(verdict.optimal_range) > 1 or verdict.peak_mtd not in (verdict.first, verdict.last):
            return f"The score {verb} overall with MTD; it is best {best}"
        if verb == "falls":
            return f"The score falls with MTD, from {first}, the lowest tested"
        compared = "within the run" if verdict.is_cut else "tested"
        return f"The score rises with MTD, up to {last}, the highest {compared}"
    if verdict.verdict == "flat":
        return f"MTD makes no difference between {first} and {last}"
    none = f"no effect of MTD between {first} and {last} is significant"
    return f"Inconclusive: {_find_obstacle(verdict) or none}"


def _find_obstacle(verdict: Verdict) -> str:
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
    if _find_obstacle(verdict):
        return "Not tested."
    over = over_all_looks(verdict.over_looks)
    tests = f"{format_p(verdict.p_value)} for a peak, {format_p(verdict.p_trend)} for a trend"
    if verdict.verdict == "peaked":
        tests = f"{state_p(verdict)} for a peak (multiplicity-adjusted)"
    elif verdict.verdict in ("rising", "falling"):
        tests = f"{state_p(verdict)} for a trend"
    elif verdict.verdict == "flat":
        tests = (
            f"Any two levels differ by less than {verdict.margin:g} points (equivalence tests at "
            f"{100 * (1 - verdict.confidence):.3g} %{over})"
        )
    last, above = len(verdict.leads) - 1, {}
    for place, lead in enumerate(verdict.leads[1:], start=1):
        roles = {"the lowest": place == last, "the default": lead.mtd == default}
        if named := [role for role, holds in roles.items() if holds]:
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


def name_lead(verdict: Verdict) -> str:
    """The level with the highest estimate less the runner-up, in words."""
    role = ", the runner-up" if len(verdict.leads) > 1 else ""
    return f"MTD {format_mtd(verdict.peak_mtd)} less MTD {format_mtd(verdict.leads[0].mtd)}{role}"


def list_above(above: Mapping[str, Estimate], level: float, over: str = "") -> str:
    """A sentence for each difference, by the name of what is exceeded, and a space after it.

    `over`: what is written after the intervals.
    """
    sizes = {name: describe_points(size, level, over) for name, size in above.items()}
    return "".join(f"Above {name}: {size}. " for name, size in sizes.items())


def describe_points(difference: Estimate, level: float, over: str = "") -> str:
    """A difference in points with its interval, where there is one, and `over` after it."""
    interval = describe_interval(difference, level, over)
    return f"{difference.mean:.2f} points{interval and f' ({interval})'}"


def describe_interval(difference: Estimate, level: float, over: str = "") -> str:
    """The interval of a difference, and `over` after it; empty where there is none."""
    if not math.isfinite(difference.low):
        return ""
    return f"{100 * level:.3g} % CI {difference.low:.2f} to {difference.high:.2f}{over}"


def format_p(value: float) -> str:
    """A p value with its sign, as in "p = 0.012" or "p < 0.001"; "no test" for NaN."""
    if math.isnan(value):
        return "no test"
    return f"p = {value:.2g}" if value >= 0.001 else "p < 0.001"


CONDITIONS = ("learning_rate", "steps")
"""Settings that determine how fast the weights change, on which an optimum in MTD may depend."""
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


def join_words(texts: list[str]) -> str:
    """Words with commas, and "and" before the last."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)
