"""What the command report reads: studies of a database, tables, stored frames, published means."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from mtdlab.commands.source_date import source_date
from mtdlab.errors import MtdlabError

if TYPE_CHECKING:
    from pandas import DataFrame

    from analysis.frames import Settings, StudyFrames
    from analysis.level_means import LevelMeans

_LONGEST_NAME = 80


def check_name(name: str | None) -> None:
    """Raise MtdlabError for a name of a page that a folder cannot have."""
    from mtdlab.config.study import is_study_name

    if name is not None and not is_study_name(name):
        raise MtdlabError(
            f"--name {name!r}: not a name that a folder can have; use letters, digits, dots and "
            "dashes, at most 100"
        )


def open_run_table(
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


def load_published(name: str) -> "LevelMeans":
    from analysis.level_means import load_published_means

    try:
        return load_published_means(name)
    except ValueError as error:
        raise MtdlabError(f"--published: {error}") from None


def load_named(study: str, storage: str | None) -> "StudyFrames":
    """A study's frames, with all curves only where its page needs them."""
    from analysis.experiments import needs_curves
    from analysis.training import choose_curves
    from mtdlab.config.study import is_study_name
    from mtdlab.store import load_study

    def needed(trials: "DataFrame", settings: "Settings") -> "bool | Collection[int]":
        return needs_curves(trials, settings) or choose_curves(trials)

    frames = load_study(study, storage, curves=needed)
    if not is_study_name(frames.name):
        raise MtdlabError(f"study {frames.name!r}: not a name that a folder can have")
    return frames


def page_name(names: list[str], name: str | None) -> str:
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


def load_stored(path: Path) -> "tuple[StudyFrames, str]":
    """A study from the data beside its page, and when that page was made."""
    from analysis.stored_frames import StoredFramesError, from_parquet

    try:
        study, generated = from_parquet(path)
    except StoredFramesError as error:
        raise MtdlabError(f"--from {error}") from None
    check_name(study.name)
    return study, generated


def now() -> str:
    """The present time, or SOURCE_DATE_EPOCH for a report of the same bytes."""
    return (source_date() or datetime.now(UTC)).strftime("%Y-%m-%d %H:%M UTC")
