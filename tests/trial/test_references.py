"""What scores are held against: scored once, recorded with the study, and no part of its trials."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab import load_study
from mtdlab.api.report import load_named
from mtdlab.config.study import StudySpec
from mtdlab.encoders.saved import load_encoder
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.pairs import Pairs, load_pairs
from mtdlab.evaluation.suite import StsTask
from mtdlab.manage.exchange import export_study, import_study
from mtdlab.store.urls import sqlite_file
from mtdlab.sweep.run import Execution, sweep
from mtdlab.trial import references
from mtdlab.trial.references import add_references, find_overlap

TinyStudy = Callable[..., StudySpec]
SHORT: dict[str, Any] = {"search": {"ema_decay": [0.5]}, "seeds": [0]}
PLAIN = ["cls", "mean", "first-last"]


def scored(url: str, name: str = "kept") -> dict[str, float]:
    found = load_study(name, url).references
    return dict(zip(found["reading"], found["score"], strict=True))


def run(spec: StudySpec, url: str) -> None:
    # each database of a test with models of its own
    models = Path(f"{sqlite_file(url)}-models")
    assert sweep(spec, url, Execution(jobs=1), models=models).exit_code == 0


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of seconds scores references, too."""
    monkeypatch.setattr(references, "LEAST", 0.0)
    monkeypatch.setattr(references, "SHARE", 1e6)


def test_word_overlap_is_the_share_of_different_words_that_both_have() -> None:
    pairs = Pairs(["The cat, the dog", "A", "!"], ["the Cat", "b", "?"], np.zeros(3))
    assert find_overlap(pairs) == pytest.approx([2 / 3, 0, 0])


@pytest.mark.usefixtures("at_once")
def test_a_sweep_records_what_a_report_and_an_export_have(
    tiny_study: TinyStudy, url: str, tmp_path: Path, tiny_encoder: Path, tiny_pairs: Path
) -> None:
    run(tiny_study(**SHORT), url)
    found = scored(url)
    # two layers: the last two are the first and the last
    assert {*PLAIN, "word overlap"} <= found.keys()
    assert not any(reading.startswith("last2") for reading in found)
    assert {f"{one}, {way}" for one in PLAIN for way in ("whitened", "flow")} & found.keys()
    pairs = load_pairs(str(tiny_pairs), "test")
    for pooling in PLAIN:
        loaded = load_encoder(str(tiny_encoder), pooling=pooling, device="cpu")
        _, plain = StsTask(pairs, loaded.encoder).measure(loaded.embedder)
        assert found[pooling] == pytest.approx(plain.score)
    assert found["cls"] == pytest.approx(load_study("kept", url).trials["score_before"][0])
    export_study("kept", url, tmp_path / "kept.sqlite")
    elsewhere = f"sqlite:///{tmp_path / 'elsewhere.db'}"
    import_study(tmp_path / "kept.sqlite", elsewhere)
    assert scored(elsewhere) == found


def test_trials_have_the_same_bits_with_and_without(
    tiny_study: TinyStudy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = [f"sqlite:///{tmp_path / name}.db" for name in ("without", "with")]
    run(tiny_study(**SHORT), urls[0])
    assert not scored(urls[0])
    monkeypatch.setattr(references, "LEAST", 0.0)
    for seeds in ([0], [0, 1]):
        run(tiny_study(**SHORT | {"seeds": seeds}), urls[1])
    run(tiny_study(**SHORT | {"seeds": [0, 1]}), urls[0])
    before, after = (load_study("kept", url) for url in urls)
    columns = ["number", "seed", "score", "alignment", "uniformity"]
    pd.testing.assert_frame_equal(before.trials[columns], after.trials[columns])
    pd.testing.assert_frame_equal(before.curves, after.curves)


def test_a_complete_study_gets_them_at_its_next_report_in_a_part_of_its_time(
    tiny_study: TinyStudy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tiny_study(**SHORT), url)
    assert load_named("kept", url).references.empty
    monkeypatch.setattr(references, "LEAST", 0.0)
    monkeypatch.setattr(references, "SHARE", 1e-9)
    # what is scored first has taken all of that time
    assert [*load_named("kept", url).references["reading"]] == ["word overlap"]
    monkeypatch.setattr(references, "SHARE", 1e6)
    assert len(load_named("kept", url).references) == 1
    assert len(load_named("kept", url, references=True).references) > len(PLAIN)


def test_of_the_first_layers_of_an_encoder_these_are_scored(
    tiny_study: TinyStudy, url: str
) -> None:
    run(tiny_study({"encoder_layers": 1}, **SHORT), url)
    add_references(url, "kept", requested=True)
    study = load_study("kept", url)
    assert study.references["encoder"][0].endswith(", layers 1 to 1")
    assert scored(url)["cls"] == pytest.approx(study.trials["score_before"][0])


@pytest.mark.usefixtures("at_once")
def test_another_study_of_the_same_inputs_takes_them_over(
    tiny_study: TinyStudy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tiny_study(**SHORT), url)
    monkeypatch.setattr(references, "_score", lambda *_: pytest.fail("scored again"))
    run(tiny_study(**SHORT, study="other"), url)
    assert scored(url, "other") == scored(url)


def test_nothing_is_recorded_of_what_is_not_that_of_the_study(
    tiny_study: TinyStudy, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(tiny_study(**SHORT), url)
    add_references(url, "kept", requested=True, goes_on=lambda: False)
    assert not scored(url)
    monkeypatch.setattr("mtdlab.encoders.loading.weights_digest", lambda _: "0" * 64)
    with pytest.raises(MtdlabError, match=r"is not that of the study \(SHA-256 \w{12} there"):
        add_references(url, "kept", requested=True)
    assert not scored(url)


def test_only_a_complete_study_of_graded_pairs_has_references(
    tiny_study: TinyStudy, url: str
) -> None:
    spec = tiny_study(**SHORT)
    sweep(spec, url, Execution(jobs=0), models=Path(f"{sqlite_file(url)}-models"))
    with pytest.raises(MtdlabError, match="those of a complete study of mtdlab's trainer"):
        add_references(url, "kept", requested=True)
    add_references(url, "kept")
    assert not scored(url)
