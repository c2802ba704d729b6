"""The files of a report, each written beside its place and then moved, the page last."""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.report.page import Table

_GREEK = {"η": "eta", "τ": "tau", "ε": "varepsilon", "α": "alpha"}
_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "{}$&#%_"},
        **{letter: rf"$\{name}$" for letter, name in _GREEK.items()},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "–": "--",
        "−": r"$-$",
        "²": r"$^2$",
        "“": "``",
        "”": "''",
        "…": r"\ldots{}",
    }
)
_MARKDOWN = str.maketrans({"\\": "\\\\", "|": "\\|", "<": "&lt;"})


def to_markdown(table: Table) -> str:
    """A pipe table, its caption above it; numbers are aligned to the right."""
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    rows = [[column.label for column in table.columns], rules, *table.rows]
    lines = [f"| {' | '.join(_escape(cell, _MARKDOWN) for cell in row)} |" for row in rows]
    return "\n".join([table.caption, "", *lines, ""])


def to_latex(table: Table) -> str:
    r"""A `table` environment in the style of booktabs; it needs `\usepackage{booktabs}`."""
    rows = [[column.label for column in table.columns], *table.rows]
    head, *lines = (f"{' & '.join(_escape(cell, _LATEX) for cell in row)} \\\\" for row in rows)
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_escape(table.caption, _LATEX)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _escape(text: str, table: Mapping[int, str]) -> str:
    """Text on one line, with LaTeX's special characters escaped."""
    return " ".join(text.split()).translate(table)


_FORMULA = re.compile(r"(?![+-][\d.]+(?:e[+-]?\d+)?$)[=+\-@\t\r]", re.IGNORECASE)
"""The beginning of a text that a spreadsheet runs as a formula; a signed number is none."""
TEXT_TABLES = {"md": to_markdown, "tex": to_latex}


@dataclass(frozen=True)
class Files:
    """Where a page, its figures (a PNG and an SVG file each) and its tables (CSV) are."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]


def write_files(folder: Path, files: Mapping[str, bytes], earlier: Iterable[str] = ()) -> None:
    """Write files in their order, then remove the others of an earlier report.

    A reader sees an old file or a new one, never a part.

    Args:
        files: their contents by their paths in the folder.
        earlier: paths in the folder that an earlier report may have written.

    Raises:
        OSError: if the folder cannot be written.
    """
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
        try:
            partial.write_bytes(content)
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)
    for name in set(earlier).difference(files):
        (folder / name).unlink(missing_ok=True)


def to_csv(frame: pd.DataFrame) -> bytes:
    """The frame without text that a spreadsheet would run as a formula: it gets an apostrophe."""
    plain = frame.copy(deep=False)
    for name in frame.select_dtypes(exclude=["number", "bool"]):
        plain[name] = frame[name].map(_inert)
    text = plain.rename(columns=_inert).to_csv(index=False, lineterminator="\n")
    return text.encode(errors="replace")


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
