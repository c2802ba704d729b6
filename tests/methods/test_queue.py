"""The queue compared with lists and deques."""

import random
from collections import deque

import pytest
import torch
from torch import Tensor

from mtdlab.methods.queue import KeyQueue, PublishedQueue, Slices


def keys(count: int, start: int) -> Tensor:
    """Keys (count, 2) that contain their number."""
    numbers = torch.arange(start, start + count, dtype=torch.float32)
    return torch.stack([numbers, -numbers], dim=1)


def model(size: int) -> deque[float]:
    return deque(maxlen=size)


def put(queue: KeyQueue, against: deque[float], batch: Tensor) -> None:
    """Enqueue the batch in both; its first row is the newest."""
    queue.enqueue(batch)
    for row in reversed(batch[: queue.size].tolist()):
        against.appendleft(row[0])


@pytest.mark.parametrize("size", [0, 1, 5, 7, 12, 64])
@pytest.mark.parametrize("seed", range(3))
def test_the_queue_equals_a_deque_also_after_save_and_load(size: int, seed: int) -> None:
    """Batches of any size, above K too, whose sizes do not divide K."""
    draw = random.Random(seed)
    queue, against, number = KeyQueue(size, 2), model(size), 1
    assert queue.negatives().shape == (0, 2)
    for turn in range(40):
        batch = keys(draw.choice([1, 2, 3, 5, 13]), number)
        number += len(batch)
        put(queue, against, batch)
        assert queue.ordered()[:, 0].tolist() == list(against)
        assert queue.fill == len(against) == len(queue.negatives())
        assert sorted(queue.negatives()[:, 0].tolist()) == sorted(against)
        if turn == 17:
            saved = {name: value.clone() for name, value in queue.state_dict().items()}
            queue = KeyQueue(size, 2)
            queue.load_state_dict(saved)


def test_a_saved_state_is_not_changed_by_enqueueing() -> None:
    queue = KeyQueue(4, 2)
    queue.enqueue(keys(3, 1))
    cursor = queue.get_extra_state()
    queue.enqueue(keys(1, 4))
    assert cursor.tolist() == [3, 3]


def test_the_fill_of_the_papers_queue() -> None:
    """K 512, K_s 128, N 64: 128, 192 ... 512, 512."""
    queue = KeyQueue(512, 4, initial=128)
    fills = []
    for _ in range(9):
        fills.append(queue.fill)
        queue.enqueue(torch.randn(64, 4))
    assert fills == [128, 192, 256, 320, 384, 448, 512, 512, 512]


def test_the_first_keys_are_unit_vectors_in_all_directions() -> None:
    torch.manual_seed(1)
    queue = KeyQueue(300, 8, initial=300)
    rows = queue.ordered()
    assert torch.allclose(rows.norm(dim=1), torch.ones(300))
    assert rows.mean(dim=0).abs().max() < 0.1
    torch.manual_seed(1)
    again = KeyQueue(300, 8, initial=300)
    assert torch.equal(again.ordered(), rows)


@pytest.mark.parametrize("slices", [[(0, 1)], [(0, 2)], [(1, 4), (6, 7)], [(3, 7)], [(0, 7)]])
@pytest.mark.parametrize("initial", [0, 3])
@pytest.mark.parametrize("batch", [1, 2, 3, 11])
def test_slices_are_positions_once_it_is_full(slices: Slices, initial: int, batch: int) -> None:
    """Position 0 is the newest."""
    queue = KeyQueue(7, 2, initial=initial, slices=slices)
    against = deque(queue.ordered()[:, 0].tolist(), maxlen=7)
    chosen = [at for first, last in slices for at in range(first, last)]
    for turn in range(12):
        expected = list(against)
        if len(expected) == 7:
            expected = [expected[at] for at in chosen]
        assert sorted(queue.negatives()[:, 0].tolist()) == sorted(expected)
        put(queue, against, keys(batch, 100 + batch * turn))


def test_enqueued_keys_have_no_gradient() -> None:
    queue = KeyQueue(3, 2)
    queue.enqueue(keys(2, 1).requires_grad_())
    assert not queue.negatives().requires_grad


PUBLISHED = [
    ((512, 128, 64), [256, 320, 384, 448, 768, 832, 896, *[512] * 9]),
    ((256, 128, 256), [256] * 6),
    ((512, 0, 64), [0, 64, 128, 192, 256, 320, 384, 448, *[512] * 6]),
    ((512, 512, 64), [512] * 12),
    ((1024, 128, 256), [256, 512, 768, 1792, *[1024] * 5]),
]
"""K, K_s, N, and the rows that the published program uses step by step."""


@pytest.mark.parametrize(("sizes", "used"), PUBLISHED)
def test_the_published_queue_uses_the_published_rows(
    sizes: tuple[int, int, int], used: list[int]
) -> None:
    size, initial, batch = sizes
    queue = PublishedQueue(size, 2, initial=initial)
    fills, rows = [], []
    for _ in used:
        fills.append(queue.fill)
        rows.append(len(queue.negatives()))
        queue.enqueue(torch.randn(batch, 2))
    assert fills == rows == used


@pytest.mark.parametrize("slices", [[], [(0, 3)], [(1, 4), (6, 9)]])
@pytest.mark.parametrize("sizes", [(9, 2, 2), (9, 0, 4), (9, 9, 2), (9, 4, 11), (9, 3, 3)])
def test_the_published_queue_is_its_rule_on_a_list(
    sizes: tuple[int, int, int], slices: Slices
) -> None:
    """The rule as in the docstring, with a save and a load in the middle."""
    size, initial, batch = sizes
    queue = PublishedQueue(size, 2, initial=initial, slices=slices)
    rows = queue.ordered()[:, 0].tolist()
    assert len(rows) == (size if initial else 0)
    counter = initial
    for turn in range(10):
        used = rows[: counter + initial] if counter + initial < size else rows
        if slices and counter + initial >= size:
            used = [one for first, last in slices for one in rows[first:last]]
        assert queue.negatives()[:, 0].tolist() == used
        numbered = keys(batch, 1 + turn * batch)
        queue.enqueue(numbered)
        rows, counter = numbered[:, 0].tolist() + rows, counter + batch
        if counter > size:
            rows = rows[:size]
        if turn == 2:
            saved = {name: value.clone() for name, value in queue.state_dict().items()}
            queue = PublishedQueue(size, 2, initial=initial, slices=slices)
            queue.load_state_dict(saved)
