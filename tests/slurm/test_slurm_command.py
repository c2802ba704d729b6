"""mtdlab slurm: the study is recorded, the script written, and what was derived is printed."""

import json
import os
import re
import shlex
import stat
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mtdlab import load_study
from mtdlab.cost.measure import Measured, measure
from mtdlab.trial.signals import StopRequest
from tests.commands.conftest import Command, command, folder, query

PROGRAM = """
def train(settings, *, seed, checkpoints, report):
    return {"accuracy": settings["rate"] + seed}
"""
STUDY = """
study: own
metric: accuracy
trainer: {steps: 4}
search: {rate: [1.0, 2.5]}
seeds: [0, 1]
"""
SECRET = "postgresql+psycopg://me:s3cret@127.0.0.1:1/db"


__all__ = ["command", "folder"]


@pytest.fixture(autouse=True)
def study(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program with its study in the working folder of a machine without Slurm."""
    (folder / "own.py").write_text(PROGRAM)
    (folder / "own.yaml").write_text(STUDY)
    monkeypatch.setenv("PATH", "")


OWN = "slurm own.yaml --objective own:train"


def test_the_study_is_recorded_and_the_script_runs_its_worker(
    command: Command, tmp_path: Path
) -> None:
    done = command(OWN)
    assert done.stdout.splitlines() == [
        "study own: 4 trials left, recorded in sqlite:///mtdlab.db",
        "script own.sbatch, logs in own-logs",
        "  tasks   4: without an estimate at most 8",
        "  time    04:00:00: without an estimate; a task requeues itself at its limit",
        "  memory  not set: the cluster's default; --sbatch mem=4G for another",
        "  cores   1: one a worker",
        "  signal  USR1 120 s before the limit; at most 20 requeues at it",
        "next: sbatch own.sbatch",
        "then: mtdlab report --study own",
    ]
    assert "no estimate: how long a program takes is known once" in done.stderr
    assert "sqlite:///mtdlab.db is one file, and network file systems do not lock it" in done.stderr
    text = (tmp_path / "own.sbatch").read_text()
    worker = "-P -m mtdlab worker --study own --storage sqlite:///mtdlab.db --models models"
    assert f"{shlex.quote(sys.executable)} {worker} --objective {tmp_path}/own.py:train\n" in text
    assert "MTDLAB_STORAGE" not in text
    assert "#SBATCH --array=0-3\n" in text
    assert f"cd -- {tmp_path} ||" in text
    assert (tmp_path / "own-logs").is_dir()
    assert query(Path(), "SELECT state FROM mtdlab_trials") == [("WAITING",)] * 4
    assert command("studies").stdout.count("own") == 1


def test_run_again_it_resumes_and_says_when_nothing_is_left(command: Command) -> None:
    command(OWN)
    assert "4 trials left" in command(OWN).stdout
    command("sweep own.yaml --objective own:train --jobs 1")
    done = command(f"{OWN} --out other.sbatch")
    assert done.stdout == "nothing is left to run; next: mtdlab report --study own\n"
    assert not Path("other.sbatch").exists()


def test_the_recorded_command_is_that_of_a_sweep(command: Command) -> None:
    command(f"{OWN} --set trainer.steps=2 --storage other.db --models kept --tasks 2")
    assert load_study("own", "other.db").command == (
        "mtdlab sweep own.yaml --set trainer.steps=2 --objective own:train --storage other.db "
        "--models kept"
    )


def test_options_reach_the_script(command: Command, tmp_path: Path) -> None:
    options = "--tasks 5 --time 90 --gpus 2 --partition gpu --account 'my lab' --sbatch mem=9G"
    done = command(f"{OWN} {options} --max-array-size 3 --out 'a b/run 1.sbatch'", 2)
    assert "the script cannot be written: no such folder" in done.stderr
    (tmp_path / "a b").mkdir()
    done = command(f"{OWN} {options} --max-array-size 3 --out 'a b/run 1.sbatch'")
    lines = (tmp_path / "a b" / "run 1.sbatch").read_text().splitlines()
    for line in (
        "--array=0-2",
        "--time=01:30:00",
        "--cpus-per-task=8",
        "--gres=gpu:2",
        "--partition=gpu",
        '--account="my lab"',
        "--mem=9G",
        f'--output="{tmp_path}/a b/run 1-logs/%A_%a.log"',
    ):
        assert f"#SBATCH {line}" in lines
    assert any(line.endswith("/own.py:train --jobs 2") for line in lines)
    assert "  memory  9G: as given\n" in done.stdout
    assert "  GPUs    2: a worker on each\n" in done.stdout
    assert "an array has at most 3 tasks (MaxArraySize): submit all of these\n" in done.stdout
    assert "next: sbatch --array=0-2 'a b/run 1.sbatch'\n" in done.stdout
    assert "next: sbatch --array=0-1 'a b/run 1.sbatch'\n" in done.stdout


def test_a_password_is_neither_printed_nor_written(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mtdlab.sweep.run.sweep", lambda *_, **__: None)
    for given in ("option", "variable"):
        if given == "variable":
            monkeypatch.setenv("MTDLAB_STORAGE", SECRET)
        done = command(OWN if given == "variable" else f"{OWN} --storage '{SECRET}'")
        text = (tmp_path / "own.sbatch").read_text()
        assert "s3cret" not in text + done.stdout + done.stderr
        assert "--storage" not in text
        assert re.search(r'^: "\$\{MTDLAB_STORAGE:\?export it', text, re.MULTILINE)
        assert "the script holds no password: export MTDLAB_STORAGE before sbatch" in done.stdout
        assert "postgresql+psycopg://me:***@127.0.0.1:1/db" in done.stdout
        assert "one file" not in done.stderr
    without = SECRET.replace(":s3cret", "")
    command(f"{OWN} --storage '{without}'")
    text = (tmp_path / "own.sbatch").read_text()
    assert f"--storage {without} " in text
    assert "MTDLAB_STORAGE" not in text


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ("--time 1h", "--time '1h': not a time limit of a minute or more"),
        ("--sbatch array=0-3", "--sbatch array: cannot be set here, the script has its own"),
        ("--partition $'a\\nb'", "partition 'a.*b': a line of #SBATCH cannot hold"),
        ("--max-array-size 1", r"allows no job arrays \(MaxArraySize is 1\)"),
        ("--out .", "the script cannot be written: is a folder"),
        ("--set trainer=3", "trainer: 3: must be a section"),
        ("--objective own:gone", "own has no function gone"),
    ],
)
def test_bad_input_writes_nothing(
    command: Command, tmp_path: Path, options: str, sentence: str
) -> None:
    line = options.replace("$'a\\nb'", "'a\nb'")
    done = command(f"{OWN} {line}", 2)
    assert re.search(sentence, done.stderr, re.DOTALL), done.stderr
    assert done.stdout == ""
    assert {path.name for path in tmp_path.iterdir()} <= {"own.py", "own.yaml", "__pycache__"}


def test_the_inputs_are_recorded_for_the_tasks(command: Command) -> None:
    """Each task compares what it finds with them."""
    command("slurm mtd --no-measure")
    [(inputs,)] = query(Path(), "SELECT inputs FROM mtdlab_studies")
    assert {"encoder builtin", "corpus builtin"} <= json.loads(inputs).keys()


def test_a_study_that_cannot_run_is_refused(command: Command, tmp_path: Path) -> None:
    done = command("slurm mtd --set trainer.encoder=no/such", 2)
    assert "encoder no/such" in done.stderr
    assert not (tmp_path / "mtd.sbatch").exists()
    assert not (tmp_path / "mtdlab.db").exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where nobody may")
def test_a_folder_without_permission_is_named(command: Command, tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=stat.S_IRUSR | stat.S_IXUSR)
    done = command(f"{OWN} --out closed/own.sbatch", 2)
    assert "the script cannot be written: permission denied" in done.stderr


def measure_here(_server: object, call: Any, _jobs: int) -> list[Measured]:
    """In this process, with other durations: those of workers are tested with the estimate."""
    found = measure(*call[1], StopRequest())
    steps, token = dict.fromkeys(found.steps, 0.01), dict.fromkeys(found.token, 1e-5)
    return [replace(found, imported=time.time(), steps=steps, token=token)]


def test_the_estimate_gives_time_and_memory(
    command: Command,
    tiny_encoder: Path,
    tiny_corpus: Path,
    tiny_pairs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mtdlab.cost.measure.STEADY_SECONDS", 0.0)
    monkeypatch.setattr("mtdlab.cost.estimate.ForkServer", lambda *_: nullcontext())
    monkeypatch.setattr("mtdlab.cost.estimate.closing", lambda server: server)
    monkeypatch.setattr("mtdlab.cost.estimate.call_in_forks", measure_here)
    tiny = (
        f"--set trainer.encoder={tiny_encoder} --set trainer.corpus={tiny_corpus} "
        f"--set trainer.evaluation={tiny_pairs} --set trainer.steps=3 "
        "--set trainer.evaluate_every=3 --set trainer.batch_size=4 --set trainer.pooling=mean "
        "--set seeds=[0] --set trainer.tasks=[] --set metric=sts_test"
    )
    done = command(f"slurm mtd {tiny}")
    # its trials take less time than its start: one task
    assert re.search(
        r"^  tasks   1: at most 32, and each trains at least 10 times", done.stdout, re.MULTILINE
    )
    assert re.search(r"^  memory  \d+ M: 1.5 x \d+ M measured$", done.stdout, re.MULTILINE)
    text = Path("mtd.sbatch").read_text()
    assert re.search(r"^#SBATCH --mem=\d+00M$", text, re.MULTILINE)
    assert re.search(r"^#SBATCH --time=\d\d:[0-5][05]:00$", text, re.MULTILINE)
    without = command(f"slurm mtd {tiny} --no-measure").stdout
    assert "  memory  not set" in without
    assert "SBATCH --mem" not in Path("mtd.sbatch").read_text()
