"""The command report."""

import math
import os
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab import __version__
from mtdlab.commands.options import AsJson, Storage
from mtdlab.commands.printing import print_json
from mtdlab.errors import MtdlabError

if TYPE_CHECKING:
    from analysis.frames import StudyFrames
    from analysis.report import MultiStudyReport, Report

_LONGEST_NAME = 80


def report(
    study: Annotated[
        list[str], typer.Option(help="Name of the study. Repeat it to read several together.")
    ],
    storage: Storage = None,
    out: Annotated[Path, typer.Option(help="Folder; the page goes into one of its own.")] = Path(
        "reports"
    ),
    name: Annotated[
        str | None,
        typer.Option(help="Name of the page over several studies. Default: theirs, joined by +."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the page, figures and tables of a study, complete or still running."""
    from analysis.report import write_report

    names = list(dict.fromkeys(study))
    if len(names) == 1 and name is None:
        frames = _load(names[0], storage)
        written = write_report(frames, out / names[0], generated=_now(), version=__version__)
        text = f"{written.summary[0]}\nThe page: {written.page}"
        _print(_described(written, frames), text, as_json)
    else:
        _report_together(names, storage, out, name, as_json)


def _load(study: str, storage: str | None) -> "StudyFrames":
    """A study's frames, with the curves only where its page needs them."""
    from analysis.experiments import needs_curves
    from mtdlab.config.study import is_study_name
    from mtdlab.store import load_study

    frames = load_study(study, storage, curves=False)
    if not is_study_name(frames.name):
        raise MtdlabError(f"study {frames.name!r}: not a name that a folder can have")
    return load_study(study, storage) if needs_curves(frames.trials, frames.settings) else frames


def _report_together(
    names: list[str], storage: str | None, out: Path, name: str | None, as_json: bool
) -> None:
    from analysis.report import write_multi_study

    folder = _page_name(names, name)
    studies = [_load(each, storage) for each in names]
    written = write_multi_study(studies, out, name=folder, generated=_now(), version=__version__)
    pages = {
        frames.name: _described(own, frames)
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


def _described(written: "Report", study: "StudyFrames") -> dict[str, Any]:
    return _files(written) | {"verdict": written.verdict.sentence} | _ranking(study)


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
    known = {name: value if math.isfinite(value) else None for name, value in numbers.items()}
    return names | {"best": {"trial": best.number} | known}


def _files(written: "Report | MultiStudyReport") -> dict[str, Any]:
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
