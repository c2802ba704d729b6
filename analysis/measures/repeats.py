"""How often a text meets itself among its negatives, where a corpus repeats texts or is read again.

Letters: S texts of the corpus, N batch size, K queue size, c chance that two texts are the same.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

LEAST_REPEATS = 0.1
"""The expected number of a text's negatives of the same text from which on it is told."""


class RunSizes(NamedTuple):
    """What of a run decides which negatives a text meets; `mtd` in steps, None for none."""

    batch_size: int
    queue_size: int
    steps: int
    mtd: float | None = None


def expect_repeats(texts: int, chance: float, run: RunSizes) -> tuple[float, float]:
    """The expected number of negatives of the same text, for each text: in its batch, in the queue.

    (N - 1) c and K c, where batches are drawn without replacement in each epoch. From the second
    epoch on the queue also has the text's keys of the epochs before: those max(K - b N, 0) keys, at
    batch b of the epoch, that are older than it, of which 1 in S is the text's.
    """
    batches = np.arange(max(texts // run.batch_size, 1))
    older = np.maximum(run.queue_size - run.batch_size * batches, 0)
    own = float(older.mean()) / texts if run.steps > len(batches) else 0.0
    return (run.batch_size - 1) * chance, run.queue_size * chance + own


def describe_repeats(texts: int, unit: str, chance: float, runs: Iterable[RunSizes]) -> str:
    """The expected repeats of the run with most of them, and its MTD in epochs; empty for few.

    `unit` is what the corpus consists of, such as sentences.
    """
    found = [(sum(expect_repeats(texts, chance, run)), run) for run in runs if texts]
    most, run = max(found, key=lambda each: each[0], default=(0.0, RunSizes(1, 0, 1)))
    if most < LEAST_REPEATS:
        return ""
    in_batch, in_queue = expect_repeats(texts, chance, run)
    queue = f" and {in_queue:.2g} in the queue of {run.queue_size:,}" if run.queue_size else ""
    epochs = ""
    if run.mtd is not None:
        distance = run.mtd * run.batch_size / texts
        epochs = f" MTD {run.mtd:.4g} steps is {distance:.2g} epochs of {texts:,} {unit}."
    return (
        "Texts are negatives of themselves, which works against the loss. Expected for each of "
        f"{texts:,} {unit}: {in_batch:.2g} in its batch of {run.batch_size:,}{queue}.{epochs}"
    )
