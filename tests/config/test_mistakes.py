"""All mistakes of a study file are reported together, in our words, and none that only follow."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mtdlab.config.reader import read_settings
from mtdlab.config.source import SpecError
from mtdlab.methods.registry import BUILTIN, settings_class
from mtdlab.settings.messages import PATTERNS
from tests.config.conftest import Read

MANY = """\
study: a b
sampler: cma
trials: 0
seeds: [0, -1, 1.5]
metrik: sts_dev
trainer:
  stepz: 3
  pooling: max
  batch_size: many
  steps: 1
  steps: 2
search:
  ema_decay: [0.5, 1, 2]
  queue_size: {times: steps, values: [1]}
  queue: [3]
until: {decided: false, max_seeds: 1}
verdict: {margin: 0}
"""
EXPECTED = [
    "1:1: study: 'a b': a name has letters, digits",
    "2:1: sampler: unknown sampler 'cma'; choose from grid, random, tpe, qmc",
    "3:1: trials: 0: must be 1 or more",
    "4:12: seeds.1: -1: must be 0 or more",
    "4:16: seeds.2: 1.5: must be a whole number",
    "5:1: metrik: unknown key; did you mean metric?",
    "7:3: trainer.stepz: unknown key; did you mean steps?",
    "8:3: trainer.pooling: unknown pooling 'max'; choose from cls, mean, first-last, last2",
    "9:3: trainer.batch_size: 'many': must be a whole number",
    "11:3: trainer.steps: this key stands twice; keep one",
    "13:3: search.ema_decay: 1: must be below 1",
    "13:3: search.ema_decay: 2: must be below 1",
    "14:16: search.queue_size.times: 'steps'; allowed is times: batch_size",
    "15:3: search.queue: unknown key; did you mean queue_size?",
    "16:9: until.decided: false: must be true",
    "16:25: until.max_seeds: 1: must be 2 or more",
    "17:11: verdict.margin: 0: must be above 0",
]


def refused(read: Callable[[], object]) -> list[str]:
    """The single mistakes, without the caret."""
    with pytest.raises(SpecError, match=": ") as caught:
        read()
    return [str(mistake).splitlines()[0] for mistake in caught.value.mistakes]


def test_every_mistake_of_a_file_is_reported_at_its_place(read: Read, path: Path) -> None:
    with pytest.raises(SpecError, match=f"^17 mistakes in {re.escape(str(path))}\n") as caught:
        read(MANY)
    found = [str(mistake).splitlines()[0] for mistake in caught.value.mistakes]
    starts = [f"{path}:{start}" for start in EXPECTED]
    assert [line[: len(start)] for line, start in zip(found, starts, strict=True)] == starts
    assert str(caught.value).count("^") == 17
    assert "    pooling: max\n    ^\n" in str(caught.value)


def test_no_message_is_in_the_words_of_the_library(read: Read) -> None:
    with pytest.raises(SpecError, match="mistakes") as caught:
        read(MANY)
    words = r"[Ii]nput should|valid (integer|number|string|list|dict)|should (be|match|have)"
    assert not re.search(words, str(caught.value))


@pytest.mark.parametrize(
    ("text", "mistakes"),
    [
        # a sampler that is not known does not make the number of trials wrong
        ("sampler: cma\ntrials: 5", ["sampler"]),
        ("stdy: a", ["stdy"]),
        ("metric: STS12\ntrainer: {tasks: STS17}", ["trainer.tasks"]),
        ("trainer: {batch_size: 1, queue_size: many}", ["trainer.queue_size"]),
        ("search: {ema_decay: [2]}\nskip: [{ema_decay: 3}]", ["search.ema_decay"]),
        ("until: {decided: true, max_seeds: 5}\nseeds: []", ["seeds"]),
        ("trainer: {method: moco}\nsearch: {queue_size: [1]}", ["trainer.method"]),
    ],
)
def test_what_follows_from_a_mistake_is_not_reported(
    read: Read, text: str, mistakes: list[str]
) -> None:
    name = "" if text.startswith("stdy") else "study: a\n"
    found = refused(lambda: read(f"{name}{text}\n"))
    assert [re.split(r": ", line)[1] for line in found] == mistakes


def test_independent_rules_of_the_whole_study_are_reported_together(read: Read) -> None:
    found = refused(
        lambda: read(
            "study: a\npruner: median\ntrainer: {select_on: test}\n"
            "search: {initial_queue_size: [0, 999]}\nuntil: {decided: true, max_seeds: 5}\n"
        )
    )
    assert len(found) == 2
    assert "pruner compares scores" in found[0]
    assert "initial_queue_size 999 exceeds queue_size 512" in found[1]


def test_a_mistake_of_the_file_is_reported_once_however_many_profiles_there_are(read: Read) -> None:
    found = refused(
        lambda: read(
            "study: a\ntrainer: {steps: 0}\n"
            "profiles:\n  one: {seeds: [1]}\n  two: {seeds: [-1], trainer: {dropout: 2}}\n"
        )
    )
    assert [line.split(": ", 1)[1] for line in found] == [
        "trainer.steps: 0: must be 1 or more",
        "profile two: seeds.0: -1: must be 0 or more",
        "profile two: trainer.dropout: 2: must be below 1",
    ]


def test_mistakes_of_overrides_are_reported_together(read: Read) -> None:
    found = refused(lambda: read("study: a\n", "steps", "trainer.steps=[", "study.x=1"))
    assert len(found) == 3
    found = refused(lambda: read("study: a\n", "trainer.steps=0", "trainer.pooling=max"))
    assert {line.split(": ")[0] for line in found} == {
        "--set trainer.steps=0",
        "--set trainer.pooling=max",
    }
    found = refused(lambda: read_settings(None, ["trainer.stepz=7", "stepz=3", "trainer.seed=-1"]))
    assert len(found) == 3


def test_every_pattern_has_its_sentence() -> None:
    """A field with a pattern would otherwise show a regular expression."""
    with_pattern = {
        name
        for method in BUILTIN
        for name, field in settings_class(method).model_fields.items()
        if any(getattr(rule, "pattern", None) for rule in field.metadata)
    }
    assert with_pattern == PATTERNS.keys() - {"study"}


@pytest.mark.parametrize(
    ("searched", "place"),
    [("evaluation: [builtin, other]", "evaluation"), ("tasks: [STS12, SICKR]", "tasks")],
)
def test_configurations_are_scored_on_the_same_data(read: Read, searched: str, place: str) -> None:
    text = f"study: a\nsearch:\n  ema_decay: [0.5, 0.9]\n  {searched}\n"
    with pytest.raises(SpecError, match=r"4:3: search.* what is compared is scored alike") as error:
        read(text)
    assert [mistake.path for mistake in error.value.mistakes] == [("search", place)]
