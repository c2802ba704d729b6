"""A study file: what is read, and where each mistake is pointed at."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mtdlab.config import StudySpec, read_settings, read_study
from mtdlab.config.search import Choices, Range
from mtdlab.config.source import MAXIMUM_BYTES, SpecError
from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import make_settings
from mtdlab.settings import TrainerSettings

Read = Callable[..., StudySpec]

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
seeds: [3, 1, 3]
sampler: grid
pruner: none
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "study.yaml"


@pytest.fixture
def read(path: Path) -> Read:
    def read(text: str, *overrides: str) -> StudySpec:
        path.write_text(text, encoding="utf-8")
        return read_study(path, overrides)

    return read


def test_a_good_file(read: Read) -> None:
    spec = read(GOOD)
    assert (spec.name, spec.metric, spec.sampler, spec.pruner, spec.trials) == (
        "mtd-1",
        "sts_dev",
        "grid",
        "none",
        None,
    )
    assert spec.trainer == {
        "encoder": "builtin",
        "batch_size": 64,
        "learning_rate": 3e-5,
        "dropout": 0,
    }
    assert spec.search == {
        "ema_decay": Choices((0.75, 0.85)),
        "queue_size": Choices((1, 4, 8), relative_to="batch_size"),
        "initial_queue_size": Choices((0, 0.25), relative_to="queue_size"),
    }
    assert spec.seeds == (3, 1)
    assert spec.text == GOOD


def test_the_least_file_trains_the_defaults_once(read: Read) -> None:
    spec = read("study: a\n")
    [unit] = spec.units()
    assert unit.parameters is not None
    assert spec.settings(unit.parameters, unit.seed) == make_settings()


def test_a_byte_order_mark_and_windows_line_ends_are_read(path: Path) -> None:
    path.write_bytes(b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode())
    assert read_study(path).name == "mtd-1"


# misspelt keys

TOP = [
    "study",
    "metric",
    "select_by",
    "trainer",
    "search",
    "seeds",
    "sampler",
    "pruner",
    "trials",
    "skip",
    "until",
    "verdict",
    "profiles",
]
SETTINGS = [name for name in TrainerSettings.model_fields if name != "seed"]


def edits(word: str) -> list[str]:
    """Words one edit away: a letter left out, doubled, replaced, swapped with the next."""
    found = [word[:at] + word[at + 1 :] for at in range(len(word))]
    found += [word[: at + 1] + word[at:] for at in range(len(word))]
    found += [word[:at] + "x" + word[at + 1 :] for at in range(len(word))]
    found += [word[:at] + word[at + 1] + word[at] + word[at + 2 :] for at in range(len(word) - 1)]
    return sorted({edit for edit in found if edit != word})


def misspelt(section: str, known: list[str]) -> list[tuple[str, str, str, int, int]]:
    """Edits of every key: text, what was written, what was meant, line, column."""
    cases = []
    for key in known:
        # settings' names are long: every edit of them would take a minute
        for wrong in edits(key)[:: 6 if section else 1]:
            if wrong in known or wrong == "seed":
                continue
            if section:
                text = f"study: a\n{section}:\n  # where\n  {wrong}: [1]\n"
                cases.append((text, wrong, key, 4, 3))
            else:
                rest = "" if key == "study" else "study: a\n"
                text = f"{rest}{wrong}: 1\n"
                cases.append((text, wrong, key, 1 + rest.count("\n"), 1))
    return cases


@pytest.mark.parametrize(
    ("section", "known"), [("", TOP), ("trainer", SETTINGS), ("search", SETTINGS)]
)
def test_every_misspelt_key_is_pointed_at_with_the_right_one(
    read: Read, path: Path, section: str, known: list[str]
) -> None:
    cases, right = misspelt(section, known), 0
    for text, wrong, meant, line, column in cases:
        with pytest.raises(SpecError, match="unknown key") as caught:
            read(text)
        message = str(caught.value)
        head, quoted, caret = message.split("\n")
        dotted = f"{section}.{wrong}" if section else wrong
        assert head.startswith(f"{path}:{line}:{column}: {dotted}: unknown key; "), message
        assert quoted == f"  {text.splitlines()[line - 1]}"
        assert caret.index("^") - 2 == column - 1
        right += head.endswith(f"did you mean {meant}?")
    assert len(cases) > 80
    assert right >= 0.95 * len(cases)


@pytest.mark.parametrize("key", ["choices", "distribution", "share_of", "times", "step"])
def test_a_misspelt_key_of_a_dimension(read: Read, key: str) -> None:
    for wrong in edits(key)[::3]:
        with pytest.raises(SpecError, match=rf":3:15: .*{wrong}: unknown key; did you mean {key}"):
            read(f"study: a\nsearch:\n  ema_decay: {{{wrong}: [0.5]}}\n")


def test_a_key_like_none_lists_what_is_known(read: Read) -> None:
    with pytest.raises(SpecError, match=r"qqqqqq: unknown key; known are description, metric, "):
        read("study: a\nqqqqqq: 1\n")


# what YAML may hold


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


def test_scalars_are_those_of_yaml_1_2(read: Read) -> None:
    spec = read(
        "study: no\ntrainer:\n  learning_rate: 3e-5\n  batch_size: 010\n  temperature: .5\n"
        "  encoder: nullable\n  corpus: trueish\n  prediction_dim: null\n  ema_decay_end: ~\n"
        "  evaluation: 1:30\n"
    )
    assert spec.name == "no"
    assert spec.trainer == {
        "learning_rate": 3e-5,
        "batch_size": 10,
        "temperature": 0.5,
        "encoder": "nullable",
        "corpus": "trueish",
        "prediction_dim": None,
        "ema_decay_end": None,
        "evaluation": "1:30",
    }
    assert isinstance(spec.trainer["batch_size"], int)


@pytest.mark.parametrize("word", ["no", "yes", "on", "true", "'5'", "1_000", ".inf", "0x10"])
def test_words_are_not_numbers(read: Read, word: str) -> None:
    with pytest.raises(SpecError, match=r":3:3: trainer.steps: .* valid integer"):
        read(f"study: a\ntrainer:\n  steps: {word}\n")


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"nowhere.yaml: cannot read the study file: no such file"):
        read_study(tmp_path / "nowhere.yaml")
    with pytest.raises(SpecError, match="is a directory"):
        read_study(tmp_path)


def test_a_file_that_is_not_utf8(path: Path) -> None:
    path.write_bytes(b"study: \xff\n")
    with pytest.raises(SpecError, match="not UTF-8 at byte 7"):
        read_study(path)


def test_a_file_that_is_too_large(path: Path) -> None:
    path.write_text("study: a\n#" + "x" * MAXIMUM_BYTES)
    with pytest.raises(SpecError, match=r"100010 bytes; a study file has at most 100000"):
        read_study(path)


def test_errors_are_bad_input() -> None:
    assert issubclass(SpecError, MtdlabError)
    assert SpecError.exit_code == 2


# --set


def test_overrides_come_after_the_file(read: Read) -> None:
    spec = read(GOOD, "trainer.batch_size=32", "seeds=[7]", "trainer.temperature=1e-1", "study=b")
    assert spec.name == "b"
    assert spec.seeds == (7,)
    assert (spec.trainer["batch_size"], spec.trainer["temperature"]) == (32, 0.1)
    assert read("study: a\n", "trainer.steps=5").trainer == {"steps": 5}
    assert read("study: a\n", "search.ema_decay={low: 0.1, high: 0.3, step: 0.1}").units()[2:]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("trainer.steps", r"^--set trainer.steps: write key=value, such as trainer.steps=50"),
        ("=5", r"^--set =5: write key=value"),
        ("study.x=5", "study is not a section"),
        ("trainer.stepz=5", r"^--set trainer.stepz=5: trainer.stepz: .*did you mean steps\?$"),
        ("trainer.steps=abc", r"^--set trainer.steps=abc: trainer.steps: 'abc': input should be"),
        ("trainr.steps=5", r"^--set trainr.steps=5: trainr: .*did you mean trainer\?$"),
        ("trainer.steps=[", r"^--set trainer.steps:1:2: not valid YAML"),
        ("trainer.steps=*a", "aliases are not allowed"),
        ("trainer.batch_size=0", r"^--set trainer.batch_size=0: trainer.batch_size: 0: input"),
        ("trainer=5", r"^--set trainer=5: "),
        ("seeds=[-1]", r"^--set seeds=\[-1\]: seeds.0: -1: a seed is 0 or more"),
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
    starts = [spec.settings(unit.parameters or {}, 0).model_dump() for unit in spec.units()]
    assert [each["initial_queue_size"] for each in starts] == [64, 128]
    # a study begun when the default was 128 throughout has the same identity
    assert spec.identity()["trainer"]["initial_queue_size"] == 128


# methods


def test_a_study_may_vary_its_method(read: Read) -> None:
    spec = read(
        "study: a\ntrainer: {steps: 7}\n"
        "search: {method: [mocose, simcse], ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n"
    )
    found = [
        (each.method, getattr(each, "ema_decay", None), each.seed, each.steps)
        for each in (spec.settings(unit.parameters or {}, unit.seed) for unit in spec.units())
    ]
    assert found == [
        (method, decay, seed, 7)
        for seed in (0, 1)
        for method, decay in (("mocose", 0.5), ("mocose", 0.75), ("simcse", None))
    ], "SimCSE has no decay: its two points are one configuration"


def test_a_setting_of_one_method_does_not_reach_the_others(read: Read) -> None:
    spec = read("study: a\ntrainer: {queue_size: 64}\nsearch: {method: [mocose, simcse]}\n")
    first, second = (spec.settings(unit.parameters or {}, 0) for unit in spec.units())
    assert first.model_dump()["queue_size"] == 64
    assert "queue_size" not in second.model_dump()
    assert second.evaluate_every == 125, "each method fills in its own defaults"
    assert spec.identity()["trainer"].keys() == {"mocose", "simcse"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trainer: {method: simcs}", r"trainer.method: method 'simcs' is not known; did you mean"),
        ("trainer: {method: 3}", "trainer.method: 3: write the name of a method, such as mocose"),
        ("search: {method: mocos}", r"search.method: method 'mocos' is not known"),
        ("search: {method: [simcse, 1]}", "write a list of methods"),
        ("search: {method: []}", "write a list of methods"),
        (
            "trainer: {method: simcse}\nsearch: {queue_size: [8]}",
            "search.queue_size: the study's method has no such setting; it belongs to mocose",
        ),
        (
            "trainer: {queue_siz: 8}\nsearch: {method: [mocose, simcse]}",
            r"trainer.queue_siz: unknown key; did you mean queue_size\?",
        ),
    ],
)
def test_methods_and_their_settings_are_checked(read: Read, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(f"study: a\n{text}\n")


# search


@pytest.mark.parametrize(
    ("written", "dimension"),
    [
        ("[0.5, 0.6, 0.5]", Choices((0.5, 0.6))),
        ("{values: [0.5, 0.6]}", Choices((0.5, 0.6))),
        ("{choices: [0.5]}", Choices((0.5,))),
        ("{value: 0.5}", Choices((0.5,))),
        ("{distribution: constant, value: 0.5}", Choices((0.5,))),
        ("{distribution: categorical, values: [0.5]}", Choices((0.5,))),
        ("{low: 0.1, high: 0.5}", Range(0.1, 0.5)),
        ("{low: 0.1, high: 0.5, step: 0.1}", Range(0.1, 0.5, step=0.1)),
        ("{low: 0.1, high: 0.5, log: true}", Range(0.1, 0.5, log=True)),
        ("{low: 0.1, high: 0.5, log: false}", Range(0.1, 0.5)),
        ("{min: 0.1, max: 0.5}", Range(0.1, 0.5)),
        ("{min: 0.1, max: 0.5, distribution: uniform}", Range(0.1, 0.5)),
        ("{min: 0.1, max: 0.5, distribution: log_uniform_values}", Range(0.1, 0.5, log=True)),
        ("{min: 0.1, max: 0.5, q: 0.2, distribution: q_uniform}", Range(0.1, 0.5, step=0.2)),
    ],
)
def test_spellings_of_a_dimension(read: Read, written: str, dimension: Choices | Range) -> None:
    spec = read(f"study: a\nsearch: {{ema_decay: {written}}}\nsampler: random\ntrials: 3\n")
    assert spec.search == {"ema_decay": dimension}


def test_a_range_of_whole_numbers_knows_it(read: Read) -> None:
    spec = read("study: a\nsearch: {batch_size: {low: 8, high: 32, step: 8}}\n")
    assert spec.search == {"batch_size": Range(8, 32, step=8, integer=True)}
    points = [unit.parameters for unit in spec.units()]
    assert points == [{"batch_size": size} for size in (8, 16, 24, 32)]
    [plain] = read("study: a\nsearch: {batch_size: {low: 8, high: 10}}\n").search.values()
    assert plain == Range(8, 10, integer=True)


@pytest.mark.parametrize(
    ("setting", "written", "message"),
    [
        ("ema_decay", "[]", r":2:10: search.ema_decay: needs at least one value"),
        ("ema_decay", "{values: []}", "needs at least one value"),
        ("ema_decay", "0.5", "write a list, or values:, or low: and high:"),
        ("ema_decay", "null", "write a list"),
        ("ema_decay", "[[0.5]]", r"\[0.5\] is not a single value"),
        ("ema_decay", "[0.5, 1]", "1: Input should be less than 1"),
        ("temperature", "[0]", "0: Input should be greater than 0"),
        ("temperature", "{low: 0, high: 1}", "0: Input should be greater than 0"),
        ("dropout", "[1]", "1: Input should be less than 1"),
        ("max_length", "[2]", "2: Input should be greater than or equal to 3"),
        ("steps", "[true]", "True: Input should be a valid integer"),
        ("queue_slice", "[all, 7]", "7: Input should be a valid string"),
        ("queue_slice", "[9-3]", "is no range"),
        ("ema_decay", "{low: 0.5, high: 0.1}", "needs low and high with low <= high"),
        ("ema_decay", "{low: 0.5}", "got 0.5 and None"),
        ("ema_decay", "{low: a, high: 0.5}", "needs low and high"),
        ("ema_decay", "{low: false, high: true}", "needs low and high"),
        ("ema_decay", "{low: 0, high: 0.5, step: 0}", "0: a step is above 0"),
        ("ema_decay", "{low: 0, high: 0.5, log: true}", "a log range begins above 0"),
        ("ema_decay", "{low: 0.1, high: 0.5, log: true, step: 0.1}", "has no step"),
        ("ema_decay", "{low: 0.1, high: 0.5, log: no}", "'no': write true or false"),
        ("ema_decay", "{low: 0.1, high: 0.5}", "ema_decay: a grid needs a list of values"),
        ("ema_decay", "{low: 0, high: 0.5, step: 1e-300}", "more than 10000 values"),
        ("steps", "{low: 1, high: 1000000000000}", "more than 10000 values"),
        ("batch_size", "{low: 2, high: 4, step: 0.5}", "batch_size takes whole numbers"),
        ("batch_size", "{low: 2.5, high: 4}", "2.5: Input should be a valid integer"),
        ("encoder", "{low: 1, high: 2}", "is no number; list its values"),
        ("ema_decay", "{values: [0.5], log: true}", "log: does not go with values"),
        ("ema_decay", "{values: [0.5], value: 0.5}", "does not go with value"),
        (
            "ema_decay",
            "{distribution: log_uniform, min: -5, max: -1}",
            "log_uniform takes exponents; use log_uniform_values, whose bounds are values",
        ),
        ("ema_decay", "{distribution: normal, mu: 0}", "'normal'; known are uniform, "),
        ("ema_decay", "{distribution: [uniform]}", "known are uniform, "),
        ("ema_decay", "{distribution: null, values: [0.5]}", "None; known are uniform, "),
        ("ema_decay", "{times: batch_size, values: [1]}", "plain values, since it is no multiple"),
        ("ema_decay", "{times: null, values: [1]}", "plain values, since it is no multiple"),
        ("queue_size", "{times: steps, values: [1]}", "'steps'; allowed is times: batch_size"),
        ("queue_size", "{times: batch_size}", "needs at least one value"),
        ("queue_size", "{times: batch_size, values: [-1]}", "-1: a multiple is 0 or more"),
        ("queue_size", "{times: batch_size, values: [a]}", "'a': a multiple is 0 or more"),
        ("queue_size", "{times: batch_size, vlues: [1]}", "did you mean values"),
        ("initial_queue_size", "{share_of: queue_size, values: [1.5]}", "a share lies in 0 to 1"),
        ("seed", "[1, 2]", "the seed is not searched; list it under seeds:"),
    ],
)
def test_a_search_that_cannot_be_is_refused(
    read: Read, setting: str, written: str, message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        read(f"study: a\nsearch: {{{setting}: {written}}}\n")


def test_a_grid_beyond_all_measure_is_refused(read: Read) -> None:
    ten = list(range(3, 13))
    names = [
        "batch_size",
        "steps",
        "evaluate_every",
        "prediction_layers",
        "max_length",
        "projection_layers",
    ]
    search = "".join(f"  {name}: {ten}\n" for name in names)
    with pytest.raises(SpecError, match="the grid has 1000000 points; it may have 10000"):
        read(f"study: a\nsearch:\n{search}")


def test_words_and_their_settings_go_through_a_search(read: Read) -> None:
    spec = read("study: a\nsearch: {pooling: [cls, mean], prediction_dim: [null, 32]}\n")
    points = [spec.settings(unit.parameters or {}, 0) for unit in spec.units()]
    assert [(one.pooling, one.prediction_dim) for one in points] == [
        ("cls", None),
        ("cls", 32),
        ("mean", None),
        ("mean", 32),
    ]


# relative settings


def resolved(spec: StudySpec) -> list[tuple[int, int, int]]:
    settings = [spec.settings(unit.parameters or {}, unit.seed) for unit in spec.units()]
    return [(one.batch_size, one.queue_size, one.initial_queue_size) for one in settings]


def test_a_share_of_a_multiple_of_a_searched_batch(read: Read) -> None:
    """In whatever order the file names them."""
    spec = read(
        "study: a\nsearch:\n"
        "  initial_queue_size: {share_of: queue_size, values: [0.25]}\n"
        "  queue_size: {times: batch_size, values: [2, 4]}\n"
        "  batch_size: [8, 16]\n"
    )
    assert resolved(spec) == [(8, 16, 4), (16, 32, 8), (8, 32, 8), (16, 64, 16)]


@pytest.mark.parametrize("written", ["STSB, STS12", "[STSB, STS12]"])
def test_tasks_as_text_or_list_in_published_order(read: Read, written: str) -> None:
    spec = read(f"study: a\nmetric: STSB\ntrainer:\n  tasks: {written}\n")
    assert spec.settings({}, 0).tasks == "STS12,STSB"
    assert spec.metric == "STSB"


def test_a_multiple_of_a_default(read: Read) -> None:
    spec = read("study: a\nsearch:\n  queue_size: {times: batch_size, values: [2, 8]}\n")
    assert resolved(spec) == [(64, 128, 128), (64, 512, 128)]
    spec = read("study: a\nsearch: {initial_queue_size: {share_of: queue_size, values: [0.5]}}\n")
    assert resolved(spec) == [(64, 512, 256)]


def test_a_fraction_of_a_batch_is_rounded(read: Read) -> None:
    spec = read(
        "study: a\ntrainer: {batch_size: 10, initial_queue_size: 0}\n"
        "search: {queue_size: {times: batch_size, values: [0.33, 2.5]}}\n"
    )
    assert resolved(spec) == [(10, 3, 0), (10, 25, 0)]


# combinations


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (
            "trainer: {batch_size: 1, queue_size: 0, initial_queue_size: 0}",
            ":2:1: trainer: queue_size 0 leaves no negatives with batch_size 1",
        ),
        (
            "trainer: {queue_size: 64, initial_queue_size: 128}",
            ":2:1: trainer: initial_queue_size 128 exceeds queue_size",
        ),
        (
            "trainer: {initial_queue_size: 128}\nsearch: {queue_size: [64, 512]}",
            "'queue_size': 64}: initial_queue_size 128 exceeds",
        ),
        (
            "trainer: {initial_queue_size: 0}\nsearch: {queue_size: [0, 8], batch_size: [1, 2]}",
            "'queue_size': 0, 'batch_size': 1}: queue_size 0 leaves no negatives",
        ),
        (
            "search: {initial_queue_size: {times: queue_size, values: [2]}}",
            "initial_queue_size 1024 exceeds queue_size 512",
        ),
        ("search: {queue_slice: [0-256, 500-600]}", "500-600 lies outside queue_size 512"),
        ("trainer: {seed: 3}", r":2:11: trainer.seed: a study takes its seeds from seeds: \[0,"),
        ("trainer: {steps: 3}\nsearch: {steps: [3]}", "also fixed under trainer; keep one of"),
        ("sampler: random", ":2:1: sampler: random needs trials: how many configurations to draw"),
        ("trials: 5", "a grid has as many trials as points; leave it out"),
        ("sampler: random\ntrials: 0", "greater than or equal to 1"),
        ("sampler: random\ntrials: 1000000000000", "less than or equal to 1000000"),
        (
            "sampler: tpe\ntrials: 5\nselect_by: sts_test",
            ":2:1: sampler: tpe would fit its choices to the test split; use select_by: sts_dev",
        ),
        ("select_by: dev", ":2:1: select_by: 'dev' is not known; did you mean sts_dev"),
        ("select_by: STS12", "select_by: STS12 needs tasks that trainer.tasks lacks: STS12"),
        (
            "pruner: median\ntrainer: {select_on: test}",
            ":2:1: pruner: a pruner compares scores on the pairs that select_on names, here the",
        ),
        ("pruner: median\nsearch: {select_on: [dev, test]}", ":2:1: pruner: a pruner compares"),
        ("pruner: median\ntrainer: {preset: published-code}", ":2:1: pruner: a pruner compares"),
        ("sampler: cma", "'cma': input should be 'grid', 'random', 'tpe' or 'qmc'"),
        ("pruner: some", "'some': input should be 'none', 'median' or 'hyperband'"),
        ("metric: accuracy", "'accuracy' is not known; known are CR, MPQA"),
        ("seeds: []", "at least 1 item"),
        ("seeds: 3", "valid list"),
        ("seeds: [1, -1]", ":2:12: seeds.1: -1: a seed is 0 or more"),
        ("seeds: [1.5]", "valid integer"),
        ("trainer: 5", "valid dictionary"),
        ("metric: STS12", "STS12 needs tasks that trainer.tasks lacks: STS12"),
        (
            "metric: sts_average\ntrainer: {tasks: [STS12, STSB]}",
            "sts_average needs tasks that trainer.tasks lacks: STS13, STS14, STS15, STS16, SICKR",
        ),
        ("trainer: {tasks: STS17}", "task 'STS17': not known; write sts, transfer or any of STS12"),
        ("trainer: {select_on: train}", "'train': input should be 'dev' or 'test'"),
        ("search: [ema_decay]", "valid dictionary"),
    ],
)
def test_combinations_that_cannot_run_are_refused(read: Read, rest: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(f"study: a\n{rest}\n")


@pytest.mark.parametrize("name", ["''", "../a", "a b", "-a", "a" * 101, "'a\n\n'", "5", "ä"])
def test_names_that_no_study_may_have(read: Read, name: str) -> None:
    with pytest.raises(SpecError, match="study: "):
        read(f"study: {name}\n")


def test_what_a_search_makes_fit_is_not_refused(read: Read) -> None:
    spec = read("study: a\ntrainer: {queue_size: 64}\nsearch: {initial_queue_size: [0, 64]}\n")
    assert resolved(spec) == [(64, 64, 0), (64, 64, 64)]
    assert spec.fixed().queue_size == 64
    spec = read("study: a\ntrainer: {queue_slice: 512-768}\nsearch: {queue_size: [1024]}\n")
    assert resolved(spec) == [(64, 1024, 128)]


def test_a_queue_need_not_be_a_multiple_of_the_batch(read: Read) -> None:
    spec = read("study: a\ntrainer: {queue_size: 500, batch_size: 64}\n")
    assert resolved(spec) == [(64, 500, 128)]


def test_tpe_learns_from_the_dev_split_whatever_is_reported(read: Read) -> None:
    for metric in ("sts_dev", "sts_test"):
        text = f"study: a\nmetric: {metric}\nsampler: tpe\ntrials: 2\n"
        spec = read(text + "search: {dropout: [0, 0.1]}\n")
        assert (spec.sampler, spec.trials) == ("tpe", 2)
        assert (spec.metric, spec.select_by) == (metric, "sts_dev")


def test_trials_are_ranked_by_dev_unless_the_file_says_otherwise(read: Read) -> None:
    spec = read("study: a\n")
    assert (spec.metric, spec.select_by, spec.select_by_given) == ("sts_test", "sts_dev", False)
    spec = read("study: a\nselect_by: sts_dev\n")
    assert (spec.select_by, spec.select_by_given) == ("sts_dev", True)
    assert read("study: a\nselect_by: sts_test\n").identity()["select_by"] == "sts_test"


def test_a_pruner_may_compare_test_scores_where_they_rank_the_trials(read: Read) -> None:
    text = "study: a\npruner: median\nselect_by: sts_test\ntrainer: {select_on: test}\n"
    assert read(text).pruner == "median"
    assert read("study: a\npruner: median\n").pruner == "median"


# units


def test_a_grid_goes_seed_by_seed(read: Read) -> None:
    spec = read(
        "study: a\nsearch: {ema_decay: [0.5, 0.6, 0.5], batch_size: [8, 16]}\nseeds: [2, 0]\n"
    )
    units = spec.units()
    points = [(0.5, 8), (0.5, 16), (0.6, 8), (0.6, 16)]
    assert [unit.seed for unit in units] == [2] * 4 + [0] * 4
    assert [tuple((unit.parameters or {}).values()) for unit in units] == points * 2
    assert len({(unit.setting, unit.seed) for unit in units}) == 8
    assert [unit.setting for unit in units[:4]] == [unit.setting for unit in units[4:]]


def test_a_point_keeps_its_name_in_a_larger_grid(read: Read) -> None:
    small = {unit.setting for unit in read("study: a\nsearch: {ema_decay: [0.5]}\n").units()}
    large = {unit.setting for unit in read("study: a\nsearch: {ema_decay: [0.6, 0.5]}\n").units()}
    assert small < large


def test_a_sampled_study_goes_setting_by_setting(read: Read) -> None:
    spec = read(
        "study: a\nsampler: random\ntrials: 2\nseeds: [5, 6]\n"
        "search: {ema_decay: {low: 0.1, high: 0.9}}\n"
    )
    units: list[tuple[str, int, Any]] = [
        (unit.setting, unit.seed, unit.parameters) for unit in spec.units()
    ]
    assert units == [
        ("sample-00000", 5, None),
        ("sample-00000", 6, None),
        ("sample-00001", 5, None),
        ("sample-00001", 6, None),
    ]


def test_every_message_is_one_line_with_at_most_the_place_below(read: Read) -> None:
    with pytest.raises(SpecError, match="ema_decay") as caught:
        read("study: a\nsearch:\n  ema_decay: [2]\n")
    assert re.fullmatch(r"\S+:3:3: [^\n]+\n  {3}ema_decay: \[2\]\n {4}\^", str(caught.value))
