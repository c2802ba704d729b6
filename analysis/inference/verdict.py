"""What is computed of a question, and the shape of a score over MTD with its best levels."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from mtdlab.analysis.data.defaults import LEVEL, MARGIN, ReadScale
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.inference.blocks import Fit
from mtdlab.analysis.inference.intervals import UNKNOWN, Estimate
from mtdlab.analysis.inference.pairing import LevelScores, merge_levels
from mtdlab.analysis.inference.shapes import UNDECIDED, Shape, Shapes, ShapeTests

UNMEASURED: Literal["within margin"] = "within margin"
UNVARIED: Literal["history not shown to vary"] = "history not shown to vary"
Held = Literal["within margin", "history not shown to vary"]
"""Verdicts of differences within the margin between levels of history: whether that differed was
not measured; it was, and is not shown."""
LEAST_VARIED = 0.02
"""The least difference in cosine at which history counts as varied: at a temperature of 0.05 it
changes a logit by 0.4, and the weight of a negative by half."""


@dataclass(frozen=True)
class VariedHistory:
    """How much the history of keys differs between two levels.

    Attributes:
        size: similarity of keys in use and the online encoder's vectors (mean cosine) at the level
            with the least history, minus that at the level with the most; NaN if not measured.
        names: both levels as text; empty where it was not measured at two levels.
        keys: the least and the greatest number of keys (K) where that varied; else empty.
    """

    size: Estimate = UNKNOWN
    names: tuple[str, ...] = ()
    keys: tuple[int, ...] = ()

    @property
    def is_shown(self) -> bool:
        """Whether history is shown to vary."""
        return self.size.low >= LEAST_VARIED


@dataclass(frozen=True)
class Lead:
    """The level with the highest estimate minus another one, `mtd`, in points."""

    mtd: float
    size: Estimate


@dataclass(frozen=True)
class TrendBounds:
    """What is shown of a score that rises or falls, in points; its upper end is a level.

    Attributes:
        above: lower bound of the upper end minus the other one, simultaneous over all pairs of
            levels; at most 0 where it is not shown by these.
        below: upper bound of the best level minus the upper end, for all levels at once (Hsu 1984).
        within: by how much any two levels differ at most, from the upper end to the furthest level
            that may be the best; simultaneous over all pairs.
    """

    above: float
    below: float
    within: float


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
class Judgement:
    """What was computed of a question.

    Numbers are NaN where there is nothing to compare.

    Attributes:
        verdict: what is decided, in a word; "inconclusive" where nothing is.
        sentence: the answer as text; empty until a question has stated it.
        p_value: of what the verdict claims.
        seeds: how many are compared.
        items: evaluation items (graded pairs, queries) whose sampling error is counted: what holds
            is for items like these; 0: it is for these evaluation data.
        level, margin: confidence of tests and intervals, for a look that of this look alone;
            differences below the margin (in the unit of the score) are treated as no difference.
        within: where all differences are within the margin, the farthest end from 0 of the
            intervals that show it, at 1 - 2 (1 - level) each; else NaN.
        metric: the score, as it is compared; scale: how it was read from a table.
        over_looks: what holds over all looks; None for what is computed once.
        history: how much history differs between what is compared; None where that is not asked.
    """

    verdict: str = "inconclusive"
    sentence: str = ""
    p_value: float = math.nan
    seeds: int = 0
    items: int = 0
    level: float = LEVEL
    margin: float = MARGIN
    within: float = math.nan
    metric: str = "sts_test"
    scale: ReadScale = ""
    over_looks: OverLooks | None = None
    history: VariedHistory | None = None

    @property
    def score_format(self) -> ScoreFormat:
        """How scores and their differences are written."""
        return ScoreFormat(self.metric, self.margin, self.scale)

    @property
    def label(self) -> str:
        """What is decided, in a word on the score as it was read."""
        return self.score_format.say(self.verdict)

    @property
    def is_open(self) -> bool:
        """Whether nothing is decided."""
        return self.verdict == "inconclusive"

    @property
    def is_within(self) -> bool:
        """Whether all differences that are asked about are shown to be smaller than the margin."""
        return self.verdict in ("flat", "equivalent", UNMEASURED, UNVARIED)

    @property
    def p_shown(self) -> float:
        """The p value of what is shown."""
        return self.p_value

    @property
    def confidence(self) -> float:
        """The confidence of tests and intervals; over all looks, where there are several."""
        return self.over_looks.confidence if self.over_looks else self.level


@dataclass(frozen=True)
class Verdict(Judgement):
    """What a study shows about its score against MTD.

    Attributes:
        verdict: the shape; "inconclusive" where none is significant.
        p_value: of the test of a peak; p_trend: two-sided, of the slope over all levels and of the
            difference of the ends, the larger.
        peak_mtd: the level with the highest estimate, whatever the verdict, in steps.
        peak_interval: lowest and highest level of the optimal range; None unless peaked.
        optimal_range: levels that are statistically indistinguishable from the best: a confidence
            set that contains the best level with probability `level`.
        peak_excluded: whether a peak of at least the margin above both ends is excluded.
        levels: how many are compared.
        levels_run: how many levels have a score, those left out among them.
        left_out: levels beyond the run, which are not compared.
        first, last: lowest and highest level compared, in steps.
        leads: the level with the highest estimate minus each other one, from the runner-up to the
            lowest, in points; the intervals are simultaneous over all pairs of levels, so that
            they hold for levels that are chosen by the same scores.
        bounds: of a trend; None without one.
        known_errors: whether means with standard errors were compared, without seeds.
        for_these: the verdict for these items, without their sampling error; None if items is 0.
    """

    verdict: Shape | Held = "inconclusive"
    p_trend: float = math.nan
    peak_mtd: float = math.nan
    peak_interval: tuple[float, float] | None = None
    optimal_range: tuple[float, ...] = ()
    peak_excluded: bool = False
    levels: int = 0
    levels_run: int = 0
    left_out: tuple[float, ...] = ()
    first: float = math.nan
    last: float = math.nan
    leads: tuple[Lead, ...] = ()
    bounds: TrendBounds | None = None
    known_errors: bool = False
    for_these: "Verdict | None" = None

    @property
    def is_peaked(self) -> bool:
        """Whether a level inside the range is shown to be the best."""
        return self.verdict == "peaked"

    @property
    def is_trend(self) -> bool:
        """Whether the score is shown to rise or to fall, whatever it does at the upper end."""
        return self.verdict.startswith(("rising", "falling"))

    @property
    def is_undecided(self) -> bool:
        """Whether more seeds may show more: nothing is shown, or a trend whose end is open."""
        return self.verdict in UNDECIDED

    @property
    def end(self) -> float:
        """The upper end of a trend, in steps; NaN without a trend."""
        ends = {"rising": self.last, "falling": self.first}
        return ends.get(self.verdict.split(",")[0], math.nan)

    @property
    def p_shown(self) -> float:
        """The p value of the trend where there is one, else that of a peak."""
        return self.p_trend if self.is_trend else self.p_value

    @property
    def is_cut(self) -> bool:
        """Whether levels above the highest that is compared were run, beyond the run."""
        return any(level > self.last for level in self.left_out)


def judge_levels(levels: LevelScores, *, level: float = LEVEL, margin: float = MARGIN) -> Verdict:
    """The shape over MTD of tabulated scores.

    With one seed, one level or no score it is "inconclusive". Raises ValueError for a level outside
    [0.5, 1) or a margin that is not above 0.
    """
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
    return verdict


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
        bounds=_bound_trend(tests, fit, alpha, result),
        within=float(tests.bound_each(fit.part(None), alpha)[0]) if shape == "flat" else math.nan,
    )


def _bound_trend(tests: ShapeTests, fit: Fit, alpha: float, result: Shapes) -> TrendBounds | None:
    """The bounds of one fitted table, where its shape is a trend."""
    if not result.shape[0].startswith(("rising", "falling")):
        return None
    upper = tests.levels - 1 if result.slope[0] > 0 else 0
    places = np.append(np.flatnonzero(result.optimal[0]), upper)
    among = np.isin(np.arange(tests.levels), range(places.min(), places.max() + 1))
    return TrendBounds(
        float(tests.compare_with(fit, tests.levels - 1 - upper, alpha)[upper, 1]),
        float(result.shortfall[0, upper]),
        tests.bound_spread(fit, alpha, among),
    )
