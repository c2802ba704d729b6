"""The flow compared with autograd's Jacobian, its inverse, and a slow transcription of a step."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from mtdlab.evaluation.processing import FlowNetwork, FlowStep, apply_flow, fit_flow


def trained(dimension: int) -> tuple[FlowNetwork, Tensor]:
    """A flow of random weights, in float64, and vectors of a narrow cone."""
    torch.manual_seed(1)
    flow = FlowNetwork(dimension).double()
    rows = torch.randn(40, dimension).double() * torch.linspace(0.1, 3, dimension).double() + 2
    flow.initialise(rows)
    with torch.no_grad():
        for parameter in flow.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return flow, rows


@pytest.mark.parametrize("dimension", [4, 7, 12])
def test_the_inverse_gives_the_vectors_back(dimension: int) -> None:
    flow, rows = trained(dimension)
    mapped, _ = flow(rows)
    assert mapped.shape == rows.shape
    assert not torch.allclose(mapped, rows, atol=0.1)
    assert torch.allclose(flow.inverse(mapped), rows, atol=1e-9)


@pytest.mark.parametrize("dimension", [4, 7, 12])
def test_the_log_determinant_is_that_of_the_jacobian(dimension: int) -> None:
    flow, rows = trained(dimension)
    _, determinant = flow(rows)
    for row in rows[:3]:
        jacobian = torch.autograd.functional.jacobian(lambda one: flow(one[None])[0][0], row)
        _, logarithm = torch.linalg.slogdet(jacobian)
        assert float(determinant.detach()) == pytest.approx(float(logarithm), abs=1e-9)


def test_the_likelihood_is_its_formula() -> None:
    """log N(f(u); 0, I) + log |det|, row by row."""
    flow, rows = trained(6)
    mapped, determinant = flow(rows)
    total = 0.0
    for row in mapped.tolist():
        total += sum(-(z**2) / 2 - math.log(math.sqrt(2 * math.pi)) for z in row)
    expected = total / len(rows) + float(determinant.detach())
    assert float(flow.log_likelihood(rows).detach()) == pytest.approx(expected, rel=1e-12)


def test_a_step_is_actnorm_permutation_and_coupling() -> None:
    torch.manual_seed(0)
    step = FlowStep(5).double()
    with torch.no_grad():
        for parameter in step.parameters():
            parameter.add_(torch.randn_like(parameter))
    row = torch.randn(5).double()
    mapped, _ = step(row[None])
    scaled = [
        (float(x) + float(b.detach())) * math.exp(float(s.detach()))
        for x, b, s in zip(row, step.shift, step.log_scale, strict=True)
    ]
    moved = [scaled[at] for at in step.order.tolist()]
    added = step.network(torch.tensor(moved[:2]).double()).tolist()
    expected = [*moved[:2], *(x + y for x, y in zip(moved[2:], added, strict=True))]
    assert mapped[0].tolist() == pytest.approx(expected)


def test_the_first_batch_initialises_actnorm() -> None:
    torch.manual_seed(0)
    step = FlowStep(4)
    rows = torch.randn(32, 4) * torch.tensor([1.0, 5.0, 0.1, 0.0]) + 3
    step.initialise(rows)
    mapped, _ = step(rows)
    unordered = mapped[:, step.inverse_order]
    assert torch.allclose(unordered.mean(dim=0), torch.zeros(4), atol=1e-5)
    # a constant dimension is only shifted
    assert torch.allclose(unordered.std(dim=0, correction=0), torch.tensor([1.0, 1, 1, 0]))


def test_training_raises_the_likelihood_and_repeats_itself() -> None:
    random = np.random.default_rng(0)
    vectors = random.normal(size=(2000, 3)) @ random.normal(size=(3, 8)) + 5
    vectors += 0.1 * random.normal(size=vectors.shape)
    rows = torch.from_numpy(vectors).float()
    state = torch.get_rng_state()
    flow = fit_flow(vectors, seed=3)
    assert torch.equal(torch.get_rng_state(), state), "other random draws are not affected"
    torch.manual_seed(3)
    untrained = FlowNetwork(8)
    untrained.initialise(rows[torch.randperm(len(rows))][:32])
    with torch.no_grad():
        gain = flow.log_likelihood(rows) - untrained.log_likelihood(rows)
    assert float(gain) > 0.1
    assert np.array_equal(apply_flow(vectors, 3), apply_flow(vectors, 3))
    assert not np.array_equal(apply_flow(vectors, 3), apply_flow(vectors, 4))


def test_vectors_that_cannot_be_mapped_are_refused() -> None:
    with pytest.raises(ValueError, match="have 3 dimensions; a flow needs at least 4"):
        apply_flow(np.ones((5, 3)))
    with pytest.raises(ValueError, match="not finite"):
        apply_flow(np.full((5, 4), np.nan))
