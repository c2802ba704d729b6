"""What a sweep records of itself while it runs, and what is shown of one that was killed."""

import json
import os
import signal
from pathlib import Path

import pytest
from stub_store import begin_trial, new_store
from stub_sweep import StubSweep

from mtdlab import load_study
from mtdlab.analysis.report.study_facts import describe_status
from mtdlab.config.study import PlannedTrial
from mtdlab.store.owner import this_process
from mtdlab.store.progress import list_studies
from mtdlab.store.recorded import read_trial
from mtdlab.store.store import Store
from mtdlab.store.tables import living_state
from tests.postgresql import url

__all__ = ["url"]


def make_study(url: str) -> Store:
    return new_store(url, *(PlannedTrial("x", seed, {}) for seed in (0, 1, 2)))


def states(url: str) -> tuple[str, str, dict[str, int]]:
    """The state in the list of studies and on the page, and the number of trials in each."""
    [listed] = list_studies(url)
    return listed.state, describe_status(load_study("a", url)).kind, dict(listed.counts)


def test_a_trial_whose_process_was_killed_is_shown_as_waiting(url: str) -> None:
    store = make_study(url)
    assert states(url) == ("planned", "planned", {"WAITING": 3})
    mine = this_process()
    for owner in (mine, mine | {"started": "0"}):
        begin_trial(store, owner)
    assert states(url) == ("running", "running", {"RUNNING": 1, "WAITING": 2})
    assert load_study("a", url).trials["state"].tolist() == ["RUNNING", "WAITING"]
    living = [living_state(read_trial(url, "a", number).row) for number in (0, 1)]
    assert living == ["RUNNING", "WAITING"]
    # another machine, silent for longer than the documented ten minutes
    elsewhere = json.dumps(mine | {"host": "elsewhere"})
    with store.database.engine.begin() as connection:
        statement = f"UPDATE mtdlab_trials SET owner = '{elsewhere}' WHERE number = 0"
        connection.exec_driver_sql(statement)
    assert states(url)[0] == "running"
    with store.database.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE mtdlab_trials SET heartbeat = heartbeat - 700")
    assert states(url) == ("paused", "paused", {"WAITING": 3})
    # nothing was changed by reading
    assert store.counts() == {"RUNNING": 2, "WAITING": 1}


@pytest.mark.slow
def test_a_killed_sweep_is_paused_at_once(tmp_path: Path) -> None:
    study = StubSweep(tmp_path, configurations=1, seeds=2, steps=200, options={"seconds": 0.05})
    with study.running("--jobs", "1", attempts=1) as process:
        assert study.query("SELECT count(*) FROM mtdlab_sweeps") == [(1,)]
        assert list_studies(str(study.database))[0].state == "running"
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    assert list_studies(str(study.database))[0].state == "paused"
