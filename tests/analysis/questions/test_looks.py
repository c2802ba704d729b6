"""Interim looks: the decision, and the levels that get the next seeds."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.defaults import BeyondRun
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.questions.study import LookResult, judge_look

LEVELS = np.array([5.0, 10.0, 20.0, 40.0, 80.0])


def trials_of(effects: list[float], seeds: int, sd: float) -> pd.DataFrame:
    random = np.random.default_rng(0)
    scores = np.array(effects) + np.arange(seeds)[:, None] + sd * random.normal(size=(seeds, 5))
    seed, level = np.indices((seeds, 5))
    return pd.DataFrame(
        {
            "number": range(5 * seeds),
            "state": "COMPLETE",
            "seed": seed.ravel(),
            "mtd": LEVELS[level.ravel()],
            "score": scores.ravel(),
        }
    )


def levels_of(trials: pd.DataFrame, look: LookResult) -> set[float]:
    """The levels of the trials that get the next seeds first."""
    return set(trials.loc[trials["number"].isin(look.leading), "mtd"])


def judge(
    trials: pd.DataFrame, *, alpha: float, is_last: bool = False, **fields: Any
) -> LookResult:
    study = StudyFrames("s", "accuracy", 0, trials, **fields)
    return judge_look(study, alpha=alpha, is_last=is_last)


PEAK, SATURATING, RISING = [0.0, 4, 6, 4, 0], [0.0, 4, 6, 6.5, 6.4], [0.0, 2, 4, 6, 8]
PLATEAU, FLAT = [0.0, 4, 6, 6.45, 6.44], [0.0] * 5


@pytest.mark.parametrize(
    ("effects", "sd", "is_last", "verdict", "decision"),
    [
        (PEAK, 0.5, False, "peaked", "decided"),
        (PEAK, 20.0, False, "inconclusive", "continue"),
        (PEAK, 20.0, True, "inconclusive", "max_seeds"),
        (FLAT, 0.05, False, "within margin", "flat"),
        # the last level is not shown to be as good as the best: more seeds may find a peak
        (SATURATING, 0.5, False, "rising, end open", "continue"),
        (SATURATING, 0.5, True, "rising, end open", "max_seeds"),
        (RISING, 1.5, False, "rising, end open", "continue"),
        (PLATEAU, 0.05, False, "rising", "decided"),
        (RISING, 0.3, False, "rising", "decided"),
    ],
)
def test_the_decision_of_a_look(
    effects: list[float], sd: float, is_last: bool, verdict: str, decision: str
) -> None:
    found = judge(trials_of(effects, 5, sd), alpha=0.02, is_last=is_last)
    assert (found.verdict, found.decision) == (verdict, decision)
    assert (found.p_value <= 0.02) == (verdict.startswith(("peaked", "rising")))


def test_the_level_of_a_look_decides() -> None:
    trials = trials_of([0.0, 1, 2, 1, 0], 4, 1.0)
    p_value = judge(trials, alpha=0.05).p_value
    strict, lenient = (
        judge(trials, alpha=alpha).verdict for alpha in (p_value / 2, min(2 * p_value, 0.5))
    )
    assert (strict, lenient) == ("inconclusive", "peaked")


@pytest.mark.parametrize(("beyond_run", "verdict"), [("leave-out", "rising"), ("keep", "peaked")])
def test_a_look_leaves_out_levels_beyond_the_run(beyond_run: BeyondRun, verdict: str) -> None:
    trials = trials_of([0.0, 2, 4, 6, 0], 5, 0.3).assign(ema_decay=0.9, steps=100)
    trials.loc[trials["mtd"] == 80, "ema_decay"] = 0.99
    found = judge(trials, alpha=0.02, beyond_run=beyond_run)
    assert found.verdict == verdict
    undecided = judge(trials, alpha=1e-9, beyond_run=beyond_run)
    assert (80 in levels_of(trials, undecided)) == (beyond_run == "keep")


def test_without_scores_there_is_nothing_to_continue() -> None:
    trials = trials_of(PEAK, 2, 1.0).assign(state="FAIL")
    found = judge(trials, alpha=0.05)
    assert (found.decision, found.p_value) == ("no scores", None)
