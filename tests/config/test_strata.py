"""Strata of MTD: configurations with one MTD and different EMA decays and queue sizes."""

import pytest

from mtdlab.api.plan import list_configurations, warn_of_confounding
from mtdlab.config.search import draw_stratum
from mtdlab.config.source import SpecError
from tests.config.conftest import Read

STUDY = """\
study: a
trainer: {batch_size: 32}
search:
  mtd: {strata: [5, 8.7, 14.7, 30, 500], per_stratum: 4}
  temperature: [0.05, 0.1]
seeds: [0, 1]
"""


def test_every_configuration_has_its_stratums_mtd_to_three_decimals(read: Read) -> None:
    spec = read(STUDY)
    rows = [row for row in list_configurations(spec) if row["temperature"] == 0.05]
    assert sorted({row["mtd"] for row in rows}) == [5, 8.7, 14.7, 30, 500]
    counts = [sum(row["mtd"] == mtd for row in rows) for mtd in (5, 8.7, 14.7, 30, 500)]
    assert counts == [3, 4, 4, 4, 4]
    assert all(row["queue_size"] % 32 == 0 and row["queue_size"] >= 32 for row in rows)
    assert all(row["ema_decay"] >= 0.5 for row in rows)
    assert len(spec.search_trials()) == 2 * 2 * len(rows)


def test_pairs_follow_from_the_formula_with_few_digits() -> None:
    assert draw_stratum(5, 4) == [(0.75, 1), (0.66667, 2), (0.5, 3)]
    assert [ratio for _, ratio in draw_stratum(14.7, 4)] == [1, 2, 5, 12]
    assert draw_stratum(30, 2) == [(0.9655172, 1), (0.5, 28)]
    assert draw_stratum(14.7, 4) == draw_stratum(14.7, 4)


def test_other_points_can_be_left_out_and_the_design_is_not_confounded(read: Read) -> None:
    spec = read(f"{STUDY}skip: [{{queue_size: 1}}]\n")
    assert {row["queue_size"] for row in list_configurations(spec)}.isdisjoint({32})
    assert warn_of_confounding(list_configurations(read(STUDY))) == []


def test_queues_are_multiples_of_each_searched_batch_size(read: Read) -> None:
    text = "study: a\nsearch:\n  mtd: {strata: [9], per_stratum: 2}\n  batch_size: [32, 64]\n"
    rows = list_configurations(read(text))
    sizes = [(row["batch_size"], row["queue_size"]) for row in rows]
    assert sizes == [(32, 32), (64, 64), (32, 224), (64, 448)]


FIVE = "mtd: {strata: [5], per_stratum: 2}"


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("mtd: [5, 8]", r":3:\d+: search.mtd: \[5, 8\]: write strata and per_stratum"),
        ("mtd: {strata: [5], per_stratums: 4}", "search.mtd.per_stratums: unknown key; did you"),
        ("mtd: {strata: [5]}", "search.mtd.per_stratum: this key is missing"),
        ("mtd: {strata: [5], per_stratum: 1}", "search.mtd.per_stratum: 1: must be 2 or more"),
        ("mtd: {strata: [], per_stratum: 2}", r"search.mtd.strata: \[\]: needs 1 or more values"),
        ("mtd: {strata: 5, per_stratum: 2}", "search.mtd.strata: 5: must be a list"),
        ("mtd: {strata: [5, 3.9], per_stratum: 2}", r":3:\d+: search.mtd.strata.1: 3.9: must be 4"),
        ("mtd: {strata: [x], per_stratum: 2}", "search.mtd.strata.0: 'x': must be a number"),
        (f"{FIVE}\n  ema_decay: [0.5]", r":4:\d+: search.ema_decay: also given by the strata of"),
        (f"{FIVE}\n  queue_size: [64]", r":4:\d+: search.queue_size: also given by the strata of"),
        (f"{FIVE}\ntrainer: {{queue_size: 64}}", r":4:\d+: trainer.queue_size: also given by the"),
        (f"{FIVE}\nsampler: random\ntrials: 3", "strata are points of a grid, random has none"),
        (f"{FIVE}\ntrainer: {{method: simcse}}", "method has no ema_decay, so it has no MTD"),
        (f"{FIVE}\ntrainer: {{ema_decay_end: 0.95}}", "search.mtd: .* strata need a constant EMA"),
    ],
)
def test_what_strata_cannot_be_is_refused(read: Read, search: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(f"study: a\nsearch:\n  {search}\n")


def test_the_lowest_mtd_of_a_stratum_is_that_of_the_least_decay_and_two_batches(read: Read) -> None:
    spec = read("study: a\nsearch:\n  mtd: {strata: [4], per_stratum: 2}\n")
    assert {row["mtd"] for row in list_configurations(spec)} == {4}


def test_plan_points_out_what_a_design_confounds(read: Read) -> None:
    text = "study: a\nsearch:\n  ema_decay: [0.75, 0.85, 0.95]\n"
    assert warn_of_confounding(list_configurations(read(text)))[0].startswith("Only η varies")
    queue = "  queue_size: {times: batch_size, values: [1, 8, 64]}\n"
    assert warn_of_confounding(list_configurations(read(text + queue))) == [
        "The design confounds MTD with K/N: all configurations of MTD 68 to 84 have 64."
    ]
    method = "study: a\nsearch: {method: [simcse]}\n"
    assert warn_of_confounding(list_configurations(read(method))) == []
