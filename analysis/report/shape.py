"""The verdict on MTD as the first screen of a page states it: the shape, and how sure it is."""

from analysis.report.text import count
from analysis.runs import format_mtd
from analysis.verdict import Verdict, describe_points, format_p


def answer_shape(verdict: Verdict, settings: str = "") -> str:
    """The shape of the score over MTD in a few words, and the levels that may be the best.

    settings  of the lowest and the highest of these levels, such as "η 0.9 to 0.97", or empty.
    """
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    best = f"{_name_best(verdict)}{settings and f' ({settings})'}"
    if verdict.verdict == "peaked":
        return f"The score peaks {best}"
    if verdict.verdict in ("rising", "falling"):
        verb = "rises" if verdict.verdict == "rising" else "falls"
        if len(verdict.optimal_range) > 1 or verdict.best_is_inside:
            return f"The score {verb} overall with MTD; it is best {best}"
        end = f"up to {last}, the highest" if verb == "rises" else f"from {first}, the lowest"
        return f"The score {verb} with MTD, {end} tested"
    if verdict.verdict == "flat":
        return f"MTD makes no difference between {first} and {last}"
    if verdict.seeds < 2 and not verdict.known_errors:
        return "Inconclusive: one seed cannot separate MTD from chance"
    return f"Inconclusive: no effect of MTD between {first} and {last} is significant"


def _name_best(verdict: Verdict) -> str:
    """The levels that are indistinguishable from the best: one, or from where to where."""
    ends = dict.fromkeys(map(format_mtd, verdict.optimal_range or (verdict.peak_mtd,)))
    low, high = next(iter(ends)), next(reversed(ends))
    return f"at MTD {low}" if low == high else f"between MTD {low} and {high}"


def describe_certainty(verdict: Verdict) -> str:
    """How sure the shape is: the p value or the margin, the differences, and what they cover."""
    basis = _describe_basis(verdict)
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


def _describe_basis(verdict: Verdict) -> str:
    levels = count(verdict.levels, "level")
    if verdict.known_errors:
        return f"{levels}, standard errors as given"
    return f"{count(verdict.seeds, 'seed')}, {levels}"
