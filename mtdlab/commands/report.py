"""The command report: of studies, of a table of runs, of stored frames, of published means."""

import sys
import webbrowser
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import typer

from mtdlab.commands.options import AsJson, Storage
from mtdlab.commands.printing import print_json
from mtdlab.commands.report_output import (
    Written,
    verdict_fields,
    write_means,
    write_study,
    write_together,
)
from mtdlab.commands.report_sources import (
    check_name,
    load_named,
    load_published,
    load_stored,
    now,
    open_run_table,
    page_name,
)
from mtdlab.commands.report_watch import watch as watch_studies
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text

__all__ = ["report", "verdict_fields"]


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY]...",
            show_default=False,
            help="Name of a study; several are read together.",
        ),
    ] = None,
    study: Annotated[
        list[str] | None,
        typer.Option(help="The same as an option, which can be repeated.", show_default=False),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="CSV or Parquet file of runs made elsewhere, or of level means.",
        ),
    ] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            show_default=False,
            help="data/study.parquet beside a page: makes that page again without a database. "
            "Repeat it to read several together.",
        ),
    ] = None,
    published: Annotated[
        str | None,
        typer.Option(metavar="NAME", show_default=False, help="Published means: figure2."),
    ] = None,
    score: Annotated[
        str, typer.Option(metavar="COLUMN", help="With --table: the column with the score.")
    ] = "score",
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            show_default=False,
            help="With --table: the column that holds NAME, such as ema_decay=moco_m.",
        ),
    ] = None,
    scale: Annotated[
        Literal["fraction", "percent"] | None,
        typer.Option(
            show_default=False,
            help="With --table: whether scores are from -1 to 1, or x 100. Default: fraction if "
            "all lie between -1 and 1.",
        ),
    ] = None,
    storage: Storage = None,
    out: Annotated[Path, typer.Option(help="Folder; the page goes into one of its own.")] = Path(
        "reports"
    ),
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the page over several studies (default: theirs, joined by +), or of the "
            "page of a table (default: the file's)."
        ),
    ] = None,
    transfer: Annotated[
        bool,
        typer.Option(
            "--transfer",
            help="Does the first, small study predict the others? Compares the order of their "
            "levels of MTD and the best ones, and lists the configurations worth running.",
        ),
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Rewrite the page while the study runs, until it ends."),
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write the page, figures and tables of a study, complete or still running.

    Also of runs made elsewhere (--table), of the data beside another page (--from), or of published
    means (--published).
    """
    studies = list(dict.fromkeys([*(names or []), *(study or [])]))
    _check_source({"STUDY": studies, "--table": table, "--from": from_, "--published": published})
    if table is None and (score != "score" or column or scale):
        raise MtdlabError("--score, --column and --scale describe a table; use them with --table")
    if watch and not studies:
        raise MtdlabError("--watch reads a database again; use it with the name of a study")
    if transfer and len(studies) + len(from_ or []) < 2:
        raise MtdlabError("--transfer compares a study with others; name two or more")
    with _written_to(out):
        if watch:
            _watch(studies, storage, out, name, as_json, open_, transfer=transfer)
            return
        if table is not None:
            written = _report_table(table, score, column or [], scale, out, name)
        elif published is not None:
            check_name(name)
            written = write_means(load_published(published), out / (name or published), now())
        elif from_:
            written = _report_stored(from_, out, name, transfer=transfer)
        else:
            written = _report_studies(studies, storage, out, name, transfer=transfer)
    _show(written, as_json, open_)


@contextmanager
def _written_to(out: Path) -> Iterator[None]:
    """Raise MtdlabError for an OSError: studies and tables that cannot be read raise their own."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise MtdlabError(
            f"--out {out}: the page cannot be written ({reason}); name a folder that can be "
            "written to, with space left"
        ) from None


def _show(written: Written, as_json: bool, open_: bool) -> None:
    if as_json:
        print_json(written.fields)
    else:
        print_text(written.text, flush=True)
    if open_:
        webbrowser.open(written.page.resolve().as_uri())


def _check_source(options: Mapping[str, object]) -> None:
    given = [option for option, value in options.items() if value]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise MtdlabError(
            "report needs exactly one of the name of a STUDY, --table, --from and --published; "
            f"given: {found}"
        )


def _report_table(
    path: Path,
    score: str,
    columns: list[str],
    scale: Literal["fraction", "percent"] | None,
    out: Path,
    name: str | None,
) -> Written:
    from dataclasses import replace

    from analysis.frames import StudyFrames

    found = open_run_table(path, score, columns, scale)
    check_name(name)
    folder = out / (name or found.name)
    if isinstance(found, StudyFrames):
        return write_study(replace(found, name=name or found.name), folder, now())
    return write_means(found, folder, now())


def _report_stored(
    paths: list[Path], out: Path, name: str | None, *, transfer: bool = False
) -> Written:
    """The page, or the page over several studies, of the data beside earlier pages."""
    found = [load_stored(path) for path in paths]
    studies, generated = [study for study, _ in found], max(when for _, when in found)
    if len(studies) == 1 and name is None:
        return write_study(studies[0], out / studies[0].name, generated)
    folder = page_name([study.name for study in studies], name)
    return write_together(studies, out, folder, generated, transfer=transfer)


def _report_studies(
    names: list[str], storage: str | None, out: Path, name: str | None, *, transfer: bool = False
) -> Written:
    if len(names) == 1 and name is None:
        return write_study(load_named(names[0], storage), out / names[0], now())
    folder = page_name(names, name)
    studies = [load_named(each, storage) for each in names]
    return write_together(studies, out, folder, now(), transfer=transfer)


def _watch(
    names: list[str],
    storage: str | None,
    out: Path,
    name: str | None,
    as_json: bool,
    open_: bool,
    *,
    transfer: bool,
) -> None:
    """Write the page until the studies have ended or Ctrl-C is pressed; open it once."""
    from mtdlab.store import load_study

    opened = False

    def write() -> None:
        nonlocal opened
        written = _report_studies(names, storage, out, name, transfer=transfer)
        _show(written, as_json, open_ and not opened)
        opened = True

    print_text("Watching. Ctrl-C stops this command, not the study.", file=sys.stderr)
    try:
        watch_studies(lambda: [load_study(each, storage, curves=False) for each in names], write)
    except KeyboardInterrupt:
        print_text("Stopped watching.", file=sys.stderr)
