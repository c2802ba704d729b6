"""Interim looks at which configuration is the best: the decision, and who gets seeds next."""

import pandas as pd
import pytest

from mtdlab.analysis.data.frames import Plan, StudyFrames
from mtdlab.analysis.questions.study import LookResult, judge_look
from tests.analysis.inference.test_best import SETTINGS, table_of, trials_of


def look_at(trials: pd.DataFrame, alpha: float, margin: float, *, is_last: bool) -> LookResult:
    plans = (Plan(0, {"margin": margin}, ""),)
    study = StudyFrames("s", "accuracy", 0, trials, settings=SETTINGS, plans=plans)
    return judge_look(study, alpha=alpha, is_last=is_last)


@pytest.mark.parametrize(
    ("effects", "sd", "is_last", "decision"),
    [
        ([0.0, 3, 0], 0.3, False, "decided"),
        ([0.0, 0, 0], 0.05, False, "equivalent"),
        ([0.0, 1, 0], 2.0, False, "continue"),
        ([0.0, 1, 0], 2.0, True, "max_seeds"),
    ],
)
def test_the_decision_of_a_look(
    effects: list[float], sd: float, is_last: bool, decision: str
) -> None:
    trials = trials_of(table_of(effects, 6, sd))
    found = look_at(trials, 0.02, 0.5, is_last=is_last)
    assert found.decision == decision
    assert bool(found.leading) == (decision == "continue")


def test_what_may_be_the_best_gets_seeds_next_and_always_two() -> None:
    scores = table_of([5.0, 5, 0, 0], 4, 0.3)
    trials = trials_of(scores)
    found = look_at(trials, 1e-9, 0.01, is_last=False)
    assert {number % 4 for number in found.leading} == {0, 1}
    # one is far above the others: it needs another to be compared with
    alone = trials_of(table_of([5.0, 1, 0, -1], 4, 0.3))
    found = look_at(alone, 1e-9, 0.01, is_last=False)
    assert {number % 4 for number in found.leading} == {0, 1}


def test_without_scores_nothing_is_compared() -> None:
    trials = trials_of(table_of([0.0, 1], 3, 1.0)).assign(state="FAIL")
    found = look_at(trials, 0.05, 0.5, is_last=False)
    assert (found.verdict, found.decision, found.p_value) == ("inconclusive", "no scores", None)
