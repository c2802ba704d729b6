"""A study written as Parquet and read back."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from mtdlab.analysis.data import stored_frames
from mtdlab.analysis.data.environment import Environment, RecordedCorpus, RecordedEvaluation
from mtdlab.analysis.data.frames import (
    HISTORY_COLUMNS,
    LOOK_COLUMNS,
    PROBE_COLUMNS,
    Plan,
    StudyFrames,
)
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.stored_frames import StoredFramesError, from_parquet, to_parquet
from tests.analysis.conftest import build_study, make_trials
from tests.store.test_stored_items import assert_same_items


def write(study: StudyFrames, out: Path) -> Path:
    out.mkdir(exist_ok=True)
    for name, content in to_parquet(study, generated="2026-01-02 03:04 UTC").items():
        (out / name).write_bytes(content)
    return out / "study.parquet"


@pytest.fixture
def full() -> StudyFrames:
    """A study with every frame, columns of mixed types, and text that is no valid Unicode."""
    trials = make_trials(seeds=(0, 1), times=(1, 2))
    trials["mixed"] = pd.Series([1, "two", None, True, 0.5, np.nan, np.int64(3), "x"], dtype=object)
    look = (1, 3, 8, 0.05, 0.05, 0.2, "peaked", "decided", 0, (0, 1, 2))
    looks = pd.DataFrame([look], columns=list(LOOK_COLUMNS)).astype(dict(LOOK_COLUMNS))
    probes = pd.DataFrame([(0, 4, 2, 0.9, np.nan)], columns=list(PROBE_COLUMNS))
    history = pd.DataFrame([(0, 10, 4, 8, 0.9, 0.7, np.nan)], columns=list(HISTORY_COLUMNS))
    return dataclasses.replace(
        build_study(trials, planned=9),
        description="half a character: \ud800",
        environments=(
            Environment(corpus=RecordedCorpus("a", 2, "texts", "0f", "[UNK]", (0.5, 1)), threads=2),
            Environment(evaluation=RecordedEvaluation("b", 3, 4, shortfalls={"MR": "\ud800"})),
        ),
        looks=looks,
        probes=probes.astype(dict(PROBE_COLUMNS)),
        history=history.astype(dict(HISTORY_COLUMNS)),
        plans=(Plan(0, {"margin": 0.5, "alpha": 0.05, "looks": [3]}, "abc"),),
    )


def test_a_study_is_read_as_it_was_written(full: StudyFrames, tmp_path: Path) -> None:
    path = write(full, tmp_path / "data")
    read, generated = from_parquet(path)
    assert generated == "2026-01-02 03:04 UTC"
    for field in dataclasses.fields(StudyFrames):
        before, after = getattr(full, field.name), getattr(read, field.name)
        if field.name == "looks":
            assert list(after["trials"][0]) == list(before["trials"][0])
            before, after = before.drop(columns="trials"), after.drop(columns="trials")
        if isinstance(before, pd.DataFrame):
            pd.testing.assert_frame_equal(after, before)
        else:
            assert after == before, field.name
    assert from_parquet(path.parent)[0].trials.equals(read.trials)


@pytest.mark.parametrize("gold", [np.array([0.1, 4, 2.3]), None])
def test_items_are_read_as_they_were_written(
    full: StudyFrames, tmp_path: Path, gold: NDArray[np.float64] | None
) -> None:
    values = np.array([[0.1, 0.2, 0.3], [3, 2, 1]], dtype=np.float32)
    items = ItemScores(np.array([2, 5]), values, gold, {"STS12": 1, "STSB": 2}, "abc")
    study = dataclasses.replace(full, load_items=lambda: items)
    path = write(study, tmp_path)
    assert_same_items(from_parquet(path)[0].items, items)
    path.with_name("items.parquet").write_bytes(b"PAR1")
    with pytest.raises(StoredFramesError, match=r"items\.parquet: not a Parquet file"):
        _ = from_parquet(path)[0].items


def test_the_same_study_gives_the_same_bytes(full: StudyFrames) -> None:
    assert to_parquet(full, generated="now") == to_parquet(full, generated="now")


def test_files_that_do_not_belong_together_are_refused(full: StudyFrames, tmp_path: Path) -> None:
    path = write(full, tmp_path / "data")
    scores = path.with_name("scores.parquet")
    other = dataclasses.replace(full, scores=full.scores.head(1))
    scores.write_bytes(to_parquet(other, generated="now")["scores.parquet"])
    with pytest.raises(StoredFramesError, match=r"scores\.parquet: not the file that study"):
        from_parquet(path)
    scores.unlink()
    with pytest.raises(StoredFramesError, match=r"scores\.parquet: no such file, which study"):
        from_parquet(path)


def test_a_study_of_another_version_is_refused(
    full: StudyFrames, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_frames, "_FORMAT", 1)
    path = write(full, tmp_path / "data")
    monkeypatch.undo()
    with pytest.raises(StoredFramesError, match=r"has format 1, this version of mtdlab reads 2"):
        from_parquet(path)


def test_other_parquet_files_are_refused(full: StudyFrames, tmp_path: Path) -> None:
    path = tmp_path / "runs.parquet"
    full.trials.drop(columns="mixed").to_parquet(path)
    with pytest.raises(StoredFramesError, match=r"has format none.*`mtdlab report`.*--table"):
        from_parquet(path)
    path.write_bytes(b"PAR1")
    with pytest.raises(StoredFramesError, match="not a Parquet file that can be read"):
        from_parquet(path)
