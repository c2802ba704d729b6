"""`mtdlab reproduce`: the same result again, and what differs where it is not the same."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from mtdlab.analysis.data.environment import Environment
from mtdlab.data_paths import RUN
from mtdlab.errors import TrialError
from mtdlab.manage import reproduce
from tests.commands.conftest import Command, Recorded


@pytest.fixture
def storage(recorded: Recorded, tmp_path: Path) -> Path:
    """A copy of the recorded study's database, to change."""
    return Path(shutil.copy(recorded.storage, tmp_path / "mtdlab.db"))


def change(storage: Path, statement: str) -> None:
    with closing(sqlite3.connect(storage)) as database:
        database.execute(statement)
        database.commit()


def test_a_trial_runs_again_to_the_same_bits(
    command: Command, storage: Path, recorded: Recorded, tmp_path: Path
) -> None:
    before = storage.read_bytes()
    out = tmp_path / "model"
    done = command(f"reproduce tiny 0 --out {out}")
    assert json.loads((out / RUN).read_text(encoding="utf-8"))["settings"]["seed"] == 0
    assert "Bit-identical: all scores, and the loss of all 4 steps." in done.stdout
    assert "warning" not in done.stdout
    found = json.loads(command("reproduce tiny 0 --json").stdout)
    assert (found["identical"], found["environment"]) == (True, {})
    assert found["reproduced"] == found["recorded"]
    assert found["difference"] == {"sts_dev": 0, "sts_test": 0}
    assert storage.read_bytes() == before
    assert recorded.result.counts == {"COMPLETE": 2, "FAIL": 2}


def test_another_result_and_another_environment_are_named(command: Command, storage: Path) -> None:
    change(storage, "UPDATE mtdlab_scores SET score = score - 1 WHERE task = 'sts_test'")
    change(
        storage,
        "UPDATE mtdlab_trials SET environment = "
        """replace(environment, '"torch": "', '"torch": "1')""",
    )
    found = json.loads(command("reproduce tiny 0 --json").stdout)
    assert not found["identical"]
    assert found["difference"]["sts_test"] == pytest.approx(1)
    assert list(found["environment"]) == ["versions"]
    assert found["environment"]["versions"]["recorded"].startswith("torch 1")
    text = command("reproduce tiny 0").stdout
    assert "Not bit-identical" in text
    assert "warning: different versions: recorded torch 1" in text


def test_a_trial_that_failed_fails_again(command: Command, storage: Path) -> None:
    assert storage.exists()
    assert "the run failed: the loss is nan" in command("reproduce tiny 1", 1).stderr
    error = json.loads(command("reproduce tiny 1 --json", 1).stdout)["error"]
    assert (error["type"], error["exit_code"]) == ("run failed", 1)


def test_a_trial_that_has_not_ended_is_refused(command: Command, storage: Path) -> None:
    change(storage, "UPDATE mtdlab_trials SET state = 'RUNNING' WHERE number = 0")
    assert "trial 0 of study tiny is running" in command("reproduce tiny 0", 2).stderr


def test_other_modules_than_the_recorded_ones_are_refused(command: Command, storage: Path) -> None:
    change(
        storage,
        "UPDATE mtdlab_trials SET settings = replace(settings, '\"mocose\"', '\"mine\"')",
    )
    change(storage, 'UPDATE mtdlab_studies SET imports = \'{"mine.py": "12"}\'')
    error = command("reproduce tiny 0", 2).stderr
    assert "used other imported modules than these (recorded: mine.py 12); name them with" in error


@pytest.mark.parametrize("recorded", [2, None])
def test_the_recorded_number_of_threads_is_used_and_put_back(
    recorded: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = torch.get_num_threads()

    def load(_settings: object) -> None:
        raise TrialError(f"{torch.get_num_threads()} threads")

    monkeypatch.setattr(reproduce, "load_inputs", load)
    trial = SimpleNamespace(environment=Environment(threads=recorded))
    with pytest.raises(TrialError, match=f"^{recorded or before} threads$"):
        reproduce.run_again(SimpleNamespace(trial=trial, settings=None), lambda *_: None)
    assert torch.get_num_threads() == before
