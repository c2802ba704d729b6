"""Questions on MTD beside its shape: conditions, sufficiency and history."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import Plan
from mtdlab.analysis.inference.verdict import OverLooks
from mtdlab.analysis.questions.answer import QuestionOutcome
from mtdlab.analysis.questions.results import Basis
from mtdlab.analysis.questions.study import list_fields
from mtdlab.analysis.questions.sufficiency import SufficiencyQuestion
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import conditions, sufficiency
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_studies")


def ask(trials: pd.DataFrame, kind: str, *, alpha: float = 0.05) -> StudyContext:
    """The trials as a study that asks one question on MTD."""
    values: dict[str, Any] = {"alpha": alpha, "margin": 0.5, "looks": [3]}
    plans = (Plan(0, values | {"questions": [{kind: "mtd"}]}, ""),)
    return StudyContext(replace(build_study(trials), plans=plans))


def at_two_rates() -> pd.DataFrame:
    rates = [make_trials(noise=0.1).assign(learning_rate=rate) for rate in (1e-4, 1e-3)]
    return pd.concat(rates, ignore_index=True).assign(number=range(48))


def test_without_conditions_nothing_has_a_p_value() -> None:
    question = ask(make_trials(), "conditions").question
    assert question.answer.heading.startswith("Not tested: fewer than two conditions")
    assert np.isnan(question.p_value)


def test_the_conditions_have_the_error_rate_of_the_study() -> None:
    context = ask(at_two_rates(), "conditions", alpha=0.1)
    assert "each at 95 % confidence, all together at 90 %" in context.answer.certainty
    contents = conditions.build(context)
    assert contents is not None
    shared = "The 2 verdicts share the error rate of 10 %: each is at 95 % confidence (Bonferroni)."
    assert shared in contents.text


def test_sufficiency_is_stated_as_it_is_decided() -> None:
    trials = make_trials(noise=0.2)
    trials["score"] += 0.1 * trials["queue_size"] / trials["batch_size"]
    p_value = ask(trials, "sufficiency").question.p_value
    for alpha, outcome, heading in (
        (1.1 * p_value, QuestionOutcome.OPPOSITE, "MTD alone does not determine the score"),
        (0.9 * p_value, QuestionOutcome.OPEN, "That MTD alone determines the score is not rej"),
    ):
        context = ask(trials, "sufficiency", alpha=alpha)
        question = context.question
        assert (question.outcome, question.answer.outcome) == (outcome, outcome)
        assert question.answer.heading.startswith(heading)
        is_rejected = outcome is QuestionOutcome.OPPOSITE
        assert question.judged.label == ("rejected" if is_rejected else "not rejected")
        contents = sufficiency.build(context)
        assert contents is not None
        assert next(iter(contents.text)).startswith(heading)
        interval = f"{100 * (1 - alpha):.3g} % CI"
        assert question.answer.effect.interval.startswith(interval)
        assert f"simultaneous {interval}" in contents.text[1]


def test_of_a_level_that_is_not_one_configuration_the_best_one_is_named() -> None:
    """The first level has the highest configuration, and the other ones the higher means."""
    trials = divided({(6, 64): 30.0, (6, 256): 10.0, (20, 64): 28.0, (20, 256): 27.0})
    context = ask(trials, "sufficiency")
    answer, question = context.answer, context.question
    assert question.outcome is QuestionOutcome.OPPOSITE
    assert context.verdict.peak_mtd == pytest.approx(20)
    chosen = trials[trials["number"] == answer.number].iloc[0]
    assert (round(chosen["mtd"]), chosen["queue_size"]) == (6, 64)
    assert context.best_mean == pytest.approx(30, abs=0.5)
    pair = [(round(row["mtd"]), row["queue_size"]) for row in question.choose_candidates()]
    assert pair == [(6, 64), (6, 256)]
    text = question.find_next_step().text
    assert "η 0.8 with K/N 1 (MTD 6) and η 0.5 with K/N 4 (MTD 6)" in text


def divided(means: dict[tuple[float, int], float]) -> pd.DataFrame:
    """Five seeds of configurations by MTD and K, with N 64, and the mean score of each."""
    decays = [1 - 1 / (mtd - size / 64) for mtd, size in means]
    trials = make_trials(seeds=range(5), decays=decays, times=(1, 4), noise=0.2)
    places = zip(trials["mtd"].round(6), trials["queue_size"], strict=True)
    of_cell = pd.Series([means.get(place, np.nan) for place in places], trials.index)
    score = of_cell + 0.2 * np.random.default_rng(0).standard_normal(len(trials))
    return trials.assign(score=score)[of_cell.notna()]


def test_sufficiency_is_that_of_the_trials_of_the_last_look() -> None:
    trials = make_trials(noise=0.1)
    numbers = frozenset(trials.loc[trials["seed"] < 2, "number"])
    results = ask(trials, "sufficiency")
    question = SufficiencyQuestion(results, results.question.asked, Basis(0.05, numbers=numbers))
    assert (question.judged.seeds, results.question.judged.seeds) == (2, 3)
    over = OverLooks(planned=3, taken=2, confidence=0.95, p_value=0.5, is_early=False)
    last = SufficiencyQuestion(results, results.question.asked, Basis(0.02, over, numbers))
    assert last.answer.effect.interval.startswith("95 % CI ")
    assert last.answer.effect.interval.endswith(", over all looks")


@pytest.mark.parametrize(("kind", "word"), [("history", "not tested"), ("conditions", "shown")])
def test_what_is_decided_of_a_question_is_not_the_shape_of_all_runs(kind: str, word: str) -> None:
    trials = at_two_rates() if kind == "conditions" else make_trials()
    found = list_fields(ask(trials, kind))
    assert (found["verdict"], found["outcome"]) == (word, word)
    assert found["shape"] in ("peaked", "inconclusive")
    assert found["shape"] != found["verdict"]


@pytest.mark.parametrize("kind", ["history", "conditions"])
def test_the_highest_mean_is_not_the_highest_run(kind: str) -> None:
    trials = at_two_rates()
    means = trials.groupby(["learning_rate", "mtd"])["score"].transform("mean")
    lucky = trials.index[means == means.min()][0]
    trials.loc[lucky, "score"] = trials["score"].max() + 1
    answer = ask(trials, kind).answer
    assert answer.recommendation == "Highest mean, not confirmed as best"
    chosen = trials[trials["number"] == answer.number].iloc[0]
    same = (trials[["learning_rate", "mtd"]] == chosen[["learning_rate", "mtd"]]).all(axis=1)
    other = trials.loc[lucky, ["learning_rate", "mtd"]]
    assert not (chosen[["learning_rate", "mtd"]] == other).all()
    assert trials.loc[same, "score"].mean() == pytest.approx(means.max())
