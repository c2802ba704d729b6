"""The choice of nuisance values, held against means and differences worked out by hand."""

import math
from typing import Any

import pandas as pd
import pytest

from mtdlab.analysis.data.frames import NuisanceTrials
from mtdlab.analysis.statistics.nuisance import choose_nuisance_values, compare_nuisance_values

COLUMNS = ["group", "configuration", "seed", "learning_rate", "selected", "state"]


def nuisance_of(*rows: tuple[Any, ...], chosen: dict[str, Any] | None = None) -> NuisanceTrials:
    """A choice of the learning rate by these trials: `COLUMNS`, complete unless a row ends so."""
    whole = [(*row, "COMPLETE")[: len(COLUMNS)] for row in rows]
    return NuisanceTrials(
        ("learning_rate",), (), len(rows), chosen or {}, pd.DataFrame(whole, columns=COLUMNS)
    )


TWO_SEEDS = (
    ("a", "a", 0, 0.01, 30.0),
    ("a", "a", 0, 0.1, 33.0),
    ("a", "a", 1, 0.01, 34.0),
    ("a", "a", 1, 0.1, 35.0),
    ("b", "b", 0, 0.01, 20.0),
    ("b", "b", 0, 0.1, 18.0),
    ("b", "b", 1, 0.01, 21.0),
    ("b", "b", 1, 0.1, 18.0),
)


def test_each_group_has_the_value_with_its_highest_mean() -> None:
    nuisance = nuisance_of(*TWO_SEEDS)
    table = compare_nuisance_values(nuisance)
    assert table["group"].tolist() == ["a", "a", "b", "b"]
    assert table["mean"].tolist() == pytest.approx([32.0, 34.0, 20.5, 18.0])
    assert table["n"].tolist() == [2] * 4
    # of 0.01 minus 0.1 the differences are -3 and -1, of 0.1 minus 0.01 in the other -2 and -3
    assert table["difference"].tolist() == pytest.approx([-2.0, 0.0, 0.0, -2.5])
    errors = table["difference_se"].tolist()
    assert (errors[0], errors[3]) == pytest.approx((1.0, 0.5))
    assert math.isnan(errors[1])
    assert not table["chosen"].any()
    assert choose_nuisance_values(nuisance) == {
        "a": {"learning_rate": 0.1},
        "b": {"learning_rate": 0.01},
    }


def test_differences_are_paired_in_whatever_order_the_trials_ended() -> None:
    expected = compare_nuisance_values(nuisance_of(*TWO_SEEDS)).set_index(
        ["group", "learning_rate"]
    )
    mixed = compare_nuisance_values(nuisance_of(*reversed(TWO_SEEDS))).set_index(
        ["group", "learning_rate"]
    )
    pd.testing.assert_frame_equal(mixed.sort_index(), expected.sort_index())


def test_a_value_of_which_a_trial_failed_is_not_chosen() -> None:
    """It has the higher mean over the seeds that it has."""
    rows = list(TWO_SEEDS[:4])
    rows[3] = ("a", "a", 1, 0.1, math.nan, "FAIL")
    nuisance = nuisance_of(*rows)
    table = compare_nuisance_values(nuisance)
    assert table["n"].tolist() == [2, 1]
    assert math.isnan(table["difference"].iloc[1])
    assert choose_nuisance_values(nuisance) == {"a": {"learning_rate": 0.01}}
    rows[2] = ("a", "a", 1, 0.01, math.nan, "FAIL")
    assert choose_nuisance_values(nuisance_of(*rows)) == {}


def test_configurations_of_a_group_are_blocks_of_its_choice() -> None:
    """0.1 is better by 3 in one of them and worse by 2 in the other."""
    shared = [("g", *row[1:]) for row in TWO_SEEDS if row[2] == 0]
    differences = compare_nuisance_values(nuisance_of(*shared))["difference"].tolist()
    assert differences == pytest.approx([-0.5, 0.0])
    shared = [("g", *row[1:]) for row in TWO_SEEDS]
    table = compare_nuisance_values(nuisance_of(*shared))
    assert table["mean"].tolist() == pytest.approx([26.25, 26.0])
    assert choose_nuisance_values(nuisance_of(*shared)) == {"g": {"learning_rate": 0.01}}


def test_the_recorded_choice_is_marked_and_an_end_of_the_range_too() -> None:
    rows = [("a", "a", 0, rate, score) for rate, score in ((0.1, 1.0), (0.2, 3.0), (0.4, 2.0))]
    for chosen, at_end in ((0.2, False), (0.4, True), (0.1, True)):
        table = compare_nuisance_values(nuisance_of(*rows, chosen={"a": {"learning_rate": chosen}}))
        assert table.loc[table["chosen"], "learning_rate"].tolist() == [chosen]
        assert table["at_end"].any() == at_end
        assert not table.loc[~table["chosen"], "at_end"].any()


def test_one_seed_has_no_standard_error_and_no_trial_no_table() -> None:
    assert compare_nuisance_values(nuisance_of(*TWO_SEEDS[:2]))["difference_se"].isna().all()
    empty = compare_nuisance_values(nuisance_of())
    assert list(empty)[:2] == ["group", "learning_rate"]
    assert choose_nuisance_values(nuisance_of()) == {}
