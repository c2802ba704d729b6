"""Differences between means of configurations that a study asks about: which of them are shown.

Letters: S seeds, C configurations, K differences, B simulated tables.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mtdlab.analysis.data.runs import round_scores
from mtdlab.analysis.inference.blocks import Fit
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.shapes import LEAST_FLAT
from mtdlab.analysis.inference.simultaneous import Families, compare_own
from mtdlab.analysis.inference.verdict import Held, Judgement
from mtdlab.analysis.measures import Floats


@dataclass(frozen=True)
class Differences(Judgement):
    """What a study shows about K differences.

    Attributes:
        verdict: different where at least one is shown; equivalent where all are shown to be smaller
            than the margin.
        p_value: of all differences being 0.
        sizes: the differences, with intervals that are simultaneous for all of them.
    """

    verdict: Literal["different", "equivalent", "inconclusive"] | Held = "inconclusive"
    sizes: tuple[Estimate, ...] = ()

    @property
    def is_different(self) -> bool:
        """Whether at least one difference is shown."""
        return self.verdict == "different"


def judge_differences(
    scores: Floats,
    rows: Floats,
    covariance: Floats | None,
    *,
    items: int,
    level: float,
    margin: float,
) -> Differences:
    """What scores (S, C) show about the differences `rows` (K, C), each of which sums to 0.

    `scores` are as required by `Blocks`. `covariance` is that of the means due to the evaluation
    items, (C, C) in points squared, `items` their number; None and 0: not counted.
    """
    alpha = 1 - level
    family, fit = compare_own(scores, rows, covariance)
    # equal scores differ by rounding, and more than their runs scatter
    estimate, width = (round_scores(each, scores) for each in family.intervals(fit, alpha))
    sizes = np.column_stack([estimate, estimate - width, estimate + width])
    shown = bool((np.abs(estimate) > width).any())
    [scores_of_rows] = family.scores(fit.part(None))
    scores_of_rows = np.where(estimate == 0, 0.0, scores_of_rows)
    bound = bound_each(family, fit.part(None), alpha)[0]
    flat = not shown and len(scores) >= LEAST_FLAT and bound < margin
    return Differences(
        "different" if shown else "equivalent" if flat else "inconclusive",
        p_value=float(family.p_value(scores_of_rows.max(axis=-1))[0]),
        seeds=len(scores),
        items=items,
        level=level,
        margin=margin,
        within=float(bound) if flat else math.nan,
        sizes=tuple(Estimate(*size.tolist()) for size in sizes),
    )


def find_difference(family: Families, fit: Fit, alpha: float) -> NDArray[np.bool_]:
    """Whether B tables show at least one difference of a family at significance level alpha."""
    estimate, width = family.intervals(fit, alpha)
    return np.asarray((np.abs(estimate) > width).any(axis=-1))


def are_within(family: Families, fit: Fit, alpha: float, margin: float) -> NDArray[np.bool_]:
    """Whether B tables show that all differences are smaller than the margin, in points.

    Two one-sided tests (Schuirmann 1987) for each at alpha; all must be significant, so that no
    correction for their number is needed.
    """
    return np.asarray(bound_each(family, fit, alpha) < margin)


def bound_each(family: Families, fit: Fit, alpha: float) -> Floats:
    """The farthest end from 0 of the intervals on which `are_within` rests, in points, (B,)."""
    estimate, width = family.apart().intervals(fit, alpha)
    return np.asarray((np.abs(estimate) + width).max(axis=-1))
