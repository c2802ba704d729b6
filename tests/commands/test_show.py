"""`mtdlab show` and `mtdlab studies`."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from mtdlab import load_study
from mtdlab.commands.watch import draw_moment
from mtdlab.store.database import reading
from mtdlab.store.progress import read_moment
from mtdlab.store.tables import TrialRow
from tests.commands.conftest import Command, Recorded
from tests.store.make_database import restore


def fields(text: str) -> dict[str, str]:
    """The named values that follow the first line, each joined to one line."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines()[1:]:
        if not line:
            break
        label, value = line[:12].strip(), line[13:]
        name = label or name
        found[name] = f"{found[name]} {value}" if name in found else value
    return found


def test_a_study_shows_question_state_failures_and_the_next_command(
    command: Command, recorded: Recorded
) -> None:
    options = f"--storage {recorded.storage} --models {recorded.models}"
    text = command(f"show tiny {options}").stdout
    first = f"study tiny in sqlite:///{recorded.storage}: complete, 2 of 4 trials done"
    assert text.splitlines()[0] == first
    found = fields(text)
    best = recorded.result.best
    assert best is not None
    assert found["question"] == "Which configuration has the highest sts_test?"
    assert found["description"] == "Does a learning rate of 1e18 work?"
    assert found["varied"] == "learning_rate 0.001, 1e+18; seed 0, 1"
    assert found["best trial"].startswith(f"{best.number} (MTD 6), sts_dev {best.ranking:.2f}")
    assert found["model"] == f"{recorded.models}/tiny"
    assert found["failed"].startswith("trials 1, 3: the loss is nan")
    report = f"mtdlab report --study tiny --storage sqlite:///{recorded.storage}"
    # with its seed and settings a loss is nan again
    assert found["next"] == report
    twin = json.loads(command(f"show tiny --json {options}").stdout)
    assert (twin["state"], twin["complete"], twin["fail"]) == ("complete", 2, 2)
    assert twin["varied"] == {"learning_rate": [0.001, 1e18]}
    assert (twin["best"]["trial"], twin["best"]["mtd"]) == (best.number, 6)
    assert [trial["trial"] for trial in twin["failed"]] == [1, 3]
    assert twin["verdict"]["verdict"] == "inconclusive"
    assert twin["model"] == f"{recorded.models}/tiny"
    assert twin["next"] == [report]


def test_a_trial_shows_its_configuration_scores_and_model(
    command: Command, recorded: Recorded
) -> None:
    best = recorded.result.best
    assert best is not None
    options = f"--storage {recorded.storage} --models {recorded.models}"
    text = command(f"show tiny {best.number} {options}").stdout
    assert text.startswith(f"trial {best.number} of study tiny in sqlite:///")
    found = fields(text)
    assert (found["varied"], found["MTD"]) == ("learning_rate 0.001", "6 steps")
    assert f"sts_test {best.score:.2f}" in found["scores"]
    assert "queue_size 16" in found["settings"]
    assert "learning_rate" not in found["settings"]
    assert found["model"] == f"{recorded.models}/tiny"
    storage = f"--storage sqlite:///{recorded.storage}"
    assert found["run again"] == f"mtdlab reproduce tiny {best.number} {storage}"
    assert max(map(len, text.splitlines())) <= 80 or str(recorded.storage) in text
    other = 2 - best.number
    assert fields(command(f"show tiny {other} {options}").stdout)["model"].startswith("not kept;")
    twin = json.loads(command(f"show tiny {best.number} --json {options}").stdout)
    assert (twin["mtd"], twin["score"]) == (6, best.score)
    assert twin["settings"]["queue_size"] == 16
    assert twin["environment"]["versions"].startswith("Python ")


def test_a_failed_trial_shows_its_reason_and_traceback(
    command: Command, recorded: Recorded
) -> None:
    text = command(f"show tiny 1 --storage {recorded.storage}").stdout
    assert ": failed\n" in text
    assert fields(text)["reason"].startswith("the loss is nan")
    assert "\nTraceback (most recent call last):\n" in text
    assert text.rstrip().splitlines()[-1].startswith("mtdlab.errors.TrialError: the loss is nan")


def test_an_unknown_study_names_the_nearest(command: Command, recorded: Recorded) -> None:
    error = command(f"show tinny --storage {recorded.storage}", 5).stderr
    assert "no study tinny" in error
    assert error.endswith("did you mean tiny?\n")


def test_a_database_of_an_older_schema_is_shown(command: Command, tmp_path: Path) -> None:
    restore(tmp_path / "mtdlab.db")
    text = command("show grid").stdout
    assert "paused, 5 of 8 trials done" in text
    assert fields(text)["next"] == "mtdlab sweep grid.yaml"
    assert fields(command("show grid 1").stdout)["reason"] == "the loss is nan at step 3"


def test_studies_are_listed_with_state_best_score_and_date(
    command: Command, tmp_path: Path, recorded: Recorded
) -> None:
    restore(tmp_path / "mtdlab.db")
    lines = command("studies").stdout.splitlines()
    assert lines[0].split() == ["study", "state", "trials", "metric", "best", "trial", "last"]
    assert lines[1].split()[:5] == ["drawn", "paused", "1/6", "sts_dev", "47.20"]
    assert lines[2].split()[:6] == ["grid", "paused,", "1", "failed", "5/8", "sts_test"]
    assert max(map(len, lines)) <= 80
    (row,) = json.loads(command(f"studies --json --storage {recorded.storage}").stdout)["studies"]
    best = recorded.result.best
    assert best is not None
    assert (row["study"], row["state"], row["best"]["score"]) == ("tiny", "complete", best.score)
    assert row["last"][:4].isdigit()


@pytest.mark.usefixtures("few_simulated_studies")
def test_a_study_that_is_only_planned_is_listed(command: Command, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("study: only-planned\nsearch: {ema_decay: [0.5, 0.75]}\n")
    assert "recorded before trial 1" in command("plan a.yaml --no-measure").stdout
    sentence = "planned, without trials yet: only-planned; next: mtdlab sweep FILE"
    assert command("studies").stdout == f"{sentence}\n"
    fields = json.loads(command("studies --json").stdout)
    assert fields == {"studies": [], "planned": ["only-planned"]}


def test_a_study_is_watched_until_its_trials_have_ended(
    command: Command, recorded: Recorded
) -> None:
    text = command(f"show tiny --watch --storage {recorded.storage}").stdout
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert lines[0] == "study tiny: complete, 2 of 4 trials done, 2 failed"
    # the other learning rate has no score
    scores = load_study("tiny", str(recorded.storage)).trials["score"].dropna()
    assert "sts_test, means with 95 % CIs over seeds" in lines
    (row,) = [line for line in lines if line.startswith("0.001 2 ")]
    assert float(row.split()[2]) == pytest.approx(scores.mean(), abs=0.01)
    assert sum("failed" in line or "the loss is nan" in line for line in lines[1:]) == 2
    error = command(f"show tiny 1 --watch --storage {recorded.storage}", 2).stderr
    assert "--watch shows a whole study as text" in error


def test_running_trials_and_the_last_ends_fit_the_terminal(tmp_path: Path) -> None:
    restore(tmp_path / "mtdlab.db")
    url = f"sqlite:///{tmp_path / 'mtdlab.db'}"
    with reading(url) as session:
        moment = read_moment(session, "grid", url)
    assert not moment.overview.is_over
    running = TrialRow(number=7, seed=1, role="search", step=3, phase="training", heartbeat=9.0)
    running.parameters, running.settings, running.began = {"ema_decay": 0.9}, {"steps": 6}, 1.0
    console = Console(width=60, height=12, record=True, file=StringIO())
    console.print(draw_moment(replace(moment, running=[running]), 12))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= 60
    assert "  trial 7 seed 1 ema_decay=0.9: step 3 of 6, training" in [*map(str.rstrip, lines)]
    assert any(line.strip().endswith("more") for line in lines)
