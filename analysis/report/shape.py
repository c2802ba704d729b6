"""The verdict on MTD as the first screen of a page states it: the shape, and how sure it is."""

from analysis.report.text import count
from analysis.runs import format_mtd
from analysis.verdict import Verdict, describe_points, format_p


def answer_shape(verdict: Verdict) -> str:
    """The shape of the score over MTD in a few words."""
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    if verdict.verdict == "peaked":
        return f"The score peaks at MTD {format_mtd(verdict.peak_mtd)}"
    if verdict.verdict in ("rising", "falling") and verdict.best_is_inside:
        inner = format_mtd(verdict.peak_mtd)
        verb = "rises" if verdict.verdict == "rising" else "falls"
        return f"The score {verb} overall with MTD; its highest mean is at {inner}"
    if verdict.verdict == "rising":
        return f"The score rises with MTD, up to {last}, the highest tested"
    if verdict.verdict == "falling":
        return f"The score falls with MTD, from {first}, the lowest tested"
    if verdict.verdict == "flat":
        return f"MTD makes no difference between {first} and {last}"
    if verdict.seeds < 2 and not verdict.known_errors:
        return "Inconclusive: one seed cannot separate MTD from chance"
    return f"Inconclusive: no effect of MTD between {first} and {last} is significant"


def describe_certainty(verdict: Verdict) -> str:
    """How sure the shape is: the p value or the margin, the differences, and what they cover."""
    basis = describe_basis(verdict)
    if verdict.verdict == "peaked":
        rise, fall = (
            f"{each.mean:.2f} points (at least {each.low:.2f})"
            for each in (verdict.rise, verdict.fall)
        )
        return (
            f"{format_p(verdict.p_value)} (multiplicity-adjusted); fitted lines rise by {rise} up "
            f"to MTD {format_mtd(verdict.turn)} and fall by {fall} from there; {basis}."
        )
    if verdict.verdict in ("rising", "falling"):
        change = describe_points(verdict.change, verdict.level)
        return (
            f"{format_p(verdict.p_trend)} for the slope; change over the range {change}; {basis}."
        )
    if verdict.verdict == "flat":
        return (
            f"Any two levels differ by less than {verdict.margin:g} points (equivalence tests at "
            f"{100 * (1 - verdict.level):.3g} %); {basis}."
        )
    if (verdict.seeds < 2 and not verdict.known_errors) or verdict.levels < 2:
        return f"Not tested; {basis}."
    return (
        f"{format_p(verdict.p_value)} for a peak, {format_p(verdict.p_trend)} for a slope; {basis}."
    )


def describe_basis(verdict: Verdict) -> str:
    """What the certainty covers: seeds, levels and, where they are counted, evaluation items."""
    levels = count(verdict.levels, "level")
    if verdict.known_errors:
        return f"{levels}, standard errors as given"
    basis = f"{count(verdict.seeds, 'seed')}, {levels}"
    if verdict.seeds < 2 or verdict.levels < 2:
        return basis
    if verdict.items:
        return f"{basis}; covers seeds and {count(verdict.items, 'evaluation item')}"
    return f"{basis}; covers seeds, for these evaluation data"
