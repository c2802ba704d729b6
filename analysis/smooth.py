"""A smooth curve of the score over log MTD, with a simultaneous confidence band.

Letters: S seeds, L levels of MTD, G points of the curve.
"""

import numpy as np
import pandas as pd
import scipy

from analysis.blocks import Floats
from analysis.inference import shape_tests

_COLUMNS = ["mtd", "mean", "low", "high"]
_MOST_KNOTS = 5
_POINTS = 60


def natural_spline(knots: Floats, points: Floats) -> Floats:
    """Basis of the natural cubic splines with the given knots, at points (G,): (G, knots).

    Column i is 1 at knot i and 0 at the others (mgcv's "cr"); two knots give a line.
    """
    if len(knots) == 2:
        share = (points - knots[0]) / (knots[1] - knots[0])
        return np.column_stack([1 - share, share])
    spline = scipy.interpolate.CubicSpline(knots, np.eye(len(knots)), bc_type="natural")
    return np.asarray(spline(points), dtype=np.float64)


def place_knots(places: Floats, most: int = _MOST_KNOTS) -> Floats:
    """Knots at evenly spaced quantiles of the distinct places: at least 2, at most `most`, and
    fewer than there are places."""
    distinct = np.unique(places)
    count = min(most, max(2, len(distinct) - 1))
    return np.quantile(distinct, np.linspace(0, 1, count))


def compute_smooth(
    scores: Floats, distance: Floats, items: Floats | None = None, *, level: float = 0.95
) -> pd.DataFrame:
    """Natural cubic spline of at most 4 degrees of freedom through the levels, seeds as blocks.

    scores  (S, L) with NaN where a run is missing, as required by `Blocks`; distance  (L,).
    items   `item_covariance`; without it the band holds for these evaluation data.

    Returns mtd, mean (less the mean over levels), low, high at 60 points evenly spaced in log MTD.
    low and high are simultaneous for all points of the spline that fits the true levels best
    (Ruppert, Wand and Carroll 2003, section 6.5, with the critical value of
    `analysis.simultaneous`); they do not cover the bias of the spline, for example at a kink. No
    rows with fewer than 4 levels or 2 seeds.
    """
    if len(distance) < 4 or len(scores) < 2:
        return pd.DataFrame(columns=_COLUMNS, dtype="float64")
    places = np.log(distance)
    points = np.linspace(places[0], places[-1], _POINTS)
    knots = place_knots(places)
    at_levels = natural_spline(knots, places)
    # a point of the curve less the mean over levels is a contrast of the levels
    weights = (natural_spline(knots, points) - at_levels.mean(axis=0)) @ np.linalg.pinv(at_levels)
    tests = shape_tests(scores, distance, items)
    curve = tests.simultaneous(weights)
    comparison = curve.compare(tests.fit(scores))
    width = comparison.half_width(curve.critical(1 - level))
    mean = comparison.estimate
    columns = {"mtd": np.exp(points), "mean": mean, "low": mean - width, "high": mean + width}
    return pd.DataFrame(columns)
