"""CSV and Parquet files as frames of text; conversion of text to checked numbers.

Error messages name the file (`naming`), and the row, column and value where there is one. Rows are
counted from 1 below the header.
"""

import csv
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

Scale = Literal["fraction", "percent"]

MAX_ROWS = 20_000
MAX_COLUMNS = 500
_MISSING = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>"})
_INFINITE = frozenset({"inf", "-inf", "infinity", "-infinity"})
_MAX_SHOWN = 60


class TableError(ValueError):
    """A table that cannot be read; the message is one sentence that states the correction."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Put the file before the message of a TableError."""
    try:
        yield
    except TableError as error:
        raise TableError(f"{path}: {error}") from None


@dataclass(frozen=True)
class Bounds:
    """The range of a column's numbers; rule describes it in an error message."""

    rule: str
    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


FINITE = Bounds("it must be a finite number", -1e300, 1e300)


def read_cells(path: Path) -> pd.DataFrame:
    """The cells of a CSV or Parquet file as text; empty text for missing values.

    A file that ends in .parquet or .pq is Parquet, any other is CSV in UTF-8 with commas and a
    header. Raises TableError for a file that is missing or damaged, repeats a column's name, has
    rows of different lengths, more than 20,000 rows or more than 500 columns.
    """
    if not path.is_file():
        raise TableError("no such file")
    try:
        parquet = path.suffix.lower() in (".parquet", ".pq")
        frame = _read_parquet(path) if parquet else _read_csv(path)
    except OSError as error:
        raise TableError(f"cannot be read ({error.strerror or error})") from None
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise TableError(f"column {repeated[0]!r} occurs twice; each name must be unique")
    if len(frame) > MAX_ROWS:
        raise TableError(f"more than {MAX_ROWS:,} rows; at most {MAX_ROWS:,} are read")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    rows: list[list[str]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as handle:
            lines = (row for row in csv.reader(handle) if any(cell.strip() for cell in row))
            header = [name.strip() for name in next(lines, [])]
            _check_header(header)
            for row in lines:
                if len(row) != len(header):
                    raise TableError(
                        f"row {len(rows) + 1} has {len(row)} cells; it must have "
                        f"{len(header)}, as the header"
                    )
                rows.append(row)
                if len(rows) > MAX_ROWS:
                    break
    except UnicodeDecodeError as error:
        raise TableError(f"byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except csv.Error as error:
        raise TableError(f"not a CSV file ({error})") from None
    return pd.DataFrame(rows, columns=pd.Index(header, dtype="object"), dtype="object")


def _check_header(header: Sequence[str]) -> None:
    if not header:
        raise TableError("empty; it must begin with a header")
    if len(header) > MAX_COLUMNS:
        raise TableError(f"{len(header)} columns; at most {MAX_COLUMNS} are read")
    if len(header) == 1 and (";" in header[0] or "\t" in header[0]):
        raise TableError(
            "no comma in the header; columns must be separated by commas, not by semicolons or tabs"
        )


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise TableError(
            "reading Parquet needs pyarrow; run pip install pyarrow, or save the table as CSV"
        ) from None
    except ValueError as error:
        raise TableError(f"not a Parquet file ({str(error).splitlines()[0]})") from None
    _check_header([str(name) for name in frame.columns])
    missing = (None, pd.NA, pd.NaT)
    text = {
        str(name): [
            "" if any(value is null for null in missing) else str(value) for value in column
        ]
        for name, column in frame.items()
    }
    return pd.DataFrame(text, dtype="object")


def is_missing_cell(cells: pd.Series) -> pd.Series:
    """Whether each cell is missing: empty, or a word such as NaN, None or NA."""
    return cells.str.strip().str.lower().isin(_MISSING)


def read_numbers(
    cells: pd.DataFrame, name: str, bounds: Bounds, *, infinite: bool = False
) -> pd.Series:
    """The cells of the column `name` as float64, NaN for missing values.

    Raises TableError for the first cell that is not a number, or not within the bounds. Where
    `infinite`, infinite values count as missing, as the score of a diverged run does.
    """
    text = cells[name].str.strip()
    missing = is_missing_cell(text)
    if infinite:
        missing |= text.str.lower().isin(_INFINITE)
    numbers = pd.to_numeric(text.mask(missing), errors="coerce").astype("float64")
    allowed = numbers.between(bounds.least, bounds.most) & ~(bounds.whole & (numbers % 1 != 0))
    refuse_first(~missing & ~allowed, cells, [name], bounds.rule)
    return numbers


def refuse_first(wrong: pd.Series, cells: pd.DataFrame, names: Sequence[str], rule: str) -> None:
    """Raise TableError for the first row marked in `wrong`, with its cells in columns `names`."""
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        value = ", ".join(cells[name].iloc[row] for name in names)
        shown = value if len(value) <= _MAX_SHOWN else value[: _MAX_SHOWN - 1] + "…"
        raise TableError(f"row {row + 1}, column {', '.join(names)}: {shown!r}; {rule}")


def folder_name(path: Path) -> str:
    """The file's name without its suffix, with characters that are safe in a folder name."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("-._")[:80] or "table"


def choose_scale(scores: pd.Series, stated: Scale | None) -> tuple[float, str]:
    """The factor that converts scores to x 100, and its reason, as a sentence.

    Unless stated, scores are fractions if all of them lie between -1 and 1.
    """
    if stated == "percent":
        return 1.0, "Scores are x 100, as stated by --scale."
    if stated == "fraction":
        return 100.0, "Scores were multiplied by 100: they are fractions, as stated by --scale."
    if scores.notna().any() and scores.abs().max() <= 1:
        return 100.0, "Scores were multiplied by 100: all of them lie between -1 and 1."
    return 1.0, "Scores are assumed to be x 100: not all of them lie between -1 and 1."
