"""Centroids of the queue, compared with scikit-learn."""

import pytest
import torch
from sklearn.cluster import KMeans
from torch import Tensor
from torch.nn.functional import normalize

from mtdlab.methods.queue import ROUNDS, centroids
from tests.methods.oracles import draw


def blobs(count: int, each: int, dimension: int) -> Tensor:
    """Unit vectors around `count` far directions, shuffled so that no cluster loses all of its
    keys: there scikit-learn would start that cluster anew.
    """
    directions = torch.eye(dimension, dtype=torch.float64)[:count].repeat_interleave(each, dim=0)
    keys = normalize(directions + 0.05 * draw(count * each, dimension), dim=1)
    return keys[torch.randperm(len(keys), generator=torch.Generator().manual_seed(6))]


@pytest.mark.parametrize(("count", "each"), [(2, 9), (5, 20), (10, 12)])
def test_separated_blobs_have_the_centroids_of_scikit_learn(count: int, each: int) -> None:
    keys = blobs(count, each, 16)
    start = keys[[at * len(keys) // count for at in range(count)]]
    theirs = KMeans(count, init=start.numpy(), n_init=1, max_iter=300, tol=0).fit(keys.numpy())
    assert theirs.n_iter_ <= ROUNDS
    expected = normalize(torch.tensor(theirs.cluster_centers_), dim=1)
    assert torch.allclose(centroids(keys, count), expected, atol=1e-6)


def test_one_cluster_is_the_mean() -> None:
    keys = normalize(draw(30, 8) + 1, dim=1)
    assert torch.allclose(centroids(keys, 1), normalize(keys.mean(dim=0, keepdim=True), dim=1))


def test_a_cluster_of_one_key_keeps_it() -> None:
    """Though the other cluster is near: the centre of a single key is the key itself."""
    near = torch.tensor([0.9, (1 - 0.81) ** 0.5])
    keys = torch.stack([torch.tensor([1.0, 0.0]), near, near, near])
    assert torch.allclose(centroids(keys, 2), keys[:2], atol=1e-6)


def test_centroids_are_unit_vectors_and_deterministic() -> None:
    keys = normalize(draw(64, 8), dim=1).requires_grad_()
    found = centroids(keys, 7)
    assert torch.allclose(found.norm(dim=1), torch.ones(7, dtype=torch.float64))
    assert torch.equal(found, centroids(keys, 7))
    assert not found.requires_grad


@pytest.mark.parametrize("total", [0, 3, 5])
def test_no_more_keys_than_clusters_are_returned_unchanged(total: int) -> None:
    keys = normalize(draw(total, 8), dim=1)
    assert torch.equal(centroids(keys, 5), keys)


def test_an_empty_cluster_keeps_its_centroid() -> None:
    """Of two equal starts the first takes every key, and moves; then the second is the nearer."""
    one, other = torch.eye(2)
    found = centroids(torch.stack([one, one, one, other]), 2)
    assert torch.equal(found, torch.stack([other, one]))
