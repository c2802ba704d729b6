"""The progress of a sweep: lines of at most 100 columns, bars at 80, phases, time left."""

import io
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from mtdlab.config.method_study import known_settings
from mtdlab.store.progress import Progress
from mtdlab.store.ranking import FinishedTrial
from mtdlab.store.tables import TrialRow
from mtdlab.sweep import progress
from mtdlab.sweep.progress import WIDTH, Display, SweepTally, describe, line

KNOWN = known_settings(("mocose",))
PARAMETERS = {
    "ema_decay": 0.985,
    "queue_size/batch_size": 8,
    "initial_queue_size/queue_size": 0.25,
    "augmentation": "token-cutoff:0.1+position-shuffle",
}
DONE = FinishedTrial(
    1127, 12, PARAMETERS, "COMPLETE", "", 74.66666666666667, 50.0, 54.21, wall_seconds=3700
)


def running(row: int = 1, step: int = 80, parameters: dict[str, Any] | None = None) -> TrialRow:
    """A trial of 160 steps, evaluated every 50."""
    settings = {"steps": 160, "evaluate_every": 50}
    given = PARAMETERS if parameters is None else parameters
    shown = {"step": step, "phase": "training", "settings": settings}
    return TrialRow(id=row, role="search", seed=3, parameters=given, **shown)


def test_parameters_are_named_by_their_symbols() -> None:
    assert describe(PARAMETERS, KNOWN).startswith("η=0.985 K/N=8 K_s/K=0.25 augmentation=token-")


@pytest.mark.parametrize("state", ["COMPLETE", "FAIL"])
def test_a_line_fits_however_long_the_parameters_and_the_reason_are(state: str) -> None:
    trial = replace(DONE, state=state, reason="out of memory " * 20)
    text = line(trial, "sts_dev", KNOWN, "[1128/1280] ", "; best 55.10, 3 h 20 min left")
    assert len(text) <= WIDTH == 100
    assert text.startswith("[1128/1280] trial 1127 seed 12 η=0.985 K/N")
    if state == "COMPLETE":
        assert "… MTD 74.7: sts_dev 54.21, 62 min; best 55.10, " in text
    else:
        assert " fail: out of memory" in text


def test_a_note_is_a_line_of_its_own() -> None:
    text = line(replace(DONE, note="model not saved: no space"), "sts_dev", KNOWN)
    assert text.splitlines()[1] == "  trial 1127: model not saved: no space"


def test_the_time_left_counts_what_running_trials_have_done() -> None:
    tally = SweepTally(planned=5, finished=0, jobs=2, select_by="sts_dev")
    assert tally.left() == ""
    tally.running = [(30.0, 0.5), (10.0, 0.01)]
    # 60 s a trial by the first; the second has done too little to extrapolate from
    assert tally.left() == f"{round((5 - 0.51) * 60 / 2 / 60)} min left"
    tally.add(replace(DONE, wall_seconds=20.0))
    assert tally.left() == f"{(4 - 0.51) * 20 / 2:.0f} s left"
    tally.running, tally.finished = [], 5
    assert tally.left() == ""


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], io.StringIO]:
    """A display's output: on a terminal of 80 columns, or elsewhere."""

    def prepare(terminal: bool) -> io.StringIO:
        output = io.StringIO()
        console = Console(file=output, force_terminal=terminal, width=80, color_system=None)
        monkeypatch.setattr(progress, "Console", lambda **_: console)
        return output

    return prepare


def test_a_terminal_of_80_columns_shows_study_and_trials(
    shown: Callable[[bool], io.StringIO],
) -> None:
    output = shown(True)
    with Display(SweepTally(128, 12, 2, "sts_dev", KNOWN)) as display:
        display.finished(DONE)
        display.update(Progress({"COMPLETE": 13, "RUNNING": 1, "WAITING": 114}, [running()]))
        display.progress.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", output.getvalue())
    rows = plain.replace("\r", "\n").split("\n")
    study = [row for row in rows if row.startswith("trials") and "13/128" in row][-1]
    trial = next(row for row in rows if "80/160" in row)
    assert "best sts_dev 54.21, " in study
    assert study.rstrip().endswith("left")
    assert trial.startswith("seed 3 η=0.985 K/N=8")
    assert "training" in trial
    assert max(len(row.rstrip()) for row in (study, trial)) <= 80


def test_elsewhere_a_finished_trial_is_one_line(shown: Callable[[bool], io.StringIO]) -> None:
    output = shown(False)
    with Display(SweepTally(128, 12, 2, "sts_dev", KNOWN)) as display:
        display.finished(DONE)
    first, second = output.getvalue().splitlines()
    assert first == "128 trials, 12 done"
    assert second.startswith("[13/128] trial 1127 seed 12 ")
    assert len(second) <= 100
