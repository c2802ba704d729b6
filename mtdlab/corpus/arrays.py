"""An array that is written without knowing its length, and never held in memory."""

from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray


class GrowingArray:
    """An .npy file of rows of one shape; closing it writes how many there are."""

    def __init__(self, path: Path, dtype: np.dtype[Any], row: tuple[int, ...]) -> None:
        self._file = path.open("wb")
        self._dtype, self._row, self._count = dtype, row, 0
        self._write_header()

    def append(self, rows: NDArray[Any]) -> None:
        """Add rows (n, *row) at the end."""
        self._file.write(np.ascontiguousarray(rows, self._dtype).data)
        self._count += len(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        with self._file:
            self._file.seek(0)
            self._write_header()

    def _write_header(self) -> None:
        """NumPy leaves room for the first length to grow, so every header is equally long."""
        np.lib.format.write_array_header_1_0(
            self._file,
            {
                "descr": np.lib.format.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self._count, *self._row),
            },
        )
