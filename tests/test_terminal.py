"""Control characters and changes of direction in names reach a terminal escaped."""

import io
import sys
from pathlib import Path

import pytest

from mtdlab import terminal
from mtdlab.analysis.data.durations import format_seconds
from mtdlab.store.ranking import FinishedTrial
from mtdlab.sweep.progress import Display, SweepTally
from mtdlab.terminal import Phases, print_text, printable
from tests.commands.conftest import Command, command, folder

__all__ = ["command", "folder"]

HOSTILE = "a\x1b[31m\r\x07b\u202ec\u2066\x9b\u200b"
ESCAPED = r"a\x1b[31m\r\x07b\u202ec\u2066\x9b\u200b"


def test_what_moves_the_cursor_or_disguises_text_is_escaped() -> None:
    assert printable(HOSTILE) == ESCAPED
    assert printable("η=0.5\tK/N=8, שלום\n日本語 ü") == "η=0.5\tK/N=8, שלום\n日本語 ü"


def test_printed_text_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(HOSTILE)
    print_text(HOSTILE, file=sys.stderr)
    printed = capsys.readouterr()
    assert printed.out == printed.err == ESCAPED + "\n"


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["sweep", f"{HOSTILE}.yaml"], 2),
        (["show", HOSTILE], 4),
        (["report", HOSTILE], 4),
        (["corpus", f"{HOSTILE}.txt"], 2),
        (["evaluate", HOSTILE], 2),
        (["train", "--set", f"corpus={HOSTILE}"], 2),
        (["train", "--set", f"trainer.{HOSTILE}=1"], 2),
    ],
)
def test_errors_are_escaped(command: Command, words: list[str], code: int, as_json: bool) -> None:
    assert_safe("".join(command([*words, *(["--json"] if as_json else [])], code)))


def test_a_quoted_line_of_a_study_file_is_escaped(command: Command, folder: Path) -> None:
    (folder / "a.yaml").write_text("study: a\n\u202estudy: b\u2066\n", encoding="utf-8")
    printed = command("sweep a.yaml", 2).stderr
    assert r"\u202estudy" in printed
    assert_safe(printed)


def test_the_display_of_a_sweep_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    parameters = {"encoder": HOSTILE, HOSTILE: 1}
    with Display(SweepTally(2, 0, 1, "sts_dev", {})) as display:
        display.message(HOSTILE)
        display.finished(FinishedTrial(0, 0, parameters, "FAIL", HOSTILE, note=HOSTILE))
    assert ESCAPED in written.getvalue()
    assert_safe(written.getvalue())


def assert_safe(text: str) -> None:
    """What is printed holds none of the characters, and shows that they were there."""
    assert printable(text) == text
    assert text


def test_each_phase_is_one_line_with_its_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several workers begin the same phases."""
    now = 10.0
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now)
    phases = Phases(format_seconds)
    phases("loading encoder builtin")
    now += 75
    phases("loading encoder builtin")
    phases("scoring the untrained encoder")
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["0 s: loading encoder builtin", "75 s: scoring the untrained encoder"]
