"""Sweeps that begin at once where no database is: they create one study with one set of trials."""

import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from optuna.storages._rdb.models import BaseModel
from sqlalchemy import create_engine
from stub_sweep import StubSweep

from mtdlab.store.database import open_to_write
from mtdlab.store.progress import list_studies
from mtdlab.store.recorded import refuse_foreign
from mtdlab.sweep.open_study import open_study
from tests.conftest import Written
from tests.store.make_database import GRID

TIMES = int(os.environ.get("MTDLAB_CREATIONS", "100"))
SWEEPS = 4


@pytest.mark.parametrize(
    ("server", "times"),
    [
        (False, 2),
        pytest.param(True, 1, marks=pytest.mark.slow),
        pytest.param(False, TIMES, marks=pytest.mark.slow),
    ],
)
def test_sweeps_that_begin_at_once_create_one_study(
    tmp_path: Path, request: pytest.FixtureRequest, written: Written, server: bool, times: int
) -> None:
    spec, start = written(GRID), Barrier(SWEEPS)

    def begin(url: str) -> dict[str, int]:
        start.wait()
        return open_study(spec, url).counts()

    for number in range(times):
        url = f"sqlite:///{tmp_path / f'{number}.db'}"
        if server:
            url = request.getfixturevalue("empty_postgresql_url")
        with ThreadPoolExecutor(SWEEPS) as pool:
            # each opens connections of its own, and raises here what it raised there
            counts = list(pool.map(begin, [url] * SWEEPS))
        assert counts == [{"WAITING": 8}] * SWEEPS
        [listed] = list_studies(url)
        assert (listed.name, listed.planned) == ("grid", 8)


def test_a_study_is_looked_for_while_another_process_creates_optunas_tables(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'study.db'}"
    open_to_write(url)
    for table in BaseModel.metadata.sorted_tables:
        table.create(create_engine(url))
        refuse_foreign(url, "grid")


@pytest.mark.slow
def test_two_sweeps_of_four_workers_run_each_trial_once(tmp_path: Path) -> None:
    study = StubSweep(tmp_path, configurations=10, seeds=2, options={"seconds": 0.01})
    with study.running("--jobs", "4") as first, study.running("--jobs", "4") as second:
        for process in (first, second):
            _, error = process.communicate(timeout=300)
            assert process.returncode == 0, error
            assert "Traceback" not in error
    study.assert_complete()
    assert set(Counter(row for _, row, _ in study.attempts()).values()) == {1}
