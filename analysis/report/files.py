"""The files of a report, each written beside its place and then moved, the page last."""

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.report.page import Figure, Section, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "−": r"$-$",
    "η": r"$\eta$",
    "τ": r"$\tau$",
    "ε": r"$\varepsilon$",
    "α": r"$\alpha$",
    "²": r"$^2$",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
}


def to_markdown(table: Table) -> str:
    """A pipe table, its caption above it; numbers are aligned to the right."""
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    rows = [[column.label for column in table.columns], rules, *table.rows]
    lines = [f"| {' | '.join(_escape_markdown(cell) for cell in row)} |" for row in rows]
    return "\n".join([table.caption, "", *lines, ""])


def to_latex(table: Table) -> str:
    r"""A `table` environment in the style of booktabs; it needs `\usepackage{booktabs}`."""
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    head = _latex_row([column.label for column in table.columns])
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_escape_latex(table.caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *(_latex_row(row) for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_row(cells: tuple[str, ...] | list[str]) -> str:
    return f"{' & '.join(_escape_latex(cell) for cell in cells)} \\\\"


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))


def _escape_markdown(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")


_FORMULA = re.compile(r"(?![+-][\d.]+(?:e[+-]?\d+)?$)[=+\-@\t\r]", re.IGNORECASE)
"""The beginning of a formula in spreadsheets; a number with a sign is none."""
_TEXT_TABLES = {"md": to_markdown, "tex": to_latex}


@dataclass(frozen=True)
class Files:
    """Where a page, its figures (a PNG and an SVG file each) and its tables (CSV) are."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]


def replace_file(path: Path, content: bytes) -> Path:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _remove_stale(paths: Iterable[Path], written: Iterable[Path]) -> None:
    """Remove what an earlier report left behind and this one does not have."""
    for path in set(paths).difference(written):
        path.unlink(missing_ok=True)


def _inert(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame without text that a spreadsheet would run as a formula: it gets an apostrophe."""
    plain = frame.copy(deep=False)
    for name in frame.select_dtypes(exclude=["number", "bool"]):
        plain[name] = frame[name].map(_inert_cell)
    return plain.rename(columns=_inert_cell)


def _inert_cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


def _write_text_tables(folder: Path, tables: Sequence[Table]) -> tuple[Path, ...]:
    """Each table that has a file as Markdown and as LaTeX."""
    return tuple(
        replace_file(folder / f"{table.file}.{ending}", write(table).encode(errors="replace"))
        for table in tables
        if table.file
        for ending, write in _TEXT_TABLES.items()
    )


def write_files(
    out: Path,
    page: str,
    frames: Mapping[str, pd.DataFrame],
    sections: Sequence[Section],
    *,
    table_names: Iterable[str],
    figure_names: Iterable[str],
    figure: Figure | None = None,
) -> Files:
    """Write tables and figures, then the page, then remove what an earlier report left.

    Args:
        frames: the tables to write by name.
        sections: those whose figures and tables are written.
        table_names, figure_names: all that a report of this kind may have written before.
        figure: the main figure.

    Raises:
        OSError: if the folder cannot be written.
    """
    tables = tuple(
        replace_file(
            out / "tables" / f"{name}.csv",
            _inert(frame).to_csv(index=False, lineterminator="\n").encode(errors="replace"),
        )
        for name, frame in frames.items()
    )
    shown = [table for section in sections for table in section.tables]
    texts = _write_text_tables(out / "tables", shown)
    drawn = [*([figure] if figure else []), *(each for part in sections for each in part.figures)]
    figures = tuple(
        replace_file(out / "figures" / f"{each.name}.{kind}", content)
        for each in drawn
        for kind, content in (("png", each.png), ("svg", each.vector.encode()))
    )
    written = replace_file(out / "index.html", page.encode(errors="replace"))
    names = {*table_names, *(table.file for table in shown)}
    _remove_stale((out / "tables" / f"{name}.csv" for name in names), tables)
    endings = [(name, ending) for name in names for ending in _TEXT_TABLES]
    _remove_stale((out / "tables" / f"{name}.{ending}" for name, ending in endings), texts)
    earlier = (f"{name}.{kind}" for name in figure_names for kind in ("png", "svg"))
    _remove_stale((out / "figures" / name for name in earlier), figures)
    return Files(written, figures, tables)


def write_data(folder: Path, files: Mapping[str, bytes]) -> tuple[Path, ...]:
    """Write the Parquet files that a page was made from, and remove those of an earlier report."""
    written = tuple(replace_file(folder / name, content) for name, content in files.items())
    _remove_stale(folder.glob("*.parquet"), written)
    return written
