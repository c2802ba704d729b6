"""What scores were computed from, item by item, and how much each item contributes.

An item is a graded pair, a query or an example of the evaluation data. All trials of a study share
them, so that a score holds for these items; influence values say how it would vary with others.

Letters: N trials, P items.
"""

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mtdlab.analysis.measures import Floats

Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ItemScores:
    """The items of a study's metric, in the same order for every trial.

    Attributes:
        numbers: (N,) numbers of the complete trials for which items were recorded, ascending.
        values: (N, P): similarities, whose rank correlation with gold is the score, or values in
            points, whose mean it is.
        gold: (P,) what the similarities are compared with; None for means.
        tasks: how many items each task has, in the order of the columns: one, or those that the
            metric is the average of.
        digest: SHA-256 of the items; studies with the same digest were evaluated on the same items.
    """

    numbers: NDArray[np.int64]
    values: Singles
    gold: Floats | None
    tasks: Mapping[str, int]
    digest: str

    def of(self, numbers: Collection[int]) -> "ItemScores":
        """The items of these trials, in their order. Raises ValueError for one without items."""
        row = {number: at for at, number in enumerate(self.numbers.tolist())}
        if lacking := [number for number in numbers if number not in row]:
            raise ValueError(f"trial {lacking[0]} has no items; {len(row)} trials have")
        rows = np.array([row[number] for number in numbers], dtype=np.intp)
        return replace(self, numbers=self.numbers[rows], values=self.values[rows])


def digest_of_tasks(digests: Sequence[str]) -> str:
    """The SHA-256 of the items of several tasks from that of each; of one task its own."""
    [first, *others] = digests
    return hashlib.sha256("\n".join(digests).encode()).hexdigest() if others else first


def rank_errors(items: ItemScores) -> Floats:
    """The distance of each item's rank by similarity to that by gold, (N, P) in % of its task.

    The values themselves, in points, of items without gold.
    """
    if items.gold is None:
        return items.values.astype(np.float64)
    parts = []
    for begin, end in pairwise([0, *np.cumsum(list(items.tasks.values()))]):
        gold = _Ranks(items.gold[begin:end]).centred
        ranks = np.array([_Ranks(row).centred for row in items.values[:, begin:end]])
        parts.append(100 * np.abs(ranks - gold))
    return np.concatenate(parts, axis=1)


def influences(items: ItemScores) -> Floats:
    """The influence of each item on each trial's score, (N, P) in points.

    For items drawn again (P of them, from each task its own number), the score changes by nearly
    the mean of the influences of those drawn. Their mean is 0, and the variance of the score over
    drawn items is nearly sum(influences**2) / P**2; that of a difference of trials is the same of
    the difference of their rows.

    For a mean they are values - mean. For Spearman's correlation they are those of Croux and Dehon
    (2010, Statistical Methods and Applications 19, 497-515), of the sample in place of its
    distribution and with ties; NaN where the correlation is. The influences on a task of P' items
    among T tasks are multiplied by P / (T P'), by which the statements above hold for the average.
    """
    count, parts = items.values.shape[1], []
    for begin, end in pairwise([0, *np.cumsum(list(items.tasks.values()))]):
        values = items.values[:, begin:end]
        if items.gold is None:
            part = values - values.mean(axis=1, keepdims=True, dtype=np.float64)
        else:
            gold = _Ranks(items.gold[begin:end])
            part = np.array([_spearman_influences(_Ranks(row), gold) for row in values])
        parts.append(part * (count / (len(items.tasks) * values.shape[1])))
    return np.concatenate(parts, axis=1)


class _Ranks:
    """A column (P,) as ranks.

    Attributes:
        centred: (P,) share of the items below, with half of the equal ones and of the item itself,
            minus 1/2; its mean is 0.
        variance: of `centred`, 0 where all values are the same.
    """

    def __init__(self, values: Singles | Floats) -> None:
        _, self._group, counts = np.unique(values, return_inverse=True, return_counts=True)
        self.centred: Floats = ((counts.cumsum() - counts / 2) / len(values) - 0.5)[self._group]
        self.variance = float(np.mean(self.centred**2))

    def mean_above(self, weights: Floats) -> Floats:
        """For each item (P,), the summed weights of larger items and half of equal ones, over P."""
        totals = np.bincount(self._group, weights)
        above = totals.sum() - totals.cumsum() + totals / 2
        return np.asarray(above[self._group] / len(weights))

    def influences_on_variance(self) -> Floats:
        """The influence of each item on `variance`, (P,): not 0 only where values are equal."""
        return self.centred**2 + 2 * self.mean_above(self.centred) - 3 * self.variance


def _spearman_influences(first: _Ranks, second: _Ranks) -> Floats:
    """The influence of each item on Spearman's correlation, (P,), by all ranks that it changes."""
    covariance = float(np.mean(first.centred * second.centred))
    of_covariance = (
        first.centred * second.centred
        + first.mean_above(second.centred)
        + second.mean_above(first.centred)
        - 3 * covariance
    )
    product = first.variance * second.variance
    if not product:
        return np.full_like(of_covariance, np.nan)
    scale = 100 / float(np.sqrt(product))
    of_variances = sum(ranks.influences_on_variance() / ranks.variance for ranks in (first, second))
    return scale * of_covariance - scale * covariance / 2 * of_variances
