"""Texts among their own negatives: against a queue that is filled, batch by batch."""

from collections import deque

import numpy as np
import pytest

from mtdlab.analysis.measures.repeats import RunSizes, describe_repeats, expect_repeats


@pytest.mark.parametrize(
    ("texts", "copies", "queue"), [(400, 1, 512), (400, 1, 100), (400, 4, 64), (200, 20, 0)]
)
def test_the_expected_numbers_are_those_of_a_run(texts: int, copies: int, queue: int) -> None:
    random, batch, epochs = np.random.default_rng(0), 10, 60
    names = np.arange(texts) // copies
    keys, in_batch, in_queue = deque[int](maxlen=queue), list[float](), list[float]()
    for epoch in range(epochs):
        for some in random.permutation(names).reshape(-1, batch):
            equal = some[:, None] == some
            if epoch > 4:
                in_batch.append(equal.sum(axis=1).mean() - 1)
                in_queue.append((some[:, None] == np.array(keys, dtype=int)).sum(axis=1).mean())
            keys.extend(some.tolist())
    chance = (copies - 1) / (texts - 1)
    run = RunSizes(batch, queue, epochs * texts // batch)
    expected = expect_repeats(texts, chance, run)
    assert expected == pytest.approx((np.mean(in_batch), np.mean(in_queue)), rel=0.1, abs=0.005)


def test_the_first_epoch_meets_no_older_key_of_a_text() -> None:
    assert expect_repeats(640, 0.0, RunSizes(64, 512, 10)) == (0, 0)
    assert expect_repeats(640, 0.0, RunSizes(64, 512, 11))[1] == pytest.approx(0.36)


def test_the_run_with_most_repeats_is_described_with_its_mtd_in_epochs() -> None:
    runs = [RunSizes(64, 0, 100), RunSizes(64, 512, 100, 12.0)]
    assert describe_repeats(400, "sentences", 0.0, runs) == (
        "Texts are negatives of themselves, which works against the loss. Expected for each of 400 "
        "sentences: 0 in its batch of 64 and 0.88 in the queue of 512. MTD 12 steps is 1.9 epochs "
        "of 400 sentences."
    )
    assert describe_repeats(400, "sentences", 0.0, runs[:1]) == ""
    assert describe_repeats(0, "sentences", 0.0, []) == ""
