"""The command itself: version, help, completion, errors as JSON, `python -m mtdlab`."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import mtdlab
from mtdlab.cli import app
from tests.commands.conftest import Command, Recorded

MTDLAB = str(Path(sys.executable).parent / "mtdlab")
COMMANDS = list(typer.main.get_group(app).commands)


def test_the_installed_command_and_the_module_print_the_version(tmp_path: Path) -> None:
    for words in ([MTDLAB, "--version"], [sys.executable, "-m", "mtdlab", "--version"]):
        ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert (ran.returncode, ran.stdout, ran.stderr) == (0, f"mtdlab {mtdlab.__version__}\n", "")


def test_a_reader_that_ends_gets_no_traceback(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    words = [MTDLAB, "init", "--list", "--json"]
    ran = subprocess.run(words, cwd=tmp_path, stdout=writer, stderr=subprocess.PIPE, timeout=60)
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (1, b"")


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        ("--version >&-", 0, "", ""),
        pytest.param("--help >&- 2>&- <&-", 0, "", "", marks=pytest.mark.slow),
        # imports torch
        pytest.param("methods >&- 2>&- <&-", 0, "", "", marks=pytest.mark.slow),
        ("studies --storage gone.db 2>&-", 4, "", ""),
        pytest.param(
            *("delete own <&-", 1, r"\s*", r"Delete study own from .*Aborted\.\s*"),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_closed_streams_change_no_exit_code(
    tmp_path: Path, words: str, code: int, out: str, err: str
) -> None:
    command = ["sh", "-c", f'exec "$0" {words}', MTDLAB]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert ran.returncode == code, ran.stderr
    assert re.fullmatch(out, ran.stdout)
    assert re.fullmatch(err, ran.stderr, re.DOTALL)


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_every_command_explains_itself(command: Command, name: str) -> None:
    text = command(f"{name} -h").stdout
    assert "Usage: mtdlab" in text
    assert "--help" in text
    assert command(f"{name} --help").stdout == text
    assert max(map(len, text.splitlines())) <= 80


def test_the_help_lists_every_command(command: Command) -> None:
    text = command("-h").stdout
    assert [name for name in COMMANDS if not re.search(rf"^│ {name} ", text, re.MULTILINE)] == []
    assert {"init", "show", "reproduce", "compare", "studies", "sweep"} <= set(COMMANDS)


@pytest.mark.parametrize(
    ("line", "code", "kind", "message"),
    [
        ("studies --json", 4, "storage", "no database at mtdlab.db"),
        ("sweep none.yaml --json", 2, "invalid input", "none.yaml: no such file"),
        ("sweep --json", 2, "usage", "Missing argument"),
        ("sweep --json --nonsense", 2, "usage", "No such option"),
        ("show --json tiny --storage {storage} 9", 5, "nothing to report", "has no trial 9"),
    ],
)
def test_with_json_an_error_is_one_object_on_standard_output(
    command: Command, recorded: Recorded, line: str, code: int, kind: str, message: str
) -> None:
    done = command(line.format(storage=recorded.storage), code)
    error = json.loads(done.stdout)["error"]
    assert (error["type"], error["exit_code"], done.stderr) == (kind, code, "")
    assert message in error["message"]


def completed(words: str, folder: Path) -> list[str]:
    """What bash would offer for the last word."""
    environment = os.environ | {
        "_MTDLAB_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    ran = subprocess.run(
        [MTDLAB], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )
    return ran.stdout.split()


def test_commands_studies_and_files_are_completed(tmp_path: Path, recorded: Recorded) -> None:
    assert completed("mtdlab re", tmp_path) == ["reproduce", "report", "rename"]
    (tmp_path / "mtd-own.yaml").touch()
    assert completed("mtdlab sweep mtd", tmp_path) == ["mtd-own.yaml", "mtd", "mtd-equation-3"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MTDLAB_STORAGE", str(recorded.storage))
        assert completed("mtdlab show t", tmp_path) == ["tiny"]
    assert completed("mtdlab show t", tmp_path) == []
