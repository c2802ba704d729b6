"""FGSM on word embeddings, by hand."""

import pytest
import torch

from mtdlab.training.augment import changed_share, perturb, sign_step


def test_a_step_goes_along_the_sign_of_the_gradient() -> None:
    gradient = torch.tensor([[[0.3, -1e-20, 0.0]]])
    step = sign_step(gradient, 0.5)
    assert step is not None
    assert step.tolist() == [[[0.5, -0.5, 0.0]]]


def test_there_is_no_step_without_a_gradient_or_an_epsilon() -> None:
    assert sign_step(None, 0.5) is None
    assert sign_step(torch.ones(1, 1, 1), 0) is None


def test_no_step_leaves_the_embeddings_as_they_are() -> None:
    words = torch.randn(2, 3, 4)
    assert perturb(words, None) is words


@pytest.mark.parametrize(("length", "of_step"), [(3, 3), (3, 2), (2, 3), (1, 5)])
def test_only_tokens_that_both_batches_have_are_moved(length: int, of_step: int) -> None:
    words, step = torch.randn(2, length, 4), torch.randn(2, of_step, 4)
    moved = perturb(words, step)
    assert moved.shape == words.shape
    for row in range(2):
        for token in range(length):
            expected = words[row, token]
            if token < of_step:
                expected = expected + step[row, token]
            assert torch.equal(moved[row, token], expected)


def test_the_gradient_goes_through_to_the_clean_embeddings() -> None:
    words = torch.randn(2, 3, 4, requires_grad=True)
    perturb(words, torch.ones(2, 2, 4)).sum().backward()
    assert words.grad is not None
    assert torch.equal(words.grad, torch.ones(2, 3, 4))


def test_the_share_that_a_step_changed() -> None:
    words = torch.ones(2, 2, 5)
    assert float(changed_share(words, perturb(words, torch.full((2, 1, 5), 0.1)))) == 0.5
    assert float(changed_share(words, words)) == 0


def test_an_epsilon_below_the_resolution_changes_nothing() -> None:
    """Around 0.04 neighbouring float32 lie 3.7e-9 apart."""
    words = torch.full((1, 4, 8), 0.04)
    sign = torch.ones(1, 4, 8)
    assert float(changed_share(words, perturb(words, sign_step(sign, 1e-9)))) == 0
    assert float(changed_share(words, perturb(words, sign_step(sign, 5e-9)))) == 1
