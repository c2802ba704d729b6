"""Keep or drop a change, or run more seeds: a candidate compared with a baseline, seed by seed.

The answer may be asked for after every seed, and for many candidates in turn. At most 5 % of
sessions keep a candidate that is not better than its baseline: the lower bound of the difference
has its part of that error. A candidate that is better by the margin is dropped with at most 5 %:
the upper bound has this error for each candidate. Only one bound can be wrong about a difference,
so that neither error is halved. What this assumes is in docs/explanation/evidence/README.md.
"""

import math
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import special

from mtdlab.analysis.data.columns import NAMING
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.run_tables import check_evaluators
from mtdlab.analysis.data.runs import completed_runs, round_scores, varied_settings
from mtdlab.analysis.data.settings import format_value
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.looks import (
    boundaries_at,
    find_open_nominal,
    judged_trials,
    planned_looks,
)
from mtdlab.analysis.inference.pairing import pair_runs
from mtdlab.analysis.inference.power import MOST_SEEDS, POWER, fewest_seeds
from mtdlab.analysis.inference.session import SessionComparison, find_comparison, open_session
from mtdlab.analysis.measures import Floats

Answer = Literal["keep", "equivalent", "drop", "failures", "more seeds"]
Configuration = str | Mapping[str, Any]
"""What names a configuration: text, or its settings by name."""
_BASELINE = "baseline"
"""The name of a study's own baseline."""
_FEWEST_ZEROS = 5
"""With so many seeds differences that are all 0 show that nothing differs, also of rounded scores.

Of scores rounded to 1 point, with runs that deviate by 0.7, two seeds differ by 0 in 16 % where a
candidate is better by half a point, five in 1 %.
"""
_WITHOUT_SCORE = ("FAIL", "PRUNED")
"""States of runs that have ended without a score."""


@dataclass(frozen=True)
class Ended:
    """The seeds of a configuration whose runs have ended, and those without a score among them.

    A seed whose run was pruned, or failed and was not run again, has no score.
    """

    seeds: int
    failed: int

    @property
    def rate(self) -> float:
        """The share of seeds without a score, from 0 to 1."""
        return self.failed / self.seeds


@dataclass(frozen=True)
class Decision:
    """What is decided about a candidate.

    Attributes:
        difference: candidate minus baseline, as the scores were read; NaN where one of them has no
            score. The bound on the worse side has the error `level`, the other one alpha.
        level: alpha, or the part of it that this candidate of a session has.
        shared: the seeds that both have; left_out: those without a score of the candidate, and
            those without one of the baseline, of which the other one has a score; all empty where
            no seeds were recorded.
        ended: the seeds of the candidate, and those of the baseline, whose runs have ended.
        looks: the numbers of seeds of the looks so far, of the session or the study, over which
            both errors hold. candidates: how many the session has; 0 without one.
        failed_score: what a run that failed counts, as stated; None: it has no score.
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
    left_out: tuple[tuple[int, ...], tuple[int, ...]]
    ended: tuple[Ended, Ended]
    looks: tuple[int, ...] = ()
    candidates: int = 0
    more_seeds: int | None = None
    failed_score: float | None = None

    @property
    def failures(self) -> str:
        """How many seeds, or runs without one, have no score on both sides; empty: all have."""
        new, old = self.ended
        if not new.failed + old.failed:
            return ""
        kind = "seeds" if self.shared or any(self.left_out) else "runs"
        return (
            f"{new.failed} of {new.seeds} {kind} "
            f"have no score with {self.candidate}, {old.failed} of {old.seeds} with {self.baseline}"
        )


def decide(
    study: StudyFrames,
    candidate: Configuration,
    *,
    baseline: Configuration | None = None,
    margin: float | None = None,
    session: Path | str | None = None,
    failed_score: float | None = None,
) -> Decision:
    """Whether to keep or drop a candidate or to run more seeds, by the first rule that holds.

    keep        the interval of the difference lies above 0.
    equivalent  it lies within the margin, on both sides of 0.
    drop        it lies below the margin.

    With fewer than two common seeds there is no interval and no look: more seeds are needed, and
    the difference is that of the means.

    Runs that fail are not a random part of all: where the candidate has failed more often, or the
    baseline where the answer were equivalent or drop, the answer is `failures`. So it is where one
    of them has no score at all.

    Args:
        study: as `read_run_table` makes it of a file or a DataFrame, and `load_study` reads it.
        candidate, baseline: settings of one configuration by name, or as KEY=VALUE[,KEY=VALUE], its
            value in a column configuration, name, method or commit, or `baseline` for the study's
            own, which is the default of the baseline.
        margin: in points (score x 100) or the score's own unit; by default the study's.
        session: the file that keeps looks and candidates. Without one, this is one look at one
            candidate, or the last of the looks that the study has recorded.
        failed_score: what a run counts that failed or was pruned, in points, such as the score of
            guessing; its seed is compared then. By default it has no score.

    Raises ValueError for what cannot be compared and for a session of something else, TypeError
    for a DataFrame or a configuration of another type, OSError where the session's file cannot be
    read or written.
    """
    if isinstance(study, pd.DataFrame):
        raise TypeError(
            "decide takes a study, not a DataFrame: mtdlab.analysis.read_run_table makes one of a "
            "DataFrame with a row for each run, mtdlab.load_study reads a recorded one"
        )
    margin = float(study.margin if margin is None else margin)
    if not 0 <= margin < math.inf:
        raise ValueError(f"the margin is {margin:g}; it must be a number of at least 0")
    write, stated = study.score_format, failed_score
    if failed_score is not None:
        if not math.isfinite(failed_score):
            raise ValueError(f"a failed run cannot count {failed_score:g}; give a finite score")
        failed_score = write.as_read(failed_score)
    *sides, names = _find_runs(study, candidate, baseline)
    ended = _count_ended(sides[0]), _count_ended(sides[1])
    new, old = (_score_runs(runs, failed_score, write) for runs in sides)
    first, second = (runs.groupby("seed")["score"].mean() for runs in (new, old))
    differences = (first - second).dropna()
    left_out = _missing_seeds(first, second), _missing_seeds(second, first)
    check_evaluators(pd.concat([new, old]))
    if not (len(first) or len(second)):
        raise ValueError(f"{' and '.join(names)}: all runs of both have ended without a score")
    alone = Estimate(differences.mean() if len(differences) else first.mean() - second.mean())
    untested = Decision(
        "more seeds" if len(first) and len(second) else "failures",
        *names,
        alone.as_read(write),
        margin,
        study.alpha,
        level=study.alpha,
        shared=tuple(differences.index.tolist()),
        left_out=left_out if study.has_seeds else ((), ()),
        ended=ended,
        failed_score=stated,
    )
    if len(differences) < 2:
        return untested
    score = write.name + (", minimised" if write.is_turned else "")
    scale = study.scale and f", scale {study.scale}"
    terms = f"study {study.name}, score {score}{scale}, margin {margin}, alpha {study.alpha}"
    terms += "" if failed_score is None else f", score of failed runs {failed_score:g}"
    unkept = nullcontext(list[SessionComparison]())
    is_of = partial(_has_runs_of, study, failed_score)
    with open_session(Path(session), terms, study.alpha, is_of) if session else unkept as kept:
        known = next((one for one in kept if _is_of(study, one, sides)), None)
        comparison = known or find_comparison(kept, terms, *names, study.alpha)
        comparison.look(differences, pd.concat([new, old])["score"], write)
        looks = _find_looks(study, comparison if session else None)
        paired = pair_runs(new, old, [study.items] * 2)
        low, high = (paired.estimate(1 - 2 * p_value) for p_value in looks.nominal())
        difference = Estimate(low.mean, low.low, high.high)
        # equal differences have no scatter, and so no interval
        is_equal = not np.ptp(round_scores(differences, new["score"]))
        if is_equal and (low.mean != 0 or len(differences) < _FEWEST_ZEROS):
            difference = Estimate(low.mean)
        more_failed = ended[0].rate - ended[1].rate if failed_score is None else 0.0
        answer = _find_answer(difference, margin, more_failed)
        if answer == "keep":
            comparison.kept_at = comparison.kept_at or len(kept)
    is_open = answer == "more seeds"
    more = _count_more(differences.to_numpy(), difference, margin, looks) if is_open else None
    return replace(
        untested,
        answer=answer,
        difference=difference.as_read(write),
        level=looks.level,
        looks=looks.past,
        candidates=len(kept) if session else 0,
        more_seeds=more,
    )


def _is_of(study: StudyFrames, known: SessionComparison, sides: Sequence[pd.DataFrame]) -> bool:
    """Whether a comparison is of the runs of these sides, in whatever words it names them."""
    with suppress(ValueError):
        *others, _ = _find_runs(study, known.candidate, known.baseline)
        pairs = zip(sides, others, strict=True)
        return all({*side["number"]} == {*other["number"]} for side, other in pairs)
    return False


@dataclass(frozen=True)
class _Looks:
    """The looks over which the errors of both bounds hold.

    Attributes:
        planned: the numbers of seeds of a study's looks; none where any number may follow.
        past: those of the looks so far; none for a single look.
        level: the error of the lower bound; alpha: that of the upper one.
    """

    planned: tuple[int, ...]
    past: tuple[int, ...]
    level: float
    alpha: float

    def nominal(self, *following: int) -> list[float]:
        """The one-sided p values of both bounds at the last look, or at one that follows it."""
        errors = self.level, self.alpha
        if self.planned:
            place = len(self.past) - 1
            return [boundaries_at(self.planned, error).nominal[place] for error in errors]
        seeds = (self.past[-1], *following) if self.past and following else self.past
        return [find_open_nominal(seeds, error)[-1] if seeds else error for error in errors]


def _find_looks(study: StudyFrames, kept: "SessionComparison | None") -> _Looks:
    """The looks of a study, or where it plans none those that a session has kept."""
    planned = planned_looks(study)
    past = planned[: max(len(study.looks), 1)]
    if kept is None:
        return _Looks(planned, past, study.alpha, study.alpha)
    return _Looks(planned, past or tuple(accumulate(map(len, kept.seen))), kept.level, study.alpha)


def _missing_seeds(scores: pd.Series, other: pd.Series) -> tuple[int, ...]:
    """The seeds, in rising order, of which only the other one has a score."""
    return tuple(other.index.difference(scores.index).tolist())


def _find_answer(difference: Estimate, margin: float, more_failed: float) -> Answer:
    """The answer; `failures` where it favours the side that failed more often by that share."""
    if difference.low > 0:
        return "failures" if more_failed > 0 else "keep"
    if difference.high < margin:
        found: Answer = "equivalent" if difference.low > -margin else "drop"
        return "failures" if more_failed < 0 else found
    return "more seeds"


def _count_ended(runs: pd.DataFrame) -> Ended:
    """The seeds of a configuration's runs; runs without a seed count as one each."""
    seeds = runs["seed"].where(runs["seed"].notna(), -1 - runs["number"])
    scored = seeds.isin(seeds.loc[completed_runs(runs).index])
    return Ended(seeds.nunique(), seeds[~scored].nunique())


def _score_runs(runs: pd.DataFrame, failed_score: float | None, write: ScoreFormat) -> pd.DataFrame:
    """The completed runs, with those of seeds that have none where a failed run has a score."""
    done = completed_runs(runs)
    if failed_score is None:
        return done
    failed = runs[runs["seed"].notna() & ~runs["seed"].isin(done["seed"])]
    if len(done) and failed_score > done["score"].min():
        raise ValueError(
            f"a failed run cannot count {write.as_read(failed_score):g}, which is better than the "
            f"worst score of the runs that completed, {write.as_read(done['score'].min()):.6g}"
        )
    return pd.concat([done, failed.assign(score=failed_score)])


def _count_more(values: Floats, interval: Estimate, margin: float, looks: _Looks) -> int | None:
    """`Decision.more_seeds` of differences by seed, (S,), whose interval does not decide."""
    count, mean, deviation = len(values), interval.mean, values.std(ddof=1)
    if looks.planned:
        return next((seeds - count for seeds in looks.planned[len(looks.past) :]), None)
    if math.isnan(interval.low):
        # seeds that differ by the same again give no interval either, unless by nothing
        return None if mean else _FEWEST_ZEROS - count
    error = (interval.low - mean) / special.stdtrit(count - 1, looks.nominal()[0])
    of_items = max(error**2 - deviation**2 / count, 0.0)

    def is_enough(seeds: int) -> bool:
        quantiles = -special.stdtrit(seeds - 1, looks.nominal(seeds))
        low, high = quantiles * math.sqrt(deviation**2 / seeds + of_items)
        # of the mean that is to come, given the seeds that are there
        spread = deviation * math.sqrt(seeds - count) / seeds
        decides = special.ndtr([(mean - low) / spread, (margin - high - mean) / spread])
        return bool(decides.sum() >= POWER)

    found = fewest_seeds(is_enough, range(count + 1, MOST_SEEDS + 1), 2 * count)
    return found and found - count


def _find_runs(
    study: StudyFrames, candidate: Configuration, baseline: Configuration | None
) -> tuple[pd.DataFrame, pd.DataFrame, tuple[str, str]]:
    """The ended runs of candidate and baseline, and the names of baseline and candidate."""
    judged, _ = judged_trials(study)
    if not len(completed_runs(judged)):
        raise ValueError(f"{study.name} has no completed run with a score")
    # the trials of a look are the completed ones of its seeds
    failed = study.trials["state"].isin(_WITHOUT_SCORE) & study.trials["seed"].isin(judged["seed"])
    runs = pd.concat([completed_runs(judged), study.trials[failed]])
    keys = [key for key in (*study.compared, "mtd") if key in runs]
    if baseline is None and study.baseline is None:
        raise ValueError(
            f"study {study.name} has no baseline of its own; name one: --baseline KEY=VALUE"
        )
    parts = _split(candidate, "candidate"), _split(baseline or _BASELINE, "baseline")
    new, old = (
        study.baseline.trials[study.baseline.trials["state"].isin(("COMPLETE", *_WITHOUT_SCORE))]
        if study.baseline is not None and named == [_BASELINE]
        else _select(study, runs, keys, named, f"{role} {','.join(named)!r}")
        for named, role in zip(parts, ("candidate", "baseline"), strict=True)
    )
    # the same name for settings in another order
    second, first = (",".join(sorted(map(str.strip, named))) for named in parts)
    if {*new["number"]} & {*old["number"]}:
        raise ValueError(f"{second} and {first} are the same configuration; give two")
    return new, old, (first, second)


def _split(configuration: Configuration, role: str) -> list[str]:
    """The texts KEY=VALUE of a configuration, or its name. Raises TypeError for another type."""
    if isinstance(configuration, Mapping):
        return [f"{key}={value}" for key, value in configuration.items()]
    if isinstance(configuration, str):
        # behind a comma in a value stands no KEY=
        return re.split(r",(?=[^,=]*=)", configuration)
    raise TypeError(
        f"{role} {configuration!r}: a configuration is text such as 'lr=0.2', or a mapping such as "
        "{'lr': 0.2}"
    )


def _select(
    study: StudyFrames, runs: pd.DataFrame, keys: list[str], parts: list[str], named: str
) -> pd.DataFrame:
    """The runs of the one configuration that messages call `named`, ValueError without one."""
    name, all_runs = ",".join(parts), runs
    alone = [key for key in NAMING if key in keys and _equals(runs[key], name).any()]
    if len({tuple(all_runs["number"][_equals(all_runs[key], name)]) for key in alone}) > 1:
        raise ValueError(
            f"{named}: {name!r} stands in {' and '.join(alone)}; write {alone[0]}={name} or another"
        )
    for part in [f"{key}={name}" for key in alone[:1]] or parts:
        key, _, value = (text.strip() for text in part.partition("="))
        if key in study.nuisance:
            raise ValueError(
                f"{named}: {key} is a nuisance setting, of which each configuration has the value "
                "that was chosen for it; name the configuration by its other settings"
            )
        if key not in keys:
            varied, left = varied_settings(all_runs, keys), study.table.get("columns not read")
            raise ValueError(
                f"{named}: {part!r} is no configuration; settings are {', '.join(varied or keys)}"
                + (f"; not read is {left}" if left else "")
            )
        same = _equals(runs[key], value)
        if not same.any():
            known = ", ".join(runs[key].map(partial(format_value, key)).unique()[:10])
            raise ValueError(f"{named}: no run has ended with {part}; {key} is {known}")
        runs = runs[same]
    if varied := varied_settings(runs, keys):
        raise ValueError(
            f"{named} is several configurations, which differ in {', '.join(varied)}; "
            "name one with more settings, or name those of a table with --setting COLUMN"
        )
    return runs


def _equals(values: pd.Series, stated: str) -> pd.Series:
    """Whether each value of a setting is the one that a text states."""
    texts = values.map(partial(format_value, str(values.name)))
    # True and None are written in small letters where a study recorded them
    same = texts == (stated if (texts == stated).any() else stated.lower())
    with suppress(ValueError):
        same |= pd.to_numeric(values, errors="coerce") == float(stated)
    return same


def _has_runs_of(
    study: StudyFrames, failed_score: float | None, session: list[SessionComparison]
) -> bool:
    """Whether a study has all the differences that a session has looked at."""
    write = study.score_format
    with suppress(ValueError):
        for known in session:
            *sides, _ = _find_runs(study, known.candidate, known.baseline)
            scored = (_score_runs(runs, failed_score, write) for runs in sides)
            new, old = (runs.groupby("seed")["score"].mean() for runs in scored)
            again = replace(known, seen=[*known.seen])
            again.look((new - old).dropna(), pd.concat([new, old]), write)
        return True
    return False
