"""A study written as Parquet and read back."""

import copy
import dataclasses
import json
from collections.abc import Iterator
from functools import reduce
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from numpy.typing import NDArray
from pydantic import TypeAdapter

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

PLAN = {"study": "a", "metric": "sts_test", "margin": 0.5, "alpha": 0.05, "looks": [3]}
PLAN |= {"beyond_run": "leave-out"}


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
        plans=(Plan(0, PLAN, "abc"),),
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
    path.with_name("items.parquet").unlink()
    # at once, where a page can still be refused, not when the items are first used
    with pytest.raises(StoredFramesError, match=r"items\.parquet: no such file, which study"):
        from_parquet(path)


def test_what_describes_a_study_is_stored_once(full: StudyFrames, tmp_path: Path) -> None:
    """Arrow's own schema would hold it again."""
    assert {*parquet.read_metadata(write(full, tmp_path)).metadata} == {b"mtdlab", b"pandas"}


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


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in JSON, and of a list its first two."""
    yield path
    named = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for name, part in named:
        if isinstance(part, dict | list):
            yield from places(part, (*path, name))
        else:
            yield (*path, name)


def edited(about: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    """A copy of the metadata with another value at a place, or without it for "removed"."""
    changed = copy.deepcopy(about)
    parent = reduce(lambda part, name: part[name], path[:-1], changed)
    if value == "removed":
        del parent[path[-1]]
    else:
        parent[path[-1]] = value
    return changed


@pytest.mark.parametrize("has_digest", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_edited_metadata_are_refused_or_read(
    full: StudyFrames, tmp_path: Path, has_digest: bool
) -> None:
    """With the digest each edit is refused; without one, as of an earlier version, what is read has
    the types of a study's fields."""
    path = write(full, tmp_path)
    table = parquet.read_table(path)
    about = json.loads(table.schema.metadata[b"mtdlab"])
    if not has_digest:
        del about["digest"]
    reads = 0
    for place in [*places(about)][1:]:
        for value in ("removed", "x") if has_digest else (None, "removed", {"a": 1}):
            changed = edited(about, place, value)
            content = {**table.schema.metadata, b"mtdlab": json.dumps(changed).encode()}
            parquet.write_table(table.replace_schema_metadata(content), path)
            try:
                read, generated = from_parquet(path)
            except StoredFramesError:
                continue
            reads += 1
            assert changed == about or not has_digest or place == ("digest",), place
            assert isinstance(generated, str)
            kinds = get_type_hints(StudyFrames)
            for name in ("name", "metric", "planned", "sampler", "table", "methods", "beyond_run"):
                TypeAdapter(kinds[name]).validate_python(getattr(read, name), strict=True)
    assert reads > 0


def test_trials_that_were_changed_are_refused(full: StudyFrames, tmp_path: Path) -> None:
    path = write(full, tmp_path)
    table = parquet.read_table(path)
    scores = pa.array(table["score"].to_numpy() + 5)
    raised = table.set_column(table.column_names.index("score"), "score", scores)
    parquet.write_table(raised.replace_schema_metadata(table.schema.metadata), path)
    with pytest.raises(StoredFramesError, match=r"was changed since it was written.*its digest"):
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
