"""A study that was begun with another file: the message names the commands that go on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mtdlab.config import read_study
from mtdlab.errors import MtdlabError
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.optuna_study import recorded_folder

BEGUN = "study: a\ntrainer: {steps: 4, pooling: mean}\nsearch: {ema_decay: [0.5, 0.75]}\n"
COMMAND = "mtdlab sweep a.yaml"
Refused = Callable[..., list[str]]


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """Begin a study, then open it with another file: the lines of the message."""
    url, path = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "a.yaml"

    def refuse(other: str, *overrides: str, begun: str = BEGUN) -> list[str]:
        path.write_text(begun)
        open_study(read_study(path), url, COMMAND)
        assert recorded_folder("a", url) == tmp_path
        path.write_text(other)
        with pytest.raises(MtdlabError, match="study a") as caught:
            open_study(read_study(path, overrides), url, COMMAND)
        return str(caught.value).splitlines()

    return refuse


def test_single_settings_are_put_back_by_the_printed_command(refused: Refused) -> None:
    changed = BEGUN.replace("steps: 4", "steps: 5, prediction_dim: 8").replace("mean", "cls")
    first, resume, rename = refused(changed)
    assert first == (
        "study a was begun with another file (trainer.pooling: was mean, now cls; "
        "trainer.prediction_dim: was None, now 8; trainer.steps: was 4, now 5)"
    )
    assert resume == (
        f"  to resume it: {COMMAND} --set trainer.pooling=mean --set trainer.prediction_dim=null "
        "--set trainer.steps=4"
    )
    assert rename == f"  to run this file as another study: {COMMAND} --set study=a-2"


def test_what_the_command_prints_opens_the_study(refused: Refused, tmp_path: Path) -> None:
    _, resume, rename = refused(BEGUN.replace("steps: 4", "steps: 5"))
    url = f"sqlite:///{tmp_path / 'a.db'}"
    for line in (resume, rename):
        override = line.split(" --set ")[1]
        assert open_study(read_study(tmp_path / "a.yaml", [override]), url, "").counts()


def test_a_change_outside_of_the_trainer_is_put_back_in_the_file(refused: Refused) -> None:
    _, resume, rename = refused(f"{BEGUN}metric: sts_dev\n")
    assert resume == "  to resume it: put the former values back into the file"
    assert rename.endswith("--set study=a-2")


def test_missing_trials_name_the_way_out_too(refused: Refused) -> None:
    [line] = refused(BEGUN.replace("0.5, ", ""))
    assert line.startswith("study a holds 1 trials that the file no longer has (such as seed 0)")
    assert line.endswith(f"run the file as another study: {COMMAND} --set study=a-2")
