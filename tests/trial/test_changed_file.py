"""A study that was begun with another file: the message names what differs and how to go on."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from stub_store import begin_trial, study_row

from mtdlab.analysis.data.invocation import Invocation
from mtdlab.errors import MtdlabError
from mtdlab.store.owner import this_process
from mtdlab.store.progress import list_studies
from mtdlab.store.recorded import read_planned, read_recorded
from mtdlab.store.store import Store
from mtdlab.sweep.open_study import open_study
from mtdlab.trial import worker
from mtdlab.trial.recorded_study import check_unchanged, read_defined, with_recorded_values
from mtdlab.trial.signals import stop_on_signals
from mtdlab.trial.study import Job
from tests.conftest import Written

BEGUN = "study: a\ntrainer: {steps: 4, pooling: mean}\nsearch: {ema_decay: [0.5, 0.75]}\n"
LONGER = BEGUN.replace("steps: 4", "steps: 5")
SWEEP = Invocation("sweep", ("a.yaml",))
COMMAND = str(SWEEP)
Opened = Callable[..., Store]
Refused = Callable[..., list[str]]


@pytest.fixture
def opened(url: str, written: Written) -> Opened:
    """Open the study of a file."""
    return lambda text, *overrides, **options: open_study(
        written(text, *overrides), url, SWEEP, **options
    )


@pytest.fixture
def refused(opened: Opened, url: str, tmp_path: Path) -> Refused:
    """Begin a study and one of its trials, then open it with another file: the message's lines."""

    def refuse(other: str) -> list[str]:
        opened(BEGUN).claim(this_process())
        assert read_recorded(url, "a").file_folder == tmp_path
        with pytest.raises(MtdlabError, match="study a") as caught:
            opened(other)
        return str(caught.value).splitlines()

    return refuse


def test_what_differs_is_named_with_both_ways_to_go_on(refused: Refused) -> None:
    changed = BEGUN.replace("steps: 4", "steps: 5, prediction_dim: 8").replace("mean", "cls")
    first, resume, rename = refused(changed)
    assert first == (
        "study a was begun with another file (trainer.pooling: was mean, now cls; "
        "trainer.prediction_dim: was None, now 8; trainer.steps: was 4, now 5)"
    )
    assert resume == (
        "  to resume it: put the former values back into the file, or give them by --set"
    )
    assert rename == f"  to run this file as another study: {COMMAND} --set study=a-2"


def test_a_name_that_is_taken_is_not_proposed(refused: Refused, opened: Opened) -> None:
    opened(BEGUN, "study=a-2")
    assert refused(LONGER)[-1].endswith(" --set study=a-3")


def test_what_the_command_prints_opens_the_study(refused: Refused, opened: Opened) -> None:
    *_, rename = refused(LONGER)
    for given in ("trainer.steps=4", rename.split(" --set ")[1]):
        assert opened(LONGER, given).counts()


def test_missing_trials_name_the_way_out_too(refused: Refused) -> None:
    [line] = refused(BEGUN.replace("0.5, ", ""))
    start = (
        "study a holds 1 trials that the file no longer has (such as ema_decay 0.5, seed 0); put"
    )
    assert line.startswith(start)
    assert line.endswith(f"run the file as another study: {COMMAND} --set study=a-2")


REPLACED = (
    "study a was planned from another file; it is replaced by this one, since none of its trials "
    "has begun"
)


@pytest.mark.parametrize(
    "other", [LONGER, BEGUN.replace("0.5, ", ""), f"{BEGUN}metric: sts_dev\nseeds: [3]\n"]
)
def test_a_study_in_which_no_trial_has_begun_is_replaced(
    opened: Opened, written: Written, url: str, other: str
) -> None:
    opened(BEGUN)
    notes = list[str]()
    store, spec = opened(other, notify=notes.append), written(other)
    assert notes == [REPLACED]
    recorded = store.study()
    assert (recorded.identity, recorded.file_text) == (spec.identity(), other)
    assert set(read_planned(url, "a")) == {trial.key for trial in spec.search_trials()}
    assert [study.name for study in list_studies(url)] == ["a"]
    # opened again it is that study, without a further sentence
    opened(other, notify=notes.append)
    assert notes == [REPLACED]


def test_a_trial_that_an_interrupted_sweep_began_keeps_the_study(opened: Opened) -> None:
    store = opened(BEGUN)
    store.release(begin_trial(store))
    with pytest.raises(MtdlabError, match=r"trainer.steps: was 4, now 5"):
        opened(LONGER)


def test_workers_of_a_sweep_whose_study_was_replaced_run_nothing(
    opened: Opened, written: Written, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two sweeps start with different files: the second replaces what the first has planned."""
    first = written(BEGUN)
    check_unchanged(first, opened(BEGUN).study())
    store = opened(LONGER)
    monkeypatch.chdir(tmp_path)
    with stop_on_signals() as stop, pytest.raises(MtdlabError, match="was replaced by that of"):
        worker.work(Job(first, url, tmp_path / "models"), 1, stop)
    assert store.counts() == {"WAITING": 2}


def test_a_study_of_methods_is_resumed_by_a_version_with_more_settings(
    opened: Opened, written: Written, url: str
) -> None:
    """Settings that earlier versions did not have had their default in every method's section."""
    text = "study: a\ntrainer: {steps: 4}\nsearch: {method: [mocose, simcse]}\n"
    spec, store = written(text), opened(text)
    assert store.claim(this_process()) is not None
    identity = spec.identity()
    for section in identity["trainer"].values():
        del section["lora_rank"]
    store.write_study(study_row(metric=spec.metric, identity=identity))
    planned = read_planned(url, "a")
    opened(text)
    assert read_planned(url, "a") == planned
    # what changed is found in the section of each method
    expected = r"\(trainer.mocose.lora_rank: was 0, now 2; trainer.simcse.lora_rank: was 0, now 2\)"
    with pytest.raises(MtdlabError, match=expected):
        opened(text.replace("steps: 4", "steps: 4, lora_rank: 2"))


def test_a_begun_study_keeps_the_pooling_that_its_file_leaves_to_the_encoder(
    written: Written, url: str, tmp_path: Path, tiny_encoder: Path
) -> None:
    """The encoder's declaration appears, or becomes readable to a later version."""
    encoder = tmp_path / "encoder"
    shutil.copytree(tiny_encoder, encoder)
    text = "study: a\ntrainer: {encoder: encoder}\nsearch: {ema_decay: [0.5, 0.75]}\n"
    before = written(text)
    open_study(with_recorded_values(before, url), url, SWEEP).claim(this_process())
    (encoder / "1_Pooling").mkdir()
    (encoder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    now = written(text)
    assert [before.fixed().pooling, now.fixed().pooling] == ["cls", "mean"]
    assert with_recorded_values(now, url).identity() == before.identity()
    assert read_defined("a", url)[0].identity() == before.identity()
    assert open_study(with_recorded_values(now, url), url, SWEEP).counts() == {
        "WAITING": 1,
        "RUNNING": 1,
    }
    for override in ("study=other", "trainer.pooling=mean"):
        given = written(text, override)
        assert with_recorded_values(given, url) is given
