"""What make runs: commands that are only printed, or replaced by one that records its call."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STUB = """#!/bin/sh
echo "$@" >> {log}
case "$*" in *{failing}*) exit {code};; esac
"""


@pytest.mark.parametrize(
    ("code", "failing", "ends_well", "all_run"),
    [
        (0, "nothing", True, True),
        (3, "table4-heads.yaml", False, True),
        (2, "table4-heads.yaml", False, False),
        (5, "report", False, True),
    ],
)
def test_the_papers_studies_run_one_by_one_and_then_the_page(
    tmp_path: Path, code: int, failing: str, ends_well: bool, all_run: bool
) -> None:
    """Failed trials (3) stop nothing, anything else does; either way it ends as failed."""
    log, command = tmp_path / "log", tmp_path / "mtdlab"
    command.write_text(STUB.format(log=log, failing=failing, code=code))
    command.chmod(0o755)
    make = ["make", "-o", ".venv/installed", "paper-small", f"BIN={tmp_path}"]
    done = subprocess.run(make, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == ends_well, done.stdout + done.stderr
    names = sorted(path.stem for path in (ROOT / "studies" / "paper").glob("*.yaml"))
    sweeps = [f"sweep studies/paper/{name}.yaml --profile small" for name in names]
    page = "report --name paper " + " ".join(f"--study {name}-small" for name in names)
    lines = log.read_text().splitlines()
    if all_run:
        assert sorted(lines[:-1]) == sweeps
        assert sorted(lines[-1].split()) == sorted(page.split())
    else:
        assert lines[-1] == f"sweep studies/paper/{failing} --profile small"


@pytest.mark.parametrize(
    ("target", "has_slow", "has_mutants"), [("test", False, False), ("test-long", True, True)]
)
def test_the_long_tests_add_the_slow_ones_and_the_mutants(
    target: str, has_slow: bool, has_mutants: bool
) -> None:
    built = [part for stamp in ("tested", "test-long") for part in ("-o", f".venv/{stamp}")]
    command = ["make", "--dry-run", *built, target]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "-m pytest -n 2" in printed
    assert ('-m "not slow"' not in printed) == has_slow
    assert ("tests/mutation/run.py" in printed) == has_mutants
    assert "pip install" not in printed
