"""Keep or drop a change, or run more seeds: a candidate compared with a baseline, seed by seed.

The answer may be asked for after every seed, and for many candidates in turn. At most 5 % of
sessions keep a candidate that is not better than its baseline, at any look: the lower bound of the
difference has its part of that error. A candidate that is better by the margin is dropped with at
most 5 %, where its baseline was not kept for the same runs: the upper bound has this error for each
candidate. Only one bound can be wrong about a difference, so that neither error is halved.
Strongly skewed differences have larger errors (docs/explanation/evidence.md).
"""

import math
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from scipy import special

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import completed_runs, varied_settings
from mtdlab.analysis.data.settings import format_value
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.looks import boundaries_at, find_open_nominal, judged_trials
from mtdlab.analysis.inference.pairing import estimate_difference
from mtdlab.analysis.inference.power import MOST_SEEDS, POWER, fewest_seeds
from mtdlab.analysis.inference.session import find_comparison, open_session
from mtdlab.analysis.measures import Floats

Answer = Literal["keep", "equivalent", "drop", "more seeds"]
_NAMES = ("configuration", "name", "method")
"""Columns whose value alone names a configuration."""
_ALIKE = 1e-9
"""Points below which differences have no scatter, and so no interval."""


@dataclass(frozen=True)
class Decision:
    """What is decided about a candidate.

    Attributes:
        difference: candidate less baseline, in points. `low` has the error `level`, `high` alpha.
        level: alpha, or the part of it that this candidate of a session has; both errors are those
            of all looks together where looks are kept.
        shared: the seeds that both have; left_out: those that one of them has.
        looks: the numbers of seeds of the looks so far, of the session or the study; empty where
            neither keeps them. candidates: how many the session has; 0 without one.
        more_seeds: how many more give an answer with 80 % power, if all is as estimated; None with
            an answer, where more than 512 are needed, and where a study plans no further look.
    """

    answer: Answer
    baseline: str
    candidate: str
    difference: Estimate
    margin: float
    alpha: float
    level: float
    shared: tuple[int, ...]
    left_out: tuple[int, ...]
    looks: tuple[int, ...]
    candidates: int
    more_seeds: int | None


def decide(
    study: StudyFrames,
    candidate: str,
    *,
    baseline: str | None = None,
    margin: float | None = None,
    session: Path | str | None = None,
) -> Decision:
    """Whether to keep or drop a candidate or to run more seeds, by the first rule that holds.

    keep        the interval of the difference lies above 0.
    equivalent  it lies within the margin, on both sides of 0.
    drop        it lies below the margin.

    Args:
        candidate, baseline: KEY=VALUE[,KEY=VALUE] of one configuration, or its value in a column
            configuration, name or method. By default the baseline is the study's own.
        margin: in points (score x 100); by default the study's.
        session: the file that keeps looks and candidates. Without one, this is one look at one
            candidate, or the last of the looks that the study has recorded.

    Raises ValueError for what cannot be compared and for a session of something else, OSError
    where its file cannot be read or written.
    """
    margin = study.margin if margin is None else margin
    if not 0 <= margin < math.inf:
        raise ValueError(f"the margin is {margin:g} points; it must be a number of at least 0")
    new, old, named = _find_runs(study, candidate, baseline)
    sides = [runs.groupby("seed")["score"].mean() for runs in (new, old)]
    differences = (sides[0] - sides[1]).dropna()
    if (count := len(differences)) < 2:
        raise ValueError(
            f"{named[0]} and {named[1]} have scores of {count} common seed{'s' * (count != 1)}; at "
            "least 2 are needed"
        )
    of_all = {"study": study.name, "score": study.metric, "margin": margin, "alpha": study.alpha}
    with open_session(session, of_all) as comparisons:
        comparison = find_comparison(comparisons, *named, study.alpha)
        comparison.look(differences)
        looks = _Looks.of(study, () if session is None else comparison.looks)
        level = study.alpha if session is None else comparison.level
        low, high = (
            estimate_difference(new, old, [study.items] * 2, 1 - 2 * looks.nominal(error)).estimate
            for error in (level, study.alpha)
        )
        difference = Estimate(low.mean, low.low, high.high)
        if low.mean and np.ptp(differences) < _ALIKE:
            difference = Estimate(low.mean)
        answer = _answer(difference, margin)
        comparison.kept |= answer == "keep"
    more = None
    if answer == "more seeds":
        more = looks.count_more(differences.to_numpy(), difference, margin, (level, study.alpha))
    return Decision(
        answer,
        *named,
        difference,
        margin,
        study.alpha,
        level,
        tuple(differences.index.tolist()),
        tuple(sorted({*sides[0].index} ^ {*sides[1].index})),
        looks.planned[: looks.taken] or looks.kept,
        len(comparisons) if session is not None else 0,
        more,
    )


def _answer(difference: Estimate, margin: float) -> Answer:
    if difference.low > 0:
        return "keep"
    if difference.high < margin:
        return "equivalent" if difference.low > -margin else "drop"
    return "more seeds"


@dataclass(frozen=True)
class _Looks:
    """The looks that count: those in a session, or of a study that plans them; else this alone.

    Attributes:
        kept: the numbers of seeds of a session's looks.
        planned: those of all looks of the study; taken: how many of these are counted.
    """

    kept: tuple[int, ...]
    planned: tuple[int, ...]
    taken: int

    @classmethod
    def of(cls, study: StudyFrames, kept: Sequence[int]) -> "_Looks":
        planned = tuple(study.plans[-1].values["looks"]) if study.plans else ()
        if len(planned) < 2:
            return cls(tuple(kept), (), 0)
        return cls((), planned, min(max(len(study.looks), 1), len(planned)))

    def nominal(self, error: float, *following: int) -> float:
        """The one-sided p value of the last look, or about that of one that follows it."""
        if self.planned:
            return float(boundaries_at(self.planned, error).nominal[self.taken - 1])
        looks = (self.kept[-1], *following) if following and self.kept else self.kept
        return float(find_open_nominal(looks, error)[-1]) if self.kept else error

    def count_more(
        self, values: Floats, interval: Estimate, margin: float, errors: tuple[float, float]
    ) -> int | None:
        """`Decision.more_seeds` of differences by seed, (S,), with an interval that decides not."""
        count, mean, deviation = len(values), interval.mean, values.std(ddof=1)
        if self.planned:
            return next((seeds - count for seeds in self.planned[self.taken :]), None)
        if math.isnan(interval.low):
            return 1
        quantile = -special.stdtrit(count - 1, self.nominal(errors[0]))
        of_seeds = deviation**2 / count
        of_items = max(((mean - interval.low) / quantile) ** 2 - of_seeds, 0.0)

        def is_enough(seeds: int) -> bool:
            p_values = np.array([self.nominal(error, seeds) for error in errors])
            quantiles = -special.stdtrit(seeds - 1, p_values)
            low, high = quantiles * math.sqrt(deviation**2 / seeds + of_items)
            # of the mean that is to come, given the seeds that are there
            spread = deviation * math.sqrt(seeds - count) / seeds
            return bool(
                special.ndtr((mean - low) / spread) + special.ndtr((margin - high - mean) / spread)
                >= POWER
            )

        found = fewest_seeds(is_enough, range(count + 1, MOST_SEEDS + 1), 2 * count)
        return found and found - count


def _find_runs(
    study: StudyFrames, candidate: str, baseline: str | None
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, str]]:
    """The completed runs of the baseline and of the candidate, and the names of the two."""
    runs = completed_runs(judged_trials(study, study.trials)[0])
    if not len(runs):
        raise ValueError(f"{study.name} has no completed run with a score")
    keys = [key for key in (*study.compared, "mtd") if key in runs]
    new = _select(runs, keys, candidate, "candidate")
    if baseline is not None:
        old = _select(runs, keys, baseline, "baseline")
    elif study.baseline is not None:
        old, baseline = completed_runs(study.baseline.trials), "baseline"
    else:
        raise ValueError(
            f"study {study.name} has no baseline of its own; name one with "
            "--baseline KEY=VALUE, in Python baseline="
        )
    if {*new["number"]} & {*old["number"]}:
        raise ValueError(f"{candidate} and {baseline} are the same configuration; give two")
    return new, old, (_normalise(baseline), _normalise(candidate))


def _normalise(name: str) -> str:
    """The name with its settings in order, without spaces around them."""
    return ",".join(sorted(part.strip() for part in name.split(",")))


def _select(runs: pd.DataFrame, keys: Collection[str], name: str, role: str) -> pd.DataFrame:
    """The runs of the one configuration that a name means; ValueError where it is none, or more."""
    columns = [column for column in _NAMES if column in keys and (runs[column] == name).any()]
    chosen = runs
    for part in [f"{columns[0]}={name}"] if columns else name.split(","):
        key, equals, value = (text.strip() for text in part.partition("="))
        if not equals or key not in keys:
            raise ValueError(
                f"{role} {name!r}: {part!r} is no configuration, and no setting with a value; "
                f"settings are {', '.join(keys)}"
            )
        same = chosen[key].map(partial(format_value, key)) == value
        with suppress(ValueError):
            same |= pd.to_numeric(chosen[key], errors="coerce") == float(value)
        if not same.any():
            raise ValueError(
                f"{role} {name!r}: no completed run has {part}; {key} is {_list(chosen[key])}"
            )
        chosen = chosen[same]
    if varied := varied_settings(chosen, keys):
        raise ValueError(
            f"{role} {name!r} is several configurations, which differ in {', '.join(varied)}; "
            f"add {varied[0]}=VALUE, of {_list(chosen[varied[0]])}"
        )
    return chosen


def _list(values: pd.Series) -> str:
    return ", ".join(format_value(str(values.name), value) for value in values.unique()[:10])
