"""Simulated tables are drawn in pieces, which bound the memory and change no number."""

import numpy as np
import pytest

from mtdlab.analysis.inference import blocks
from mtdlab.analysis.inference.blocks import Blocks, pieces_of
from mtdlab.analysis.inference.simultaneous import null_of


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
