"""Control characters and changes of direction in names reach a terminal escaped."""

import io
import sys
from pathlib import Path

import pytest

from mtdlab.cli import main
from mtdlab.store import FinishedTrial
from mtdlab.sweep.progress import Display, Tally
from mtdlab.terminal import print_text, printable

HOSTILE = "a\x1b[31m\r\x07b\u202ec\u2066\x9b\u200b"
ESCAPED = r"a\x1b[31m\r\x07b\u202ec\u2066\x9b\u200b"


def test_what_moves_the_cursor_or_disguises_text_is_escaped() -> None:
    assert printable(HOSTILE) == ESCAPED
    assert printable("η=0.5\tK/N=8, שלום\n日本語 ü") == "η=0.5\tK/N=8, שלום\n日本語 ü"


def test_printed_text_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    print_text(HOSTILE)
    print_text(HOSTILE, file=sys.stderr, end="")
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (ESCAPED + "\n", ESCAPED)


@pytest.mark.parametrize("as_json", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        ["sweep", f"{HOSTILE}.yaml"],
        ["show", HOSTILE],
        ["report", HOSTILE],
        ["corpus", f"{HOSTILE}.txt"],
        ["evaluate", HOSTILE],
        ["train", "--set", f"corpus={HOSTILE}"],
        ["train", "--set", f"trainer.{HOSTILE}=1"],
    ],
)
def test_errors_are_escaped(
    arguments: list[str],
    as_json: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["mtdlab", *arguments, *(["--json"] if as_json else [])])
    with pytest.raises(SystemExit, match=r"[245]"):
        main()
    printed = capsys.readouterr()
    assert_safe(printed.out + printed.err)


def test_a_quoted_line_of_a_study_file_is_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.yaml").write_text("study: a\n\u202estudy: b\u2066\n", encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["mtdlab", "sweep", str(tmp_path / "a.yaml")])
    with pytest.raises(SystemExit, match="2"):
        main()
    printed = capsys.readouterr().err
    assert r"\u202estudy" in printed
    assert_safe(printed)


def test_the_display_of_a_sweep_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    monkeypatch.setattr(sys, "stderr", written)
    parameters = {"encoder": HOSTILE, HOSTILE: 1}
    with Display(Tally(2, 0, 1, "sts_dev", {})) as display:
        display.message(HOSTILE)
        display.finished(FinishedTrial(0, 0, parameters, "FAIL", HOSTILE, note=HOSTILE))
    assert ESCAPED in written.getvalue()
    assert_safe(written.getvalue())


def assert_safe(text: str) -> None:
    """What is printed holds none of the characters, and shows that they were there."""
    assert printable(text) == text
    assert text
