"""A study that was begun with another file: the message names the commands that go on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stub_store import begin_trial, study_row

from mtdlab.config import read_study
from mtdlab.errors import MtdlabError
from mtdlab.store import list_studies
from mtdlab.store.owner import this_process
from mtdlab.store.recorded import read_recorded
from mtdlab.sweep import worker
from mtdlab.sweep.open_study import as_begun, check_unchanged, open_study, read_defined
from mtdlab.sweep.signals import stop_on_signals
from mtdlab.sweep.study import Job

BEGUN = "study: a\ntrainer: {steps: 4, pooling: mean}\nsearch: {ema_decay: [0.5, 0.75]}\n"
COMMAND = "mtdlab sweep a.yaml"
Refused = Callable[..., list[str]]


@pytest.fixture
def refused(tmp_path: Path) -> Refused:
    """Begin a study and one of its trials, then open it with another file: the message's lines."""
    url, path = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "a.yaml"

    def refuse(other: str, *overrides: str, begun: str = BEGUN) -> list[str]:
        path.write_text(begun)
        open_study(read_study(path), url, COMMAND).claim(this_process())
        assert read_recorded(url, "a").file_folder == tmp_path
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


REPLACED = (
    "study a was planned from another file; it is replaced by this one, since none of its trials "
    "has begun"
)


@pytest.mark.parametrize(
    "other",
    [
        BEGUN.replace("steps: 4", "steps: 5"),
        BEGUN.replace("0.5, ", ""),
        f"{BEGUN}metric: sts_dev\nseeds: [3]\n",
    ],
)
def test_a_study_in_which_no_trial_has_begun_is_replaced(tmp_path: Path, other: str) -> None:
    url, path = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "a.yaml"
    path.write_text(BEGUN)
    open_study(read_study(path), url, COMMAND)
    path.write_text(other)
    spec, notes = read_study(path), list[str]()
    store = open_study(spec, url, COMMAND, notify=notes.append)
    assert notes == [REPLACED]
    recorded = store.study()
    assert recorded is not None
    assert (recorded.identity, recorded.file_text) == (spec.identity(), other)
    assert store.planned() == {(unit.setting, unit.seed) for unit in spec.units()}
    assert [each.name for each in list_studies(url)] == ["a"]
    # opened again it is that study, without a further sentence
    open_study(spec, url, COMMAND, notify=notes.append)
    assert notes == [REPLACED]


def test_a_trial_that_an_interrupted_sweep_began_keeps_the_study(tmp_path: Path) -> None:
    url, path = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "a.yaml"
    path.write_text(BEGUN)
    store = open_study(read_study(path), url, COMMAND)
    store.release(begin_trial(store))
    path.write_text(BEGUN.replace("steps: 4", "steps: 5"))
    with pytest.raises(MtdlabError, match=r"trainer.steps: was 4, now 5"):
        open_study(read_study(path), url, COMMAND)


def test_workers_of_a_sweep_whose_study_was_replaced_run_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sweeps start with different files: the second replaces what the first has planned."""
    url, path = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "a.yaml"
    path.write_text(BEGUN)
    first = read_study(path)
    check_unchanged(first, open_study(first, url, COMMAND))
    path.write_text(BEGUN.replace("steps: 4", "steps: 5"))
    store = open_study(read_study(path), url, COMMAND)
    monkeypatch.chdir(tmp_path)
    with stop_on_signals() as stop, pytest.raises(MtdlabError, match="was replaced by that of"):
        worker.run_next(Job(first, url, tmp_path / "models"), stop)
    assert store.counts() == {"WAITING": 2}


def test_a_study_of_methods_is_resumed_by_a_version_with_more_settings(tmp_path: Path) -> None:
    """Settings that earlier versions did not have had their default in every method's section."""
    url, path = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "a.yaml"
    path.write_text("study: a\ntrainer: {steps: 4}\nsearch: {method: [mocose, simcse]}\n")
    spec = read_study(path)
    store = open_study(spec, url, COMMAND)
    assert store.claim(this_process()) is not None
    identity = spec.identity()
    for section in identity["trainer"].values():
        del section["lora_rank"]
    store.write_study(study_row(metric=spec.metric, identity=identity))
    assert open_study(spec, url, COMMAND).planned() == store.planned()
    path.write_text(path.read_text().replace("steps: 4", "steps: 4, lora_rank: 2"))
    # what changed is found in the section of each method
    expected = r"\(trainer.mocose.lora_rank: was 0, now 2; trainer.simcse.lora_rank: was 0, now 2\)"
    with pytest.raises(MtdlabError, match=expected):
        open_study(read_study(path), url, COMMAND)


def test_a_begun_study_keeps_the_pooling_that_its_file_leaves_to_the_encoder(
    tmp_path: Path, tiny_encoder: Path
) -> None:
    """The encoder's declaration appears, or becomes readable to a later version."""
    encoder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, encoder)
    url, path = f"sqlite:///{tmp_path / 'a.db'}", tmp_path / "a.yaml"
    path.write_text("study: a\ntrainer: {encoder: encoder}\nsearch: {ema_decay: [0.5, 0.75]}\n")
    before = read_study(path)
    open_study(as_begun(before, url), url, COMMAND).claim(this_process())
    (encoder / "1_Pooling").mkdir()
    (encoder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    now = read_study(path)
    assert [before.fixed().pooling, now.fixed().pooling] == ["cls", "mean"]
    assert as_begun(now, url).identity() == before.identity()
    assert read_defined("a", url)[0].identity() == before.identity()
    assert open_study(as_begun(now, url), url, COMMAND).counts() == {"WAITING": 1, "RUNNING": 1}
    other = read_study(path, ["study=other"])
    assert as_begun(other, url) is other
    given = read_study(path, ["trainer.pooling=mean"])
    assert as_begun(given, url) is given
