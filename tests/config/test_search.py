"""The grid that a search spans, and settings from one of its points."""

import itertools
import math
import re

import pytest

from mtdlab.config.search import (
    Choices,
    Range,
    fingerprint,
    grid,
    grid_values,
    parameter_name,
    resolve,
)
from mtdlab.settings.limits import POINTS


def test_whole_numbers_without_a_step_are_visited_one_by_one() -> None:
    assert grid_values("seed", Range(3, 7, integer=True)) == (3, 4, 5, 6, 7)
    assert grid_values("seed", Range(3, 3, integer=True)) == (3,)


@pytest.mark.parametrize(
    ("dimension", "values"),
    [
        (Range(0.1, 0.3, step=0.1), (0.1, 0.2, 0.3)),  # the quotient is 1.9999999999999998
        (Range(0.5, 0.95, step=0.2), (0.5, 0.7, 0.9)),
        (Range(8, 30, step=8, integer=True), (8, 16, 24)),
        (Range(2, 2.5, step=1), (2,)),
        (Choices((0.9, 0.5)), (0.9, 0.5)),
    ],
)
def test_a_step_is_taken_as_often_as_it_fits(
    dimension: Choices | Range, values: tuple[float, ...]
) -> None:
    found = grid_values("x", dimension)
    assert found == pytest.approx(values, rel=1e-12)
    assert all(isinstance(value, int) for value in found) == all(
        isinstance(value, int) for value in values
    )


@pytest.mark.parametrize("dimension", [Range(0, 1), Range(0.1, 1, log=True, step=0.1)])
def test_a_range_without_a_linear_step_has_no_grid(dimension: Range) -> None:
    with pytest.raises(ValueError, match="dropout: a grid needs a list of values, or low"):
        grid_values("dropout", dimension)


def test_the_largest_range_and_the_largest_grid_are_allowed() -> None:
    assert len(grid_values("x", Range(1, POINTS, integer=True))) == POINTS
    with pytest.raises(ValueError, match=f"x: a grid of more than {POINTS} values"):
        grid_values("x", Range(0, POINTS, integer=True))
    ten = Choices(tuple(range(10)))
    width = round(math.log10(POINTS))
    largest = {f"s{number}": ten for number in range(width)}
    assert sum(1 for _ in grid(largest)) == POINTS
    with pytest.raises(ValueError, match=f"has {2 * POINTS} points; it may have {POINTS}"):
        list(grid(largest | {"t": Choices((1, 2))}))


def test_the_last_setting_moves_fastest_and_skipped_points_are_left_out() -> None:
    search = {"a": Choices((1, 2)), "b": Choices((3, 4, 5))}
    points = [{"a": a, "b": b} for a, b in itertools.product((1, 2), (3, 4, 5))]
    assert list(grid(search)) == points
    kept = [point for point in points if point not in ({"a": 1, "b": 3}, {"a": 1, "b": 4})]
    assert list(grid(search, [{"a": (1,), "b": (3, 4)}])) == kept
    assert list(grid(search, [{"a": (1,)}, {"b": (4,)}])) == [points[3], points[5]]


def test_a_multiple_is_named_after_what_it_multiplies() -> None:
    assert parameter_name("queue_size", Choices((2,), "batch_size")) == "queue_size/batch_size"
    assert parameter_name("queue_size", Choices((64,))) == "queue_size"
    assert parameter_name("queue_size", Range(8, 64, step=8)) == "queue_size"


def no_default(name: str, _given: object) -> None:
    raise AssertionError(f"{name} is given")


def test_a_share_is_taken_of_the_queue_that_the_point_has() -> None:
    """Whatever the order in which the settings are written; rounded to whole entries."""
    search = {
        "initial_queue_size": Choices((0.25,), "queue_size"),
        "queue_size": Choices((3,), "batch_size"),
        "batch_size": Choices((6,)),
    }
    point = {"initial_queue_size/queue_size": 0.25, "queue_size/batch_size": 3, "batch_size": 6}
    fixed = {"queue_size": 512, "batch_size": 64, "initial_queue_size": 128, "steps": 9}
    found = resolve(search, point, fixed, no_default)
    assert found == {"batch_size": 6, "queue_size": 18, "initial_queue_size": 4, "steps": 9}
    assert fixed["batch_size"] == 64


def test_a_multiple_may_refer_to_a_setting_that_is_fixed() -> None:
    search = {"queue_size": Choices((2.5,), "batch_size")}
    point = {"queue_size/batch_size": 2.5}
    found = resolve(search, point, {"batch_size": 6, "queue_size": 1}, no_default)
    assert found == {"batch_size": 6, "queue_size": 15}
    default = resolve(search, point, {"steps": 9}, lambda name, _given: {"batch_size": 4}[name])
    assert default == {"steps": 9, "queue_size": 10}


def test_a_setting_that_the_points_method_lacks_is_left_out() -> None:
    search = {"method": Choices(("simcse",)), "queue_size": Choices((1, 2))}
    assert resolve(search, {"method": "simcse"}, {}, no_default) == {"method": "simcse"}


def test_a_fingerprint_is_of_the_values_in_any_order() -> None:
    """It is stored with every trial: another one would make all recorded trials unknown."""
    assert fingerprint({"a": 1, "b": None}) == fingerprint({"b": None, "a": 1})
    assert fingerprint({"a": 1}) != fingerprint({"a": 2})
    assert fingerprint({"a": 1}) != fingerprint({"b": 1})
    assert re.fullmatch("[0-9a-f]{16}", fingerprint({}))
    assert fingerprint({"ema_decay": 0.85, "queue_size": 512}) == "9a55c046a20a352e"
