"""The verdict on recorded runs of the default study: few seeds say nothing that more take back."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.inference.shapes import shape_tests

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
RECORDED = Path(__file__).parents[3] / "docs" / "explanation" / "evidence"


def read_runs() -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
    """Scores by part and seed and level, (54, 5), MTD, and the covariance due to the items."""
    runs = pd.read_csv(RECORDED / "default_study_runs.csv")
    items = pd.read_csv(RECORDED / "default_study_items.csv", index_col="mtd")
    scores = runs.pivot_table(index=["part", "seed"], columns="ema_decay", values="score")
    return scores, items.index.to_numpy(dtype=float), items.to_numpy()


SCORES, DISTANCE, ITEMS = read_runs()


def judge(scores: pd.DataFrame, items: np.ndarray | None) -> str:
    tests = shape_tests(scores.to_numpy(), DISTANCE, items)
    fit = tests.fit(scores.to_numpy()[None])
    [shape] = tests.classify(fit, 0.05, 0.5).shape
    return str(shape)


@pytest.mark.parametrize("items", [None, ITEMS], ids=["these items", "items like these"])
def test_all_seeds_and_those_that_had_no_part_in_the_choice_are_peaked(
    items: np.ndarray | None,
) -> None:
    assert len(SCORES) == 54
    assert judge(SCORES, items) == "peaked"
    fresh = SCORES.drop("choice")
    assert len(fresh) == 36
    assert judge(fresh, items) == "peaked"


@pytest.mark.parametrize("items", [None, ITEMS], ids=["these items", "items like these"])
def test_no_eight_seeds_say_that_the_score_rises_to_its_end(
    items: np.ndarray | None,
) -> None:
    found = {judge(SCORES.iloc[first : first + 8], items) for first in range(0, 48, 8)}
    assert found.isdisjoint({"rising", "falling", "flat"})
    assert "peaked" in found
