"""Rules by which loops keep or discard a change, beside `mtdlab decide`: `make evidence`.

Differences of two runs have standard deviation 1. A loop has a baseline with a recorded score, and
runs candidates in turn; what is kept is the next baseline. A session ends after 200 runs, those of
the baseline among them. The rules, as they are written in public:

- higher: one run is better than the baseline's recorded score (karpathy/autoresearch, program.md;
  labloop without options).
- least difference: better by more than the spread, highest minus lowest, of five runs of the first
  baseline (`labloop noise`, then `labloop run --min-delta SPREAD`).
- confirmed: better in a first run and in a second one; the weaker score is recorded (`--confirm`).
- median deviation: better by twice the median absolute deviation of all results so far, from three
  results on; until then as higher (davebcn87/pi-autoresearch #22, whose 2.0 is used as a gate).
- betting on seeds: both run the same seeds, one after another, until the capital of bets on a
  positive mean of their differences is at least 1 / error, or that of bets on one below the margin
  (Waudby-Smith and Ramdas 2024, with the bets of `lambda_predmix_eb` of the package confseq).
  Differences must be known to lie within the bound on both sides of 0.
- betting on items: the same with the differences of the two over 1,500 evaluation items, of one run
  each; their mean has a standard error of 0.26.

`decide` and the bets share 5 % over the candidates of a session (`find_comparison`).
Letters: S seeds, I items.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np
import pandas as pd
from decide import ALPHA, MARGIN, RULES, SEEDS
from joblib import Parallel, delayed

from mtdlab.analysis.inference.decide import SessionComparison, find_comparison
from mtdlab.analysis.measures import Floats

RUNS = 200
_TWO = 2**0.5
_ITEMS, _ITEM_DEVIATION = 1500, 10.0
_ITEM_BOUND = 50.0
_NOISE_RUNS = 5


@dataclass
class Session:
    """What a loop has measured beside the runs of a candidate.

    Attributes:
        recorded: the score of the baseline that candidates are compared with.
        base: the runs of the baseline, (S,); of them `base_runs` have been paid for.
        results: the scores of the first baseline and of all candidates so far.
        noise: more runs of the first baseline.
    """

    rng: np.random.Generator
    recorded: float = 0.0
    base: Floats = field(default_factory=lambda: np.zeros(SEEDS))
    base_runs: int = 1
    results: list[float] = field(default_factory=list)
    noise: Floats = field(default_factory=lambda: np.zeros(_NOISE_RUNS))
    comparisons: list[SessionComparison] = field(default_factory=list)
    runs: int = 1
    tried: int = 0

    def draw(self, count: int = SEEDS) -> Floats:
        """Errors of runs, of which two differ by a standard deviation of 1."""
        return self.rng.standard_normal(count) / _TWO


Rule = Callable[[Session, Floats], tuple[bool, float, int]]
"""Whether a candidate is kept, the score to record for it and its runs, from its scores (S,)."""


def _higher(session: Session, new: Floats) -> tuple[bool, float, int]:
    return new[0] > session.recorded, new[0], 1


def _least_difference(session: Session, new: Floats) -> tuple[bool, float, int]:
    return new[0] > session.recorded + np.ptp(session.noise), new[0], 1


def _confirmed(by: Rule) -> Rule:
    def judge(session: Session, new: Floats) -> tuple[bool, float, int]:
        if not by(session, new)[0]:
            return False, new[0], 1
        return by(session, new[1:])[0], new[:2].min(), 2

    return judge


def _median_deviation(session: Session, new: Floats) -> tuple[bool, float, int]:
    results = np.append(session.results, new[0])
    floor = np.median(np.abs(results - np.median(results))) if len(results) > 2 else 0.0
    lead = new[0] - session.recorded
    return lead > 0 and lead >= 2 * floor, new[0], 1


def capital(values: Floats, mean: float, error: float) -> Floats:
    """The capital after each of the values in [0, 1] of bets on their mean being above `mean`.

    The bets are those of a predictable empirical Bernstein mixture with a prior observation of mean
    1/2 and variance 1/4 (equation 26 of Waudby-Smith and Ramdas), at most half of 1 / mean.
    """
    count = np.arange(1, len(values) + 1)
    running = (0.5 + values.cumsum()) / (count + 1)
    variance = (0.25 + ((values - running) ** 2).cumsum()) / (count + 1)
    before = np.append(0.25, variance[:-1])
    bets = np.sqrt(2 * np.log(1 / error) / (count * np.log(1 + count) * before))
    return np.asarray((1 + np.minimum(bets, 0.5 / mean) * (values - mean)).cumprod())


def _bet(differences: Floats, bound: float, level: float) -> tuple[bool, int]:
    """Whether bets show a positive mean, and after how many differences they end."""
    values = (np.clip(differences / bound, -1, 1) + 1) / 2
    zero, margin = 0.5, (MARGIN / bound + 1) / 2
    keeps = capital(values, zero, level) >= 1 / level
    ends = capital(1 - values, 1 - margin, ALPHA) >= 1 / ALPHA
    if not (keeps | ends).any():
        return False, len(values)
    first = int((keeps | ends).argmax())
    return bool(keeps[first]), first + 1


def _share(session: Session) -> SessionComparison:
    name = f"candidate {session.tried}"
    return find_comparison(session.comparisons, "", "", name, ALPHA)


def _on_seeds(bound: float) -> Rule:
    def judge(session: Session, new: Floats) -> tuple[bool, float, int]:
        share = _share(session)
        keeps, seeds = _bet(new - session.base, bound, share.level)
        share.kept_at = len(session.comparisons) if keeps else None
        return keeps, new[0], seeds

    return judge


def _on_items(session: Session, new: Floats) -> tuple[bool, float, int]:
    share = _share(session)
    items = _ITEM_DEVIATION * session.rng.standard_normal(_ITEMS)
    keeps, _ = _bet(new[0] - session.recorded + items, _ITEM_BOUND, share.level)
    share.kept_at = len(session.comparisons) if keeps else None
    return keeps, new[0], 1


def _decide(session: Session, new: Floats) -> tuple[bool, float, int]:
    share = _share(session)
    answer, seeds = RULES["decide"](new, session.base, share.level)
    share.kept_at = len(session.comparisons) if answer == "keep" else None
    return answer == "keep", new[0], seeds


LOOPS: Mapping[str, Rule] = {
    "decide": _decide,
    "higher": _higher,
    "least difference": _least_difference,
    "confirmed": _confirmed(_higher),
    "least difference, confirmed": _confirmed(_least_difference),
    "median deviation": _median_deviation,
    "betting on seeds, bound 5": _on_seeds(5.0),
    "betting on seeds, bound 50": _on_seeds(50.0),
    "betting on items": _on_items,
}
PAIRED = ("decide", "betting on seeds, bound 5", "betting on seeds, bound 50")
"""Rules that need the baseline's runs of the same seeds."""


@dataclass(frozen=True)
class Case:
    """The effects of a session's candidates, each as likely; one candidate alone, or a session."""

    name: str
    effects: tuple[float, ...]
    candidates: int = RUNS


CASES = (
    *(Case("one candidate", (effect,), 1) for effect in (-1.0, 0.0, 0.5, 1.0, 2.0, 4.0)),
    Case("all null", (0.0,)),
    *(
        Case("1 in 10 better, 3 in 10 worse, the others null", (size, *[-size] * 3, *[0.0] * 6))
        for size in (0.5, 1.0, 2.0, 4.0)
    ),
)


def run_session(case: Case, name: str, rng: np.random.Generator) -> list[tuple[float, bool, int]]:
    """Effect, whether it was kept, and runs of each candidate of a session.

    A rule that compares seed by seed pays for those runs of a baseline that it lacks.
    """
    session, rule, rows = Session(rng), LOOPS[name], []
    session.base = session.draw()
    session.recorded = float(session.base[0])
    session.noise, session.results = session.draw(_NOISE_RUNS), [session.recorded]
    session.runs += _NOISE_RUNS if "least" in name else 0
    while session.tried < case.candidates and session.runs < RUNS:
        session.tried += 1
        effect = case.effects[rng.integers(len(case.effects))]
        new = session.draw()
        keeps, score, runs = rule(session, new + effect)
        paid = runs
        if name in PAIRED:
            paid += max(runs - session.base_runs, 0)
            session.base_runs = max(runs, session.base_runs)
        session.runs += paid
        session.results.append(score)
        rows.append((effect, keeps, paid))
        if keeps:
            # scores are relative to the baseline's true one
            session.base, session.base_runs, session.recorded = new, runs, score - effect
            session.results = [result - effect for result in session.results]
    return rows


def measure(case: Case, name: str, sessions: int, seed: int) -> dict[str, float | str]:
    """One cell: what is kept, the runs of a candidate, and what a session gains."""
    rng = np.random.default_rng([seed, CASES.index(case)])
    sessions *= 10 if case.candidates == 1 else 1
    drawn = [run_session(case, name, rng) for _ in range(sessions)]
    every = pd.DataFrame(
        [(at, *row) for at, rows in enumerate(drawn) for row in rows],
        columns=["session", "effect", "kept", "runs"],
    )
    gain = every["effect"].where(every["kept"], 0.0).groupby(every["session"]).sum()
    false = (every["kept"] & (every["effect"] <= 0)).groupby(every["session"]).any()
    kept = every["kept"].groupby(np.sign(every["effect"])).mean()
    return {
        "case": case.name,
        "size": max(map(abs, case.effects)) if len(case.effects) > 1 else case.effects[0],
        "rule": name,
        "sessions_false_keep": float(false.mean()),
        "worse_kept": float(kept.get(-1.0, np.nan)),
        "null_kept": float(kept.get(0.0, np.nan)),
        "better_kept": float(kept.get(1.0, np.nan)),
        "kept_not_better": float((every["effect"] <= 0)[every["kept"]].mean()),
        "runs": float(every["runs"].mean()),
        "candidates": len(every) / sessions,
        "gain": float(gain.mean()),
        "gain_error": float(gain.std() / sessions**0.5),
        "n": sessions,
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every case under every rule."""
    # a session has up to 199 candidates
    cells = [delayed(measure)(*cell, datasets // 4, seed) for cell in product(CASES, LOOPS)]
    return pd.DataFrame(Parallel(n_jobs=-1)(cells))
