"""The trials of a study, and the methods that they use."""

import re

import pytest

from mtdlab.config.source import SpecError
from tests.config.conftest import Read


def test_a_study_may_vary_its_method(read: Read) -> None:
    spec = read(
        "study: a\ntrainer: {steps: 7}\n"
        "search: {method: [mocose, simcse], ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n"
    )
    found = [
        (settings.method, getattr(settings, "ema_decay", None), settings.seed, settings.steps)
        for settings in (
            spec.settings(unit.parameters or {}, unit.seed) for unit in spec.search_trials()
        )
    ]
    assert found == [
        (method, decay, seed, 7)
        for seed in (0, 1)
        for method, decay in (("mocose", 0.5), ("mocose", 0.75), ("simcse", None))
    ], "SimCSE has no decay: its two points are one configuration"


def test_a_setting_of_one_method_does_not_reach_the_others(read: Read) -> None:
    spec = read("study: a\ntrainer: {queue_size: 64}\nsearch: {method: [mocose, simcse]}\n")
    first, second = (spec.settings(unit.parameters or {}, 0) for unit in spec.search_trials())
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
            "search.queue_size: the method has no such setting; it belongs to mocose",
        ),
        ("trainer: {queue_siz: 8}\nsearch: {method: [mocose, simcse]}", r"mean queue_size\?"),
    ],
)
def test_methods_and_their_settings_are_checked(read: Read, text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(f"study: a\n{text}\n")


def test_a_grid_goes_seed_by_seed(read: Read) -> None:
    spec = read("study: a\nsearch: {ema_decay: [0.5, 0.6], batch_size: [8, 16]}\nseeds: [2, 0]\n")
    units = spec.search_trials()
    points = [(0.5, 8), (0.5, 16), (0.6, 8), (0.6, 16)]
    assert [unit.seed for unit in units] == [2] * 4 + [0] * 4
    assert [tuple((unit.parameters or {}).values()) for unit in units] == points * 2
    assert len({(unit.configuration, unit.seed) for unit in units}) == 8
    assert [unit.configuration for unit in units[:4]] == [unit.configuration for unit in units[4:]]


def test_a_point_keeps_its_name_in_a_larger_grid(read: Read) -> None:
    small = {
        unit.configuration
        for unit in read("study: a\nsearch: {ema_decay: [0.5]}\n").search_trials()
    }
    large = {
        unit.configuration
        for unit in read("study: a\nsearch: {ema_decay: [0.6, 0.5]}\n").search_trials()
    }
    assert small < large


def test_a_sampled_study_goes_setting_by_setting(read: Read) -> None:
    spec = read(
        "study: a\nsampler: random\ntrials: 2\nseeds: [5, 6]\n"
        "search: {ema_decay: {low: 0.1, high: 0.9}}\n"
    )
    units = [(unit.configuration, unit.seed, unit.parameters) for unit in spec.search_trials()]
    expected = [(f"sample-0000{index}", seed, None) for index in (0, 1) for seed in (5, 6)]
    assert units == expected


def test_every_message_is_one_line_with_at_most_the_place_below(read: Read) -> None:
    with pytest.raises(SpecError, match="ema_decay") as caught:
        read("study: a\nsearch:\n  ema_decay: [2]\n")
    assert re.fullmatch(r"\S+:3:3: [^\n]+\n  {3}ema_decay: \[2\]\n {4}\^", str(caught.value))
