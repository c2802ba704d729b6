"""Repeated sub-words of ESimCSE: number, choice, and unchanged other tokens."""

from itertools import combinations
from typing import Any, get_args

import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor

from mtdlab.methods.esimcse import Draw, Repetition
from mtdlab.methods.perturbations import repeat_tokens
from mtdlab.methods.registry import make_settings

CLS, SEP = 2, 3


def repetition(draw: Draw = "paper", *, limit: int = 512, **changed: Any) -> Repetition:
    settings: Any = make_settings(method="esimcse", repetition_draw=draw, **changed)
    return Repetition(settings, limit, torch.device("cpu"))


def batch(*lengths: int) -> tuple[Tensor, Tensor]:
    """Ids and mask of sentences with so many real tokens: [CLS], distinct ids from 10, [SEP]."""
    longest = max(lengths)
    ids, mask = torch.zeros(len(lengths), longest).long(), torch.zeros(len(lengths), longest).long()
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.tensor([CLS, *range(10, 8 + length), SEP])
        mask[row, :length] = 1
    return ids, mask


# real tokens with [CLS] and [SEP], and the maximum number of repeated ones by the formulas
@pytest.mark.parametrize(
    ("draw", "length", "most"),
    [
        ("paper", 2, 0),  # no sub-word
        ("paper", 3, 1),  # one: max(2, 0), but no more than there are
        ("paper", 8, 2),  # six: max(2, 1)
        ("paper", 12, 3),  # ten: 3.2
        ("paper", 52, 16),  # fifty: 16.0
        ("published-code", 2, 0),  # 0.64
        ("published-code", 3, 0),  # 0.96
        ("published-code", 6, 0),  # 1.92: min(10, 1) - 1
        ("published-code", 8, 1),  # 2.56
        ("published-code", 25, 7),  # 8.0
        ("published-code", 32, 9),  # 10.24
        ("published-code", 500, 9),
    ],
)
def test_the_maximum_number_of_repeated_tokens(draw: Draw, length: int, most: int) -> None:
    assert repetition(draw).most(torch.tensor([[length]])).tolist() == [[most]]


@pytest.mark.parametrize(
    ("draw", "length", "outcomes"),
    [("paper", 6, 3), ("paper", 22, 7), ("published-code", 8, 2), ("published-code", 32, 10)],
)
def test_the_histogram_of_the_number_is_uniform(draw: Draw, length: int, outcomes: int) -> None:
    ids, mask = batch(*[length] * 5000)
    _, longer = repetition(draw)(ids, mask)
    counts = torch.bincount(longer.sum(dim=1) - length)
    assert len(counts) == outcomes
    assert chisquare(counts.numpy()).pvalue > 1e-3


def test_the_histogram_of_the_tokens_is_that_of_random_subsets() -> None:
    """Of four sub-words none, one or two with probability 1/3; subsets of a size equally often."""
    ids, mask = batch(*[6] * 9000)
    repeated, _ = repetition()(ids, mask)
    found: dict[tuple[int, ...], int] = {}
    for row in repeated.tolist():
        doubled = tuple(token for token in range(10, 14) if row.count(token) == 2)
        found[doubled] = found.get(doubled, 0) + 1
    expected = {
        subset: 9000 / 3 / sizes
        for size, sizes in ((0, 1), (1, 4), (2, 6))
        for subset in combinations(range(10, 14), size)
    }
    assert found.keys() == expected.keys()
    observed = [found[subset] for subset in expected]
    assert chisquare(observed, list(expected.values())).pvalue > 1e-3


@pytest.mark.parametrize("draw", get_args(Draw))
def test_special_tokens_and_padding_stay_and_the_order_is_kept(draw: Draw) -> None:
    lengths = [2, 3, 4, 9, 17, 30, 30] * 30
    ids, mask = batch(*lengths)
    repeated, longer = repetition(draw, repetition_rate=0.9)(ids, mask)
    assert repeated.shape == longer.shape
    assert longer.dtype == mask.dtype
    assert int(longer.sum()) > int(mask.sum())
    for row, length in enumerate(lengths):
        size = int(longer[row].sum())
        assert longer[row].tolist() == [1] * size + [0] * (longer.shape[1] - size)
        tokens = repeated[row, :size].tolist()
        assert tokens.count(CLS) == tokens.count(SEP) == 1
        assert sorted(set(tokens), key=tokens.index) == ids[row, :length].tolist()
        places = {token: [at for at, one in enumerate(tokens) if one == token] for token in tokens}
        assert all(found[-1] - found[0] == len(found) - 1 <= 1 for found in places.values())


@pytest.mark.parametrize("draw", get_args(Draw))
def test_no_sentence_outgrows_the_encoders_positions(draw: Draw) -> None:
    ids, mask = batch(*[19] * 200, *[20] * 200, *[8] * 200)
    _, longer = repetition(draw, repetition_rate=1.0, limit=20)(ids, mask)
    sizes = longer.sum(dim=1)
    assert set(sizes[:200].tolist()) == {19, 20}
    assert set(sizes[200:400].tolist()) == {20}
    assert sizes[400:].max() > 10


def test_tokens_are_repeated_or_left_out_in_their_order() -> None:
    times = torch.tensor([[1, 2, 0, 2, 1], [1, 1, 1, 0, 0]])
    repeated, longer = repeat_tokens(batch(5, 3)[0], times)
    assert repeated.tolist() == [[CLS, 10, 10, 12, 12, SEP], [CLS, 10, SEP, 0, 0, 0]]
    assert longer.tolist() == [[1] * 6, [1] * 3 + [0] * 3]


def test_a_rate_of_0_changes_nothing() -> None:
    ids, mask = batch(9, 4)
    repeated, longer = repetition(repetition_rate=0.0)(ids, mask)
    assert repeated is ids
    assert longer is mask
