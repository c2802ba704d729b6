"""InfoNCE compared with its formula."""

import math

import pytest
import torch
from torch.nn.functional import normalize

from mtdlab.methods.losses import info_nce
from tests.methods import oracles
from tests.methods.oracles import draw


@pytest.mark.parametrize("in_batch", [True, False])
@pytest.mark.parametrize("temperature", [0.05, 0.3, 1.0])
@pytest.mark.parametrize(("batch", "queue"), [(1, 4), (5, 0), (6, 11)])
def test_the_loss_is_the_formula(
    batch: int, queue: int, temperature: float, in_batch: bool
) -> None:
    queries, keys = draw(batch, 8), draw(batch, 8, seed=1)
    negatives = normalize(draw(queue, 8, seed=2), dim=1)
    rows = (part.numpy() for part in (queries, keys, negatives))
    slow = oracles.info_nce(*rows, temperature, in_batch=in_batch)
    loss = info_nce(queries, keys, negatives, temperature, in_batch_negatives=in_batch)
    assert float(loss) == pytest.approx(slow, rel=1e-9)


@pytest.mark.parametrize("in_batch", [True, False])
@pytest.mark.parametrize("equivalent", [1, 7, 4096])
def test_equivalent_negatives_scale_the_sum_of_the_others(equivalent: int, in_batch: bool) -> None:
    queries, keys, negatives = draw(6, 8), draw(6, 8, seed=1), normalize(draw(11, 8, seed=2), dim=1)
    rows = (part.numpy() for part in (queries, keys, negatives))
    slow = oracles.info_nce(*rows, 0.3, in_batch=in_batch, equivalent=equivalent)
    options = {"in_batch_negatives": in_batch, "equivalent_negatives": equivalent}
    assert float(info_nce(queries, keys, negatives, 0.3, **options)) == pytest.approx(slow)


def test_a_doubled_queue_changes_nothing_with_equivalent_negatives() -> None:
    """Each negative twice is twice the sum over twice the number."""
    queries, keys, once = draw(3, 8), draw(3, 8, seed=1), normalize(draw(5, 8, seed=2), dim=1)
    losses = [
        float(info_nce(queries, keys, queue, 0.3, in_batch_negatives=False, equivalent_negatives=9))
        for queue in (once, torch.cat([once, once]))
    ]
    assert losses[0] == pytest.approx(losses[1])


def test_queue_only_takes_no_gradient_through_the_other_keys() -> None:
    """Masked candidates give no NaN, and each key has a gradient from its query alone."""
    queries, keys = draw(4, 8).requires_grad_(), draw(4, 8, seed=1).requires_grad_()
    losses = info_nce(queries, keys, draw(3, 8, seed=2), 0.05, in_batch_negatives=False)
    losses.backward()
    assert queries.grad is not None
    assert torch.isfinite(queries.grad).all()
    alone = info_nce(queries[:1], keys[:1], draw(3, 8, seed=2), 0.05)
    (own,) = torch.autograd.grad(alone, queries)
    assert torch.allclose(queries.grad[0], own[0] / 4, atol=1e-6)


@pytest.mark.parametrize(("batch", "queue"), [(1, 1), (4, 0), (8, 24)])
def test_equal_vectors_give_the_log_of_the_number_of_candidates(batch: int, queue: int) -> None:
    one = normalize(torch.ones(1, 8), dim=1)
    loss = info_nce(one.expand(batch, 8), one.expand(batch, 8), one.expand(queue, 8), 0.05)
    assert float(loss) == pytest.approx(math.log(batch + queue), rel=1e-5)


def test_orthogonal_negatives_have_a_closed_form() -> None:
    """q.k = 1 and every other cosine 0: log(1 + (V - 1) exp(-1/t))."""
    loss = info_nce(torch.eye(6)[:2], torch.eye(6)[:2], torch.eye(6)[2:], 0.5)
    assert float(loss) == pytest.approx(math.log(1 + 5 * math.exp(-2)), rel=1e-6)


def test_half_precision_is_summed_in_float32() -> None:
    queries, keys = draw(4, 8).bfloat16(), draw(4, 8, seed=1).bfloat16()
    loss = info_nce(queries, keys, normalize(draw(3, 8, seed=2), dim=1).float(), 0.05)
    assert loss.dtype == torch.float32
