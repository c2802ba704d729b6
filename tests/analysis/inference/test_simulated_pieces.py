"""Simulated tables are drawn in pieces, and depend on no basis that a processor chooses."""

import math

import numpy as np
import pytest

from mtdlab.analysis.inference import blocks
from mtdlab.analysis.inference.blocks import Blocks, pieces_of
from mtdlab.analysis.inference.simultaneous import null_of, root_of


def test_pieces_sum_to_all_tables() -> None:
    assert pieces_of(10, 1) == [10]
    assert sum(pieces_of(5_000, 7_000_000)) == 5_000
    assert set(pieces_of(5, 7_000_000)) == {1}


def test_large_designs_are_simulated_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    present = np.ones((12, 4), bool)
    present[0, 1] = False
    whole = Blocks(present)
    fits = null_of(whole).fits
    sizes = []
    fit = Blocks.fit

    def watched(self: Blocks, scores: blocks.Floats) -> blocks.Fit:
        sizes.append(scores.size)
        return fit(self, scores)

    monkeypatch.setattr(blocks, "_VALUES_AT_ONCE", 50_000)
    monkeypatch.setattr(Blocks, "fit", watched)
    pieces = Blocks(present)
    assert pieces.typical_freedom == pytest.approx(whole.typical_freedom, rel=1e-12)
    for one, other in zip(fits, null_of(pieces).fits, strict=True):
        for name in ("effects", "variances", "typical"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-12)
    assert max(sizes) <= 50_000


def test_tables_depend_on_what_contrasts_span_and_not_on_how_it_is_written() -> None:
    """Equal singular values leave a basis open, which processors then choose differently."""
    contrasts = np.array([[1.0, -1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -1.0]])
    turned = np.array([[0.6, 0.8], [-0.8, 0.6]]) @ contrasts
    whole = Blocks(np.ones((5, 4), bool))
    for one, other in zip(null_of(whole, contrasts).fits, null_of(whole, turned).fits, strict=True):
        np.testing.assert_allclose(one.effects, other.effects, atol=1e-9)


def test_errors_of_items_do_not_depend_on_the_basis_of_their_covariance() -> None:
    """Two equal eigenvalues leave their vectors open, and all signs are."""
    covariance = np.array([[3.0, 1.0, 1.0], [1.0, 3.0, 1.0], [1.0, 1.0, 3.0]])
    # its eigenvalues are 5, along (1, 1, 1), and twice 2
    root = math.sqrt(2) * np.eye(3) + (math.sqrt(5) - math.sqrt(2)) / 3
    np.testing.assert_allclose(root_of(covariance), root, atol=1e-12)
