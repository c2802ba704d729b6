"""The files of a report, each written beside its place and then moved, the page last."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.report.page import Section


@dataclass(frozen=True)
class Files:
    """Where a page, its figures (a PNG and an SVG file each) and its tables are."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]


def _replace_file(path: Path, content: bytes) -> Path:
    """Write a file so that a reader sees the old one or the new one, never a part."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        partial.write_bytes(content)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path


def _remove_stale(paths: Iterable[Path], written: tuple[Path, ...]) -> None:
    """Remove what an earlier report left behind and this one does not have."""
    for path in set(paths).difference(written):
        path.unlink(missing_ok=True)


def write_files(
    out: Path,
    page: str,
    frames: Mapping[str, pd.DataFrame],
    sections: Sequence[Section],
    *,
    table_names: Iterable[str],
    figure_names: Iterable[str],
) -> Files:
    """Write tables and figures, then the page, then remove what an earlier report left.

    frames  the tables to write by name; sections  those whose figures are written.
    table_names, figure_names  all that a report of this kind may have written before.

    Raises OSError if the folder cannot be written.
    """
    tables = tuple(
        _replace_file(
            out / "tables" / f"{name}.csv",
            frame.to_csv(index=False, lineterminator="\n").encode(errors="replace"),
        )
        for name, frame in frames.items()
    )
    figures = tuple(
        _replace_file(out / "figures" / f"{figure.name}.{kind}", content)
        for section in sections
        for figure in section.figures
        for kind, content in (("png", figure.png), ("svg", figure.vector.encode()))
    )
    written = _replace_file(out / "index.html", page.encode(errors="replace"))
    _remove_stale((out / "tables" / f"{name}.csv" for name in table_names), tables)
    earlier = (f"{name}.{kind}" for name in figure_names for kind in ("png", "svg"))
    _remove_stale((out / "figures" / name for name in earlier), figures)
    return Files(written, figures, tables)
