"""Whatever stands in a study file: success or a SpecError, soon, and nothing else."""

import re
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mtdlab.config.reader import read_study
from mtdlab.config.search import _DIMENSION_KEYS
from mtdlab.config.source import SpecError, parse
from mtdlab.config.study_file import StudyFile
from tests.config.conftest import AtMostCalls

CALLS = 1_000_000
"""Of functions: some tenths of a second. The files below need up to 630,000."""
TEXT = """\
study: mtd
metric: sts_dev
trainer:
  encoder: builtin
  batch_size: 64
  learning_rate: 3e-5
  device: "cpu"
search:
  ema_decay: [0.75, 0.85, 0.95]
  queue_size: {times: batch_size, values: [1, 4, 8]}
  initial_queue_size: {share_of: queue_size, values: [0, 0.25]}
  temperature: {low: 0.01, high: 0.1, step: 0.01}
  dropout: {distribution: uniform, min: 0.1, max: 0.5, q: 0.1}
seeds: [0, 1, 2]
sampler: grid
"""
PIECES = [
    *("# x\n", ": ", "- ", "&a ", "*a", "!!int ", "!x "),
    *("!!python/object:os.system ", "? ", "<<: ", "null", "true", "no", "1e999", "-1", "0"),
    *("9" * 400, "1e-320", ".nan", "---\n", "...\n", "[" * 40, "{a: " * 40, "''", "times", "log"),
    *"[]{}:,-\n\t #|>%@`'\"?~\x00\x85\u2028\ufeff\U0001f600",
    *("0.5", "1", "12", "mean", "sts_dev"),
]


def mutated(random: Random) -> str:
    """The text after one to four accidents."""
    text = TEXT
    for _ in range(random.randint(1, 3)):
        at, piece = random.randrange(len(text) + 1), random.choice(PIECES)
        kind = random.choice([0, 1, 2, 3, 4, 4, 4, 4, 5])
        if kind == 0:
            text = text[:at] + piece + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + random.randint(1, 30) :]
        elif kind == 2:
            text = text[:at] + piece + text[at + len(piece) :]
        elif kind == 3:
            lines = text.splitlines(keepends=True)
            random.shuffle(lines)
            text = "".join(lines)
        elif kind == 4:
            # another value for a key, which most accidents above only break as YAML
            values = list(re.finditer(r"[\w.+-]+(?=[,\]}\n])", text))
            if values:
                one = random.choice(values)
                text = text[: one.start()] + piece + text[one.end() :]
        else:
            text = text[:at]
    return text


LIBRARY_WORDS = re.compile("[Ii]nput should|should (have|match)|is not allowed here")
"""Of pydantic's messages, and of ours for a rule of pydantic's without a sentence."""


@pytest.mark.parametrize(
    "seed", [pytest.param(i, marks=[pytest.mark.slow] if i >= 50 else []) for i in range(300)]
)
def test_a_mutated_file_is_read_or_refused(
    seed: int, tmp_path: Path, at_most_calls: AtMostCalls
) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(mutated(Random(seed)), encoding="utf-8")
    message = ""
    with at_most_calls(CALLS):
        try:
            assert len(read_study(path).search_trials()) >= 1
        except SpecError as error:
            message = str(error)
    assert not LIBRARY_WORDS.search(message), message


@pytest.mark.slow
def test_the_accidents_are_of_both_kinds(tmp_path: Path) -> None:
    """Else the test above would say little."""
    path, read, refused = tmp_path / "study.yaml", 0, set()
    for seed in range(150):
        path.write_text(mutated(Random(seed)), encoding="utf-8")
        try:
            read_study(path)
            read += 1
        except SpecError as error:
            refused.add(str(error).split(": ", 2)[-1][:30])
    assert read >= 3
    assert len(refused) > 30


VALUE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["queue_size", "batch_size", "uniform", "1e308", "010", "no"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*_DIMENSION_KEYS, "x"]), inner, max_size=4)
    ),
    max_leaves=6,
)
KEY = st.sampled_from(sorted({*StudyFile.model_fields, "x"} - {"description", "profiles"}))
SETTING = st.sampled_from(
    (
        *("ema_decay", "queue_size", "initial_queue_size", "batch_size", "pooling", "device"),
        *("prediction_dim", "queue_slice", "steps", "seed", "x"),
    )
)


def written(value: object) -> str:
    """YAML in flow style."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {written(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'" if len(value) % 2 else value
    return {True: "true", False: "false", None: "null"}.get(value, repr(value))  # type: ignore[call-overload, no-any-return]


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.dictionaries(KEY, VALUE, max_size=2),
    st.dictionaries(SETTING, VALUE, max_size=2),
    st.dictionaries(SETTING, VALUE, max_size=2),
)
def test_any_values_are_read_or_refused(
    tmp_path: Path, top: dict[str, object], trainer: dict[str, object], search: dict[str, object]
) -> None:
    path = tmp_path / "study.yaml"
    content = {"study": "a", "trainer": trainer, "search": search} | top
    text = "".join(f"{key}: {written(value)}\n" for key, value in content.items())
    path.write_text(text, encoding="utf-8", errors="replace")
    message = ""
    try:
        assert read_study(path).name
    except SpecError as error:
        message = str(error)
    assert not LIBRARY_WORDS.search(message), message


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.text(max_size=60))
def test_any_text_is_yaml_or_refused(text: str) -> None:
    with suppress(SpecError):
        assert parse("f", text).name == "f"


@pytest.mark.parametrize(
    "text",
    [
        "a: " + "[" * 100_000,
        "a: " + "{" * 100_000,
        "- " * 20_000,
        "a: 'x" + "\n" * 20_000,
        "? " * 20_000,
        "a: [" + "1," * 4_000 + "]",
        "# comment\n" * 20_000,
    ],
    ids=["lists", "mappings", "dashes", "quoted", "questions", "long", "comments"],
)
def test_bombs_are_soon_over(text: str, at_most_calls: AtMostCalls) -> None:
    with at_most_calls(CALLS), suppress(SpecError):
        parse("f", text)
