"""Arrays written row by row are NumPy's own files."""

from pathlib import Path

import numpy as np
import pytest

from mtdlab.corpus.tokens import growing_array


@pytest.mark.parametrize("row", [(), (3,)])
@pytest.mark.parametrize("sizes", [(), (1,), (9, 1, 90), (12_345, 100_000)])
def test_it_is_the_array_saved_at_once(
    tmp_path: Path, row: tuple[int, ...], sizes: tuple[int, ...]
) -> None:
    random = np.random.default_rng(0)
    parts = [random.integers(0, 1 << 16, (size, *row), dtype=np.uint16) for size in sizes]
    whole = np.concatenate([np.zeros((0, *row), np.uint16), *parts])
    with growing_array(tmp_path / "grown.npy", np.dtype(np.uint16), row) as append:
        for part in parts:
            append(part)
    np.save(tmp_path / "whole.npy", whole)
    assert (tmp_path / "grown.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
