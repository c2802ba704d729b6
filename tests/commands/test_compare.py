"""`mtdlab compare`: two trials, or two studies."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

import mtdlab
from mtdlab.evaluation.pairs import load_pairs
from tests.commands.conftest import Command, Recorded


@pytest.fixture(scope="module")
def storage(recorded: Recorded, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recorded study, and one that differs in its temperature, without the failing rate."""
    copy = Path(shutil.copy(recorded.storage, tmp_path_factory.mktemp("compared") / "two.db"))
    search = {"learning_rate": [1e-3]}
    trainer = recorded.values["trainer"] | {"temperature": 0.1}
    values = recorded.values | {"study": "warm", "trainer": trainer, "search": search}
    mtdlab.run_study(values, storage=str(copy), models=recorded.models, jobs=1)
    return copy


@pytest.mark.slow
def test_two_studies_are_compared_over_what_both_ran(command: Command, storage: Path) -> None:
    lines = command(f"compare tiny warm --storage {storage}").stdout.splitlines()
    assert lines[0] == "tiny and warm: sts_test, in points"
    assert ["temperature", "0.05", "0.1"] in [line.split() for line in lines]
    assert max(map(len, lines)) <= 80
    found = json.loads(command(f"compare tiny warm --json --storage {storage}").stdout)
    assert found["settings"] == {"temperature": [0.05, 0.1]}
    assert (found["shared_seeds"], found["shared_configurations"]) == (2, 1)
    (row,) = found["scores"]
    first, second = (
        mtdlab.load_study(name, str(storage)).trials.query("state == 'COMPLETE'")["score"].mean()
        for name in ("tiny", "warm")
    )
    assert (row["first"], row["second"]) == (pytest.approx(first), pytest.approx(second))
    assert found["difference"]["mean"] == pytest.approx(first - second)
    assert found["difference"]["low"] < first - second < found["difference"]["high"]
    assert f"tiny minus warm: {first - second:+.2f} points (95 % CI " in "\n".join(lines)


@pytest.mark.slow
def test_items_that_differ_are_listed_with_the_texts_of_this_machine(
    command: Command, storage: Path, recorded: Recorded, tmp_path: Path
) -> None:
    line = f"compare tiny warm --storage {storage}"
    text = " ".join(command(f"{line} --items items.csv").stdout.split())
    assert "items that differ most: distance of the ranks by encoder and by gold score" in text
    table = pd.read_csv(tmp_path / "items.csv")
    assert list(table) == ["task", "item", "gold", "first", "second", "difference"]
    top = table.iloc[0]
    assert f"sts_test {top['item']}, gold {top['gold']:g}: {top['first']:.3g} and" in text
    assert table["difference"].abs().is_monotonic_decreasing
    pairs = load_pairs(recorded.values["trainer"]["evaluation"], "test")
    assert len(table) == len(pairs)
    assert f" | {pairs.second[top['item'] - 1]}" in text
    [first, *_] = json.loads(command(f"{line} --json").stdout)["items"]
    assert first["item"] == top["item"]
    assert "--items no/i.csv: not written" in command(f"{line} --items no/i.csv", 2).stderr


@pytest.mark.parametrize(
    ("words", "code", "sentence"),
    [
        ("tiny 0 1", 2, "trial 1 of study tiny is not complete"),
        ("tiny 0 2", 2, "trials 0 and 2 of study tiny are of one configuration"),
        ("tiny 0 99", 5, "study tiny has no trial 99; trials are numbered from 0 to "),
        ("tiny 0", 2, "needs the numbers of two trials; '0' is one"),
        ("tiny warm 1", 2, "needs the numbers of two trials; 'warm' is none"),
        ("tiny warn", 5, "did you mean warm?"),
        ("tiny", 2, "Missing argument"),
    ],
)
def test_a_mistake_is_one_sentence(
    command: Command, storage: Path, words: str, code: int, sentence: str
) -> None:
    assert sentence in command(f"compare {words} --storage {storage}", code).stderr


def test_a_study_of_another_metric_is_refused(
    command: Command, recorded: Recorded, storage: Path
) -> None:
    frames = mtdlab.load_study("tiny", str(recorded.storage))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "mtdlab.store.frames.load_frames",
            lambda name, *_, **__: replace(frames, name=name, metric=f"score of {name}"),
            raising=False,
        )
        error = command(f"compare tiny warm --storage {storage}", 2).stderr
    assert "scores of different tasks or directions cannot be compared" in error
