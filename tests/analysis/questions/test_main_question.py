"""Which question a study answers: what varied tells it, unless the study file does."""

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.questions.best import BestQuestion
from mtdlab.analysis.questions.results import StudyResults
from mtdlab.analysis.questions.shape import ShapeQuestion
from mtdlab.analysis.questions.study import find_main
from tests.analysis.inference.test_best import SETTINGS, table_of, trials_of


def kind_of(trials: pd.DataFrame) -> type:
    study = StudyFrames("s", "accuracy", 0, trials, settings=SETTINGS)
    return type(find_main(StudyResults(study)))


def test_the_question_is_the_best_with_several_methods_or_without_levels_of_mtd() -> None:
    trials = trials_of(table_of([0.0, 1, 2, 3], 2, 1.0))
    assert kind_of(trials) is BestQuestion
    levels = trials.assign(mtd=10 + trials["learning_rate"])
    assert kind_of(levels) is ShapeQuestion
    methods = np.where(trials["learning_rate"] > 0.1, "simcse", "mocose")
    assert kind_of(levels.assign(method=methods)) is BestQuestion
