"""Settings that depend on each other: multiples, and what cannot run together."""

import pytest

from mtdlab.config.source import SpecError
from mtdlab.config.study import StudySpec
from tests.config.conftest import Read


def resolved(spec: StudySpec) -> list[tuple[int, int, int]]:
    settings = [spec.settings(unit.parameters or {}, unit.seed) for unit in spec.search_trials()]
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


NO_QUEUE = "queue_size: 0, initial_queue_size: 0"
FULL, EMPTY = (f"trainer: {{initial_queue_size: {size}}}\n" for size in (128, 0))


@pytest.mark.parametrize(
    ("rest", "message"),
    [
        (f"trainer: {{batch_size: 1, {NO_QUEUE}}}", ":2:1: trainer: queue_size 0 leaves no negati"),
        ("trainer: {queue_size: 64, initial_queue_size: 128}", ":2:1: .* 128 exceeds queue_size"),
        (f"{FULL}search: {{queue_size: [64, 512]}}", "'queue_size': 64}: initial_queue_size 128 e"),
        (f"{EMPTY}search: {{queue_size: [0, 8], batch_size: [1, 2]}}", "0 leaves no negatives"),
        ("search: {initial_queue_size: {times: queue_size, values: [2]}}", "1024 exceeds queue_si"),
        ("search: {queue_slice: [0-256, 500-600]}", "500-600 lies outside queue_size 512"),
        ("trainer: {seed: 3}", r":2:11: trainer.seed: a study takes its seeds from seeds: \[0,"),
        ("trainer: {steps: 3}\nsearch: {steps: [3]}", "also fixed under trainer; keep one of"),
        ("sampler: random", ":2:1: sampler: random needs trials: how many configurations to draw"),
        ("trials: 5", "a grid has as many trials as points; leave it out"),
        ("sampler: random\ntrials: 0", "trials: 0: must be 1 or more"),
        ("sampler: random\ntrials: 1000000000000", "must be 100000 or less"),
        ("sampler: tpe\ntrials: 5\nselect_by: sts_test", ":2:1: sampler: tpe would fit its choice"),
        ("select_by: dev", ":2:1: select_by: 'dev' is not known; did you mean sts_dev"),
        ("select_by: STS12", "select_by: STS12 needs tasks that trainer.tasks lacks: STS12"),
        ("pruner: median\ntrainer: {select_on: test}", ":2:1: pruner: .* scores on the pairs that"),
        ("pruner: median\nsearch: {select_on: [dev, test]}", ":2:1: pruner: a pruner compares"),
        ("pruner: median\ntrainer: {preset: published-code}", ":2:1: pruner: a pruner compares"),
        ("sampler: cma", "unknown sampler 'cma'; choose from grid, random, tpe, qmc"),
        ("pruner: some", "unknown pruner 'some'; choose from none, median, hyperband"),
        ("metric: accuracy", "'accuracy' is not known; choose from CR, MPQA"),
        ("seeds: []", r"seeds: \[\]: needs 1 or more values"),
        ("seeds: 3", "3: must be a list, written in brackets"),
        ("seeds: [1, -1]", ":2:12: seeds.1: -1: must be 0 or more"),
        ("seeds: [1.5]", "seeds.0: 1.5: must be a whole number"),
        ("trainer: 5", "trainer: 5: must be a section of keys and values"),
        ("metric: STS12", "STS12 needs tasks that trainer.tasks lacks: STS12"),
        ("metric: sts_average\ntrainer: {tasks: [STS12, STSB]}", "lacks: STS13, STS14, .*16, SICK"),
        ("trainer: {tasks: STS17}", "task 'STS17': not known; write sts, transfer or any of STS12"),
        ("trainer: {select_on: train}", "unknown select_on 'train'; choose from dev, test, sts_av"),
        ("search: [ema_decay]", "must be a section of keys and values"),
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
    assert (spec.metric, spec.select_by) == ("sts_test", "sts_dev")
    assert read("study: a\nselect_by: sts_test\n").identity()["select_by"] == "sts_test"


def test_a_pruner_may_compare_test_scores_where_they_rank_the_trials(read: Read) -> None:
    text = "study: a\npruner: median\nselect_by: sts_test\ntrainer: {select_on: test}\n"
    assert read(text).pruner == "median"
    assert read("study: a\npruner: median\n").pruner == "median"


@pytest.mark.parametrize(
    "text",
    [
        "trainer: {target: frozen}\nsearch: {ema_decay: [0.5, 0.9]}\n",
        "search: {ema_decay: [0.5, 0.9], target: [ema, frozen]}\n",
        "trainer: {target: frozen}\nsearch: {ema_decay: {low: 0.5, high: 0.9}}\n"
        "sampler: random\ntrials: 3\n",
    ],
)
def test_a_decay_that_changes_nothing_is_not_searched(read: Read, text: str) -> None:
    with pytest.raises(SpecError, match="has no effect with target: frozen; take it out, or run"):
        read("study: a\n" + text)


def test_a_frozen_target_is_searched_or_is_the_baseline(read: Read) -> None:
    assert read("study: a\nsearch: {target: [ema, frozen]}\n")
    beside = read("study: a\nsearch: {ema_decay: [0.5, 0.9]}\nbaseline: {target: frozen}\n")
    settings = beside.baseline_settings()
    assert settings is not None
    assert settings.mtd is None
