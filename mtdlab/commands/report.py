"""The command report, for studies, a table of runs, stored frames or published means."""

import math
import sys
import time
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab import __version__
from mtdlab.analysis.data.defaults import BEYOND_RUN, TABLE_SUFFIXES, BeyondRun, Reading
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.api.report import check_name, load_named, now, refuse_other_page
from mtdlab.api.report import report as write_pages
from mtdlab.commands import options as opt
from mtdlab.commands.printing import describe_failures, metric_fields, print_json
from mtdlab.errors import MtdlabError, reason_of, refusing
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.analysis.data.block_tables import BlockScores
    from mtdlab.analysis.data.frames import StudyFrames
    from mtdlab.analysis.inference.level_means import LevelMeans
    from mtdlab.analysis.report import MultiStudyReport, Report
    from mtdlab.analysis.report.topics.baseline import BaselineComparison

PAUSE = 5.0
"""The least number of seconds between two readings with --watch."""
_SHARE = 10
_MAPPING = ("score", "seed", "state", "MTD", "settings", "columns not read", "repeated")
"""What is said of a table: which column was read as what."""


def report(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[STUDY]...", help="Name of a study; several are read together."),
    ] = None,
    study: Annotated[
        list[str] | None, typer.Option(help="The same as an option, which can be repeated.")
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="CSV, TSV, Parquet or JSON file of runs made elsewhere, CSV of level means, or "
            "MTEB's folder of results, whose models are ranked.",
        ),
    ] = None,
    from_: Annotated[
        list[Path] | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help="Folder of a page, or its data/study.parquet: makes it again without a database. "
            "Repeat it to read several together.",
        ),
    ] = None,
    published: Annotated[
        str | None, typer.Option(metavar="NAME", help="Published means: figure2.")
    ] = None,
    block: Annotated[
        str,
        typer.Option(
            metavar="COLUMN",
            help="With --table: rank models over the values of this column, such as task: a row "
            "for each task and model, or a row a task and a column a model.",
        ),
    ] = "",
    score: opt.Score = "",
    column: opt.Column = None,
    setting: opt.Setting = None,
    scale: opt.ScoreScale = None,
    direction: opt.ScoreDirection = None,
    margin: opt.Margin = None,
    beyond_run: Annotated[
        BeyondRun,
        typer.Option(
            help="With --table: whether the verdict leaves out levels of MTD beyond the run, or "
            "keeps them."
        ),
    ] = BEYOND_RUN,
    storage: opt.Storage = None,
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
    references: Annotated[
        bool,
        typer.Option(
            "--references",
            help="First score the untrained encoder in every reading, also where that takes more "
            "than a tenth of the study's time.",
        ),
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Rewrite the page while the study runs, until it ends.")
    ] = False,
    open_: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Write the page, figures and tables of a study, complete or still running.

    Also of runs made elsewhere (--table), of the data beside another page (--from), or of published
    means (--published).
    """
    from mtdlab.analysis.data.cells import TableError
    from mtdlab.analysis.data.meaning import PublishedFileError

    studies = list(dict.fromkeys([*(names or []), *(study or [])]))
    columns, settings = parse_columns(column or []), tuple(setting or [])
    reading = Reading(score, columns, settings, scale, direction, margin, beyond_run, block)
    source = PageSource(studies, storage, table, reading, from_ or [], published, references)
    source.check()
    if (watch or references) and not studies:
        option = "--watch reads a database again" if watch else "--references are recorded in one"
        raise MtdlabError(f"{option}; use it with the name of a study")
    if margin is not None and not 0 < margin < math.inf:
        raise MtdlabError(f"--margin {margin:g}: it must be a number above 0")
    if transfer and len(studies) + len(source.stored) < 2:
        raise MtdlabError("--transfer compares a study with others; name two or more")
    opens = iter([open_])

    def write() -> None:
        page = _write(source, out, name, transfer=transfer, as_json=as_json)
        if next(opens, False):
            webbrowser.open(page.resolve().as_uri())

    try:
        with refusing(TableError, PublishedFileError):
            if watch:
                write_on_changes(studies, storage, write)
            else:
                write()
    except BrokenPipeError:
        raise
    except OSError as error:
        # studies and tables that cannot be read raise errors of their own
        raise MtdlabError(
            f"--out {out}: the page cannot be written ({reason_of(error)}); name a folder "
            "that can be written to, with space left"
        ) from None


def parse_columns(texts: Sequence[str]) -> dict[str, str]:
    """The columns of --column, mtdlab's name -> the table's."""
    parsed = {}
    for text in texts:
        ours, equals, theirs = text.partition("=")
        if not (ours and equals and theirs):
            raise MtdlabError(f"--column {text!r}: must be NAME=COLUMN, as in ema_decay=moco_m")
        parsed[ours] = theirs
    return parsed


@dataclass(frozen=True)
class PageSource:
    """What a page is made of: studies of a database, a table, stored data or published means."""

    studies: list[str]
    storage: str | None
    table: Path | None
    reading: Reading
    stored: list[Path]
    published: str | None
    references: bool

    def check(self) -> None:
        """Raise MtdlabError unless exactly one of them is named, and a table alone described."""
        options = ("STUDY", "--table", "--from", "--published")
        values = (self.studies, self.table, self.stored, self.published)
        given = [option for option, value in zip(options, values, strict=True) if value]
        if len(given) != 1:
            raise MtdlabError(
                "report needs exactly one of the name of a STUDY, --table, --from and --published; "
                f"given: {' and '.join(given) or 'none of them'}"
            )
        if files := [name for name in self.studies if name.endswith(TABLE_SUFFIXES)]:
            raise MtdlabError(
                f"{files[0]} is a file; write --table before one with runs, or --from before the "
                "data of a page"
            )
        if self.table is None and self.reading != Reading():
            raise MtdlabError(
                "--block, --score, --column, --setting, --scale, --direction and --beyond-run "
                "describe a table; use them with --table"
            )

    def read(
        self, name: str | None
    ) -> "tuple[list[StudyFrames] | LevelMeans | BlockScores, str | None]":
        """The data, runs of a table as a study called `name`; and when stored ones were made."""
        from mtdlab.analysis.data.cells import TableError
        from mtdlab.analysis.data.frames import StudyFrames
        from mtdlab.analysis.inference.level_means import load_published_means
        from mtdlab.analysis.notebook import open_table

        if self.studies:
            references = self.references
            named = [load_named(one, self.storage, references=references) for one in self.studies]
            return named, None
        try:
            if self.table is not None:
                check_name(name)
                runs = open_table(self.table, self.reading, name or "")
                return [runs] if isinstance(runs, StudyFrames) else runs, None
            if self.published is not None:
                return load_published_means(self.published), None
            # imported here: the light install has no pyarrow
            from mtdlab.analysis.data.stored_frames import from_parquet

            stored = [from_parquet(path) for path in self.stored]
        except TableError as error:
            raise MtdlabError(str(error)) from None
        except ValueError as error:
            option = "--from " if self.published is None else "--published: "
            raise MtdlabError(f"{option}{error}") from None
        for study, _ in stored:
            check_name(study.name)
        return [study for study, _ in stored], max(when for _, when in stored)


def _write(
    source: PageSource, out: Path, name: str | None, *, transfer: bool, as_json: bool
) -> Path:
    """Write the page of what a command names, and print its summary; the page."""
    from mtdlab.analysis.data.block_tables import BlockScores
    from mtdlab.analysis.report import write_level_means
    from mtdlab.analysis.report.ranking import write_ranking

    data, generated = source.read(name)
    if isinstance(data, list):
        page_name = None if source.table else name
        page, fields, lines = _write_studies(data, out, page_name, generated, transfer)
    else:
        check_name(name)
        folder = out / (name or source.published or data.name)
        refuse_other_page(folder, data)
        if isinstance(data, BlockScores):
            written = write_ranking(data, folder, generated=now(), version=__version__)
        else:
            written = write_level_means(data, folder, generated=now(), version=__version__)
        page, fields, lines = written.page, _page_fields(written), [*written.summary]
    if as_json:
        print_json(fields)
    else:
        print_text("\n".join([*lines, f"The page: {page}"]), flush=True)
    return page


def _write_studies(
    studies: "list[StudyFrames]", out: Path, name: str | None, generated: str | None, transfer: bool
) -> tuple[Path, dict[str, Any], list[str]]:
    """Write the page of a study, or over several: the page, fields of --json, and lines."""
    from mtdlab.analysis.report.agreement import describe_agreement, tabulate
    from mtdlab.analysis.report.study_facts import describe_choice, trial_states

    if len(studies) == 1 and name is None:
        [frames] = studies
        own = write_pages(frames, out=out, generated=generated)
        baseline = [own.baseline.sentence] if own.baseline else []
        read = [f"{name}: {frames.table[name]}" for name in _MAPPING if name in frames.table]
        chosen = [f"nuisance: {text}"] if (text := describe_choice(frames)) else []
        failed = trial_states(frames).query("state == 'FAIL'")
        why = describe_failures(failed["number"], failed["reason"])
        failures = (f"failed: {failure}" for failure in why)
        lines = [own.verdict.sentence, *baseline, *chosen, *failures, *read]
        fields = _page_fields(own) | _ranking(frames)
        return own.page, fields | ({"table": frames.table} if frames.table else {}), lines
    written = write_pages(list(studies), out=out, name=name, generated=generated, transfer=transfer)
    pages = {
        frames.name: _page_fields(own) | _ranking(frames)
        for frames, own in zip(studies, written.pages.values(), strict=True)
    }
    lines = [f"{study}: {own.verdict.sentence}" for study, own in written.pages.items()]
    fields = _files(written) | {"pages": pages}
    lines += map(describe_agreement, written.agreements)
    if transfer:
        fields["transfer"] = tabulate(written.agreements).to_dict("records")
    return written.page, fields, lines


def _page_fields(written: "Report") -> dict[str, Any]:
    return {
        **_files(written),
        **written.fields,
        "mtd_sufficient": written.mtd_sufficient,
        "seeds_for_power": written.needed and written.needed.seeds,
        "items_for_power": written.needed and written.needed.items,
        "baseline": baseline_fields(written.baseline, written.verdict.score_format),
    }


def baseline_fields(
    compared: "BaselineComparison | None", write: ScoreFormat
) -> dict[str, Any] | None:
    """A study's baseline as it is printed with --json; None without one, or without a score.

    difference: the baseline minus the configuration of a trial; its interval holds for so many
    configurations at once.
    """
    if compared is None or (against := compared.against) is None:
        return None
    return {
        "name": compared.name,
        "seeds": against.mean.seeds,
        **vars(against.mean.estimate.as_read(write)),
        "difference": {
            "trial": compared.best,
            "seeds": compared.seeds,
            **vars(compared.difference.as_read(write)),
            "configurations": against.compared,
            "items": against.items,
        },
    }


def _files(written: "Report | MultiStudyReport") -> dict[str, Any]:
    return {
        "page": str(written.page),
        "figures": [str(path) for path in written.figures],
        "tables": [str(path) for path in written.tables],
    }


def _ranking(study: "StudyFrames") -> dict[str, Any]:
    """The scores of report and rank, and the best trial; None for numbers that are not known."""
    from mtdlab.analysis.data.runs import mtd_value
    from mtdlab.analysis.statistics.best_trial import compute_choices

    write, select_by = study.score_format, study.select_by or study.metric
    best = next(iter(compute_choices(study).to_dict("records")), None)
    if best is not None and best["chosen_by"] != select_by:
        best = None
    return {
        **metric_fields(study.metric, select_by),
        "best": best
        and {
            "trial": best["number"],
            "mtd": mtd_value(best["mtd"]),
            "select_by_score": ScoreFormat(select_by).as_read(best["value"]),
            "optimism": best["optimism"],
            "score": write.as_read(best["score"]),
            "score_optimism": best["score_optimism"],
        },
    }


def write_on_changes(names: list[str], storage: str | None, write: Callable[[], None]) -> None:
    """Write a page now, and whenever a trial of these studies has begun or ended.

    It returns when all planned trials have ended, and on Ctrl-C. It waits ten times as long as
    writing takes, so that the trials keep the processor.
    """
    from mtdlab.analysis.report.page import Status
    from mtdlab.analysis.report.study_facts import describe_status
    from mtdlab.store.frames import load_frames

    print_text("Watching. Ctrl-C stops this command, not the study.", file=sys.stderr)
    written: list[Status] = []
    pause = PAUSE
    with suppress(KeyboardInterrupt):
        while True:
            # read before writing: a change in between is written in the next round
            studies = [load_frames(name, storage, curves=False) for name in names]
            states = [describe_status(study) for study in studies]
            if states != written:
                started = time.monotonic()
                write()
                written, pause = states, max(PAUSE, _SHARE * (time.monotonic() - started))
            if all(state.is_over for state in states):
                return
            time.sleep(pause)
    print_text("Stopped watching.", file=sys.stderr)
