"""MixCSE's loss compared with slow reference implementations, by hand and in training."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mtdlab.encoders.loading import load_encoder
from mtdlab.methods.mixcse import MixCSE, mix, mixed_cosines, published_mixed_cosines
from tests.branches import CPU
from tests.conftest import Settings
from tests.methods.oracles import Array, cosine, draw, info_nce


def slow_paper(first: Array, second: Array, weight: float, temperature: float) -> float:
    """-log [e(h_i, h'_i) / (sum over j of e(h_i, h'_j) + e(h_i, m_i))], e = exp(cos / t).

    m_i is the normalised mixture of the unit vectors h'_i and h'_{i+1}.
    """
    total, count = 0.0, len(first)
    unit = [row / np.linalg.norm(row) for row in second]
    for row in range(count):
        mixed = weight * unit[row] + (1 - weight) * unit[(row + 1) % count]
        negatives = [mixed, *(other for at, other in enumerate(second) if at != row)]
        total += info_nce([first[row]], [second[row]], negatives, temperature)
    return total / count


def slow_published(first: Array, second: Array, weight: float, temperature: float) -> float:
    """Row i: every cos(z1_i, z2_j), every cos(z1_i, z3_j), every cos(z4_i, z2_j), over t.

    z3_j mixes z2_j and z2_{j+1}, z4_i mixes z1_i and z1_{i+1}, neither normalised before; where
    the partner is row i's own positive the logit is 0.
    """
    total, count = 0.0, len(first)
    for row in range(count):
        following = (row + 1) % count
        logits = [cosine(first[row], other) / temperature for other in second]
        for at in range(count):
            z3 = weight * second[at] + (1 - weight) * second[(at + 1) % count]
            own = (at + 1) % count == row
            logits.append(0.0 if own else cosine(first[row], z3) / temperature)
        z4 = weight * first[row] + (1 - weight) * first[following]
        for at in range(count):
            logits.append(0.0 if at == following else cosine(z4, second[at]) / temperature)
        total -= logits[row] - math.log(sum(math.exp(logit) for logit in logits))
    return total / count


SLOW = {"paper": slow_paper, "published-code": slow_published}


@pytest.fixture
def method_of(settings_of: Settings) -> Callable[..., MixCSE]:
    def method(**changed: Any) -> MixCSE:
        settings: Any = settings_of(method="mixcse", **changed)
        return MixCSE(load_encoder(settings.encoder, settings.dropout).model, settings, CPU)

    return method


@pytest.mark.parametrize("mixing", ["paper", "published-code"])
@pytest.mark.parametrize("weight", [0.0, 0.2, 0.6])
@pytest.mark.parametrize(("count", "temperature"), [(2, 1.0), (3, 0.05), (7, 0.2)])
def test_the_loss_is_its_formula(
    method_of: Callable[..., MixCSE], mixing: str, weight: float, count: int, temperature: float
) -> None:
    method = method_of(mixing=mixing, mixing_weight=weight, temperature=temperature)
    # the scale of a vector matters where vectors are mixed before they are normalised
    first = draw(count, 6) * torch.arange(1, count + 1).unsqueeze(1)
    second = draw(count, 6, seed=1) + first
    slow = SLOW[mixing](first.numpy(), second.numpy(), weight, temperature)
    assert float(method.loss(first, second)) == pytest.approx(slow, rel=1e-9)


def three_sentences() -> tuple[Tensor, Tensor]:
    """Both passes give the three axes, the second one twice as long in the middle row."""
    first = torch.eye(3, dtype=torch.float64)
    return first, first * torch.tensor([[1.0], [2.0], [1.0]], dtype=torch.float64)


def test_three_sentences_by_hand_as_in_the_paper(method_of: Callable[..., MixCSE]) -> None:
    """m_i = (0.2 e_i + 0.8 e_{i+1}) / √0.68, so cos(h_i, m_i) = 0.24254 in every row.

    A row's logits at τ 1: 1, 0, 0 and 0.24254; the loss is log(e + 2 + exp(0.24254)) − 1.
    """
    first, second = three_sentences()
    assert mixed_cosines(first, second, 0.2) == pytest.approx(0.24254, abs=1e-5)
    loss = method_of(mixing="paper", temperature=1.0).loss(first, second)
    assert float(loss) == pytest.approx(0.79055, abs=1e-5)


def test_three_sentences_by_hand_as_published(method_of: Callable[..., MixCSE]) -> None:
    """z3 = (0.2, 1.6, 0), (0, 0.4, 0.8), (0.8, 0, 0.2): row i meets 0.8 of itself in z3_{i-1},
    which is masked, is orthogonal to z3_{i+1}, and has a cosine of 0.2/√2.6, 0.4/√0.8 and 0.2/√0.68
    to z3_i. z4_i = 0.2 e_i + 0.8 e_{i+1}: 0.2/√0.68 to z2_i, masked for z2_{i+1}, 0 for the third.

    A row's logits at τ 1: 1, six zeros and these two; the loss is the mean over the rows of
    log(e + 6 + exp(a_i) + exp(0.24254)) − 1, a = 0.12403, 0.44721, 0.24254.
    """
    first, second = three_sentences()
    columns = published_mixed_cosines(first, second, 0.2)
    expected = np.hstack([np.diag([0.12403, 0.44721, 0.24254]), 0.24254 * np.eye(3)])
    assert columns.numpy() == pytest.approx(expected, abs=1e-5)
    loss = method_of(mixing="published-code", temperature=1.0).loss(first, second)
    assert float(loss) == pytest.approx(1.42611, abs=1e-5)


def test_aligned_vectors_have_mixed_negatives_of_a_fixed_cosine() -> None:
    """λ / √(λ² + (1 − λ)²), whatever the dimension, where sentences are nearly orthogonal."""
    vectors = torch.linalg.qr(draw(64, 64))[0]
    for weight in (0.1, 0.2, 0.5):
        expected = weight / math.hypot(weight, 1 - weight)
        assert mixed_cosines(vectors, vectors, weight) == pytest.approx(expected)
    assert 0.2 / math.hypot(0.2, 0.8) == pytest.approx(0.243, abs=5e-4)


def test_no_gradient_passes_through_a_mixture() -> None:
    vectors = draw(4, 5).requires_grad_()
    assert not mix(vectors, 0.2).requires_grad
    second = draw(4, 5, seed=1).requires_grad_()
    first = draw(4, 5, seed=2).requires_grad_()
    mixed_cosines(first, second, 0.2).sum().backward()
    assert second.grad is None
    assert first.grad is not None


@pytest.mark.parametrize("mixing", ["paper", "published-code"])
def test_with_gradient_the_loss_is_the_same_and_its_gradient_is_not(
    method_of: Callable[..., MixCSE], mixing: str
) -> None:
    """Of the loss by finite differences; with it stopped, the gradient lacks the mixtures' part."""
    gradients = {}
    for stop in (True, False):
        method = method_of(mixing=mixing, stop_gradient=stop, temperature=1.0)
        first, second = draw(3, 4), draw(3, 4, seed=1).requires_grad_()
        loss = method.loss(first, second)
        loss.backward()
        gradients[stop] = float(loss.detach()), second.grad
    assert gradients[True][0] == pytest.approx(gradients[False][0], rel=1e-12)
    step = torch.zeros(3, 4, dtype=torch.float64)
    step[1, 2] = 1e-6
    low, high = (
        float(method.loss(first, second.detach() + sign * step).detach()) for sign in (-1, 1)
    )
    slope = (high - low) / 2e-6
    assert float(gradients[False][1][1, 2]) == pytest.approx(slope, abs=1e-7)
    assert float(gradients[True][1][1, 2]) != pytest.approx(slope, abs=1e-4)
