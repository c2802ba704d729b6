"""Which deaths of a trial's process are counted, and when they are forgotten."""

import optuna
import pytest
from stub_store import begin_trial, claim_trial

from mtdlab.config.reader import parse_study
from mtdlab.store.exchange import read_records
from mtdlab.store.owner import this_process
from mtdlab.store.tables import TrialRow
from mtdlab.sweep.open_study import open_study

SPEC = parse_study("a", "study: a\ntrainer: {steps: 4}\nsearch: {ema_decay: [0.5]}\n", [])
MINE = this_process()


@pytest.mark.parametrize(
    ("owner", "counted"),
    [
        (MINE | {"started": "0"}, 1),
        (MINE | {"boot": "an earlier one"}, 0),
        (MINE | {"host": "elsewhere"}, 0),
    ],
    ids=["killed", "the machine was started again", "silent on another machine"],
)
def test_a_death_that_another_sweep_finds_is_counted(
    url: str, owner: dict[str, object], counted: int
) -> None:
    store = open_study(SPEC, url)
    for times in (1, 2, 3):
        assert begin_trial(store, owner, {"steps": 4}).deaths == counted * (times - 1)
        with store.database.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE mtdlab_trials SET heartbeat = heartbeat - 700")
        store.release_abandoned()
        [row] = read_records(url, "a")[TrialRow]
        assert row["deaths"] == counted * times
    ended = ("FAIL", "interrupted") if counted else ("WAITING", "")
    assert (row["state"], row["reason_code"]) == ended
    copies = optuna.load_study(study_name="a", storage=url).get_trials(deepcopy=False)
    assert [trial.state.name for trial in copies] == (["FAIL"] if counted else [])


def test_a_later_checkpoint_forgets_the_deaths(url: str) -> None:
    store = open_study(SPEC, url)
    for deaths in (0, 1):
        claim = claim_trial(store)
        assert store.record_death(claim, "signal 9: Killed") == "WAITING"
        assert claim.deaths == deaths
    claim = claim_trial(store)
    store.reset_deaths(claim)
    assert store.record_death(claim, "signal 9: Killed") == "WAITING"
    assert store.failures() == []
    store.reset_deaths(claim)
    with store.database.engine.connect() as connection:
        assert connection.execute(TrialRow.__table__.select()).mappings().one()["deaths"] == 1
