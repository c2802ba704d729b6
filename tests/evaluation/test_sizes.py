"""Tasks that are shorter than published are scored with a warning that names both counts."""

import json
from pathlib import Path

import numpy as np
import pytest
from test_senteval import lay_out

from mtdlab.config import read_study
from mtdlab.encoders.loading import Encoder
from mtdlab.evaluation.suite import Suite, score_tasks
from mtdlab.evaluation.table import ScoreReport, as_fields, as_text
from mtdlab.evaluation.tasks import (
    BINARY,
    PUBLISHED,
    describe_shortfall,
    load_task,
    task_folder,
)
from mtdlab.settings import Representation
from mtdlab.sweep.preflight import shortfall_warnings
from tests.evaluation.conftest import SHARED, embedder_of


def test_a_class_that_is_cut_short_is_named_with_both_counts(tmp_path: Path) -> None:
    """SUBJ with 20 of the 5,000 lines of one class."""
    folder = lay_out(tmp_path, "SUBJ")
    (folder / "subj.subjective").write_text("a film .\n" * 20)
    (folder / "subj.objective").write_text("a city .\n" * 5000)
    found = describe_shortfall("SUBJ", load_task("SUBJ", folder))
    assert found == "subj.subjective has 20 of the 5,000 published sentences"
    (folder / "subj.subjective").write_text("a film .\n" * 5000)
    assert describe_shortfall("SUBJ", load_task("SUBJ", folder)) == ""


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ("TREC", "its train split has 34 of the 5,452 published sentences; its test split has 34 "),
        ("MRPC", "its train split has 24 of the 4,076 published pairs; its test split has 24 of "),
        ("STSB", "its test split has 12 of the 1,379 published pairs"),
        ("SST2", ""),
        ("STS13", ""),
    ],
)
def test_splits_are_counted_where_their_size_is_known(
    task: str, expected: str, tmp_path: Path
) -> None:
    found = describe_shortfall(task, load_task(task, lay_out(tmp_path, task)))
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize("task", PUBLISHED)
def test_published_files_are_complete(task: str) -> None:
    folder = task_folder(task, SHARED)
    if folder is None or not folder.is_dir():
        pytest.skip("the published files are not part of the repository")
    parts = load_task(task, folder)
    found = np.bincount(parts[0].gold) if task in BINARY else [len(part) for part in parts]
    assert tuple(found) == PUBLISHED[task]
    assert describe_shortfall(task, parts) == ""


def test_the_score_carries_the_warning(encoder: Encoder, tmp_path: Path) -> None:
    lay_out(tmp_path, "STSB")
    scores = score_tasks(embedder_of(encoder), Suite(["STSB"], tmp_path, encoder.sentences))
    report = ScoreReport("m", Representation("cls"), None, "cpu", scores, [], [])
    warning = "its test split has 12 of the 1,379 published pairs"
    assert scores[0].score is not None
    assert f"warning: STSB: {warning}" in as_text(report)
    assert as_fields(report)["tasks"][0]["warning"] == warning


def test_a_sweep_names_short_tasks(tmp_path: Path) -> None:
    for task in ("CR", "STS13"):
        lay_out(tmp_path / "data", task)
    path = tmp_path / "study.yaml"
    trainer = {"evaluation": str(tmp_path / "data"), "tasks": "CR,STS13"}
    path.write_text(f"study: a\ntrainer: {json.dumps(trainer)}\nsearch: {{ema_decay: [0.5]}}\n")
    assert shortfall_warnings(read_study(path)) == [
        "task CR: custrev.neg has 12 of the 1,368 published sentences; custrev.pos has 12 of the "
        "2,407 published sentences"
    ]
