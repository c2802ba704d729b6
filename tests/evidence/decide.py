"""Error rates, power and seeds of `mtdlab decide`, beside rules that other loops decide by.

Differences of a seed have standard deviation 1; what is asked after every seed, from 2 to 20, is
undecided after the last. Rules of others, as they are written in public:

- three better: all of 3 seeds are better than the baseline's.
- bootstrap: 3 seeds; of 27 resamples of their differences at least 95 % have a mean above 0
  (trevin-creator/autoresearch-mlx #30: P >= 0.95 of a bootstrap, 3 seeds).
- two-run floor: one run is better than the baseline's by twice the difference of two runs of the
  baseline (karpathy/autoresearch #560).

A session compares 20 or 50 candidates in turn. Letters: B sessions, C candidates, S seeds, K looks.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed
from scipy import special

from mtdlab.analysis.inference.decide import SessionComparison, find_comparison
from mtdlab.analysis.inference.looks import find_open_nominal
from mtdlab.analysis.measures import Floats

ALPHA, MARGIN, SEEDS, CANDIDATES = 0.05, 0.5, 20, 20
_MORE = 10
"""Sessions of one candidate for each of 20."""
_LOOKS = np.arange(2, SEEDS + 1)
_RESAMPLES = np.array(list(product(range(3), repeat=3)))
Draw = Callable[[np.random.Generator], Floats]
"""Errors of a configuration's runs, (S,); two configurations differ by a standard deviation of 1.
"""
Rule = Callable[[Floats, Floats, float], tuple[str, int]]
"""Answer and seeds, from the scores of candidate and baseline, (S,) each, and the session's error
of the lower bound."""


def _collapse(rng: np.random.Generator) -> Floats:
    """Normal errors; one run in ten loses 5 standard deviations. Their mean is 0."""
    return (rng.standard_normal(SEEDS) - 5 * (rng.random(SEEDS) < 0.1) + 0.5) / _TWO


_TWO = 2**0.5
ERRORS: Mapping[str, Draw] = {
    "normal": lambda rng: rng.standard_normal(SEEDS) / _TWO,
    "t, 3 degrees of freedom": lambda rng: rng.standard_t(3, SEEDS) / 6**0.5,
    "skewed up": lambda rng: (rng.exponential(size=SEEDS) - 1) / _TWO,
    "skewed down": lambda rng: (1 - rng.exponential(size=SEEDS)) / _TWO,
    "10 % collapse": _collapse,
    "rounded to 0.5": lambda rng: np.round(rng.standard_normal(SEEDS) * _TWO) / 2,
}


@cache
def _quantiles(level: float) -> Floats:
    """Of t at each look, (K,), where the error is spent."""
    looks = tuple(_LOOKS.tolist())
    return np.asarray(-special.stdtrit(_LOOKS - 1.0, find_open_nominal(looks, level)))


def _sequential(quantiles: Callable[[float], Floats], *, counts_failures: bool = True) -> Rule:
    def judge(new: Floats, old: Floats, level: float) -> tuple[str, int]:
        has_score = np.isfinite(new - old)
        count, failed = has_score.cumsum(), (~has_score).cumsum()
        differences = np.where(has_score, new - old, 0.0)
        mean = differences.cumsum() / np.maximum(count, 1)
        squares = np.maximum((differences**2).cumsum() - count * mean**2, 0)
        # a seed that fails is no look; the second common seed is the first one
        is_look = has_score & (count >= 2)
        mean, count, failed = mean[is_look], count[is_look], failed[is_look]
        error = np.sqrt(squares[is_look] / (count - 1) / count)
        has_interval = (error > 1e-9) | (np.abs(mean) < 1e-9)
        looks = len(count)
        low = mean - quantiles(level)[:looks] * error
        high = mean + quantiles(ALPHA)[:looks] * error
        keeps, ends = has_interval & (low > 0), has_interval & (high < MARGIN)
        if counts_failures:
            keeps &= failed == 0
        if not (keeps | ends).any():
            return "more seeds", SEEDS
        first = int((keeps | ends).argmax())
        if keeps[first]:
            return "keep", int(_LOOKS[first])
        return ("equivalent" if low[first] > -MARGIN else "drop"), int(_LOOKS[first])

    return judge


def _three_better(new: Floats, old: Floats, _level: float) -> tuple[str, int]:
    return ("keep" if (new > old)[:3].all() else "drop"), 3


def _bootstrap(new: Floats, old: Floats, _level: float) -> tuple[str, int]:
    resampled = (new - old)[:3][_RESAMPLES].mean(axis=1)
    return ("keep" if (resampled > 0).mean() >= 0.95 else "drop"), 3


def _two_run_floor(new: Floats, old: Floats, _level: float) -> tuple[str, int]:
    return ("keep" if new[0] - old[0] >= 2 * abs(old[1] - old[0]) else "drop"), 1


RULES: Mapping[str, Rule] = {
    "decide": _sequential(_quantiles),
    "t interval, asked after every seed": _sequential(
        lambda _: np.asarray(-special.stdtrit(_LOOKS - 1.0, ALPHA))
    ),
    "three better": _three_better,
    "bootstrap": _bootstrap,
    "two-run floor": _two_run_floor,
}


def _union(level: float) -> Floats:
    """Quantiles of t where look k has 6 / (pi² k²) of the error."""
    return np.asarray(-special.stdtrit(_LOOKS - 1.0, level * 6 / (np.pi * (_LOOKS - 1)) ** 2))


def _mixture(level: float) -> Floats:
    """Quantiles of t where the Bayes factor of normal effects, of deviation 2, is 1 / (2 level).

    Both sides together have twice the error: an always-valid t test (Lai 1976; Wang and Ramdas
    2024; the closed form is that of Gronau, Ly and Wagenmakers 2020).
    """
    freedom, scale = _LOOKS - 1, 1 + 4 * _LOOKS
    ratio = (scale**0.5 / (2 * level)) ** (2 / _LOOKS)
    with np.errstate(invalid="ignore"):
        quantile = np.sqrt((ratio - 1) * freedom / (1 - ratio / scale))
    return np.where(ratio < scale, quantile, np.inf)


LEFT_OUT: Mapping[str, Rule] = {
    "decide, failed seeds left out": _sequential(_quantiles, counts_failures=False),
}
SPENDING: Mapping[str, Rule] = {
    "decide, by 6 / (pi k)² at look k": _sequential(_union),
    "decide, always-valid t mixture": _sequential(_mixture),
}
"""Other ways to share an error among looks; the upper bound has them too."""


@dataclass(frozen=True)
class Case:
    """Candidates of a session.

    Attributes:
        effects: what a candidate is better by than its baseline, each as likely.
        chained: whether a candidate that was kept is the next baseline, with its runs.
        fresh: whether the runs of the next baseline are made again.
        base: errors of the first baseline, those of candidates by default; "none": it has none, and
            candidates have twice the variance, so that differences are as skewed as their errors.
        place: of the first candidate in the session; those before were not kept.
        failing: the share of a candidate's runs that fail: those with the lowest errors.
    """

    name: str
    effects: tuple[float, ...]
    candidates: int = CANDIDATES
    errors: str = "normal"
    chained: bool = True
    fresh: bool = False
    base: str = ""
    place: int = 1
    failing: float = 0.0


_NORMAL = 5
"""Cases with which the ways to share an error are compared."""
_FAILING = 24
"""Cases in which runs fail; other rules say nothing of them."""
CASES = (
    *(Case("one candidate", (effect,), 1) for effect in (-1.0, 0.0, 0.5, 1.0, 2.0)),
    *(Case("tenth candidate", (effect,), 1, place=10) for effect in (0.0, 0.5, 1.0, 2.0)),
    *(Case("one candidate", (0.0,), 1, errors) for errors in list(ERRORS)[1:]),
    *(Case("one candidate", (MARGIN,), 1, errors) for errors in list(ERRORS)[1:]),
    *(Case("20 null", (0.0,), errors=errors, chained=False) for errors in ERRORS),
    *(Case("20 null, kept ones the baseline", (0.0,), errors=errors) for errors in ERRORS),
    *(
        Case(name, effects, fresh=fresh)
        for fresh in (False, True)
        for name, effects in (
            ("1 in 5 better by 1", (0.0, 0.0, 0.0, 0.0, 1.0)),
            ("half better by 1, half by the margin", (MARGIN, 1.0)),
            ("1 in 5 better by 2, others by the margin", (2.0, *(MARGIN,) * 4)),
            ("null, by the margin, 1 and 2", (0.0, MARGIN, 1.0, 2.0)),
        )
    ),
    *(
        Case("one candidate, steady baseline", (effect,), 1, errors, base="none")
        for errors in ("skewed up", "skewed down", "10 % collapse")
        for effect in (0.0, MARGIN)
    ),
    *(
        Case("20 null, steady baseline", (0.0,), errors=errors, chained=False, base="none")
        for errors in ("skewed up", "skewed down", "10 % collapse")
    ),
    *(
        Case(
            f"{candidates} null, normal baseline", (0.0,), candidates, errors, False, base="normal"
        )
        for errors in ("skewed up", "skewed down", "10 % collapse")
        for candidates in (1, CANDIDATES)
    ),
    *(
        Case(f"50 null{kept}", (0.0,), 50, errors, chained=bool(kept))
        for kept in ("", ", kept ones the baseline")
        for errors in ERRORS
    ),
    *(
        Case(f"{name}, the worst {failing:.0%} fail", (0.0,), count, errors, False, failing=failing)
        for name, count in (("one candidate", 1), ("20 null", CANDIDATES))
        for errors in ("normal", "t, 3 degrees of freedom", "skewed down", "10 % collapse")
        for failing in (0.05, 0.2, 0.4)
    ),
)


@cache
def _quantile_of(errors: str, share: float) -> float:
    """The error that this share of runs lies below."""
    rng = np.random.default_rng(0)
    return float(np.quantile([ERRORS[errors](rng) for _ in range(20_000)], share))


def measure(case: Case, rule: str, sessions: int, seed: int) -> dict[str, float | str]:
    """One cell: the shares of sessions and of candidates, and the mean number of seeds."""
    rng = np.random.default_rng([seed, CASES.index(case)])
    draw, judge = ERRORS[case.errors], {**RULES, **LEFT_OUT, **SPENDING}[rule]
    sessions *= _MORE if case.candidates == 1 else 1
    false_keep = np.zeros(sessions, dtype=bool)
    rows = []
    for session in range(sessions):
        base, was_kept = np.zeros(SEEDS), False
        if case.base != "none":
            base = ERRORS[case.base or case.errors](rng)
        comparisons = [SessionComparison("", "", str(at), ALPHA) for at in range(case.place - 1)]
        for at in range(case.candidates):
            effect = float(rng.choice(case.effects))
            new = draw(rng) * (_TWO if case.base == "none" else 1)
            if case.failing:
                new[new < _quantile_of(case.errors, case.failing)] = np.nan
            compared = find_comparison(comparisons, "", "", f"candidate {at}", ALPHA)
            answer, seeds = judge(new + effect, base, compared.level)
            is_kept = answer == "keep"
            compared.kept_at = len(comparisons) if is_kept else None
            false_keep[session] |= is_kept and effect <= 0
            rows.append((effect, answer, seeds, was_kept))
            if is_kept and case.chained:
                base, was_kept = draw(rng) if case.fresh else new, True
    every = pd.DataFrame(rows, columns=["effect", "answer", "seeds", "was_kept"])
    kept, better = every["answer"] == "keep", every["effect"] > 0
    ended = every["answer"].isin(["drop", "equivalent"])
    at_margin = every["effect"] == MARGIN
    return {
        "case": case.name,
        "effects": " ".join(f"{effect:g}" for effect in dict.fromkeys(case.effects)),
        "errors": case.errors,
        "fresh": case.fresh,
        "rule": rule,
        "sessions_false_keep": float(false_keep.mean()),
        "null_kept": float(kept[~better].mean()),
        "better_kept": float(kept[better].mean()),
        "dropped_at_margin": float(ended[at_margin].mean()),
        "dropped_at_margin_after_keep": float(ended[at_margin & every["was_kept"]].mean()),
        "ended": float(ended.mean()),
        "undecided": float((every["answer"] == "more seeds").mean()),
        "seeds": float(every["seeds"].mean()),
        "n": sessions,
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bound of sessions with a false keep (Bonferroni)."""
    whole, failing = CASES[:-_FAILING], CASES[-_FAILING:]
    pairs = [*product(whole, RULES), *product(CASES[:_NORMAL], SPENDING)]
    pairs += product(failing, ("decide", *LEFT_OUT))
    cells = [delayed(measure)(case, rule, datasets, seed) for case, rule in pairs]
    table = pd.DataFrame(Parallel(n_jobs=-1)(cells))
    false = bound_below(table["sessions_false_keep"], table["n"], len(table))
    return table.assign(false_low99=false)
