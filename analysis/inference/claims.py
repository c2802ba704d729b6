"""Whether paired differences bear out a claim of a paper, contradict it, or leave it open.

Letters: S seeds, K differences.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from scipy import special

from mtdlab.analysis.data.defaults import ALPHA, LEVEL
from mtdlab.analysis.inference.intervals import UNKNOWN, Estimate, share_level
from mtdlab.analysis.inference.pairing import Paired
from mtdlab.analysis.inference.power import MOST_SEEDS, POWER, Needed
from mtdlab.analysis.inference.verdict import Judgement

ClaimVerdict = Literal[
    "replicated",
    "as claimed but less than half as large as printed",
    "contradicted",
    "less than half as large as printed (direction open)",
    "undecided",
    "not tested",
]
SMALLER: ClaimVerdict = "as claimed but less than half as large as printed"
SMALL: ClaimVerdict = "less than half as large as printed (direction open)"
AS_CLAIMED: tuple[ClaimVerdict, ...] = ("replicated", SMALLER)


@dataclass(frozen=True)
class ClaimJudgement(Judgement):
    """What a study shows of a claim.

    Attributes:
        p_value: of the claim; its verdict is one of `AS_CLAIMED` where this is at most 0.05.
        p_against: of what is held against it, for all differences together: that it is
            contradicted, or else that it is less than half as large as printed.
        place: which of the differences decides: that least like the claim.
        size: that difference, in points or in the unit of its measure, with the interval by which
            the verdict is decided: at 95 %, or corrected for the number of differences where it is
            not replicated; `level` is its confidence.
        by_equivalence: whether what is shown is that a difference is small.
    """

    verdict: ClaimVerdict = "not tested"
    p_against: float = math.nan
    place: int = 0
    size: Estimate = field(default=UNKNOWN)
    by_equivalence: bool = False


def judge_claim(
    differences: Sequence[Paired],
    *,
    alike: float | None = None,
    least: float = 0.0,
    small: Sequence[float] = (),
) -> ClaimJudgement:
    """What K differences of two seeds or more show of the claim that each is above `least`.

    Replicated where the 95 % interval of each is (intersection-union, so that the number of
    differences needs no correction); `SMALLER` where one of them is shown to be nearer to 0 than
    its value of `small`, which is 0 where that cannot be. Else contradicted where one lies below
    `least`, and `SMALL` where one is shown to be nearer to 0 than its value of `small`; both
    corrected for their number (Bonferroni).

    With the margin `alike` the claim is that each is nearer to 0 than this, by two one-sided tests
    at 2.5 % each (Schuirmann 1987), and contradicted where the interval of one lies beyond it.
    """
    count, margin = len(differences), alike
    if margin is None:
        claimed = [2 * paired.find_p_above(least) for paired in differences]
        below = [2 * count * paired.find_p_above(-least, -1) for paired in differences]
        within = [
            2 * count * _find_p_within(paired, size) if size > 0 else 1.0
            for paired, size in zip(differences, small or [0.0] * count, strict=True)
        ]
    else:
        claimed = [2 * _find_p_within(paired, margin) for paired in differences]
        within = [1.0] * count
        below = [
            2 * count * min(paired.find_p_above(margin, sign) for sign in (1, -1))
            for paired in differences
        ]
    verdict: ClaimVerdict = "undecided"
    place = int(np.argmax(claimed))
    is_claimed, is_near = claimed[place] <= ALPHA, min(within) <= ALPHA
    if is_claimed and not is_near:
        verdict = "replicated"
    elif min(below) <= ALPHA:
        verdict, place = "contradicted", int(np.argmin(below))
    elif is_near:
        verdict, place = SMALLER if is_claimed else SMALL, int(np.argmin(within))
    decisive = differences[place]
    level = LEVEL if verdict == "replicated" else share_level(count)
    return ClaimJudgement(
        verdict=verdict,
        p_value=min(max(claimed), 1.0),
        p_against=min(*(below if verdict == "contradicted" else within), 1.0),
        seeds=len(decisive.values),
        items=decisive.items,
        place=place,
        size=decisive.estimate(level),
        level=level,
        by_equivalence=verdict == SMALL or (margin is not None and verdict == "replicated"),
    )


def _find_p_within(paired: Paired, margin: float) -> float:
    """The p value of a mean nearer to 0 than a margin: of the worse of two one-sided tests."""
    return max(paired.find_p_above(-margin, sign) for sign in (1, -1))


def find_need(
    paired: Paired, alike: float | None = None, small: float = 0.0, least: float = 0.0
) -> Needed:
    """The fewest seeds with which a difference as estimated is decided with 80 % power.

    Where no number is enough with these items: how many are needed at least. The bounds are as for
    `judge_claim`.
    """
    mean = abs(float(paired.values.mean()) - least)
    distance = max(mean, small - mean) if alike is None else abs(mean - alike)
    of_run = float(paired.values.var(ddof=1))
    seeds = np.arange(2, MOST_SEEDS + 1)
    quantiles = special.stdtrit(seeds - 1, (1 + LEVEL) / 2) + special.ndtri(POWER)
    enough = quantiles * np.sqrt(of_run / seeds + paired.of_items) <= distance
    if distance > 0 and enough.any():
        return Needed(int(seeds[enough.argmax()]))
    normal = special.ndtri((1 + LEVEL) / 2) + special.ndtri(POWER)
    if not paired.items or distance <= 0:
        return Needed(None)
    return Needed(None, math.ceil(paired.items * (normal / distance) ** 2 * paired.of_items))


def judge_by_holm(judged: Sequence[ClaimJudgement]) -> list[bool]:
    """Whether each of several verdicts holds with one error rate of 5 % for all (Holm 1979).

    Support of claims and what is held against them are a family each, at 2.5 %: p values are twice
    those of one-sided tests. A claim that was not tested takes no share.
    """
    claimed = _reject_by_holm([each.p_value for each in judged])
    against = _reject_by_holm([each.p_against for each in judged])
    return [
        (each.verdict not in AS_CLAIMED or claimed[place])
        and (each.verdict == "replicated" or against[place])
        for place, each in enumerate(judged)
    ]


def _reject_by_holm(p_values: Sequence[float]) -> list[bool]:
    order = [place for place in np.argsort(p_values) if not math.isnan(p_values[place])]
    found = [False] * len(p_values)
    for rank, place in enumerate(order):
        if p_values[place] > ALPHA / (len(order) - rank):
            break
        found[place] = True
    return found
