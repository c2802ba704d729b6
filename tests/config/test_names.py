"""Names that would lead out of the output folder create nothing there."""

import shlex
import sys
from pathlib import Path

import pytest

from mtdlab.cli import main
from mtdlab.config.study import is_study_name

HOSTILE = [
    "../x",
    "..",
    ".",
    "/tmp/x",
    "a/b",
    "a\\b",
    "a\0b",
    "a\n",
    "a" * 300,
    "ä",
    "é",  # composed and decomposed are two names of one look
    "e\u0301",
    "а",  # Cyrillic
    "ａ",  # full width
    "CON:",
    "",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_a_study_cannot_be_called_so(name: str) -> None:
    assert not is_study_name(name)


# YAML and shells leave a line end out, which makes that name a good one
@pytest.mark.parametrize("name", [name for name in HOSTILE if name != "a\n"])
@pytest.mark.parametrize(
    "line",
    [
        "sweep a.yaml --set study={}",
        "sweep a.yaml --profile {}",
        "init {} --out b.yaml",
        "report --published figure2 --name {}",
        "report {}",
        "show {}",
        "doctor {}",
        "plan {} --no-measure",
    ],
)
def test_nothing_is_created_outside_of_the_working_folder(
    line: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.yaml").write_text(
        "study: a\nsearch: {ema_decay: [0.5]}\nprofiles:\n  small: {seeds: [1]}\n"
    )
    monkeypatch.chdir(work)
    monkeypatch.delenv("MTDLAB_STORAGE", raising=False)
    words = [word.replace("{}", name) for word in shlex.split(line)]
    monkeypatch.setattr(sys, "argv", ["mtdlab", *words])
    # an error of another type would end with a traceback
    with pytest.raises(SystemExit, match=r"[245]"):
        main()
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
    assert {path.name for path in work.iterdir()} <= {"a.yaml"}


@pytest.mark.parametrize("setting", ["corpus", "encoder", "evaluation"])
def test_a_path_of_300_bytes_is_refused_in_a_sentence(
    setting: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "a.yaml").write_text("study: a\n")
    monkeypatch.chdir(tmp_path)
    given = f"trainer.{setting}={'a' * 300}"
    monkeypatch.setattr(sys, "argv", ["mtdlab", "sweep", "a.yaml", "--set", given])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert f"mtdlab: {setting} aaa" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["a.yaml"]
