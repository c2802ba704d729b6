"""The command decide: keep or drop a change, or run more seeds."""

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtdlab.analysis.data.reading import TABLE_SUFFIXES, Reading, Scale
from mtdlab.commands import options as opt
from mtdlab.commands.printing import count_noun, print_json, wrap_text
from mtdlab.commands.report import Table, parse_columns
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.analysis.inference.decide import Decision

EXIT_CODES = {"keep": 0, "equivalent": 10, "drop": 10, "more seeds": 11}


def decide(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|STUDY",
            autocompletion=opt.complete_study,
            help="CSV, Parquet or JSON file of runs made elsewhere, or the name of a study.",
        ),
    ],
    candidate: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Settings of the configuration with the change, or its value in a column "
            "configuration, name or method.",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="The configuration that it is compared with. Default: the study's baseline.",
        ),
    ] = None,
    margin: Annotated[
        float | None,
        typer.Option(
            metavar="POINTS",
            help="A difference of fewer points (score x 100) counts as none. Default: the study's, "
            "0.5 for a file.",
        ),
    ] = None,
    session: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that keeps the looks and the candidates, so that 5 % holds for all of them.",
        ),
    ] = None,
    score: Annotated[
        str,
        typer.Option(
            metavar="COLUMN", help="Of a file: the column with the score. Default: found by name."
        ),
    ] = "",
    column: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=COLUMN", help="Of a file: as for mtdlab report."),
    ] = None,
    scale: Annotated[
        Scale | None, typer.Option(help="Of a file: whether scores are from -1 to 1, or x 100.")
    ] = None,
    storage: opt.Storage = None,
    as_json: opt.AsJson = False,
) -> None:
    """Keep or drop a change, or run more seeds: a candidate less its baseline, seed by seed.

    keep: the interval of the difference lies above 0. equivalent: it lies within the margin. drop:
    it lies below the margin. Exit code 0 to keep, 10 for equivalent or drop, 11 for more seeds.

    After every seed: mtdlab decide runs.csv --baseline lr=0.1 --candidate lr=0.2 --session s.json
    """
    from mtdlab.analysis.inference.decide import decide as find_decision
    from mtdlab.store.frames import load_frames

    is_file = Path(source).suffix in TABLE_SUFFIXES
    reading = Reading(score, parse_columns(column or []), scale=scale)
    table = Table(Path(source) if is_file else None, reading)
    if not is_file and table != Table(None):
        raise MtdlabError(
            f"--score, --column and --scale describe a file; {source!r} is the name of a study, "
            "since it ends neither in .csv nor in .parquet or .json"
        )
    runs = table.read(None) if is_file else [load_frames(source, storage, curves=False)]
    if not isinstance(runs, list):
        raise MtdlabError(f"{source} has level means; the runs of single seeds are needed")
    [study] = runs
    try:
        decision = find_decision(
            study, candidate, baseline=baseline, margin=margin, session=session
        )
    except ValueError as error:
        raise MtdlabError(str(error)) from None
    except OSError as error:
        raise MtdlabError(
            f"--session {session}: {(error.strerror or str(error)).lower()}"
        ) from None
    if as_json:
        names = {"study": study.name, "metric": study.metric}
        print_json(names | dataclasses.asdict(decision))
    else:
        print_text("\n".join(map(wrap_text, _sentences(decision))))
    raise typer.Exit(EXIT_CODES[decision.answer])


def _sentences(decision: "Decision") -> Iterator[str]:
    """The answer with the difference, what its bounds hold for, and what is left out or to do."""
    difference, margin = decision.difference, f"the margin of {decision.margin:g} points"
    meaning = {
        "keep": "the interval lies above 0",
        "equivalent": f"the interval lies within {margin}",
        "drop": f"the interval lies below {margin}",
        "more seeds": "the interval does not decide",
    }
    interval = f"{difference.low:.2f} to {difference.high:.2f}"
    if math.isnan(difference.low):
        interval = "no interval, since all seeds differ by the same"
    seeds = count_noun(len(decision.shared), "common seed")
    yield (
        f"{decision.answer}: {decision.candidate} less {decision.baseline} is "
        f"{difference.mean:+.2f} points ({interval}; {seeds}); {meaning[decision.answer]}."
    )
    if decision.more_seeds:
        yield (
            f"{count_noun(decision.more_seeds, 'more seed')} would decide with 80 % power, if all "
            "is as estimated."
        )
    elif decision.answer == "more seeds":
        yield "No number of seeds up to 512 would decide, or the study plans no further look."
    bounds = f"Each end of the interval is a one-sided bound of {100 * (1 - decision.alpha):g} %"
    if decision.looks:
        bounds += f", over all looks at this candidate ({len(decision.looks)} so far)"
    else:
        bounds += ", for this look alone; --session FILE makes it hold over all looks"
    if decision.candidates:
        bounds += f", the lower one over all candidates together ({decision.candidates} so far)"
    yield f"{bounds}."
    if decision.left_out:
        yield (
            f"Left out: {count_noun(len(decision.left_out), 'seed')} with which one of the two has "
            f"no score ({', '.join(map(str, decision.left_out[:10]))})."
        )
