"""The order of sentences: permutations without incomplete batches, and its saved position."""

import copy
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from mtdlab.corpus.tokens import TokenStore
from mtdlab.errors import MtdlabError
from mtdlab.training.batches import BatchOrder
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint

SENTENCES = 10


def numbered(first: int = 0) -> TokenStore:
    """A store whose rows contain their number, starting with `first`."""
    ids = np.arange(first, first + SENTENCES, dtype=np.int32).reshape(SENTENCES, 1)
    return TokenStore(ids, np.ones(SENTENCES, dtype=np.int32), "x")


def plain_order(size: int, seed: int) -> Iterator[list[int]]:
    """A plain loop with the same order, which cannot be saved."""
    random = np.random.default_rng(seed)
    while True:
        order = random.permutation(SENTENCES)
        for start in range(0, SENTENCES - size + 1, size):
            yield order[start : start + size].tolist()


def read(order: BatchOrder, count: int) -> list[list[int]]:
    """The rows of the next batches, which are their token ids."""
    return [ids[:, 0].tolist() for ((ids, _),) in itertools.islice(order, count)]


@pytest.mark.parametrize("seed", [0, 7])
@pytest.mark.parametrize("size", [1, 3, 4, 5, 10])
def test_the_rows_are_those_of_the_plain_loop(size: int, seed: int) -> None:
    epochs = 4 * (SENTENCES // size)
    expected = list(itertools.islice(plain_order(size, seed), epochs))
    assert read(BatchOrder([numbered()], size, seed), epochs) == expected
    rows = BatchOrder([numbered()], size, seed)
    assert [rows.next_rows().tolist() for _ in range(epochs)] == expected


def test_two_views_are_the_same_rows_in_the_same_order() -> None:
    alone = read(BatchOrder([numbered()], 3, seed=4), 7)
    both = itertools.islice(BatchOrder([numbered(100), numbered()], 3, seed=4), 7)
    for rows, ((first, _), (second, _)) in zip(alone, both, strict=True):
        assert second[:, 0].tolist() == rows
        assert first[:, 0].tolist() == [100 + row for row in rows]


@pytest.mark.parametrize("views", [1, 2])
@pytest.mark.parametrize("done", [0, 1, 2, 3, 4, 6, 8])
def test_a_restored_order_continues_identically(tmp_path: Path, done: int, views: int) -> None:
    """At the start, in the middle and after the last batch of an epoch of three."""
    stores = [numbered(100), numbered()][:views]
    first = BatchOrder(stores, 3, seed=5)
    for _ in range(done):
        next(first)
    state = first.state_dict()
    save_checkpoint(tmp_path, done, state, {})
    expected = [next(first) for _ in range(8)]
    # another seed and position: the state must determine both
    second = BatchOrder(stores, 3, seed=99)
    next(second)
    saved = find_checkpoint(tmp_path).checkpoint
    assert saved is not None
    second.load_state_dict(saved.state)
    for mine, its in zip(expected, itertools.islice(second, 8), strict=True):
        assert len(mine) == len(its) == views
        assert all(
            torch.equal(a, b)
            for one, other in zip(mine, its, strict=True)
            for a, b in zip(one, other, strict=True)
        )
    assert first.state_dict() == second.state_dict()


def test_a_saved_state_is_a_copy() -> None:
    order = BatchOrder([numbered()], 3, seed=0)
    next(order)
    state = order.state_dict()
    before = copy.deepcopy(state)
    read(order, 7)
    assert state == before


@pytest.mark.parametrize("position", [-1, 4])
def test_a_position_that_an_epoch_does_not_have_is_refused(position: int) -> None:
    order = BatchOrder([numbered()], 3, seed=0)
    state = order.state_dict() | {"position": position}
    with pytest.raises(ValueError, match=f"position {position}: an epoch has 3 batches of 3"):
        order.load_state_dict(state)


@pytest.mark.parametrize("views", [1, 2])
def test_a_batch_larger_than_the_corpus_is_refused(views: int) -> None:
    with pytest.raises(MtdlabError, match="batch_size is 11, but the corpus has 10"):
        BatchOrder([numbered()] * views, 11, seed=0)
