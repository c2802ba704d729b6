"""The section search: spellings of a dimension, and what is refused."""

import pytest

from mtdlab.config.search import Choices, Range
from mtdlab.config.source import SpecError
from tests.config.conftest import Read, settings_of


@pytest.mark.parametrize(
    ("written", "dimension"),
    [
        ("[0.5, 0.6]", Choices((0.5, 0.6))),
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
    points = [unit.parameters for unit in spec.search_trials()]
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
        ("ema_decay", "[0.5, 1]", "1: must be below 1"),
        ("temperature", "[0]", "0: must be above 0"),
        ("temperature", "{low: 0, high: 1}", "0: must be above 0"),
        ("dropout", "[1]", "1: must be below 1"),
        ("max_length", "[2]", "2: must be 3 or more"),
        ("steps", "[true]", "true: must be a whole number"),
        ("queue_slice", "[all, 7]", "7: must be text; write it in quotes"),
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
        ("steps", "{low: 1, high: 1000000000000}", "1000000000000: must be 10000000 or less"),
        ("batch_size", "{low: 2, high: 4, step: 0.5}", "batch_size takes whole numbers"),
        ("batch_size", "{low: 2.5, high: 4}", "2.5: must be a whole number"),
        ("encoder", "{low: 1, high: 2}", "is no number; list its values"),
        ("ema_decay", "{values: [0.5], log: true}", "log: does not go with values"),
        ("ema_decay", "{values: [0.5], value: 0.5}", "does not go with value"),
        (
            "ema_decay",
            "{distribution: log_uniform, min: -5, max: -1}",
            "'log_uniform'; choose from .*log_uniform_values.*; bounds are values, no exponents",
        ),
        ("ema_decay", "{distribution: normal, mu: 0}", "'normal'; choose from uniform, "),
        ("ema_decay", "{distribution: [uniform]}", "choose from uniform, "),
        ("ema_decay", "{distribution: null, values: [0.5]}", "None; choose from uniform, "),
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
    names = ["batch_size", "steps", "evaluate_every", "max_length"]
    names += ["prediction_layers", "projection_layers"]
    search = "".join(f"  {name}: {ten}\n" for name in names)
    with pytest.raises(SpecError, match="the grid has 1000000 points; it may have 10000"):
        read(f"study: a\nsearch:\n{search}")


def test_words_and_their_settings_go_through_a_search(read: Read) -> None:
    spec = read("study: a\nsearch: {pooling: [cls, mean], prediction_dim: [null, 32]}\n")
    points = settings_of(spec)
    found = [(one.pooling, one.prediction_dim) for one in points]
    assert found == [("cls", None), ("cls", 32), ("mean", None), ("mean", 32)]
