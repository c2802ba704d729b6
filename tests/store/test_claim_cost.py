"""What a trial costs the database hardly depends on the number of recorded trials."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from claims import database, measure
from scale import write_study
from sqlalchemy import Engine, event

FEW, MANY = 40, 1_000


@pytest.fixture
def work() -> Iterator["count[int]"]:
    """Counts SQLite's instructions in tens, and statements with the rows that they return."""
    done = count()

    def follow(connection: Any, _record: object) -> None:
        if hasattr(connection, "set_progress_handler"):
            connection.set_progress_handler(lambda: next(done) < 0, 10)

    def add(_connection: object, cursor: Any, *_: object) -> None:
        for _row in range(1 + max(cursor.rowcount, 0)):
            next(done)

    hooks = ("connect", follow), ("after_cursor_execute", add)
    for name, hook in hooks:
        event.listen(Engine, name, hook)
    yield done
    for name, hook in hooks:
        event.remove(Engine, name, hook)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_a_claim_and_a_result_cost_the_same_with_many_recorded_trials(
    kind: str, work: "count[int]", tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    url = None if kind == "sqlite" else request.getfixturevalue("empty_postgresql_url")
    cost = {}
    for trials in (FEW, MANY):
        folder = tmp_path / str(trials)
        folder.mkdir()
        with database(url, folder) as place:
            cost[trials] = measure(write_study(folder, trials), place, lambda: next(work))
    for part in ("claim", "begin", "result"):
        assert cost[MANY][part] <= 1.5 * cost[FEW][part], cost
