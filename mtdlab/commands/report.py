"""The command report: of studies, of a table of runs, or of published means."""

import math
import os
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mtdlab import __version__
from mtdlab.commands.options import AsJson, Storage
from mtdlab.commands.printing import print_json
from mtdlab.errors import MtdlabError

if TYPE_CHECKING:
    from analysis.frames import StudyFrames
    from analysis.level_means import LevelMeans
    from analysis.means_verdict import MeansVerdict
    from analysis.report import MeansReport, MultiStudyReport, Report
    from analysis.verdict import Verdict

_LONGEST_NAME = 80


def report(
    study: Annotated[
        list[str] | None,
        typer.Option(
            help="Name of the study. Repeat it to read several together.", show_default=False
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="CSV or Parquet file of runs made elsewhere, or of level means.",
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
    as_json: AsJson = False,
) -> None:
    """Write the page, figures and tables of a study, complete or still running.

    Also of runs made elsewhere (--table), or of published means (--published).
    """
    _check_source(study, table, published)
    if table is None and (score != "score" or column or scale):
        raise MtdlabError("--score, --column and --scale describe a table; use them with --table")
    if table is not None:
        _report_table(_open_table(table, score, column or [], scale), out, name, as_json)
    elif published is not None:
        _check_name(name)
        _report_means(_load_published(published), out / (name or published), as_json)
    else:
        _report_studies(list(dict.fromkeys(study or [])), storage, out, name, as_json)


def _check_source(study: list[str] | None, table: Path | None, published: str | None) -> None:
    options = {"--study": study, "--table": table, "--published": published}
    given = [option for option, value in options.items() if value]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        raise MtdlabError(
            f"report needs exactly one of --study, --table and --published; given: {found}"
        )


def _report_studies(
    names: list[str], storage: str | None, out: Path, name: str | None, as_json: bool
) -> None:
    if len(names) == 1 and name is None:
        _report_study(_load(names[0], storage), out / names[0], as_json)
    else:
        _report_together(names, storage, out, name, as_json)


def _report_study(frames: "StudyFrames", folder: Path, as_json: bool) -> None:
    from analysis.report import write_report

    written = write_report(frames, folder, generated=_now(), version=__version__)
    text = f"{written.summary[0]}\nThe page: {written.page}"
    _print(_described(written) | _ranking(frames), text, as_json)


def _report_means(means: "LevelMeans", folder: Path, as_json: bool) -> None:
    from analysis.report import write_level_means

    written = write_level_means(means, folder, generated=_now(), version=__version__)
    text = "\n".join([*written.summary, f"The page: {written.page}"])
    _print(_described(written), text, as_json)


def _report_table(
    found: "StudyFrames | LevelMeans", out: Path, name: str | None, as_json: bool
) -> None:
    from dataclasses import replace

    from analysis.frames import StudyFrames

    _check_name(name)
    if isinstance(found, StudyFrames):
        named = replace(found, name=name or found.name)
        _report_study(named, out / named.name, as_json)
    else:
        _report_means(found, out / (name or found.name), as_json)


def _check_name(name: str | None) -> None:
    """Raise MtdlabError for a name of a page that a folder cannot have."""
    from mtdlab.config.study import is_study_name

    if name is not None and not is_study_name(name):
        raise MtdlabError(
            f"--name {name!r}: not a name that a folder can have; use letters, digits, dots and "
            "dashes, at most 100"
        )


def _open_table(
    path: Path, score: str, columns: list[str], scale: Literal["fraction", "percent"] | None
) -> "StudyFrames | LevelMeans":
    from analysis.run_tables import TableError, open_table

    try:
        return open_table(path, score=score, columns=_parse_columns(columns), scale=scale)
    except TableError as error:
        raise MtdlabError(str(error)) from None


def _parse_columns(given: list[str]) -> Mapping[str, str]:
    """The pairs of --column NAME=COLUMN."""
    parsed = {}
    for each in given:
        ours, equals, theirs = each.partition("=")
        if not (ours and equals and theirs):
            raise MtdlabError(f"--column {each!r}: must be NAME=COLUMN, as in ema_decay=moco_m")
        parsed[ours] = theirs
    return parsed


def _load_published(name: str) -> "LevelMeans":
    from analysis.level_means import load_published_means

    try:
        return load_published_means(name)
    except ValueError as error:
        raise MtdlabError(f"--published: {error}") from None


def _load(study: str, storage: str | None) -> "StudyFrames":
    """A study's frames, with all curves only where its page needs them."""
    from analysis.experiments import needs_curves
    from analysis.training import choose_curves
    from mtdlab.config.study import is_study_name
    from mtdlab.store import load_study

    frames = load_study(study, storage, curves=False)
    if not is_study_name(frames.name):
        raise MtdlabError(f"study {frames.name!r}: not a name that a folder can have")
    every = needs_curves(frames.trials, frames.settings)
    return load_study(study, storage, curves=every or choose_curves(frames.trials))


def _report_together(
    names: list[str], storage: str | None, out: Path, name: str | None, as_json: bool
) -> None:
    from analysis.report import write_multi_study

    folder = _page_name(names, name)
    studies = [_load(each, storage) for each in names]
    written = write_multi_study(studies, out, name=folder, generated=_now(), version=__version__)
    pages = {
        frames.name: _described(own) | _ranking(frames)
        for frames, own in zip(studies, written.pages.values(), strict=True)
    }
    lines = [f"{each}: {own.summary[0]}" for each, own in written.pages.items()]
    text = "\n".join([*lines, f"The page: {written.page}"])
    _print(_files(written) | {"pages": pages}, text, as_json)


def _page_name(names: list[str], name: str | None) -> str:
    """The folder of a page over several studies: `name`, or made from their names."""
    from mtdlab.config.study import is_study_name

    if name is None:
        joined = "+".join(names)
        short = len(joined) <= _LONGEST_NAME
        return joined if short else f"{names[0]}+{len(names) - 1}-others"
    if not is_study_name(name.replace("+", "-")):
        raise MtdlabError(
            f"--name {name!r}: not a name that a folder can have; use letters, digits, dots, "
            "dashes and +, at most 100"
        )
    if name in names:
        raise MtdlabError(f"--name {name}: that is the folder of the study's own page")
    return name


def _described(written: "Report | MeansReport") -> dict[str, Any]:
    found = verdict_fields(written.verdict) | {"mtd_sufficient": written.mtd_sufficient}
    return _files(written) | found


def _ranking(study: "StudyFrames") -> dict[str, Any]:
    """The score that is reported, the one that ranks the trials, and the best trial by it.

    Numbers that are not known, such as the optimism with one seed, are None.
    """
    from analysis.best_trial import compute_choices

    names = {"metric": study.metric, "select_by": study.select_by or study.metric}
    choices = compute_choices(study)
    if not choices or choices[0].chosen_by != names["select_by"]:
        return names | {"best": None}
    best = choices[0]
    numbers = {
        "mtd": best.mtd,
        "select_by_score": best.value,
        "optimism": best.optimism,
        "score": best.score,
        "score_optimism": best.score_optimism,
    }
    known = {name: _finite(value) for name, value in numbers.items()}
    return names | {"best": {"trial": best.number} | known}


def verdict_fields(verdict: "Verdict | MeansVerdict") -> dict[str, Any]:
    """The verdict as it is printed with --json; null where a value is not known.

    verdict is flat, rising, falling, peaked or inconclusive; distances are in steps.
    """
    interval = verdict.peak_interval
    return {
        "verdict": verdict.verdict,
        "sentence": verdict.sentence,
        "peak_excluded": verdict.peak_excluded,
        "peak_mtd": _finite(verdict.peak_mtd),
        "peak_interval": None if interval is None else list(interval),
        "optimal_range": list(verdict.optimal_range),
        "p_value": _finite(verdict.p_value),
        "seeds_for_power": verdict.seeds_for_power,
    }


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _files(written: "Report | MeansReport | MultiStudyReport") -> dict[str, Any]:
    return {
        "page": str(written.page),
        "figures": [str(path) for path in written.figures],
        "tables": [str(path) for path in written.tables],
    }


def _print(found: dict[str, Any], text: str, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print(text)


def _now() -> str:
    """The present time, or SOURCE_DATE_EPOCH for a report of the same bytes."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
