"""Commands about studies: sweep, report, plan, studies."""

import os
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab import __version__
from mtdlab.commands.options import AsJson, Jobs, JobsPerGpu, Overrides, Profile, Storage, StudyFile
from mtdlab.commands.printing import print_json, print_table
from mtdlab.errors import MtdlabError

if TYPE_CHECKING:
    from analysis.frames import StudyFrames
    from analysis.report import MultiStudyReport, Report

_LONGEST_NAME = 80


def sweep(
    file: StudyFile,
    storage: Storage = None,
    jobs: Jobs = None,
    jobs_per_gpu: JobsPerGpu = 1,
    models: Annotated[
        Path, typer.Option(help="Folder in which the best trial's model is kept.")
    ] = Path("models"),
    profile: Profile = None,
    set_: Overrides = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed trials again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a study to what its file says. Run it again to go on, or twice to share the work."""
    from mtdlab.config import read_study
    from mtdlab.store.database import shown, storage_url
    from mtdlab.sweep.finished import clock
    from mtdlab.sweep.run import sweep as run

    spec = read_study(file, set_ or [], profile)
    url = storage_url(storage)
    command = shlex.join(["mtdlab", *sys.argv[1:]])
    result = run(
        spec,
        url,
        models=models,
        jobs=jobs,
        jobs_per_gpu=jobs_per_gpu,
        retry_failed=retry_failed,
        command=command,
    )
    done = result.counts.get("COMPLETE", 0)
    if as_json:
        print_json(
            {
                "study": result.study,
                "storage": shown(url),
                "planned": result.planned,
                "ran": result.ran,
                "seconds": round(result.seconds, 1),
                "trials": {state.lower(): n for state, n in result.counts.items()},
            }
        )
    else:
        others = [
            f"{count} {state.lower()}"
            for state, count in result.counts.items()
            if state != "COMPLETE"
        ]
        whole = "complete: " if done == result.planned else ""
        print(
            f"study {result.study} in {shown(url)} is {whole}{done} of {result.planned} trials "
            + (f"done ({', '.join(others)})" if others else "done")
            + f"; {result.ran} run now in {clock(result.seconds)}"
        )
    raise typer.Exit(result.exit_code)


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
        typer.Option(help="Of the page over several studies. Default: their names, joined by +."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write a study's page, figures and tables, whether it is complete or still running."""
    from analysis.report import write_report

    names = list(dict.fromkeys(study))
    if len(names) == 1 and name is None:
        frames = _load(names[0], storage)
        written = write_report(frames, out / names[0], generated=_now(), version=__version__)
        _say(_described(written), f"{written.verdict.sentence}\nThe page: {written.page}", as_json)
    else:
        _report_together(names, storage, out, name, as_json)


def _load(study: str, storage: str | None) -> "StudyFrames":
    """A study's frames, with the curves only where its page reads them."""
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
    pages = {each: _described(own) for each, own in written.pages.items()}
    lines = [f"{each}: {own.verdict.sentence}" for each, own in written.pages.items()]
    text = "\n".join([*lines, f"The page: {written.page}"])
    _say(_files(written) | {"pages": pages}, text, as_json)


def _page_name(names: list[str], name: str | None) -> str:
    """The folder of a page over several studies: as asked, or from their names."""
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


def _described(written: "Report") -> dict[str, Any]:
    return _files(written) | {"verdict": written.verdict.sentence}


def _files(written: "Report | MultiStudyReport") -> dict[str, Any]:
    return {
        "page": str(written.page),
        "figures": [str(path) for path in written.figures],
        "tables": [str(path) for path in written.tables],
    }


def _say(found: dict[str, Any], text: str, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print(text)


def plan(
    file: StudyFile,
    profile: Profile = None,
    set_: Overrides = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="Time a few steps, to say what the study costs here."
        ),
    ] = True,
    jobs: Jobs = None,
    jobs_per_gpu: JobsPerGpu = 1,
    as_json: AsJson = False,
) -> None:
    """Show a study's settings and their MTD, and what running it would cost here."""
    from mtdlab.commands.costs import cost_lines, costs
    from mtdlab.config import read_study
    from mtdlab.config.plan import planned

    spec = read_study(file, set_ or [], profile)
    rows = planned(spec)
    trials = len(spec.units())
    if as_json:
        found = {"estimate": costs(spec, jobs, jobs_per_gpu)} if measure else {}
        print_json({"study": spec.name, "trials": trials, "settings": rows} | found)
        return
    if rows:
        print_table(rows)
    seeds = f"{len(spec.seeds)} seed{'s' if len(spec.seeds) > 1 else ''}"
    what = f"{len(rows)} settings" if rows else f"{spec.trials} settings drawn by {spec.sampler}"
    print(f"study {spec.name}: {what} x {seeds} = {trials} trials", flush=True)
    if measure:
        print("\n".join(cost_lines(costs(spec, jobs, jobs_per_gpu))))


def studies(storage: Storage = None, as_json: AsJson = False) -> None:
    """List the studies of a database."""
    from mtdlab.store import list_studies

    rows = list_studies(storage).to_dict("records")
    if as_json:
        print_json({"studies": rows})
    elif rows:
        print_table(rows)
    else:
        print("no study yet")


def _now() -> str:
    """The time of day, or SOURCE_DATE_EPOCH, for a report that can be made again to the byte."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
