"""Names that would lead out of the output folder create nothing there."""

import shlex
from pathlib import Path

import pytest

from mtdlab.settings.messages import is_study_name
from tests.commands.conftest import Command, command, folder

__all__ = ["command", "folder"]

HOSTILE = [
    *("../x", "..", ".", "/tmp/x", "a/b", "a\\b", "a\0b", "a\n", "a" * 300, "CON:", ""),
    # an umlaut; composed and decomposed, two names of one look; Cyrillic; full width
    *("ä", "é", "e\u0301", "а", "ａ"),
]


QUICK = ("../x", "/tmp/x", "a\0b", "", "ä")
"""One of each kind; the long tests give each name to each command."""


@pytest.mark.parametrize("name", HOSTILE)
def test_a_study_cannot_be_called_so(name: str) -> None:
    assert not is_study_name(name)


# YAML and shells leave a line end out, which makes that name a good one
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow)
        for name in HOSTILE
        if name != "a\n"
    ],
)
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
    line: str, name: str, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.yaml").write_text(
        "study: a\nsearch: {ema_decay: [0.5]}\nprofiles:\n  small: {seeds: [1]}\n"
    )
    monkeypatch.chdir(work)
    # an error of another type would end with a traceback
    command([word.replace("{}", name) for word in shlex.split(line)], (2, 4, 5))
    assert [path.name for path in tmp_path.iterdir()] == ["work"]
    assert {path.name for path in work.iterdir()} <= {"a.yaml"}


@pytest.mark.parametrize("setting", ["corpus", "encoder", "evaluation"])
def test_a_path_of_300_bytes_is_refused_in_a_sentence(
    command: Command, folder: Path, setting: str
) -> None:
    (folder / "a.yaml").write_text("study: a\n")
    printed = command(f"sweep a.yaml --set trainer.{setting}={'a' * 300}", 2)
    assert f"mtdlab: {setting} aaa" in printed.stderr
    assert [path.name for path in folder.iterdir()] == ["a.yaml"]
