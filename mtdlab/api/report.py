"""`mtdlab.load_study`: a study as frames; `mtdlab.report`: the page of one study or of several."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from mtdlab import __version__
from mtdlab.analysis.data.defaults import TABLE_SUFFIXES, Direction, Reading, Scale
from mtdlab.errors import MtdlabError, naming_missing, refusing

if TYPE_CHECKING:
    from pandas import DataFrame

    from mtdlab.analysis.data.block_tables import BlockScores
    from mtdlab.analysis.data.frames import StudyFrames
    from mtdlab.analysis.inference.level_means import LevelMeans
    from mtdlab.analysis.notebook import Study
    from mtdlab.analysis.report import MultiStudyReport, Report

_LONGEST_NAME = 80
_ORIGIN = re.compile(r'<meta name="origin" content="(\w+)">')


def load_study(study: str, storage: str | Path | None = None, *, curves: bool = True) -> "Study":
    """A study's trials, curves, spectra and scores as frames, complete or still running.

    Args:
        storage: a database URL or a SQLite file; by default MTDLAB_STORAGE, then OPTUNA_STORAGE,
            then mtdlab.db in the working folder.
        curves: False leaves that frame, the largest one, empty.

    Raises StorageError if there is no such database, NothingToReport if it has no such study.
    """
    from mtdlab.analysis.notebook import Study
    from mtdlab.store.frames import load_frames

    return Study.of(load_frames(study, storage, curves=curves))


@overload
def report(
    study: "str | Path | StudyFrames | DataFrame",
    *,
    storage: str | Path | None = None,
    out: str | Path = "reports",
    name: str | None = None,
    generated: str | None = None,
    score: str = "",
    columns: Mapping[str, str] | None = None,
    settings: Sequence[str] = (),
    scale: Scale | None = None,
    direction: Direction | None = None,
    margin: float | None = None,
    block: str = "",
) -> "Report": ...


@overload
def report(
    study: "list[str | StudyFrames]",
    *,
    storage: str | Path | None = None,
    out: str | Path = "reports",
    name: str | None = None,
    generated: str | None = None,
    transfer: bool = False,
) -> "MultiStudyReport": ...


@naming_missing()
def report(
    study: "str | Path | StudyFrames | DataFrame | list[str | StudyFrames]",
    *,
    storage: str | Path | None = None,
    out: str | Path = "reports",
    name: str | None = None,
    generated: str | None = None,
    transfer: bool = False,
    score: str = "",
    columns: Mapping[str, str] | None = None,
    settings: Sequence[str] = (),
    scale: Scale | None = None,
    direction: Direction | None = None,
    margin: float | None = None,
    block: str = "",
) -> "Report | MultiStudyReport":
    """Write the page of a study, or of a list of studies one over all, as `mtdlab report`.

    Args:
        study: names in the database, what `load_study` or `mtdlab.analysis.read_run_table`
            returned, or runs made elsewhere: a DataFrame with a row for each, or a CSV, TSV,
            Parquet or JSON file, which a name that ends in .csv, .tsv, .parquet, .pq or .json is.
            The Path of MTEB's folder of results ranks models over its tasks.
        name: the folder of the page in `out`; by default the names joined by +.
        generated: when it is made, as printed; by default SOURCE_DATE_EPOCH, then now. The same
            text gives the same bytes.
        transfer: whether to compare the answer of the first study of a list with the others'.
        score, columns, settings, scale, direction, margin: of runs made elsewhere, as for
            `mtdlab.analysis.read_run_table`.
        block: of such a table: the column, as task, over whose values its models are ranked.

    Raises:
        NothingToReport: for a study that is missing.
        MtdlabError: for a name that a folder cannot have, for what describes a table where a
            study is given, and for a DataFrame or a file that is no table of runs.
        ValueError: for runs whose scores two versions of an evaluator gave.
        OSError: where `out` cannot be written.
    """
    from pandas import DataFrame

    from mtdlab.analysis.data.cells import TableError
    from mtdlab.analysis.notebook import open_blocks, read_run_table
    from mtdlab.analysis.report import write_multi_study, write_report
    from mtdlab.analysis.report.ranking import write_ranking

    made = generated or now()
    if isinstance(study, str) and (block or Path(study).suffix in TABLE_SUFFIXES):
        study = Path(study)
    described: dict[str, Any] = {"score": score, "columns": columns, "settings": settings}
    described |= {"scale": scale, "direction": direction, "margin": margin}
    if isinstance(study, DataFrame | Path):
        check_name(name)
        with refusing(TableError):
            if block or (isinstance(study, Path) and study.is_dir()):
                reading = Reading(**described | {"columns": columns or {}, "block": block})
                ranked = open_blocks(study, reading)
                folder = Path(out) / (name or ranked.name)
                refuse_other_page(folder, ranked)
                return write_ranking(ranked, folder, generated=made, version=__version__)
            study = read_run_table(study, **described, name=name or "")
    elif block or any(described.values()):
        raise MtdlabError(
            f"{', '.join(described)} and block describe runs made elsewhere; give them with a "
            f"DataFrame, or with a file that ends in one of {', '.join(TABLE_SUFFIXES)}"
        )
    several = study if isinstance(study, list) else [study]
    frames = [load_named(given, storage) if isinstance(given, str) else given for given in several]
    for each in frames:
        refuse_other_page(Path(out) / (name if name and len(frames) == 1 else each.name), each)
    if not isinstance(study, list):
        check_name(name)
        folder = Path(out) / (name or frames[0].name)
        return write_report(frames[0], folder, generated=made, version=__version__)
    return write_multi_study(
        frames,
        Path(out),
        name=page_name([loaded.name for loaded in frames], name),
        generated=made,
        version=__version__,
        transfer=transfer,
    )


def refuse_other_page(folder: Path, data: "StudyFrames | BlockScores | LevelMeans") -> None:
    """Raise MtdlabError where a page would replace one that is not known to be of the same data.

    The page of a table tells where that lies, and is replaced by the page of the same place, or of
    runs of which one is in both. That of a study is replaced where one of the trials that were
    complete then is one of this study, by number, seed and duration.
    """
    from mtdlab.analysis.data.frames import StudyFrames

    page = folder / "index.html"
    if not page.is_file():
        return
    found = _ORIGIN.search(page.read_text(encoding="utf-8", errors="replace"))
    origin = found[1] if found else ""
    if origin == data.origin and (origin or not isinstance(data, StudyFrames)):
        return
    shares = _shares_run(folder, data) if isinstance(data, StudyFrames) else None
    if data.origin:
        if not shares:
            raise MtdlabError(
                f"{folder} holds a page that is not known to be of this table; name this one with "
                "--name, or move that page away"
            )
    elif origin or shares is False:
        raise MtdlabError(
            f"{folder} is the page of another study {data.name}, none of whose trials is in this "
            "one; name another folder with --out, or move it away"
        )


def _shares_run(folder: Path, study: "StudyFrames") -> bool | None:
    """Whether the data of a page have a complete run of this study; None where they have none.

    Runs of a table are the same by settings, seed and score.
    """
    try:
        # imported here: the light install has no pyarrow
        from mtdlab.analysis.data.stored_frames import MAIN, read_stored_trials

        before, settings = read_stored_trials(folder / "data" / MAIN)
    except (ImportError, OSError, ValueError, LookupError, TypeError):
        return None
    if study.table and {*settings} != {*study.settings}:
        return False
    told = ["seed", "score"] if study.table else ["number", "seed", "wall_seconds"]
    done = before[before["state"] == "COMPLETE"].dropna(subset=told)
    if not len(done):
        return None
    told += settings if study.table else []
    runs, known = (trials[told].astype("str") for trials in (study.trials, done))
    return not runs.merge(known, on=told).empty


def load_named(
    study: str, storage: str | Path | None, *, references: bool = False
) -> "StudyFrames":
    """The frames of a named study, with all curves only where its page needs them.

    A complete study without reference scores gets them; `references`: all, whatever they take.
    """
    from mtdlab.analysis.experiments import needs_curves
    from mtdlab.analysis.statistics.training import choose_curves
    from mtdlab.store.frames import load_frames
    from mtdlab.store.urls import storage_url
    from mtdlab.trial.references import add_references

    with nullcontext() if references else suppress(MtdlabError):
        add_references(storage_url(storage), study, requested=references)
    frames = load_frames(
        study,
        storage,
        curves=lambda trials, settings: needs_curves(trials, settings) or choose_curves(trials),
    )
    check_name(frames.name, what="study")
    return frames


def check_name(name: str | None, *, what: str = "--name", several: bool = False) -> None:
    """Raise MtdlabError for a name that no folder can have; over several studies it may have +."""
    from mtdlab.settings.messages import is_study_name

    if name is not None and not is_study_name(name.replace("+", "-") if several else name):
        raise MtdlabError(
            f"{what} {name!r}: not a name that a folder can have; use letters, digits, dots and "
            f"dashes{', and + between studies' if several else ''}, at most 100"
        )


def page_name(names: list[str], name: str | None) -> str:
    """The folder of a page over several studies: `name`, or made from their names."""
    if name is None:
        joined = "+".join(names)
        short = len(joined) <= _LONGEST_NAME
        return joined if short else f"{names[0]}+{len(names) - 1}-others"
    check_name(name, several=True)
    if name in names:
        raise MtdlabError(f"--name {name}: that is the folder of the study's own page")
    return name


def now() -> str:
    """The present time, or SOURCE_DATE_EPOCH for a report of the same bytes."""
    return (source_date() or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")


def source_date() -> datetime | None:
    """The time of SOURCE_DATE_EPOCH, which a reproducible build states in place of the present one.

    None where it is not set. Raises MtdlabError where it is no time. Every command checks it: NumPy
    reads it too when it is imported, as a whole number of seconds.
    """
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given is None:
        return None
    try:
        return datetime.fromtimestamp(int(given), UTC)
    except (ValueError, OverflowError, OSError):
        raise MtdlabError(
            f"SOURCE_DATE_EPOCH is {given!r}; give whole seconds since 1970, such as 1700000000"
        ) from None
