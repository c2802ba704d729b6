"""The commands: read arguments, call one function, print.

Everything heavy is imported inside the command that needs it, so that help answers at once.
"""

import json
import os
import shlex
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from mtdlab import __version__
from mtdlab.errors import MtdlabError, TrialError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Ask how much history a contrastive sentence encoder should trace: train it over a "
    "grid of EMA decays and queue sizes, and read the report.",
)

StudyFile = Annotated[Path, typer.Argument(help="A study file, such as studies/mtd.yaml.")]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Database URL or SQLite file. Default: MTDLAB_STORAGE, OPTUNA_STORAGE, mtdlab.db.",
        show_default=False,
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override the file: trainer.steps=50."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


@app.command()
def sweep(
    file: StudyFile,
    storage: Storage = None,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Worker processes. Default: one a core.", show_default=False),
    ] = None,
    models: Annotated[
        Path, typer.Option(help="Folder in which the best trial's model is kept.")
    ] = Path("models"),
    set_: Overrides = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed trials again.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring a study to what its file says. Run it again to go on, or twice to share the work."""
    from mtdlab.spec import read_study
    from mtdlab.store.database import shown, storage_url
    from mtdlab.sweep.ended import clock
    from mtdlab.sweep.run import sweep as run

    spec = read_study(file, set_ or [])
    url = storage_url(storage)
    command = shlex.join(["mtdlab", *sys.argv[1:]])
    result = run(
        spec, url, models=models, jobs=jobs, retry_failed=retry_failed, command=command
    )
    done = result.counts.get("COMPLETE", 0)
    if as_json:
        _print_json(
            {
                "study": result.study, "storage": shown(url), "planned": result.planned,
                "ran": result.ran, "seconds": round(result.seconds, 1),
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


@app.command()
def report(
    study: Annotated[str, typer.Option(help="Name of the study.")],
    storage: Storage = None,
    out: Annotated[Path, typer.Option(help="Folder; the page goes into one of its own.")] = Path(
        "reports"
    ),
    as_json: AsJson = False,
) -> None:
    """Write a study's page, figures and tables, whether it is complete or still running."""
    from analysis.report import write_report
    from mtdlab.spec.study import is_study_name
    from mtdlab.store import load_study

    frames = load_study(study, storage, curves=False)
    if not is_study_name(frames.name):
        raise MtdlabError(f"study {frames.name!r}: not a name that a folder can have")
    written = write_report(frames, out / study, generated=_now(), version=__version__)
    if as_json:
        _print_json(
            {
                "page": str(written.page),
                "figures": [str(path) for path in written.figures],
                "tables": [str(path) for path in written.tables],
                "verdict": written.verdict.sentence,
            }
        )
    else:
        print(f"{written.verdict.sentence}\nThe page: {written.page}")


@app.command()
def plan(
    file: StudyFile,
    set_: Overrides = None,
    as_json: AsJson = False,
) -> None:
    """Show the settings of a study and their MTD before anything runs."""
    from mtdlab.spec import read_study
    from mtdlab.spec.plan import planned

    spec = read_study(file, set_ or [])
    rows = planned(spec)
    trials = len(spec.units())
    if as_json:
        _print_json({"study": spec.name, "trials": trials, "settings": rows})
        return
    if rows:
        _print_table(rows)
    seeds = f"{len(spec.seeds)} seed{'s' if len(spec.seeds) > 1 else ''}"
    what = f"{len(rows)} settings" if rows else f"{spec.trials} settings drawn by {spec.sampler}"
    print(f"study {spec.name}: {what} x {seeds} = {trials} trials")


@app.command()
def train(
    file: Annotated[
        Path | None, typer.Argument(help="A study file whose trainer section to take.")
    ] = None,
    set_: Overrides = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder for the model, as SentenceTransformer opens it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Train one encoder and print its scores, without a study."""
    from mtdlab.spec import read_settings
    from mtdlab.sweep.single import run_once

    settings = read_settings(file, set_ or [])
    row = run_once(settings, out)
    if as_json:
        _print_json(row)
    else:
        _print_table([row])


@app.command()
def evaluate(
    model: Annotated[str, typer.Argument(help="builtin, a folder, or a Hugging Face name.")],
    tasks: Annotated[
        str | None,
        typer.Option(
            metavar="A,B,...", show_default=False,
            help="STS12 ... SICKR, MR ... MRPC, builtin; sts and transfer for whole tables. "
            "Default: all, or builtin without data.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder in SentEval's layout. Default: MTDLAB_DATA.", show_default=False
        ),
    ] = None,
    pooling: Annotated[str, typer.Option(help="cls, mean, first-last or last2.")] = "cls",
    whiten: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="K", show_default=False,
            help="Whiten by each task's own sentences, keep K dimensions.",
        ),
    ] = None,
    pairs: Annotated[
        Path | None,
        typer.Option(help="Tab-separated first, second, score: for alignment and uniformity."),
    ] = None,
    mteb: Annotated[Path | None, typer.Option(help="Folder for MTEB's tree of results.")] = None,
    as_json: AsJson = False,
) -> None:
    """Score an encoder on the tasks that papers report."""
    from mtdlab.evaluation.evaluate import evaluate as run
    from mtdlab.evaluation.progress import progress
    from mtdlab.evaluation.table import as_json as described
    from mtdlab.evaluation.table import as_text

    with progress() as advance:
        result = run(
            model, tasks=tasks, data=data, pooling=pooling, whiten=whiten, pairs=pairs,
            mteb=mteb, advance=advance,
        )
    if as_json:
        _print_json(described(result))
    else:
        print("\n".join(as_text(result)))
    raise typer.Exit(0 if result.complete else 1)


@app.command()
def studies(storage: Storage = None, as_json: AsJson = False) -> None:
    """List the studies of a database."""
    from mtdlab.store import list_studies

    rows = list_studies(storage).to_dict("records")
    if as_json:
        _print_json({"studies": rows})
    elif rows:
        _print_table(rows)
    else:
        print("no study yet")


@app.command()
def corpus(
    name: Annotated[
        str,
        typer.Argument(
            metavar="CORPUS",
            help="As a study names it: builtin, a text file, a folder of them, "
            "or dataset:NAME#COLUMN.",
        ),
    ],
    encoder: Annotated[str, typer.Option(help="Whose tokens to count.")] = "builtin",
    max_length: Annotated[int, typer.Option(min=3, help="Tokens that training keeps.")] = 32,
    as_json: AsJson = False,
) -> None:
    """Count what is in a corpus: sentences, what is left out and why, lengths in tokens."""
    from dataclasses import asdict

    from mtdlab.text.survey import survey

    found = asdict(survey(name, encoder, max_length))
    if as_json:
        _print_json(found)
        return
    bins = found.pop("histogram")
    for key, value in found.items():
        print(f"{key:11} {value:,}" if isinstance(value, int) else f"{key:11} {value}")
    print()
    _print_table(
        [
            {
                "tokens": f"{row['low']} to {row['high']}" if row["high"] else f"{row['low']} on",
                "sentences": row["sentences"],
                "%": 100 * row["sentences"] / found["sentences"],
            }
            for row in bins
        ]
    )
    share = 100 * found["too_long"] / found["sentences"]
    print(f"training cuts {share:.2f} % of the sentences, at {max_length} tokens")


def _now() -> str:
    """The time of day, or SOURCE_DATE_EPOCH, for a report that can be made again to the byte."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _print_json(value: dict[str, Any]) -> None:
    print(json.dumps(value, indent=2, allow_nan=False))


def _print_table(rows: list[dict[Any, Any]]) -> None:
    cells = [[_cell(value) for value in row.values()] for row in rows]
    header = list(rows[0])
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    for line in [header, *cells]:
        print("  ".join(text.rjust(width) for text, width in zip(line, widths, strict=True)))


def _cell(value: Any) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def main() -> None:
    """Run a command; a user's mistake is one sentence and an exit code, never a traceback."""
    try:
        app()
    except MtdlabError as error:
        print(f"mtdlab: {error}", file=sys.stderr)
        sys.exit(error.exit_code)
    except TrialError as error:
        print(f"mtdlab: the run failed: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
