"""Which question a study answers: what varied tells it, unless the study file does."""

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.questions.best import BestQuestion
from mtdlab.analysis.questions.shape import ShapeQuestion
from mtdlab.analysis.questions.study import StudyQuestions
from tests.analysis.inference.test_best import SETTINGS, table_of, trials_of
from tests.analysis.questions.conftest import Ask, make_runs


def kind_of(trials: pd.DataFrame) -> type:
    study = StudyFrames("s", "accuracy", 0, trials, settings=SETTINGS)
    return type(StudyQuestions(study).question)


def test_the_question_is_the_best_with_several_methods_or_without_levels_of_mtd() -> None:
    trials = trials_of(table_of([0.0, 1, 2, 3], 2, 1.0))
    assert kind_of(trials) is BestQuestion
    levels = trials.assign(mtd=10 + trials["learning_rate"])
    assert kind_of(levels) is ShapeQuestion
    methods = np.where(trials["learning_rate"] > 0.1, "simcse", "mocose")
    assert kind_of(levels.assign(method=methods)) is BestQuestion


def test_nothing_is_said_of_a_configuration_without_a_seed_in_common(ask: Ask) -> None:
    means = {"new": 45.0, "middle": 43.0, "old": 70.0}
    runs = make_runs(lambda part, *_: means[part])
    runs = runs[(runs["width"] == 2) & (runs["branch"] == "online")]
    apart = runs.assign(seed=runs["seed"] + 100 * (runs["slice"] == "old"))
    answer = ask(apart, {"best": "configuration"}).question.answer
    assert answer.heading == "slice new is best of the 2 compared"
    assert "Above the lowest" not in answer.certainty
    same = ask(runs, {"best": "configuration"}).question.answer
    assert same.heading == "slice old is best"
    assert "Above the lowest, slice middle" in same.certainty
