"""The verdict on MTD as the first screen of a page states it: the shape, and how sure it is."""

import math

from analysis.intervals import Estimate
from analysis.report.text import LEVEL, count
from analysis.runs import format_mtd
from analysis.verdict import Verdict, format_p


def answer_shape(verdict: Verdict) -> str:
    """The shape of the score over MTD in a few words."""
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    if verdict.verdict == "peaked":
        return f"The score peaks at MTD {format_mtd(verdict.peak_mtd)}"
    if verdict.verdict in ("rising", "falling") and verdict.best_is_inside:
        inner = format_mtd(verdict.peak_mtd)
        verb = "rises" if verdict.verdict == "rising" else "falls"
        return f"The score {verb} with MTD on average, but its highest mean is at {inner}"
    if verdict.verdict == "rising":
        return f"The score rises with MTD, up to {last}, the highest tested"
    if verdict.verdict == "falling":
        return f"The score falls with MTD, from {first}, the lowest tested"
    if verdict.verdict == "flat":
        return f"MTD makes no difference between {first} and {last}"
    if verdict.seeds < 2:
        return "Inconclusive: one seed cannot separate MTD from chance"
    return f"Inconclusive: no effect of MTD between {first} and {last} is significant"


def describe_certainty(verdict: Verdict) -> str:
    """How sure the shape is: the p value or the margin, the differences, the seeds."""
    rise, fall = (describe_points(each, verdict.level) for each in (verdict.rise, verdict.fall))
    basis = f"{count(verdict.seeds, 'seed')}, {count(verdict.levels, 'level')}"
    if verdict.verdict == "peaked":
        return (
            f"{format_p(verdict.p_value)} (multiplicity-adjusted); {rise} above the lowest "
            f"MTD and {fall} above the highest; {basis}."
        )
    if verdict.verdict in ("rising", "falling"):
        best = (
            f"{rise} above the lowest"
            if verdict.verdict == "rising"
            else f"{fall} above the highest"
        )
        if verdict.best_is_inside:
            best = f"{rise} above the lowest and {fall} above the highest"
        return f"{format_p(verdict.p_trend)} for the slope; the best level is {best} MTD; {basis}."
    if verdict.verdict == "flat":
        return (
            f"Every level lies within {verdict.margin:g} points of their mean (equivalence tests "
            f"at {100 * (1 - verdict.level):.3g} %); {basis}."
        )
    if verdict.seeds < 2 or verdict.levels < 2:
        return f"Not tested; {basis}."
    return (
        f"{format_p(verdict.p_value)} for a peak, {format_p(verdict.p_trend)} for a slope; {basis}."
    )


def describe_points(difference: Estimate, level: float = LEVEL) -> str:
    """A difference in points with its interval, where there is one."""
    if not math.isfinite(difference.low):
        return f"{difference.mean:.2f} points"
    interval = f"{100 * level:.3g} % CI {difference.low:.2f} to {difference.high:.2f}"
    return f"{difference.mean:.2f} points ({interval})"
