"""Every process of a study finds the texts and the encoder of the first one."""

from pathlib import Path

import pytest

from mtdlab.analysis.data.environment import Environment
from mtdlab.cli import main
from mtdlab.config.reader import read_study
from mtdlab.errors import MtdlabError
from mtdlab.sweep.run import Execution, sweep
from mtdlab.trial import trainer
from tests.tiny_studies import TinyStudy


@pytest.fixture
def study(
    tmp_path: Path, tiny_study: TinyStudy, tiny_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A study that is recorded and has not begun, and a text of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MTDLAB_CACHE", str(tmp_path / "cache"))
    (tmp_path / "texts.txt").write_text(tiny_corpus.read_text())
    search = {"ema_decay": [0.5]}
    spec = tiny_study({"corpus": "texts.txt"}, study="a", search=search, seeds=[0])
    assert sweep(spec, "sqlite:///a.db", Execution(jobs=0)).counts == {"WAITING": 1}
    return tmp_path / "study.yaml"


def test_another_text_is_refused_and_named(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = study.with_name("texts.txt")
    text.write_text(text.read_text() + "one sentence more\n")
    command = ["mtdlab", "worker", "--study", "a", "--storage", "a.db"]
    monkeypatch.setattr("sys.argv", command)
    with pytest.raises(SystemExit, match=r"^2$"):
        main()
    printed = capsys.readouterr().err
    assert "not the inputs that its first sweep found (corpus texts.txt: SHA-256 " in printed
    assert "encoder" not in printed.partition("not the inputs")[2]


def test_the_same_text_elsewhere_is_the_same(study: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir()
    for name in ("study.yaml", "texts.txt"):
        study.with_name(name).rename(there / name)
    result = sweep(read_study(there / "study.yaml"), "sqlite:///a.db", Execution(jobs=1))
    assert result.counts == {"COMPLETE": 1}


def test_other_weights_under_the_same_name_are_refused(
    study: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtdlab.training.inputs.weights_digest", lambda _: "0" * 64)
    with pytest.raises(MtdlabError, match=r"\(encoder /.*: SHA-256 [0-9a-f]{12} there, 0{12} here"):
        sweep(read_study(study), "sqlite:///a.db", Execution(jobs=0))


def test_other_versions_are_a_warning(
    study: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    elsewhere = Environment(versions={"Python": "2.7", "torch": "9.9"})
    monkeypatch.setattr(trainer, "machine", lambda _: elsewhere)
    assert sweep(read_study(study), "sqlite:///a.db", Execution(jobs=1)).counts == {"COMPLETE": 1}
    printed = capsys.readouterr().err
    assert "mtdlab: study a began with Python 3." in printed
    assert "here Python 2.7" in printed
    assert "its numbers may differ in the last bits" in printed
