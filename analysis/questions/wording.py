"""Differences, intervals, p values and looks as text."""

import math
import re
from collections.abc import Mapping

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.metric import POINTS, ScoreFormat
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.verdict import Judgement, OverLooks

PERCENT = f"{100 * LEVEL:g} %"
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_MOST_CHARACTERS = 240


def clean(text: str, *, most: int = _MOST_CHARACTERS) -> str:
    """Text that HTML can hold: no control characters, and at most so many in all."""
    plain = _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
    return plain if len(plain) <= most else plain[: most - 1] + "…"


def join_words(texts: list[str]) -> str:
    """Words with commas, and "and" before the last."""
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def capitalise(text: str) -> str:
    """The text with a capital as its first letter; the others stay as they are."""
    return text[:1].upper() + text[1:]


def join_sentences(*texts: str) -> str:
    """The texts that are not empty, with a space between them."""
    return " ".join(filter(None, texts))


def describe_items(items: int) -> str:
    """What an interval covers beside seeds, to be written after their number; else empty."""
    return f" and {items:,} evaluation items" if items else ", for these items"


def format_p(value: float) -> str:
    """A p value with its sign, as in "p = 0.012" or "p < 0.001"; "no test" for NaN."""
    if math.isnan(value):
        return "no test"
    return f"p = {value:.2g}" if value >= 0.001 else "p < 0.001"


def state_p(judged: Judgement) -> str:
    """The p value of what is shown as text; at a look also that over all looks so far."""
    p_value, over = judged.p_shown, judged.over_looks
    if over is None or over.taken < 2:
        return format_p(p_value)
    text = f"{format_p(p_value)} at this look"
    return text if math.isnan(over.p_value) else f"{text}, {format_p(over.p_value)} over all looks"


def describe_interval(
    difference: Estimate, level: float, over: str = "", *, write: ScoreFormat = POINTS
) -> str:
    """The interval of a difference, and `over` after it; empty where there is none."""
    if not math.isfinite(difference.low):
        return ""
    return f"{100 * level:.3g} % CI {write.interval(difference.low, difference.high)}{over}"


def describe_size(difference: Estimate, level: float, over: str = "", *, write: ScoreFormat) -> str:
    """A difference of scores with its interval, where there is one, and `over` after it."""
    interval = describe_interval(difference, level, over, write=write)
    return f"{write.amount(write.as_read(difference.mean))}{interval and f' ({interval})'}"


def list_above(above: Mapping[str, Estimate], judged: Judgement) -> str:
    """A sentence for each difference, by the name of what is exceeded, and a space after it."""
    write, over = judged.score_format, over_all_looks(judged.over_looks)
    return "".join(
        f"{write.say('Above')} {name}: "
        f"{describe_size(size, judged.confidence, over, write=write.unsigned)}. "
        for name, size in above.items()
    )


def describe_equivalence(judged: Judgement) -> str:
    """The tests, and the intervals, by which differences are within the margin, as text."""
    alpha, over = 1 - judged.confidence, over_all_looks(judged.over_looks)
    return (
        f"two one-sided tests at {100 * alpha:.3g} % each{over}: every {100 * (1 - 2 * alpha):.3g} "
        f"% CI is within ±{judged.score_format.rounded_up(judged.within)}"
    )


def state_equivalence(judged: Judgement) -> str:
    """A sentence on that beside other intervals of the differences; empty where none are within."""
    if not judged.is_within:
        return ""
    margin = judged.score_format.stated_margin
    return (
        f"That they are within the margin of {margin} rests on {describe_equivalence(judged)}; the "
        "other intervals decide what differs from 0."
    )


def over_all_looks(looks: OverLooks | None) -> str:
    """The words after a confidence or an error rate that holds over all looks; else empty."""
    return ", over all looks" if looks else ""


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
            "to be stated too large; mtdlab confirm measures them again with new seeds."
        )
    return text


def describe_recorded(trials: int) -> str:
    """When something was recorded, as text; `trials` had started by then."""
    if not trials:
        return "before trial 1"
    return f"after {trials:,} trial{'s' if trials > 1 else ''} had started"
