"""Additions: the difference of each configuration and the one before it, by their names."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.data.frames import Plan, RecordedSetting, StudyFrames
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.questions.additions import AdditionsQuestion
from mtdlab.analysis.questions.answer import QuestionOutcome
from mtdlab.analysis.questions.study import StudyQuestions, list_fields
from tests.analysis.questions.conftest import recorded

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
NAMES = ("SimCSE", "with a queue", "with heads", "with FGSM")
ASKED = {"additions": [*NAMES]}
METHODS = ("simcse", "xbm", "mocose", "mocose")


def study_of(means: tuple[float, ...], *, noise: float = 0.3, seeds: int = 6) -> StudyFrames:
    """Four configurations, of which the first two lack a setting that tells the others apart."""
    rng = np.random.default_rng(0)
    runs = pd.DataFrame(
        [(seed, at) for seed in range(seeds) for at in range(4)], columns=["seed", "at"]
    )
    effects, errors = rng.normal(scale=5, size=seeds), rng.normal(scale=noise, size=len(runs))
    runs = runs.assign(
        number=range(len(runs)),
        method=[METHODS[at] for at in runs["at"]],
        epsilon=[[np.nan, np.nan, 0.0, 5e-9][at] for at in runs["at"]],
        score=np.array(means)[runs["at"]] + effects[runs["seed"]] + errors,
        state="COMPLETE",
        reason="",
        mtd=np.nan,
        score_before=np.nan,
        wall_seconds=1.0,
        peak_memory=np.nan,
        batch_size=64,
        steps=10,
    )
    names = {name: tuple(runs.loc[runs["at"] == at, "number"]) for at, name in enumerate(NAMES)}
    settings = {name: RecordedSetting(name) for name in ("method", "epsilon")}
    runs = runs.drop(columns="at")
    return StudyFrames("s", "accuracy", len(runs), runs, settings=settings, names=names)


def ask(study: StudyFrames, asked: dict[str, Any] = ASKED, **options: Any) -> AdditionsQuestion:
    plans: tuple[Plan, ...] = (recorded(asked, **options),)
    question = StudyQuestions(replace(study, plans=plans)).question
    assert isinstance(question, AdditionsQuestion)
    return question


def test_they_are_paired_differences_with_simultaneous_intervals() -> None:
    study = study_of((40, 44, 41, 41))
    question = ask(study)
    scores = study.trials.pivot_table(index="seed", columns="number", values="score")
    by_name = pd.DataFrame({name: scores[[*study.names[name]]].sum(axis=1) for name in NAMES})
    paired = by_name.diff(axis="columns")[[*NAMES[1:]]]
    sizes = question.judged.sizes
    assert [size.mean for size in sizes] == pytest.approx(paired.mean().tolist())
    for size, name in zip(sizes, paired, strict=True):
        alone = stats.ttest_1samp(paired[name], 0).confidence_interval(0.95)
        assert size.high - size.low > alone.high - alone.low - 1e-9 or size.high - size.low > 0.3
    assert question.family_of_differences.names == (
        "with a queue minus SimCSE",
        "with heads minus with a queue",
        "with FGSM minus with heads",
    )
    answer = question.answer
    assert answer.heading == "Gained: with a queue; lost: with heads; 1 of 3 undecided"
    assert answer.outcome is QuestionOutcome.SHOWN
    assert answer.effect is not None
    assert answer.effect.text == "with a queue minus SimCSE"
    assert "for all 3 differences together" in answer.certainty
    assert question.sentence == "What does each addition to SimCSE change in accuracy?"
    listed = list_fields(StudyQuestions(question.results.study))["differences"]
    assert [each["difference"] for each in listed] == [*question.family_of_differences.names]


def test_the_largest_of_those_that_are_shown_is_stated() -> None:
    question = ask(study_of((40, 44, 41, 41)))
    sizes = (Estimate(2, 1, 3), Estimate(-3, -5, -1), Estimate(9, -1, 19))
    vars(question)["judged"] = replace(question.judged, sizes=sizes)
    assert question.added[question.leading] == "with heads"
    assert question.answer.effect is not None
    assert question.answer.effect.size == sizes[1]
    none = tuple(Estimate(size.mean, -30, 30) for size in sizes)
    vars(question)["judged"] = replace(question.judged, sizes=none)
    assert question.added[question.leading] == "with FGSM"


def test_without_an_addition_that_is_shown_none_is_named() -> None:
    question = ask(study_of((40, 40, 40, 40), noise=4))
    assert question.answer.heading == "No addition of 3 is shown to gain or lose"
    assert question.outcome is QuestionOutcome.OPEN
    equal = ask(study_of((40, 40, 40, 40), noise=0.02))
    assert equal.answer.heading == "No addition makes a difference"


def test_a_configuration_without_scores_is_left_out_with_both_its_differences() -> None:
    study = study_of((40, 44, 41, 41))
    failed = study.trials["number"].isin(study.names["with heads"])
    trials = study.trials.assign(
        state=study.trials["state"].mask(failed, "FAIL"), score=study.trials["score"].mask(failed)
    )
    question = ask(replace(study, trials=trials))
    assert question.family_of_differences.names == ("with a queue minus SimCSE",)
    assert "of shared seeds: with heads, with FGSM." in question.answer.certainty


def test_equal_scores_are_no_gain_by_rounding() -> None:
    study = study_of((40, 44, 41, 41))
    before = study.trials.set_index("number").loc[[*study.names["with heads"]], "score"].to_numpy()
    trials = study.trials.copy()
    trials.loc[trials["number"].isin(study.names["with FGSM"]), "score"] = before + 1e-14
    question = ask(replace(study, trials=trials))
    assert question.judged.sizes[2].mean == pytest.approx(0, abs=1e-12)
    assert question.answer.heading.endswith("1 of 3 undecided")
    alone = ask(replace(study, trials=trials), {"additions": ["with heads", "with FGSM"]})
    assert alone.judged.p_value == pytest.approx(1)
    assert alone.answer.heading == "No addition makes a difference"


def test_a_name_given_to_another_configuration_declares_its_question_anew() -> None:
    """Else the names could choose after the results what is compared."""
    study = study_of((40, 44, 41, 41))
    points = {"SimCSE": {"method": "simcse"}, "with a queue": {"method": "xbm"}}
    first, later = recorded(ASKED), recorded(ASKED, after=24)
    swapped = dict(zip(points, reversed(points.values()), strict=True))
    for named, after in ((points, 0), (swapped, 24)):
        plans = tuple(
            replace(plan, values=plan.values | {"named": values})
            for plan, values in ((first, points), (later, named))
        )
        question = StudyQuestions(replace(study, plans=plans)).question
        assert question.after == after
    # of a plan that did not record them nothing is known
    plans = (first, replace(later, values=later.values | {"named": points}))
    assert StudyQuestions(replace(study, plans=plans)).question.after == 0


def test_names_that_no_run_has_are_not_tested() -> None:
    question = ask(study_of((40, 44, 41, 41)), {"additions": ["a", "b"]})
    assert question.outcome is QuestionOutcome.NOT_TESTED
    assert question.answer.heading.startswith("Not tested: no two seeds were run with a config")


def test_the_budget_is_stated_and_a_late_question_is_exploratory() -> None:
    answer = ask(study_of((40, 44, 41, 41)), after=24).answer
    assert answer.certainty.startswith(
        "Configurations compared at an equal budget of 640 sentences a trial. Paired by seed;"
    )
    assert answer.certainty.endswith(
        "Exploratory: the question was declared after 24 trials had started."
    )


def test_two_configurations_are_chosen_for_new_seeds() -> None:
    question = ask(study_of((40, 44, 41, 41)))
    first, second = question.choose_candidates()
    named = question.results.study.named
    assert (named[first["number"]], named[second["number"]]) == ("with a queue", "SimCSE")
