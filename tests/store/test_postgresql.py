"""Sweeps on a PostgreSQL server: shared, begun at once, claimed by many processes, cut off."""

import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pytest
from pytest_postgresql.executors import PostgreSQLExecutor
from sqlalchemy import Engine, event, text
from stub_store import new_store

from mtdlab import load_study
from mtdlab.config.study import PlannedTrial
from mtdlab.errors import ConnectionLost, StorageError
from mtdlab.store import restarts
from mtdlab.store.database import adding, open_to_read, open_to_write
from mtdlab.store.progress import Progress, ProgressReader, list_studies
from mtdlab.store.store import Store
from mtdlab.sweep import run as runs
from mtdlab.sweep.open_study import open_study
from mtdlab.trial import trainer
from mtdlab.trial import worker as workers
from tests.conftest import Written
from tests.postgresql import cut_connections, optuna_storage, wait_until_ready
from tests.store.claiming import claim_all
from tests.store.make_database import DRAWN, GRID, restore

# where the number of trials does not matter: each takes dozens of connections
FOUR = GRID.replace("[0.5, 0.75]", "[0.5]")
SHORT = FOUR.replace("values: [1, 2]", "values: [1]")
DONE = (0, {"COMPLETE": 2})
"""How a sweep of the short study ends."""
PROCESSES = multiprocessing.get_context("forkserver")
Sweep = Callable[..., tuple[int, dict[str, int]]]
pytestmark = pytest.mark.usefixtures("no_training")


@pytest.fixture
def sweep(written: Written, postgresql_url: str) -> Sweep:
    """Run a study file on the server to its end; its exit code and its trials."""

    def call(contents: str, **options: Any) -> tuple[int, dict[str, int]]:
        result = runs.sweep(written(contents), postgresql_url, runs.Execution(jobs=1, **options))
        return result.exit_code, result.counts

    return call


@pytest.mark.parametrize(
    ("contents", "count"),
    [pytest.param(SHORT, 2, marks=pytest.mark.slow), (DRAWN.replace("trials: 3", "trials: 1"), 2)],
)
def test_a_sweep_on_a_server_is_read_like_one_on_a_file(
    written: Written, sweep: Sweep, contents: str, count: int, postgresql_url: str, tmp_path: Path
) -> None:
    name = written(contents).name
    code, counts = sweep(contents)
    assert (code, sum(counts.values())) == (0, count)
    on_server = load_study(name, postgresql_url)
    on_file = load_study(name, str(restore(tmp_path / "recorded.db")))
    # one was recorded before the setting existed
    columns = [column for column in on_server.trials if column != "encoder_layers"]
    assert columns == [column for column in on_file.trials if column != "note"]
    assert on_server.curves.dtypes.to_dict() == on_file.curves.dtypes.to_dict()
    assert len(on_server.curves) == 4 * count
    [listed] = list_studies(postgresql_url)
    assert listed.last is not None
    assert (listed.planned, listed.best is None) == (count, False)
    storage = optuna_storage(postgresql_url)
    assert len(optuna.load_study(study_name=name, storage=storage).trials) == count


@pytest.mark.slow
@pytest.mark.parametrize(("trials", "repeats"), [(50, 1), (200, 5)])
def test_four_processes_claim_every_queued_trial_once(
    postgresql_url: str, trials: int, repeats: int
) -> None:
    store = new_store(postgresql_url)
    with ProcessPoolExecutor(4, mp_context=PROCESSES) as pool:
        for repeat in range(repeats):
            names = [f"{repeat}-{number}" for number in range(trials)]
            # those recorded stay in the plan: recorded ones that it lacks would be refused
            planned = [
                PlannedTrial(f"{r}-{n}", 0, {}) for r in range(repeat + 1) for n in range(trials)
            ]
            assert store.add_trials(planned) == {}
            lists = list(pool.map(claim_all, [postgresql_url] * 4, range(4)))
            claimed = Counter(name for names in lists for name in names)
            assert claimed == Counter(names)


@pytest.mark.slow
def test_connections_that_are_cut_during_trials_do_not_end_a_sweep(
    sweep: Sweep, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = trainer.train_trial

    def cut(monitor: Any) -> Any:
        cut_connections(postgresql_url)
        assert monitor.run.study.store.heartbeat(monitor.run.claim, 1)
        cut_connections(postgresql_url)
        monitor.run.study.store.counts()
        cut_connections(postgresql_url)
        return train(monitor)

    monkeypatch.setattr(trainer, "train_trial", cut)
    assert sweep(SHORT) == DONE


@pytest.mark.slow
def test_a_result_whose_connection_is_cut_is_recorded_again(
    sweep: Sweep, postgresql_url: str
) -> None:
    """Within the transaction, which is rolled back."""
    left = [2]

    @event.listens_for(Engine, "before_cursor_execute")
    def _cut(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO mtdlab_scores") and left:
            left.pop()
            cut_connections(postgresql_url)

    try:
        assert sweep(SHORT) == DONE
    finally:
        event.remove(Engine, "before_cursor_execute", _cut)
    assert left == []


def lose(method: Callable[..., Any], times: int) -> Callable[..., Any]:
    """A method whose connection is lost after its commit, so many times."""
    left = [True] * times

    def losing(*arguments: Any, **named: Any) -> Any:
        found = method(*arguments, **named)
        if left:
            left.pop()
            raise ConnectionLost("the connection was lost")
        return found

    return losing


@pytest.mark.parametrize("released", [0, pytest.param(3, marks=pytest.mark.slow)])
def test_a_claim_that_may_be_committed_is_released(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch, released: int
) -> None:
    """Also where its release loses the connection; a process does not wait for itself."""
    monkeypatch.setattr(Store, "claim", lose(Store.claim, 4))
    monkeypatch.setattr(Store, "release_without_steps", lose(Store.release_without_steps, released))
    assert sweep(SHORT, wait=True) == DONE


@pytest.mark.slow
def test_a_connection_that_is_always_lost_ends_the_sweep_and_leaves_no_trial_running(
    written: Written, sweep: Sweep, postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, begin = written(FOUR), Store.begin
    monkeypatch.setattr(restarts, "MOST_ATTEMPTS", 2)
    monkeypatch.setattr(workers, "MOST_ATTEMPTS", 2)
    for method in ("claim", "begin", "finish"):
        with monkeypatch.context() as patch:
            patch.setattr(Store, method, lose(getattr(Store, method), 2))
            with pytest.raises(StorageError, match="the connection was lost"):
                sweep(FOUR)
        counts = open_study(spec, postgresql_url).counts()
        assert "RUNNING" not in counts
        assert counts["WAITING"] == (2 if method == "finish" else 4)
    assert begin is Store.begin
    # the count of lost connections begins anew
    monkeypatch.setattr(Store, "claim", lose(Store.claim, 1))
    assert sweep(FOUR) == (0, {"COMPLETE": 4})


@pytest.mark.slow
def test_the_end_of_a_sweep_outlasts_a_lost_connection(
    sweep: Sweep, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method in ("counts", "best_trial", "last_look"):
        monkeypatch.setattr(Store, method, lose(getattr(Store, method), 2))
    assert sweep(SHORT) == DONE


@pytest.mark.slow
def test_a_server_that_stops_ends_the_sweep_in_a_sentence_and_nothing_is_lost(
    written: Written,
    postgresql_url: str,
    postgresql_server: PostgreSQLExecutor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spec, train = written(FOUR), trainer.train_trial
    trained: list[tuple[Any, ...]] = []

    def stop(monitor: Any) -> Any:
        result, settings = train(monitor), monitor.settings
        trained.append((settings.ema_decay, settings.queue_size, settings.seed))
        if len(trained) == 2:
            postgresql_server.stop()
        return result

    monkeypatch.setattr(trainer, "train_trial", stop)
    monkeypatch.setattr(restarts, "RESTART_SECONDS", 0.0)
    try:
        with pytest.raises(StorageError, match=r"\*\*\*@127.*onnection") as caught:
            runs.sweep(spec, postgresql_url, runs.Execution(jobs=1))
    finally:
        postgresql_server.start()
        wait_until_ready(postgresql_url)
    assert caught.value.exit_code == 4
    # the process that ran the trial would have ended
    monkeypatch.setattr("mtdlab.store.tables.is_dead", lambda *_: True)
    result = runs.sweep(spec, postgresql_url, runs.Execution(jobs=1))
    assert (result.exit_code, result.counts, result.ran) == (0, {"COMPLETE": 4}, 3)
    assert len(set(trained)) == 4


@pytest.mark.slow
def test_a_server_that_is_started_again_is_waited_for(
    postgresql_url: str,
    postgresql_server: PostgreSQLExecutor,
    monkeypatch: pytest.MonkeyPatch,
    waits: Callable[[Callable[[], object]], int],
) -> None:
    store = new_store(postgresql_url)
    reading = ProgressReader(postgresql_url, 1)
    postgresql_server.stop()
    try:
        with monkeypatch.context() as patch:
            patch.setattr(restarts, "_answered", set())
            # a URL that has not answered may be wrong
            assert waits(lambda: Store(postgresql_url, study_id=1)) == 0
        with restarts.without_waiting():
            assert waits(store.counts) == 0
        with ThreadPoolExecutor(1) as pool:
            started = pool.submit(lambda: (time.sleep(0.5), postgresql_server.start()))
            assert store.counts() == {}
            assert reading.read() == Progress({}, [], [])
            started.result()
    finally:
        if not postgresql_server.running():
            postgresql_server.start()
        wait_until_ready(postgresql_url)


@pytest.mark.slow
def test_a_server_that_stays_away_is_waited_for_once(
    postgresql_url: str,
    postgresql_server: PostgreSQLExecutor,
    monkeypatch: pytest.MonkeyPatch,
    waits: Callable[[Callable[[], object]], int],
) -> None:
    """By all connections of a process together."""
    monkeypatch.setattr(restarts, "RESTART_SECONDS", 1.0)
    store = Store(postgresql_url, study_id=1)
    postgresql_server.stop()
    try:
        # until more than RESTART_SECONDS have passed
        assert waits(store.counts) == 3
        assert waits(store.counts) == 0
        assert waits(lambda: Store(postgresql_url, study_id=1)) == 0
    finally:
        postgresql_server.start()
        wait_until_ready(postgresql_url)
    assert store.counts() == {}


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], int]:
    """How often a call waits for the server before it raises StorageError.

    The clock of restarts is the sum of the waits.
    """
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        time.sleep(seconds)

    monkeypatch.setattr(
        restarts, "time", SimpleNamespace(monotonic=lambda: sum(pauses), sleep=sleep)
    )

    def waits_of(function: Callable[[], object]) -> int:
        before = len(pauses)
        with pytest.raises(StorageError, match="onnection"):
            function()
        return len(pauses) - before

    return waits_of


def test_another_schema_on_a_server_is_refused(postgresql_url: str) -> None:
    with adding(postgresql_url) as session:
        session.execute(text("UPDATE mtdlab_schema SET version = 99"))
    for opening in (open_to_read, open_to_write):
        with pytest.raises(StorageError, match=r"has schema 99.*install the version of mtdlab"):
            opening(postgresql_url)


@pytest.mark.slow
def test_a_lock_that_another_process_holds_is_named_with_its_time(
    postgresql_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = new_store(postgresql_url)
    monkeypatch.setattr("mtdlab.store.database.LOCK_TIMEOUT_SECONDS", 1.0)
    impatient = Store(postgresql_url, study_id=1)
    with store.database.engine.begin() as connection:
        connection.execute(text("LOCK TABLE mtdlab_trials"))
        with pytest.raises(StorageError, match=r"lock timeout after 1 s; stop the process that"):
            impatient.counts()
    assert impatient.counts() == {}
