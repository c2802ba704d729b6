"""Two studies in one database: neither reads or modifies the other's trials."""

from collections.abc import Callable
from typing import Any

import pytest
from stub_store import begin_trial, claim_trial, end_trial, new_store

from mtdlab.config.study import PlannedTrial
from mtdlab.store.claims import Result
from mtdlab.store.frames import load_frames
from mtdlab.store.store import Store

OWNER = {"host": "here", "boot": "1", "pid": 1, "started": "1"}
SETTINGS = {
    "ema_decay": 0.85,
    "queue_size": 16,
    "batch_size": 8,
    "initial_queue_size": 4,
    "queue_slice": "all",
    "steps": 3,
}
BEGUN: dict[str, Any] = {"owner": OWNER, "settings": SETTINGS, "mtd": 8.667}


def begin_study(url: str, study_id: int, names: str) -> Store:
    """A study with one waiting trial of each name."""
    planned = [PlannedTrial(name, 0, {"x": at}) for at, name in enumerate(names)]
    return new_store(url, *planned, study_id=study_id, name=f"study-{study_id}")


@pytest.fixture
def mine(url: str) -> Store:
    return begin_study(url, 1, "abc")


@pytest.fixture
def other(url: str) -> Store:
    """Another study with trials of the same names: one complete, one failed, one running."""
    store = begin_study(url, 2, "abcd")
    end_trial(store, Result("COMPLETE", values={"score": 90.0}), **BEGUN)
    end_trial(store, Result("FAIL", "the loss is nan"), **BEGUN)
    begin_trial(store, **BEGUN)
    return store


def next_configuration(store: Store) -> str | None:
    claim = store.claim(OWNER)
    return claim and claim.configuration


def study_name(store: Store) -> str | None:
    row = store.study()
    return row and row.name


def has_a_best_trial(store: Store) -> bool:
    return store.best_trial() is not None


def failed(store: Store) -> list[int]:
    return [row.number for row in store.failures()]


@pytest.mark.parametrize(
    ("read", "in_mine", "in_other"),
    [
        (Store.counts, {"WAITING": 3}, {"COMPLETE": 1, "FAIL": 1, "RUNNING": 1, "WAITING": 1}),
        (has_a_best_trial, False, True),
        (failed, [], [1]),
        (next_configuration, "a", "d"),
        (study_name, "study-1", "study-2"),
    ],
)
def test_each_study_reads_its_own_trials(
    mine: Store, other: Store, read: Callable[[Store], Any], in_mine: Any, in_other: Any
) -> None:
    assert read(mine) == in_mine
    assert read(other) == in_other


def test_running_trials_carry_their_owner_and_heartbeat(mine: Store, other: Store) -> None:
    [running] = other.owned()
    assert running.owner == OWNER
    assert running.silent is not None
    assert mine.owned() == []


def test_retry_failed_affects_one_study_only(mine: Store, other: Store) -> None:
    end_trial(mine, Result("FAIL", "out of memory"), **BEGUN)
    other.retry_failed()
    assert other.counts() == {"COMPLETE": 1, "RUNNING": 1, "WAITING": 2}
    assert mine.counts() == {"FAIL": 1, "WAITING": 2}
    assert (failed(mine), failed(other)) == ([0], [])


def test_sampled_parameters_do_not_affect_another_study(url: str) -> None:
    for study_id in (1, 2):
        planned = [PlannedTrial(name, seed, None) for name in ("s-0", "s-1") for seed in (0, 1)]
        new_store(url, *planned, study_id=study_id, name=f"study-{study_id}")
    begin_trial(Store(url, 1), **BEGUN)
    claims = [claim_trial(Store(url, study_id), OWNER) for study_id in (1, 2, 2)]
    found = [(claim.configuration, claim.seed, claim.parameters) for claim in claims]
    assert found == [("s-0", 1, {}), ("s-0", 0, None), ("s-1", 0, None)]


def test_planning_more_trials_counts_only_the_studys_own(mine: Store, url: str) -> None:
    late = begin_study(url, 3, "ab")
    planned = [PlannedTrial(name, 0, {"x": at}) for at, name in enumerate("abcd")]
    assert mine.add_trials(planned) == {}
    assert mine.counts() == {"WAITING": 4}
    assert late.counts() == {"WAITING": 2}
    assert [*late.add_trials(planned[1:])] == [("a", 0)]


@pytest.mark.usefixtures("mine", "other")
def test_a_page_shows_its_own_trials(url: str) -> None:
    frames = load_frames("study-2", url)
    assert frames.planned == 4
    assert sorted(frames.trials["number"]) == [0, 1, 2]
    assert load_frames("study-1", url).trials.empty
