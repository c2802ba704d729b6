"""The items of scores, recorded with results and read for all trials of a study."""

import numpy as np
import pytest
from sqlalchemy import select, update
from stub_store import end_trial, new_store

from mtdlab import load_study
from mtdlab.analysis.data.items import ItemScores
from mtdlab.config.study import PlannedTrial
from mtdlab.errors import StorageError
from mtdlab.evaluation.items import Items, similarities, values_in_points
from mtdlab.store.claims import Result
from mtdlab.store.database import adding, reading
from mtdlab.store.exchange import delete_records
from mtdlab.store.store import Store
from mtdlab.store.tables import ArrayRow, ItemsRow
from tests.analysis.conftest import scores_of

GOLD = np.array([0.5, 1, 4.8, np.nextafter(4.8, 5)])


def assert_same_items(first: ItemScores | None, second: ItemScores | None) -> None:
    if first is None or second is None:
        assert first is second
        return
    for name in ("numbers", "values", "gold"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name in ("tasks", "digest"):
        assert getattr(first, name) == getattr(second, name)


def items_of(url: str) -> ItemScores:
    items = load_study("small", url).items
    assert items is not None
    return items


@pytest.fixture
def store(url: str) -> Store:
    planned = [PlannedTrial(f"{number}", 0, {"x": number}) for number in range(6)]
    return new_store(url, *planned, name="small", file_text="study: small\n")


def finish(store: Store, items: dict[str, Items], state: str = "COMPLETE") -> None:
    end_trial(store, Result(state, values={"score": 1.0}, items=items))


def pairs(number: int, digest: str = "abc") -> Items:
    return similarities(np.sin(GOLD * (number + 1)), GOLD, digest)


def test_items_are_read_back_by_trial(store: Store, url: str) -> None:
    assert load_study("small", url).items is None
    finish(store, {"sts_test": pairs(0)})
    finish(store, {})
    finish(store, {"sts_test": pairs(2)})
    study = load_study("small", url)
    finish(store, {"sts_test": pairs(3)})
    items = study.items
    assert items is not None
    # those of the frames, which are of an earlier moment
    assert items.numbers.tolist() == [0, 2]
    assert (items.tasks, items.digest) == ({"sts_test": 4}, "abc")
    assert items.values.dtype == np.float32
    np.testing.assert_array_equal(items.values, [pairs(0).values, pairs(2).values])
    np.testing.assert_array_equal(items.gold, GOLD)
    assert study.items is items
    assert items_of(url).numbers.tolist() == [0, 2, 3]


def test_what_all_trials_share_is_recorded_once(store: Store, url: str) -> None:
    for number in range(3):
        finish(store, {"sts_test": pairs(number)})
    with reading(url) as session:
        assert len(session.scalars(select(ItemsRow)).all()) == 1
        assert len(session.scalars(select(ArrayRow)).all()) == 3


def test_trials_on_other_items_are_not_mixed_with_those_of_most(store: Store, url: str) -> None:
    for number, digest in enumerate(("abc", "def", "def", "abc", "def")):
        finish(store, {"sts_test": pairs(number, digest)})
    items = items_of(url)
    assert (items.digest, items.numbers.tolist()) == ("def", [1, 2, 4])


def test_the_tasks_of_an_average_stand_side_by_side(store: Store, url: str) -> None:
    accuracies = {
        "TREC": values_in_points([100, 0], "trec"),
        "MR": values_in_points([0, 100, 100], "mr"),
    }
    finish(store, accuracies)
    items = items_of(url)
    assert (items.gold, items.tasks) == (None, {"MR": 3, "TREC": 2})
    np.testing.assert_array_equal(items.values, [[0, 100, 100, 100, 0]])
    assert scores_of(items) == pytest.approx([(200 / 3 + 50) / 2])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.ones(3), "3 values of 4 evaluation items"),
        (np.array([1, np.nan, 0, 0]), "a value of an evaluation item is not finite"),
    ],
)
def test_damaged_values_are_refused(
    store: Store, url: str, values: np.ndarray, message: str
) -> None:
    finish(store, {"sts_test": pairs(0)})
    with adding(url) as session:
        session.execute(update(ArrayRow).values(values=values))
    study = load_study("small", url)
    with pytest.raises(StorageError, match=rf"is damaged: trial 0: {message}; restore"):
        _ = study.items


def test_damaged_gold_scores_are_refused(store: Store, url: str) -> None:
    finish(store, {"sts_test": pairs(0)})
    with adding(url) as session:
        session.execute(update(ItemsRow).values(gold=np.ones(2)))
    study = load_study("small", url)
    with pytest.raises(StorageError, match="the gold scores of task sts_test: 2 values of"):
        _ = study.items


def test_only_complete_trials_have_rows(store: Store, url: str) -> None:
    finish(store, {"sts_test": pairs(0)}, state="PRUNED")
    assert load_study("small", url).items is None


def test_they_are_deleted_with_the_study(store: Store, url: str) -> None:
    finish(store, {"sts_test": pairs(0)})
    delete_records(url, "small")
    with reading(url) as session:
        assert session.scalars(select(ItemsRow)).all() == []
        assert session.scalars(select(ArrayRow)).all() == []
