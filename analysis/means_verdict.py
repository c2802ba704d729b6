"""The verdict on level means: those fields of a study's verdict that need no single runs."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import special

from analysis.defaults import MARGIN
from analysis.level_means import (
    LEVEL,
    Floats,
    LevelMeans,
    TwoLines,
    compare_two_lines,
    draw_normal,
    equality_p,
    find_best_levels,
    quantile,
    slope_contrast,
    z_values,
)
from analysis.runs import format_mtd

Kind = Literal["flat", "rising", "falling", "peaked", "inconclusive"]


@dataclass(frozen=True)
class MeansVerdict:
    """The shape of level means, with its tests.

    verdict        the shape; sentence: the same as text, with its numbers.
    p_value        of the two-line test, or of the slope if the verdict is rising or falling.
    peak_mtd       the level with the highest mean; peak_excluded: whether a peak of at least the
                   margin above the better end is excluded, None if undecided.
    optimal_range  levels that are statistically indistinguishable from the best.
    two_lines      the test for a peak; trend: z of the slope over all levels.
    p_equal        of the test that all means are equal; left_out: the level whose removal gives the
                   largest such p value, p_left_out: that p value.
    seeds          0: unknown. peak_interval, seeds_for_power: None, since they need single runs.
    """

    verdict: Kind
    sentence: str
    p_value: float
    peak_mtd: float
    peak_excluded: bool | None
    optimal_range: tuple[float, ...]
    levels: int
    margin: float
    two_lines: TwoLines
    trend: float
    p_equal: float
    left_out: float
    p_left_out: float
    level: float = LEVEL
    seeds: int = 0
    peak_interval: tuple[float, float] | None = None
    seeds_for_power: int | None = None


def judge_means(data: LevelMeans, *, margin: float = MARGIN) -> MeansVerdict:
    """The shape of the means, at 95 % confidence.

    margin  points below which a difference is treated as no difference.

    Flat: the 95 % interval of every level's difference from the weighted mean lies within the
    margin. Else peaked: the two-line test is significant. Else rising or falling: the slope over
    all levels is significant (two-sided) and the last (first) mean is less than the margin below
    the highest mean. Else inconclusive.
    Raises ValueError for fewer than 3 levels or a margin that is not above 0.
    """
    if len(data.frame) < 3:
        raise ValueError(f"{len(data.frame)} levels; a shape needs at least 3")
    if not margin > 0:
        raise ValueError(f"margin is {margin:g}; it must be above 0 points")
    distance, means, errors = data.distance, data.means, data.errors
    normal = draw_normal(len(means))
    lines = compare_two_lines(data, normal)
    whole = slope_contrast(distance, errors, 0, len(means) - 1)
    trend = float(z_values(whole[None], means, errors)[0])
    kind = _classify(data, lines, trend, margin)
    without = [equality_p(np.delete(means, at), np.delete(errors, at)) for at in range(len(means))]
    sloped = kind in ("rising", "falling")
    left_out = float(distance[int(np.argmax(without))])
    return MeansVerdict(
        verdict=kind,
        sentence=_describe(kind, data, lines, trend, margin),
        p_value=_two_sided(trend) if sloped else lines.p,
        peak_mtd=float(distance[int(means.argmax())]),
        peak_excluded=_is_peak_excluded(kind, means, errors, margin),
        optimal_range=find_best_levels(data, normal),
        levels=len(means),
        margin=margin,
        two_lines=lines,
        trend=trend,
        p_equal=equality_p(means, errors),
        left_out=left_out,
        p_left_out=max(without),
    )


def _two_sided(z: float) -> float:
    return float(2 * special.ndtr(-abs(z)))


def _classify(data: LevelMeans, lines: TwoLines, trend: float, margin: float) -> Kind:
    means = data.means
    if _is_flat(data, margin):
        return "flat"
    if lines.p < 1 - LEVEL:
        return "peaked"
    if _two_sided(trend) < 1 - LEVEL:
        end = means[-1] if trend > 0 else means[0]
        if means.max() - end < margin:
            return "rising" if trend > 0 else "falling"
    return "inconclusive"


def _is_flat(data: LevelMeans, margin: float) -> bool:
    """Whether every level is equivalent to the weighted mean within the margin (95 % intervals)."""
    means, errors = data.means, data.errors
    share = 1 / errors**2 / np.sum(1 / errors**2)
    contrasts = np.eye(len(means)) - share
    half = quantile(1 - (1 - LEVEL) / 2) * np.linalg.norm(contrasts * errors, axis=1)
    return bool((np.abs(contrasts @ means) + half < margin).all())


def _is_peak_excluded(kind: Kind, means: Floats, errors: Floats, margin: float) -> bool | None:
    """Whether no level exceeds the better end by the margin; None if undecided.

    True if every one-sided 95 % bound of the difference from the end lies below the margin. All
    must
    be significant, so that no correction for their number is needed.
    """
    if kind not in ("rising", "falling"):
        return {"flat": True, "peaked": False}.get(kind)
    end = -1 if kind == "rising" else 0
    others = np.delete(np.arange(len(means)), end)
    half = quantile(LEVEL) * np.hypot(errors[others], errors[end])
    return True if (means[others] - means[end] + half < margin).all() else None


def _describe(kind: Kind, data: LevelMeans, lines: TwoLines, trend: float, margin: float) -> str:
    """The verdict as a sentence with its numbers."""
    first, last = (format_mtd(float(data.distance[at])) for at in (0, -1))
    if kind == "flat":
        return (
            f"The means are flat from MTD {first} to {last}: every level is equivalent to the "
            f"weighted mean within ±{margin:g} points (95 % CI)."
        )
    if kind in ("rising", "falling"):
        verb = "rise" if kind == "rising" else "fall"
        return f"The means {verb} with MTD from {first} to {last} (z = {trend:.2f} for the slope)."
    tests = (
        f"the rise up to MTD {format_mtd(lines.mtd)} has z = {lines.rise:.2f} (critical value "
        f"{lines.critical_rise:.2f}), the fall from it z = {lines.fall:.2f} (critical value "
        f"{lines.critical_fall:.2f})"
    )
    if kind == "peaked":
        return f"The means peak between MTD {first} and {last}: {tests}."
    return f"The means show no significant peak between MTD {first} and {last}: {tests}."
