"""Text, Parquet and JSON files and DataFrames as frames of text; text as checked numbers.

Error messages name the file (`naming`), and the row, column and value where there is one. Rows are
counted from 1 below the header.
"""

import ast
import csv
import hashlib
import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd

from mtdlab.analysis.data.defaults import Scale
from mtdlab.analysis.data.metric import is_loss, is_negated, is_share

MAX_ROWS = 20_000
MAX_COLUMNS = 500
_MISSING = frozenset({"", "nan", "none", "null", "na", "n/a", "<na>"})
_INFINITE = frozenset({"inf", "-inf", "infinity", "-infinity"})
_MAX_SHOWN = 60
_NESTED = frozenset({"config", "summary", "metrics"})
"""Columns of which trackers write all values of a run into one cell."""
_OPTIONS = {
    r"--(score|scale|direction|margin) (\w+)": r"\1=\2",
    r"--column (\w+)=COLUMN": r'columns={"\1": COLUMN}',
    r"--column (\w+)=(\w+)": r'columns={"\1": "\2"}',
    r"--block": "block",
    r"--setting COLUMN": "settings=[COLUMN, ...]",
}
"""What a message says of options, and the parameters of Python that are the same."""


_SEPARATORS = (",", "\t", ";")
_OTHER_SEPARATORS = re.compile(r"\S[\s|]+\S")
_WITH_COMMA = r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?"
_IN_GROUPS = r"[+-]?[1-9]\d{0,2}(?:,\d{3})+"


class TableError(ValueError):
    """A table that cannot be read; the message is one sentence that states the correction."""


class Obstacles:
    """What is wrong with a table, gathered so that one message has all of it."""

    def __init__(self) -> None:
        self.found: list[str] = []

    @contextmanager
    def gather(self) -> Iterator[None]:
        """Keep the message of a TableError that ends the block."""
        try:
            yield
        except TableError as error:
            self.found.append(str(error))

    def refuse(self) -> None:
        """Raise TableError with all messages, unless there is none."""
        found = list(dict.fromkeys(self.found))
        if len(found) > 1:
            raise TableError("\n- ".join([f"{len(found)} obstacles:", *found]))
        if found:
            raise TableError(found[0])


@contextmanager
def naming(table: Path | pd.DataFrame) -> Iterator[None]:
    """Put the file, or that it is a DataFrame, before the message of a TableError."""
    try:
        yield
    except TableError as error:
        text = str(error)
        if isinstance(table, Path):
            raise TableError(f"{table}: {text}") from None
        for option, parameter in _OPTIONS.items():
            text = re.sub(option, parameter, text)
        raise TableError(f"the DataFrame: {text}") from None


@dataclass(frozen=True)
class Bounds:
    """The range of a column's numbers; rule describes it in an error message."""

    rule: str
    least: float = -math.inf
    most: float = math.inf
    whole: bool = False


FINITE = Bounds("it must be a finite number", -1e300, 1e300)


def read_cells(table: Path | pd.DataFrame) -> pd.DataFrame:
    """The cells of a file or a DataFrame as text; empty text for missing values.

    A file that ends in .parquet or .pq is Parquet, one in .json an array of objects, also as
    trackio writes it; any other is text in UTF-8 with a header, separated by commas, tabs or
    semicolons. A DataFrame's index is a column if it has a name, and the column run if it holds
    text. A cell that holds all settings or scores of a run is a column for each. A folder is
    MTEB's of results.

    Raises TableError for a file that is missing or damaged, repeats a column's name, has no row,
    rows of different lengths, more than 20,000 rows or more than 500 columns.
    """
    if isinstance(table, pd.DataFrame):
        frame = _as_text(_with_index(table))
    elif table.is_dir():
        frame = _read_results(table)
    elif not table.is_file():
        raise TableError("no such file")
    else:
        try:
            frame = _READERS.get(table.suffix.lower(), _read_text)(table)
        except OSError as error:
            raise TableError(f"cannot be read ({error.strerror or error})") from None
    if len(frame) > MAX_ROWS:
        raise TableError(f"more than {MAX_ROWS:,} rows; at most {MAX_ROWS:,} are read")
    frame = _expand(frame)
    _check_header([*frame.columns])
    if not len(frame):
        raise TableError("no row below the header; a row is a run")
    repeated = frame.columns[frame.columns.duplicated()]
    if len(repeated):
        raise TableError(f"column {repeated[0]!r} occurs twice; each name must be unique")
    return frame


def _read_results(folder: Path) -> pd.DataFrame:
    """MTEB's results: task, model and the mean main score over splits and subsets, as MTEB's."""
    found = dict[tuple[str, str], tuple[str, Path]]()
    for path in sorted(folder.glob("*/*/*.json")):
        if path.name == "model_meta.json":
            continue
        file = path.relative_to(folder)
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
            parts = [part["main_score"] for split in result["scores"].values() for part in split]
            key = result["task_name"], file.parts[0].replace("__", "/")
            score = str(fmean(parts))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            raise TableError(
                f"{file} is no result of MTEB: it has no task_name, or no scores with main_score"
            ) from None
        if key in found:
            raise TableError(f"{found[key][1]} and {file} are two results of one model; keep one")
        found[key] = score, file
    if not found:
        raise TableError("no MODEL/REVISION/TASK.json in it; name the folder of MTEB's results")
    rows = [(*key, score) for key, (score, _) in found.items()]
    return pd.DataFrame(rows, columns=["task", "model", "score"])


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with what its index tells as columns; levels of column names are joined by _."""
    if frame.columns.nlevels > 1:
        joined = ["_".join(str(part) for part in name if part != "") for name in frame.columns]
        frame = frame.set_axis(joined, axis="columns")
    index = frame.index
    if index.nlevels == 1 and index.name is None:
        if pd.api.types.is_numeric_dtype(index):
            return frame
        index = index.rename("run")
    told = {
        str(name): index.get_level_values(level).to_numpy()
        for level, name in enumerate(index.names)
        if name is not None and name not in frame.columns
    }
    return pd.concat([pd.DataFrame(told, index=frame.index), frame], axis="columns")


def _as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Each cell as text, mappings and lists as JSON where they can be."""
    text = frame.astype("object").map(_write_cell).astype("object").reset_index(drop=True)
    names = pd.Index([str(name) for name in frame.columns], dtype="object")
    return text.set_axis(names, axis="columns")


def _write_cell(value: Any) -> str:
    if isinstance(value, Mapping | list):
        return json.dumps(value, default=str)
    return "" if value is None or value is pd.NA or value is pd.NaT else str(value)


def _expand(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells with a column config.lr for each key of a column config of mappings."""
    parts: list[pd.Series | pd.DataFrame] = []
    for name, column in cells.items():
        nested = str(name).lower() in _NESTED and len(column) > 0
        read = [_read_mapping(text) for text in column] if nested else []
        mappings = [mapping for mapping in read if mapping is not None]
        if not nested or len(mappings) < len(read):
            parts.append(column)
            continue
        flat = _as_text(pd.json_normalize(mappings))
        parts.append(flat.set_axis([f"{name}.{key}" for key in flat], axis="columns"))
    return pd.concat(parts, axis="columns") if parts else cells


def _read_mapping(text: str) -> dict[str, Any] | None:
    """A cell of JSON, or of Python as W&B's recipe writes it, as a mapping; None for other text."""
    # a number that is none has no literal in Python
    python = re.sub(r"(?<=: )-?(nan|inf)(?=[,}])", "None", text)
    for read, written in ((json.loads, text), (ast.literal_eval, python)):
        try:
            value = read(written or "{}")
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        return value if isinstance(value, dict) else None
    return None


def _read_json(path: Path) -> pd.DataFrame:
    try:
        read = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise TableError(f"not a JSON file ({error})") from None
    rows = read.get("rows") if isinstance(read, dict) else read
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TableError(
            "no table of runs; it must be an array of objects, one for each run, or have one "
            "under the key rows, as trackio query --json writes it"
        )
    return _as_text(pd.DataFrame(rows))


def _read_text(path: Path) -> pd.DataFrame:
    rows: list[list[str]] = []
    try:
        separator = _find_separator(path)
        lines = _read_lines(path, separator)
        header = [name.strip() for name in next(lines, [])]
        _check_header(header)
        for row in lines:
            if len(header) == 1 and all(map(_OTHER_SEPARATORS.search, (header[0], ",".join(row)))):
                raise TableError(
                    f"one column, {header[0][:_MAX_SHOWN]!r}; columns are separated by commas, "
                    "tabs or semicolons: write the table with one of these"
                )
            if len(row) != len(header):
                hint = "; quote text that holds a comma, and write decimals with a point"
                raise TableError(
                    f"row {len(rows) + 1} has {len(row)} cells; it must have {len(header)}, as the "
                    f"header{hint if separator == ',' and len(row) > len(header) else ''}"
                )
            rows.append(row)
            if len(rows) > MAX_ROWS:
                break
    except UnicodeDecodeError as error:
        raise TableError(f"byte {error.start} is not UTF-8; save the file as UTF-8") from None
    except csv.Error as error:
        raise TableError(f"not a CSV file ({error})") from None
    return pd.DataFrame(rows, columns=pd.Index(header, dtype="object"), dtype="object")


def _read_lines(path: Path, separator: str) -> Iterator[list[str]]:
    """The lines of a file that are not blank, each as its cells."""
    with path.open(encoding="utf-8-sig", newline="") as handle:
        for row in csv.reader(handle, delimiter=separator):
            if any(cell.strip() for cell in row):
                yield row


def _find_separator(path: Path) -> str:
    """What gives the header most cells, as many as the first row has where one does."""

    def fits(separator: str) -> tuple[bool, int]:
        first = [len(row) for row in islice(_read_lines(path, separator), 2)]
        return len(first) == 2 and 1 < first[0] == first[1], max(first[:1], default=0)

    return max(_SEPARATORS, key=fits)


def _check_header(header: Sequence[str]) -> None:
    if not header:
        raise TableError("empty; it must have a row for each run, below the names of the columns")
    if len(header) > MAX_COLUMNS:
        raise TableError(f"{len(header)} columns; at most {MAX_COLUMNS} are read")


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        frame = pd.read_parquet(path)
    except ImportError:
        raise TableError(
            "Parquet takes pyarrow: pip install --no-deps pyarrow; or give CSV"
        ) from None
    except ValueError as error:
        raise TableError(f"not a Parquet file ({str(error).splitlines()[0]})") from None
    return _as_text(_with_index(frame))


_READERS = {".parquet": _read_parquet, ".pq": _read_parquet, ".json": _read_json}


def is_missing_cell(cells: pd.Series) -> pd.Series:
    """Whether each cell is missing: empty, or a word such as NaN, None or NA."""
    return cells.str.strip().str.lower().isin(_MISSING)


def with_points(cells: pd.Series) -> pd.Series:
    """The cells, stripped, with decimal points in place of commas where these are decimal ones.

    They are not where another cell has a point, or where each may separate thousands: 12,345.
    """
    text = cells.str.strip()
    decimal = text.str.fullmatch(_WITH_COMMA).astype(bool)
    in_doubt = text[decimal].str.fullmatch(_IN_GROUPS)
    if in_doubt.all() or text.str.contains(".", regex=False).any():
        return text
    return text.mask(decimal, text.str.replace(",", ".", regex=False))


def read_numbers(
    cells: pd.DataFrame, name: str, bounds: Bounds, *, infinite: bool = False
) -> pd.Series:
    """The cells of the column `name` as float64, NaN for missing values.

    Raises TableError for the first cell that is not a number, or not within the bounds. Where
    `infinite`, infinite values count as missing, as the score of a diverged run does.
    """
    text = with_points(cells[name])
    missing = is_missing_cell(text)
    if infinite:
        missing |= text.str.lower().isin(_INFINITE)
    numbers = pd.to_numeric(text.mask(missing), errors="coerce").astype("float64")
    allowed = numbers.between(bounds.least, bounds.most) & ~(bounds.whole & (numbers % 1 != 0))
    rule, wrong = bounds.rule, ~missing & ~allowed
    if text[wrong].head(1).str.contains(",", regex=False).any():
        rule += "; write decimals with a point, and thousands without a comma"
    refuse_first(wrong, cells, [name], rule)
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


def tell_origin(table: Path | pd.DataFrame) -> str:
    """What tells a table from others of its name, for a page that does not show where it lies.

    16 hexadecimal digits of a file, or of a folder; all DataFrames have the same.
    """
    if isinstance(table, pd.DataFrame):
        return "DataFrame"
    return hashlib.sha256(os.fsencode(table.resolve())).hexdigest()[:16]


def choose_scale(score: str, values: pd.Series, stated: Scale | None) -> Scale:
    """How the values of a score are read; unless stated by its name, and by the values.

    Correlations and shares are fractions if all values lie between -1 and 1. Raises TableError
    where all values of another score do: they may be fractions, or have a unit of their own.
    """
    small, count = int((values.abs() <= 1).sum()), values.count()
    if stated:
        return stated
    if is_share(score):
        return "fraction" if small and small == count else "percent"
    if small and small == count and not (is_loss(score) or is_negated(score)):
        raise TableError(
            f"all values of {score!r} lie between -1 and 1: state --scale fraction, by which they "
            "are multiplied by 100, or --scale own for a unit of their own"
        )
    return "own"


def describe_scale(scale: Scale, *, is_stated: bool) -> str:
    """A sentence on how scores are read."""
    reads, why = {
        "own": ("Scores have a unit of their own", "by their name"),
        "percent": ("Scores are assumed to be x 100", "not all of them lie between -1 and 1"),
        "fraction": ("Scores were multiplied by 100", "all of them lie between -1 and 1"),
    }[scale]
    return f"{reads}: {f'they are read with --scale {scale}' if is_stated else why}."
