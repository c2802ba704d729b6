"""A study file: what is read, and where each mistake is pointed at."""

import re
from pathlib import Path
from typing import Any

import pytest

from mtdlab.config.reader import read_settings, read_study
from mtdlab.config.search import Choices
from mtdlab.config.source import SpecError
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import make_settings
from mtdlab.settings.limits import FILE_BYTES
from tests.config.conftest import Read, settings_of

GOOD = """\
# a comment
study: mtd-1
metric: sts_dev
trainer:
  encoder: builtin
  batch_size: 64
  learning_rate: 3e-5
  dropout: 0
search:
  ema_decay: [0.75, 0.85]
  queue_size: {times: batch_size, values: [1, 4, 8]}
  initial_queue_size: {share_of: queue_size, values: [0, 0.25]}
seeds: [3, 1]
sampler: grid
pruner: none
"""


def test_a_good_file(read: Read) -> None:
    spec = read(GOOD)
    assert (spec.name, spec.metric) == ("mtd-1", "sts_dev")
    assert (spec.sampler, spec.pruner, spec.trials) == ("grid", "none", None)
    fixed = {"encoder": "builtin", "batch_size": 64, "learning_rate": 3e-5, "dropout": 0}
    assert spec.trainer == fixed
    assert spec.search == {
        "ema_decay": Choices((0.75, 0.85)),
        "queue_size": Choices((1, 4, 8), relative_to="batch_size"),
        "initial_queue_size": Choices((0, 0.25), relative_to="queue_size"),
    }
    assert spec.seeds == (3, 1)
    assert spec.text == GOOD


def test_the_least_file_trains_the_defaults_once(read: Read) -> None:
    spec = read("study: a\n")
    [unit] = spec.search_trials()
    assert unit.parameters is not None
    assert spec.settings(unit.parameters, unit.seed) == make_settings()


def test_a_byte_order_mark_and_windows_line_ends_are_read(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_study(path).name == "mtd-1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("study: a\nstudy: b\n", r":2:1: study: this key stands twice; keep one\n  study: b\n  \^"),
        ("study: a\ntrainer:\n  steps: 1\n  steps: 2\n", r":4:3: trainer.steps: this key stands"),
        ("study: &n a\nmetric: *n\n", r":2:9: not valid YAML: aliases are not allowed"),
        ("study: !!python/object:os.system x\n", r":1:8: .*the tag .*os.system is not allowed"),
        ("study: a\ntrainer: !!python/object/new:os.system {a: b}\n", r":2:10: .*the tag .* not"),
        ("study: a\nseeds: !!python/tuple [1]\n", r":2:8: .*the tag .* not allowed"),
        ("study: !!int abc\n", "the tag .* is not allowed"),
        ("study: " + "[" * 5000 + "\n", "nested too deeply"),
        ("study: " + "{a: " * 5000 + "\n", "nested too deeply"),
        ("a: [\n", r":2:1: not valid YAML"),
        ("study: a\ntrainer:\n\tsteps: 1\n", r":3:1: not valid YAML: found character"),
        ("study: 'a\n", "not valid YAML"),
        ("study: a: b\n", r":1:9: not valid YAML"),
        ("study: a\n---\nstudy: b\n", r":2:1: not valid YAML: but found another document"),
        ("study: a\x00b\n", "not valid YAML: unacceptable character"),
        ("", "a study file is a mapping that begins with study: NAME"),
        ("# nothing\n", "a study file is a mapping"),
        ("- study\n", "a study file is a mapping"),
        ("study\n", "a study file is a mapping"),
        ("42\n", "a study file is a mapping"),
        ("metric: sts_dev\n", r":1:1: study: this key is missing"),
        (f"study: a\nseeds: [{2**63}]\n", r":2:9: seeds.0: the number is too large"),
        (f"study: a\nseeds: [{'9' * 5000}]\n", "the number is too large"),
        (f"study: a\nseeds: [{'0' * 5000}1]\n", "the number is too large"),
        ("study: a\ntrainer: {temperature: 1e999}\n", r":2:11: .*the number is too large"),
    ],
)
def test_what_is_no_study_file_is_refused(read: Read, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(text)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ("seeds: [0, 1, 0]", "2:15: seeds.2: 0"),
        ("search: {ema_decay: [0.5, 0.9, 5e-1]}", "2:32: search.ema_decay.2: 0.5"),
        (
            "search: {queue_size: {times: batch_size, values: [4, 4]}}",
            "2:54: search.queue_size.values.1: 4",
        ),
        ("search: {method: [simcse, simcse]}", "2:27: search.method.1: 'simcse'"),
        ("nuisance: {learning_rate: [1e-3, 1e-3, 3e-3]}", "2:34: nuisance.learning_rate.1: 0.001"),
        ("nuisance: {learning_rate: [1e-3, 3e-3], seeds: [9, 9]}", "2:52: nuisance.seeds.1: 9"),
    ],
)
def test_a_value_that_stands_twice_is_refused(read: Read, line: str, place: str) -> None:
    with pytest.raises(SpecError, match=f"{re.escape(place)} stands twice; keep one"):
        read(f"study: a\n{line}\n")


def test_scalars_are_those_of_yaml_1_2(read: Read) -> None:
    spec = read(
        "study: no\ntrainer:\n  learning_rate: 3e-5\n  batch_size: 010\n  temperature: .5\n"
        "  encoder: nullable\n  corpus: trueish\n  prediction_dim: null\n  ema_decay_end: ~\n"
        "  evaluation: 1:30\n"
    )
    assert spec.name == "no"
    numbers = {"learning_rate": 3e-5, "batch_size": 10, "temperature": 0.5}
    texts = {"encoder": "nullable", "corpus": "trueish", "evaluation": "1:30"}
    assert spec.trainer == numbers | texts | {"prediction_dim": None, "ema_decay_end": None}
    assert isinstance(spec.trainer["batch_size"], int)


@pytest.mark.parametrize("word", ["no", "yes", "on", "true", "'5'", "1_000", ".inf", "0x10"])
def test_words_are_not_numbers(read: Read, word: str) -> None:
    with pytest.raises(SpecError, match=r":3:3: trainer.steps: .*: must be a whole number"):
        read(f"study: a\ntrainer:\n  steps: {word}\n")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere.yaml: cannot read the study file: no such file"):
        read_study(tmp_path / "nowhere.yaml")
    with pytest.raises(SpecError, match="is a directory"):
        read_study(tmp_path)


def test_a_file_that_is_not_utf8_or_too_large(path: Path) -> None:
    path.write_bytes(b"study: \xff\n")
    with pytest.raises(SpecError, match="not UTF-8 at byte 7"):
        read_study(path)
    path.write_text("study: a\n#" + "x" * FILE_BYTES)
    with pytest.raises(SpecError, match="more than 50,000 bytes, the most that a study file has"):
        read_study(path)


def test_errors_are_bad_input() -> None:
    assert issubclass(SpecError, MtdlabError)
    assert SpecError.exit_code == 2


def test_overrides_come_after_the_file(read: Read) -> None:
    spec = read(GOOD, "trainer.batch_size=32", "seeds=[7]", "trainer.temperature=1e-1", "study=b")
    assert spec.name == "b"
    assert spec.seeds == (7,)
    assert (spec.trainer["batch_size"], spec.trainer["temperature"]) == (32, 0.1)
    assert read("study: a\n", "trainer.steps=5").trainer == {"steps": 5}
    assert read("study: a\n", "search.ema_decay={low: 0.1, high: 0.3, step: 0.1}").search_trials()[
        2:
    ]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.steps", r"^--set trainer.steps: write key=value, such as trainer.steps=50"),
        ("=5", r"^--set =5: write key=value"),
        ("study.x=5", "study is not a section"),
        ("trainer.stepz=5", r"^--set trainer.stepz=5: trainer.stepz: .*did you mean steps\?$"),
        ("trainer.steps=abc", r"^--set trainer.steps=abc: trainer.steps: 'abc': must be a whole"),
        ("trainr.steps=5", r"^--set trainr.steps=5: trainr: .*did you mean trainer\?$"),
        ("trainer.steps=[", r"^--set trainer.steps:1:2: not valid YAML"),
        ("trainer.steps=*a", "aliases are not allowed"),
        ("trainer.batch_size=0", r"^--set trainer.batch_size=0: trainer.batch_size: 0: must"),
        ("trainer=5", r"^--set trainer=5: "),
        ("seeds=[-1]", r"^--set seeds=\[-1\]: seeds.0: -1: must be 0 or more"),
    ],
)
def test_a_mistake_in_an_override_is_shown_there(read: Read, override: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(GOOD, override)


def test_settings_of_a_single_run(path: Path) -> None:
    path.write_text(GOOD)
    assert read_settings(path, ["trainer.steps=7"]) == make_settings(
        batch_size=64, learning_rate=3e-5, dropout=0, steps=7
    )
    assert read_settings(None, ["trainer.steps=7", "trainer.seed=2"]) == make_settings(
        steps=7, seed=2
    )
    with pytest.raises(SpecError, match=r"did you mean steps\?"):
        read_settings(None, ["trainer.stepz=7"])
    with pytest.raises(SpecError, match=r"steps: unknown key; did you mean trainer\.steps\?"):
        read_settings(None, ["steps=7"])
    with pytest.raises(SpecError, match="initial_queue_size 6 exceeds queue_size 5"):
        read_settings(None, ["trainer.queue_size=5", "trainer.initial_queue_size=6"])


def test_the_initial_queue_follows_the_queue_of_each_configuration(read: Read) -> None:
    spec = read("study: a\nsearch: {queue_size: [64, 256]}\n")
    starts = [spec.settings(unit.parameters or {}, 0).model_dump() for unit in spec.search_trials()]
    assert [start["initial_queue_size"] for start in starts] == [64, 128]
    # a study begun when the default was 128 throughout has the same identity
    assert spec.identity()["trainer"]["initial_queue_size"] == 128


BUDGET = """\
study: budget
trainer: {method: simcse, sentences: 1000, evaluate_every: 0.25}
search: {batch_size: [8, 16, 100]}
baseline: {batch_size: 50}
"""


def test_a_budget_in_sentences_gives_each_batch_size_its_steps(read: Read) -> None:
    spec = read(BUDGET)
    found = [
        (settings.batch_size, settings.steps, settings.evaluate_every)
        for settings in settings_of(spec)
    ]
    assert found == [(8, 125, 32), (16, 62, 16), (100, 10, 3)]
    beside: Any = spec.baseline_settings()
    assert beside.steps == 20
    # the study is identified by what the file gives, not by the steps of the default batch size
    identity = spec.identity()
    assert (identity["trainer"]["sentences"], identity["trainer"]["evaluate_every"]) == (1000, 0.25)
    assert "steps" not in identity["trainer"]
    other = read(BUDGET, "trainer.sentences=null", "trainer.steps=10", "trainer.evaluate_every=3")
    assert other.identity() != identity


def test_a_batch_that_the_budget_does_not_fill_is_refused(read: Read) -> None:
    with pytest.raises(
        SpecError, match="sentences 1000 are less than one batch of batch_size 1001"
    ):
        read(BUDGET.replace("100]", "1001]"))
