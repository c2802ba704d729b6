"""Level means with bands, and their verdict, where the single runs are not available.

Letters: L levels, K contrasts, B simulated curves. A band is assumed to be a 95 % interval of its
mean: half its width divided by 1.96 is the standard error, which is treated as known. Levels are
assumed to be independent, since their seeds are unknown. The tests are those of runs
(`mtdlab.analysis.inference.shapes`), with these standard errors in place of estimated ones.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import special

from mtdlab.analysis.data.cells import (
    FINITE,
    Bounds,
    TableError,
    choose_scale,
    describe_scale,
    folder_name,
    read_numbers,
    refuse_first,
    tell_origin,
)
from mtdlab.analysis.data.defaults import FACTORS, LEVEL, Scale
from mtdlab.analysis.data.published import load_curve
from mtdlab.analysis.inference.blocks import Fit, KnownErrors
from mtdlab.analysis.inference.shapes import LEAST_FLAT, ShapeTests
from mtdlab.analysis.inference.simultaneous import Null
from mtdlab.analysis.inference.verdict import Verdict, judge
from mtdlab.analysis.measures import Floats

MOST_LEVELS = 100
PUBLISHED = {"figure2": ("figure2_mtd", "MoCoSE, figure 2")}
"""The file and the title of a published figure, by the name that `load_published_means` knows."""


@dataclass(frozen=True)
class LevelMeans:
    """Means with bands.

    Attributes:
        name: title of the page.
        source: the origin of the numbers, as a sentence.
        frame: mtd (in steps), mean, low, high (in points), L rows in rising order of mtd.
        origin: what tells their file from others of its name; empty for published ones.
    """

    name: str
    source: str
    frame: pd.DataFrame
    origin: str = ""

    @property
    def errors(self) -> Floats:
        """The standard errors, (L,), if the bands are 95 % intervals."""
        half = (self.frame["high"] - self.frame["low"]).to_numpy(dtype=np.float64) / 2
        return np.asarray(half / special.ndtri((1 + LEVEL) / 2))


def load_published_means(name: str) -> LevelMeans:
    """The means of a published figure; ValueError for a name not in `PUBLISHED`."""
    if name not in PUBLISHED:
        raise ValueError(f"unknown published means {name!r}; choose from {', '.join(PUBLISHED)}")
    file, title = PUBLISHED[name]
    source = f"Published values of {title}, read off the figure to about 0.03 points."
    return LevelMeans(title, source, load_curve(file)[["mtd", "mean", "low", "high"]])


_COLUMNS = ("mtd", "mean", "low", "high")
_MTD = Bounds("an MTD must be at least 1", 1, 1e300)


def is_level_means(cells: pd.DataFrame) -> bool:
    """Whether a table has means instead of runs: mtd, mean, low, high, and no score or seed."""
    return set(_COLUMNS) <= set(cells) and not {"score", "seed"} & set(cells)


def read_level_means(cells: pd.DataFrame, path: Path, scale: Scale | None = None) -> LevelMeans:
    """The means x 100 in rising order of MTD; scaled as the scores of runs.

    Raises TableError for fewer than 3 levels or more than 100, a missing value, a level that
    occurs twice, or a mean outside its band.
    """
    bounds = {name: _MTD if name == "mtd" else FINITE for name in _COLUMNS}
    frame = pd.DataFrame({name: read_numbers(cells, name, span) for name, span in bounds.items()})
    if not 3 <= len(frame) <= MOST_LEVELS:
        raise TableError(f"{len(frame)} level means; between 3 and {MOST_LEVELS} can be compared")
    checks = {
        "a level mean needs mtd, mean, low and high": frame.isna().any(axis=1),
        "each level must occur once": frame["mtd"].duplicated(),
        "the mean must lie inside its band, and low below high": ~(
            frame["mean"].between(frame["low"], frame["high"]) & (frame["low"] < frame["high"])
        ),
    }
    for rule, wrong in checks.items():
        refuse_first(wrong, cells, _COLUMNS, rule)
    found = choose_scale("score", frame["mean"], scale)
    frame = frame.assign(**{name: frame[name] * FACTORS[found] for name in _COLUMNS[1:]})
    rule = describe_scale(found, is_stated=scale is not None)
    source = f"Level means read from {path.name}. {rule}"
    frame = frame.sort_values("mtd", ignore_index=True)
    return LevelMeans(folder_name(path), source, frame, tell_origin(path))


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
    """The verdict on level means, `data`, and the test of whether the levels differ at all.

    Attributes:
        p_equal: of the test that all means are equal (Cochran 1954).
        left_out: the level whose removal gives the largest such p value, p_left_out: that p value.
    """

    data: LevelMeans
    verdict: Verdict
    p_equal: float
    left_out: float
    p_left_out: float


def judge_means(data: LevelMeans) -> MeansVerdict:
    """The shape of three or more means by the rules for runs; see `inference.verdict`."""
    distance, means = data.frame[["mtd", "mean"]].to_numpy(dtype=np.float64).T
    errors = data.errors
    tests = ShapeTests(null_means(errors), distance, can_be_flat=len(distance) >= LEAST_FLAT)
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
        data,
        verdict,
        equality_p(means, errors),
        float(distance[int(np.argmax(without))]),
        max(without),
    )


def equality_p(means: Floats, errors: Floats) -> float:
    """The p value of the test that all means are equal (chi-square, L - 1 degrees of freedom)."""
    weights = 1 / errors**2
    distance = means - np.average(means, weights=weights)
    return float(special.chdtrc(len(means) - 1, weights @ distance**2))
