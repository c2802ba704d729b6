"""Looks at the verdict of a study that adds seeds until the verdict is decided.

Their nominal significance levels are those of a test that is repeated while data accumulate. Alpha
spending (Lan and DeMets, Biometrika 1983): a function of the information fraction t in (0, 1]
gives the part of the error probability alpha that is spent up to t. The critical value of look k is
chosen so that z statistics with cov(Z_i, Z_j) = sqrt(t_i / t_j), i <= j, first exceed their
critical value at look k with the probability that is spent at that look (Armitage, McPherson and
Rowe, JRSS A 1969). `nominal` is its tail probability, with which the p value of look k is compared
(the significance-level approach): exact for normal statistics, approximate for others.

Letters: K looks, G nodes of the integration.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray
from scipy import special

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.inference.verdict import OverLooks
from mtdlab.analysis.measures import Floats

_NODES = 400
_WIDEST = 9.0
"""Standard deviations beyond which the density of a statistic is set to 0."""
_PACE = 5.0
"""The seeds after which 1/e of an error is spent, where no number of looks is planned."""
_LEAST = 1e-16
"""Smaller probabilities are not spent: the critical value is infinite."""


@dataclass(frozen=True)
class Boundaries:
    """Critical values and significance levels of K looks.

    Attributes:
        cumulative: error probability spent up to each look, (K,).
        critical: critical value of a z statistic, (K,).
        nominal: p value at or below which a look is significant, (K,); 0 where nothing is spent.
    """

    cumulative: Floats
    critical: Floats
    nominal: Floats


def compute_boundaries(fractions: Floats, spent: Floats) -> Boundaries:
    """Boundaries of looks at information fractions that rise in (0, 1].

    `spent` is the error probability up to each, (K,). Stopping for futility is non-binding: the
    error rate holds whether or not a study stops for it.
    """
    critical, paths = np.full(len(fractions), np.inf), _Paths()
    for look, share in enumerate(np.diff(spent, prepend=0.0)):
        if share > _LEAST:
            critical[look] = _solve(paths, fractions[look], share)
        paths.go_on(fractions[look], critical[look])
    return Boundaries(spent, critical, np.asarray(special.ndtr(-critical)))


@lru_cache(maxsize=1024)
def find_open_nominal(looks: tuple[int, ...], level: float) -> Floats:
    """The one-sided p values at or below which K looks are significant, (K,).

    `looks` are the numbers of seeds so far, at least 2 and in rising order; how many follow need
    not be known. After n seeds level · exp(-5 / n) is spent (docs/explanation/evidence/decide.csv
    has other ways). The statistics are t statistics of few seeds: with the number of seeds as
    information they would spend up to 1.3 times that, with 1.5 fewer at most 1.11 times, in
    simulations, which is below `level` up to 40 seeds.
    """
    seeds = np.array(looks, dtype=np.float64)
    spent, information = level * np.exp(-_PACE / seeds), seeds - 1.5
    return compute_boundaries(information / information[-1], spent).nominal


# a tenth of a second, which a process that looks at nothing does without
_find_nodes = lru_cache(np.polynomial.legendre.leggauss)


class _Paths:
    """The density of paths of S = Z sqrt(t) that have not crossed a critical value so far."""

    def __init__(self) -> None:
        self._nodes, self._weights = _find_nodes(_NODES)
        self._fraction = 0.0
        self._points, self._mass = np.zeros(1), np.ones(1)

    def exceed(self, z: float, fraction: float) -> float:
        """The probability that a path gets here, and is above z at the next look."""
        step = np.sqrt(fraction - self._fraction)
        tail = special.ndtr((self._points - z * np.sqrt(fraction)) / step)
        return float(self._mass @ tail)

    def go_on(self, fraction: float, critical: float) -> None:
        """Leave out the paths that cross at the next look."""
        step, scale = np.sqrt(fraction - self._fraction), np.sqrt(fraction)
        high, low = min(critical, _WIDEST) * scale, -_WIDEST * scale
        middle, half = (high + low) / 2, (high - low) / 2
        reached = middle + half * self._nodes
        density = np.exp(-0.5 * ((reached[:, None] - self._points) / step) ** 2) @ self._mass
        self._mass = half * self._weights * density / (step * np.sqrt(2 * np.pi))
        self._points, self._fraction = reached, fraction


def _solve(paths: _Paths, fraction: float, share: float) -> float:
    """The critical value of z that paths exceed at the next look with probability `share`."""

    def excess(z: float) -> float:
        return float(np.log(max(paths.exceed(z, fraction), 1e-300)) - np.log(share))

    return float(scipy.optimize.brentq(excess, -_WIDEST, 40.0, xtol=1e-10))


LEADING_LEVEL = 0.5
"""Confidence of the optimal range whose levels get the next seeds first; error rates do not depend
on it."""


def boundaries_at(seeds: Sequence[int], alpha: float) -> Boundaries:
    """The boundaries of looks after these numbers of seeds, in rising order.

    Alpha is spent linearly (Kim and DeMets, Biometrika 1987, with the power 1). Error rates are
    simulated in tests/evidence/sequential.py.
    """
    fractions = np.array(seeds) / seeds[-1]
    return compute_boundaries(fractions, alpha * fractions)


def find_p_over_looks(p_value: float, seeds: Sequence[int], look: int, alpha: float) -> float:
    """The p value of a look, number `look` from 1, over all looks up to it, by stage-wise ordering.

    The probability, where nothing differs, that the test is significant at an earlier look, or is
    not and has a smaller p value than `p_value` at this one (Jennison and Turnbull, Group
    Sequential Methods, 2000, section 8.4). Exact for normal statistics, as the boundaries are.
    `seeds` are those of all planned looks, in rising order, and alpha is the error rate of all
    looks together.
    """
    fractions, paths = np.array(seeds) / seeds[-1], _Paths()
    bounds = boundaries_at(seeds, alpha)
    for earlier in range(look - 1):
        paths.go_on(fractions[earlier], bounds.critical[earlier])
    spent = bounds.cumulative[look - 2] if look > 1 else 0.0
    return float(spent) + paths.exceed(float(-special.ndtri(p_value)), fractions[look - 1])


def planned_looks(study: StudyFrames) -> tuple[int, ...]:
    """The numbers of seeds of a study's looks; empty where its verdict is computed once."""
    looks = tuple(study.plans[-1].values["looks"]) if study.plans else ()
    return looks if len(looks) > 1 else ()


def over_looks_of(study: StudyFrames) -> OverLooks | None:
    """The confidence and p value over all looks of a study; None for a verdict computed once."""
    planned, taken = planned_looks(study), len(study.looks)
    if not planned or taken > len(planned):
        return None
    over_looks = OverLooks(len(planned), taken, 1 - study.alpha, math.nan, is_early=False)
    if not taken:
        return over_looks
    last = study.looks.iloc[-1]
    is_early = last["decision"] == "decided" and taken < len(planned)
    p_value = float(last["p_value"])
    over = find_p_over_looks(p_value, planned, taken, study.alpha) if p_value > 0 else math.nan
    return replace(over_looks, p_value=over, is_early=is_early)


def lead(optimal: NDArray[np.bool_], effects: Floats) -> NDArray[np.bool_]:
    """Those that may be the best, and the two highest, (..., C): alone none can be compared."""
    second = np.sort(effects, axis=-1)[..., -2:-1]
    return np.asarray(optimal | (effects >= second))


def leading_levels(levels: Sequence[float], optimal: Sequence[float]) -> tuple[float, ...]:
    """The levels, in rising order, that get the next seeds first.

    All levels from the lowest to the highest optimal one (or near one; at least one is optimal),
    their neighbours, and the two ends, on which both slopes of the test of a peak depend. With few
    runs these are all levels. A level that is left out at one look is only postponed: by the last
    look all levels have all seeds.
    """
    place = np.log(levels)
    at = [int(np.abs(place - np.log(level)).argmin()) for level in optimal]
    last = len(levels) - 1
    chosen = {0, last, *range(max(min(at) - 1, 0), min(max(at) + 1, last) + 1)}
    return tuple(levels[index] for index in sorted(chosen))


def judged_trials(study: StudyFrames) -> tuple[pd.DataFrame, float]:
    """The trials that a study's verdict is computed from, and the significance level.

    For a study that adds seeds, the trials and the nominal level of its last look, since later runs
    belong to the next look. For other studies, all trials and alpha.
    """
    if len(study.looks):
        last = study.looks.iloc[-1]
        trials = study.trials[study.trials["number"].isin(last["trials"])]
        return trials, float(last["alpha"])
    looks = planned_looks(study)
    return study.trials, float(
        boundaries_at(looks, study.alpha).nominal[0]
    ) if looks else study.alpha
