"""What is not there, or cannot be written to, is a sentence and an exit code."""

import sys
from pathlib import Path

import pytest

from mtdlab.cli import main
from tests.commands.conftest import Command, Recorded


@pytest.mark.parametrize("arguments", ["--data empty", "--data empty --tasks sts"])
def test_a_folder_without_the_data_of_a_task_is_refused(
    command: Command, tmp_path: Path, arguments: str
) -> None:
    (tmp_path / "empty").mkdir()
    printed = command(f"evaluate builtin {arguments}", code=2)
    assert "no task's data are there (STS12: no folder empty/STS/STS12-en-test)" in printed.stderr
    assert not printed.stdout


@pytest.mark.usefixtures("few_simulated_tables")
def test_the_plan_of_a_study_whose_texts_are_missing_is_shown_and_is_bad_input(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.yaml").write_text(
        "study: a\ntrainer: {corpus: gone.txt}\nsearch: {ema_decay: [0.5, 0.75]}\n"
    )
    printed = command("plan a.yaml", code=2)
    assert "gone.txt: cannot be read" in printed.stdout
    assert "ema_decay" in printed.stdout
    assert "; not recorded\n" in printed.stdout
    assert not (tmp_path / "mtdlab.db").exists()
    # not looked for
    command("plan a.yaml --no-measure")


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
@pytest.mark.parametrize(
    ("out", "reason"),
    [
        ("file", "not a directory|file exists"),
        pytest.param(
            "/proc/reports", "no such file or directory|permission denied", marks=pytest.mark.slow
        ),
    ],
)
def test_a_page_that_cannot_be_written_is_a_sentence(
    command: Command, recorded: Recorded, tmp_path: Path, out: str, reason: str
) -> None:
    (tmp_path / "file").write_text("no folder")
    printed = command(f"report tiny --storage {recorded.storage} --out {out}", code=2)
    assert f"--out {out}: the page cannot be written (" in printed.stderr
    assert any(text in printed.stderr for text in reason.split("|")), printed.stderr
    assert (tmp_path / "file").read_text() == "no folder"


def test_a_file_with_one_column_is_refused_before_anything_is_written(
    command: Command, tmp_path: Path
) -> None:
    (tmp_path / "one.tsv").write_text("a sentence\n")
    (tmp_path / "a.yaml").write_text(
        "study: a\ntrainer: {corpus: 'pairs:one.tsv'}\nsearch: {ema_decay: [0.5, 0.75]}\n"
    )
    printed = command("sweep a.yaml", code=2)
    assert (
        "one.tsv:1: 1 columns separated by tabs, not 2; a pair is anchor and positive"
        in printed.stderr
    )
    assert not (tmp_path / "mtdlab.db").exists()


@pytest.mark.parametrize("epoch", ["abc", "", "1e9", "9" * 30])
def test_a_source_date_that_is_no_time_is_refused(
    command: Command, monkeypatch: pytest.MonkeyPatch, epoch: str
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", epoch)
    printed = command("report --study a", code=2)
    assert f"SOURCE_DATE_EPOCH is {epoch!r}; give whole seconds since 1970" in printed.stderr


FULL = Path("/dev/full")


@pytest.mark.skipif(not FULL.exists(), reason="needs Linux's /dev/full")
@pytest.mark.parametrize("buffering", [1, -1], ids=["each line", "at the end"])
@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("show tiny", 1, "cannot be written to: no space left on device"),
        ("studies --json", 1, "cannot be written to: no space left on device"),
        ("show gone --json", 5, "no study gone in"),
    ],
)
def test_output_that_cannot_be_written_is_a_sentence(
    recorded: Recorded,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    buffering: int,
    line: str,
    code: int,
    message: str,
) -> None:
    words = ["mtdlab", *line.split(), "--storage", str(recorded.storage)]
    monkeypatch.setattr(sys, "argv", words)
    with FULL.open("w", buffering) as output:
        monkeypatch.setattr(sys, "stdout", output)
        with pytest.raises(SystemExit, match=f"^{code}$"):
            main()
    assert message in capsys.readouterr().err
