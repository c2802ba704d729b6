"""Level means with bands, and their verdict where the single runs are not available.

Letters: L levels, K contrasts, B simulated curves. A band is assumed to be a 95 % interval of its
mean: half its width divided by 1.96 is the standard error, which is treated as known. Levels are
assumed to be independent, since their seeds are unknown. The tests are those of runs
(`analysis.inference.shapes`), with these standard errors in place of estimated ones.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from analysis.data.level_means import LevelMeans
from analysis.inference.blocks import Fit, KnownErrors
from analysis.inference.shapes import ShapeTests
from analysis.inference.simultaneous import Null
from analysis.inference.verdict import Verdict, judge, write_sentence
from analysis.measures import Floats

_MEANS_DRAWN = 50_000


def null_means(errors: Floats) -> Null:
    """50,000 curves of means with these standard errors (L,), simulated with a fixed seed."""
    known = KnownErrors(errors)

    def simulate() -> tuple[Fit, ...]:
        noise = np.random.default_rng(0).standard_normal((_MEANS_DRAWN, len(errors)))
        return (known.fit(noise * errors),)

    return Null(known, ("known errors", errors), simulate)


@dataclass(frozen=True)
class MeansVerdict:
    """The verdict on level means, and the test of whether the levels differ at all.

    Attributes:
        p_equal: of the test that all means are equal (Cochran 1954).
        left_out: the level whose removal gives the largest such p value, p_left_out: that p value.
    """

    verdict: Verdict
    p_equal: float
    left_out: float
    p_left_out: float


def judge_means(data: LevelMeans) -> MeansVerdict:
    """The shape of three or more means by the rules for runs (`analysis.inference.verdict`)."""
    distance, means, errors = data.distance, data.means, data.errors
    tests = ShapeTests(null_means(errors), distance)
    verdict = Verdict(
        "inconclusive",
        levels=len(means),
        levels_run=len(means),
        first=float(distance[0]),
        last=float(distance[-1]),
        known_errors=True,
    )
    verdict = judge(verdict, tests, tests.fit(means))
    without = [equality_p(np.delete(means, at), np.delete(errors, at)) for at in range(len(means))]
    return MeansVerdict(
        replace(verdict, sentence=write_sentence(verdict)),
        equality_p(means, errors),
        float(distance[int(np.argmax(without))]),
        max(without),
    )


def equality_p(means: Floats, errors: Floats) -> float:
    """The p value of the test that all means are equal (chi-square, L - 1 degrees of freedom)."""
    weights = 1 / errors**2
    distance = means - np.average(means, weights=weights)
    return float(special.chdtrc(len(means) - 1, weights @ distance**2))
