"""Reading of stored studies as frames: values, order, missing values, 10,000 trials."""

import re
import sqlite3
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import scale
from full_disk import size_limit
from sqlalchemy import update
from stub_store import begin_trial, claim_trial, end_trial, new_store, study_row

from mtdlab import load_study
from mtdlab.analysis.data.environment import Environment
from mtdlab.analysis.data.frames import (
    CURVE_COLUMNS,
    HISTORY_COLUMNS,
    PROBE_COLUMNS,
    SCORE_COLUMNS,
    TRIAL_COLUMNS,
    Settings,
)
from mtdlab.analysis.report import write_report
from mtdlab.config.study import PlannedTrial
from mtdlab.errors import MtdlabError, NothingToReport, StorageError
from mtdlab.evaluation.items import similarities, values_in_points
from mtdlab.store.claims import Result
from mtdlab.store.database import create_tables
from mtdlab.store.owner import this_process
from mtdlab.store.progress import ProgressReader, list_studies
from mtdlab.store.ranking import SavedModel
from mtdlab.store.records import as_record
from mtdlab.store.store import Store, record_plan
from mtdlab.store.tables import LookRow, TrialRow
from mtdlab.store.urls import storage_url

OWNER = {"host": "here", "boot": "1", "pid": 1, "started": "1"}
SETTINGS = {
    "ema_decay": 0.85,
    "queue_size": 16,
    "batch_size": 8,
    "initial_queue_size": 4,
    "queue_slice": "all",
    "steps": 3,
    "evaluate_every": 2,
}


@pytest.fixture
def store(url: str) -> Store:
    planned = [
        PlannedTrial("a", 0, {"x": 1}),
        PlannedTrial("b", 0, {"x": 2}),
        PlannedTrial("c", 0, {"x": 3}),
    ]
    return new_store(url, *planned, name="small", file_text="study: small\n")


def finish(store: Store, result: Result) -> None:
    end_trial(store, result, owner=OWNER, settings=SETTINGS, mtd=8.667)


def test_a_result_is_read_back_completely(store: Store, url: str) -> None:
    curve = {
        "loss": np.array([3.0, 2.0, 1.0]),
        "ema_decay": np.full(3, 0.85),
        "queue_fill": np.array([4.0, 12.0, 16.0]),
        "score": np.array([np.nan, np.nan, 41.0]),
    }
    arrays = {f"curve/{name}": column.astype(np.float32) for name, column in curve.items()}
    spectra = {"before": np.array([5.0, 1.0]), "after": np.array([4.0, 2.0])}
    arrays |= {f"spectrum/{name}": row.astype(np.float32) for name, row in spectra.items()}
    scores = {"sts_dev": 41.0, "sts_test": 41.5}
    values = {"score": 41.5, "alignment": 0.2, "uniformity": -2.5, "best_step": 3}
    finish(store, Result("COMPLETE", "", values, scores, arrays, Environment(device="cpu")))
    study = load_study("small", url)
    assert (study.planned, study.metric, study.facts) == (3, "sts_test", {"device": "cpu"})
    trial = study.trials.iloc[0]
    assert trial[["number", "state", "queue_size", "seed"]].tolist() == [0, "COMPLETE", 16, 0]
    assert trial[["mtd", "score", "alignment", "best_step"]].tolist() == [8.667, 41.5, 0.2, 3]
    assert np.isnan(trial["mean_cosine"])
    assert study.curves["loss"].tolist() == [3, 2, 1]
    assert study.curves["step"].tolist() == [1, 2, 3]
    assert study.curves["score"].isna().tolist() == [True, True, False]
    assert study.spectra.loc[(0, "after")].tolist() == [4, 2]
    assert dict(zip(study.scores["task"], study.scores["score"], strict=True)) == scores


FAR = np.array([np.nan, 1, -2e30], np.float32)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        (Result("COMPLETE", values={"score": 1.0, "alignment": 1e31}), r"alignment is 1\.000e\+31"),
        (Result("COMPLETE", scores={"sts_test": -1e308}), r"sts_test is -1\.000e\+308"),
        (Result("COMPLETE", arrays={"curve/loss": FAR}), r"a number of curve/loss is -2\.000e\+30"),
        (Result("PRUNED", arrays={"spectrum/after": FAR * np.inf}), "spectrum/after is infinite"),
        (
            Result("COMPLETE", items={"x": values_in_points(FAR, "d")}),
            "a number of items of x is -2",
        ),
        (
            Result("COMPLETE", items={"x": similarities([0, 1], [1, 1e31], "d")}),
            r"a number of gold scores of x is 1\.000e\+31",
        ),
    ],
)
def test_a_result_that_could_not_be_imported_fails_its_trial(
    store: Store, url: str, result: Result, reason: str
) -> None:
    finish(store, result)
    trial = load_study("small", url).trials.iloc[0]
    assert (trial["state"], trial["reason_code"]) == ("FAIL", "error")
    assert re.fullmatch(f".*{reason}.*; numbers within 1e\\+30 of 0 are recorded", trial["reason"])


def test_the_furthest_number_is_recorded(store: Store, url: str) -> None:
    far = np.array([-1e30, np.nan, 1e30], np.float32)
    finish(store, Result("COMPLETE", values={"score": -1e30}, arrays={"spectrum/after": far}))
    assert load_study("small", url).trials["score"].tolist() == [-1e30]


def test_probes_are_read_back_by_trial_step_and_lag(store: Store, url: str) -> None:
    for lowest in (0.5, 0.25):
        arrays = {
            "probe/step": np.array([0, 2, 4]),
            "probe/cosine_different": np.array([0.375, 0.25, 0.125]),
            "probe/cosine/2": np.array([np.nan, 0.875, np.nan]),
            "probe/cosine/4": np.array([np.nan, np.nan, lowest]),
        }
        arrays = {name: values.astype(np.float32) for name, values in arrays.items()}
        finish(store, Result("COMPLETE", values={"score": 1.0}, arrays=arrays))
    finish(store, Result("COMPLETE", values={"score": 1.0}))
    probes = load_study("small", url, curves=False).probes
    assert probes.dtypes.astype(str).to_dict() == dict(PROBE_COLUMNS)
    assert probes.fillna(-1).to_numpy().tolist() == [
        [0, 2, 2, 0.875, 0.25],
        # a key that is not finite is kept as missing
        [0, 4, 2, -1, 0.125],
        [0, 4, 4, 0.5, 0.125],
        [1, 2, 2, 0.875, 0.25],
        [1, 4, 2, -1, 0.125],
        [1, 4, 4, 0.25, 0.125],
    ]


def test_comparisons_of_keys_are_read_back_by_trial_and_step(store: Store, url: str) -> None:
    for similarity in (0.5, 0.75):
        row = (10, 4, 8, similarity, similarity / 2, 0.25)
        names = [name for name in HISTORY_COLUMNS if name != "number"]
        arrays = {
            f"history/{name}": np.array([value] * 2, np.float32)
            for name, value in zip(names, row, strict=True)
        }
        finish(store, Result("COMPLETE", values={"score": 1.0}, arrays=arrays))
    finish(store, Result("COMPLETE", values={"score": 1.0}))
    history = load_study("small", url, curves=False).history
    assert history.dtypes.astype(str).to_dict() == dict(HISTORY_COLUMNS)
    assert history.to_numpy().tolist() == [
        *[[0, 10, 4, 8, 0.5, 0.25, 0.25]] * 2,
        *[[1, 10, 4, 8, 0.75, 0.375, 0.25]] * 2,
    ]


def test_a_study_without_trials_has_empty_frames_with_the_right_columns(
    store: Store, url: str
) -> None:
    study = load_study("small", url)
    assert (len(study.trials), study.planned) == (0, store.counts()["WAITING"])
    for frame, columns in (
        (study.trials, TRIAL_COLUMNS),
        (study.curves, CURVE_COLUMNS),
        (study.scores, SCORE_COLUMNS),
        (study.probes, PROBE_COLUMNS),
        (study.history, HISTORY_COLUMNS),
    ):
        assert list(frame.columns) == list(columns)
        assert frame.empty


def test_a_missing_or_infinite_score_is_missing(store: Store, url: str) -> None:
    finish(store, Result("COMPLETE", values={"score": float("inf")}))
    finish(store, Result("FAIL", "the loss is nan at step 1"))
    finish(store, Result("FAIL", "collapsed", values={"score": float("nan")}))
    trials = load_study("small", url).trials
    assert trials["score"].isna().all()
    assert trials["reason"].tolist() == ["", "the loss is nan at step 1", "collapsed"]


def test_a_sweep_on_a_clock_that_no_import_takes_is_refused(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtdlab.store.store.LATEST", 1e9)
    with pytest.raises(MtdlabError, match=r"seconds since 1970, .*; set the clock of its machine$"):
        store.begin_sweep(this_process())
    assert store.live_sweeps() == []


def test_a_file_that_was_removed_meanwhile_is_named(tmp_path: Path) -> None:
    store = new_store(f"sqlite:///{tmp_path / 'own.db'}", PlannedTrial("a", 0, {}))
    (tmp_path / "own.db").unlink()
    with pytest.raises(StorageError, match=r"own.db: .*; the file was moved or removed while it"):
        store.begin_sweep(this_process())


@pytest.mark.parametrize("size", [0, 4_000])
def test_a_disk_that_is_full_at_the_first_sweep_leaves_no_empty_database(
    size: int, tmp_path: Path
) -> None:
    """An empty one would be taken for a damaged one by the sweep that is to be run again."""
    file, url = tmp_path / "studies.db", f"sqlite:///{tmp_path / 'studies.db'}"
    with size_limit(size), pytest.raises(StorageError, match="disk"):
        create_tables(url)
    assert not file.exists()
    create_tables(url)
    assert list_studies(url) == []


def test_only_the_owner_writes(store: Store) -> None:
    claim = claim_trial(store, OWNER)
    thief = replace(claim, owner=OWNER | {"pid": 2})
    assert not store.heartbeat(thief, 5)
    assert not store.finish(thief, Result("COMPLETE", values={"score": 1.0}))
    assert not store.release(thief)
    assert store.heartbeat(claim, 5)
    assert store.counts() == {"RUNNING": 1, "WAITING": 2}


def test_a_trial_that_waits_again_has_no_step_and_no_sweep(store: Store) -> None:
    sweep = store.begin_sweep(this_process(), max_failed=1)
    claim = store.claim(this_process(), sweep)
    assert claim is not None, "no trial has failed"
    assert store.heartbeat(claim, 5, "training")
    assert store.release(claim)
    with store.database.reading() as session:
        row = session.get_one(TrialRow, claim.row)
        assert (row.step, row.phase, row.sweep) == (0, "", None)


def test_each_trial_is_claimed_once_and_in_order(store: Store) -> None:
    claims = [store.claim(OWNER) for _ in range(4)]
    assert [claim and claim.configuration for claim in claims] == ["a", "b", "c", None]


def test_other_seeds_wait_for_the_parameters_of_the_first(url: str) -> None:
    planned = PlannedTrial("s-0", 0, None), PlannedTrial("s-0", 1, None)
    store = new_store(url, *planned, study_id=2, name="drawn")
    first = claim_trial(store, OWNER)
    assert store.claim(OWNER) is None
    store.begin(first, {"x": 0.3}, SETTINGS, 5.0)
    second = claim_trial(store, OWNER)
    assert (second.seed, second.parameters) == (1, {"x": 0.3})


def test_progress_is_read_by_step_without_writing(store: Store, url: str) -> None:
    store.heartbeat(begin_trial(store, OWNER, SETTINGS), 2)
    progress = ProgressReader(url, 1).read()
    [running] = progress.running
    assert (running.step, running.steps, progress.finished) == (2, 3, 0)


@pytest.mark.usefixtures("store")
def test_studies_are_listed_with_their_states(url: str) -> None:
    (row,) = list_studies(url)
    assert (row.name, row.planned, row.counts, row.state) == ("small", 3, {"WAITING": 3}, "planned")
    assert (row.best, row.last) == (None, None)


@pytest.mark.usefixtures("store")
def test_an_unknown_study_is_an_error_with_the_nearest_name(url: str) -> None:
    with pytest.raises(NothingToReport, match="did you mean small"):
        load_study("smal", url)


def test_reading_never_creates_a_database(tmp_path: Path) -> None:
    path = tmp_path / "mistyped.db"
    with pytest.raises(StorageError, match="no database at"):
        load_study("small", str(path))
    assert not path.exists()


def test_another_programs_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE t (x)")
    with pytest.raises(StorageError, match="contains no mtdlab study"):
        load_study("small", str(path))


def test_an_error_of_the_driver_is_one_sentence_with_the_storage(tmp_path: Path) -> None:
    """Copies are made by the database driver, whose errors SQLAlchemy does not wrap."""
    database = new_store(f"sqlite:///{tmp_path}/studies.db").database
    for block in (database.reading, database.writing):
        expected = pytest.raises(StorageError, match=r"studies\.db: disk I/O error$")
        with expected, block():
            raise sqlite3.OperationalError("disk I/O error")


def test_a_record_of_another_shape_is_named_by_what_reads_it(store: Store) -> None:
    store.write_study(study_row("small", identity={"sampler": "", "trainer": {}, "search": {}}))
    for _ in range(3):
        finish(store, Result("FAIL", "nan"))
    with store.database.writing() as session:
        session.execute(update(TrialRow).values(reports={"a": 1.0}))
    message = r"is damaged: mtdlab_trials\.reports is \{'a': 1\.0\}; expected numbers within 1e\+30"
    with pytest.raises(StorageError, match=message):
        store.ended()


def test_the_storage_is_given_or_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("MTDLAB_STORAGE", "OPTUNA_STORAGE"):
        monkeypatch.delenv(name, raising=False)
    assert storage_url(None) == "sqlite:///mtdlab.db"
    monkeypatch.setenv("OPTUNA_STORAGE", "sqlite:///o.db")
    assert storage_url(None) == "sqlite:///o.db"
    monkeypatch.setenv("MTDLAB_STORAGE", "m.db")
    assert storage_url(None) == "sqlite:///m.db"
    assert storage_url("g.db") == "sqlite:///g.db"


def test_a_function_chooses_the_curves(url: str) -> None:
    store = new_store(url, *(PlannedTrial("a", seed, {}) for seed in range(6)), name="small")
    for _ in range(6):
        curve = {"curve/loss": np.ones(3, np.float32)}
        finish(store, Result("COMPLETE", values={"score": 1.0}, arrays=curve))

    def chosen(trials: pd.DataFrame, settings: Settings) -> list[int]:
        assert "ema_decay" in settings
        return trials["number"].tolist()[1:3]

    study = load_study("small", url, curves=chosen)
    assert study.curves["number"].tolist() == [1, 1, 1, 2, 2, 2]
    assert len(load_study("small", url, curves=lambda *_: True).curves) == 18
    assert load_study("small", url, curves=lambda *_: False).curves.empty


@pytest.mark.slow
def test_ten_thousand_trials_are_reported(url: str, tmp_path: Path) -> None:
    scale.fill(scale.write_study(tmp_path, 10_000), url)
    study = load_study("many", url, curves=False)
    report = write_report(study, tmp_path / "many", generated="today", version="0")
    assert report.page.stat().st_size < 3_000_000
    assert len(pd.read_csv(tmp_path / "many" / "tables" / "trials.csv")) == 10_000


def test_a_plan_that_is_recorded_again_keeps_when_it_was_recorded(store: Store, url: str) -> None:
    assert record_plan(url, "small", {"margin": 0.5}, "one") == 0
    begin_trial(store, OWNER, SETTINGS)
    assert record_plan(url, "small", {"margin": 0.5}, "one") == 0  # though a trial has started
    assert record_plan(url, "small", {"margin": 1.0}, "two") == 1


def test_a_worse_model_does_not_replace_the_record_of_the_best_one(store: Store) -> None:
    finish(store, Result("COMPLETE", values={"score": 40.0}))
    assert store.record_model(0, "a", "/a") is None
    finish(store, Result("COMPLETE", values={"score": 41.0}))
    assert store.record_model(1, "b", "file:///b") == SavedModel(0, "a", "/a")
    assert store.record_model(0, "a", "/a") == SavedModel(0, "a", "/a")
    assert store.saved_model() == SavedModel(1, "b", "file:///b")
    assert store.record_model(1, "b", "file:///c") == SavedModel(1, "b", "file:///b")


def test_a_stop_that_is_requested_is_read_with_the_next_heartbeat(store: Store) -> None:
    mine = store.begin_sweep(this_process())
    assert not store.continue_sweep(mine)
    assert store.request_stop() == [this_process()]
    other = store.begin_sweep(this_process())
    assert [store.continue_sweep(row) for row in (mine, other)] == [True, False]


def test_the_death_of_a_worker_counts_against_the_trial_that_it_has(store: Store) -> None:
    dead = this_process() | {"started": "0"}
    assert store.claim(dead) is not None
    assert not store.record_worker_death(0, "signal 9: Killed")
    assert store.record_worker_death(dead["pid"], "signal 9: Killed")
    assert not store.record_worker_death(dead["pid"], "signal 9: Killed")
    assert store.counts() == {"WAITING": 3}


def test_a_look_is_not_recorded_while_trials_wait(store: Store) -> None:
    finish(store, Result("COMPLETE", values={"score": 40.0}))
    look = LookRow(look=1, seeds=1, trials=[0], alpha=0.05, spent=0.04, added=[])
    look.p_value, look.verdict, look.decision = None, "inconclusive", "max_seeds"
    record = as_record(look) | {"study_id": store.study_id}
    assert not store.record_look(look, {})
    assert store.last_look() is None
    for _ in range(2):
        finish(store, Result("FAIL", "nan"))
    assert store.record_look(look, {})
    assert as_record(store.last_look()) == record
