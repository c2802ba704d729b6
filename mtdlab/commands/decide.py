"""The command decide: keep or drop a change, or run more seeds."""

import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtdlab.analysis.data.defaults import TABLE_SUFFIXES, Reading
from mtdlab.analysis.data.durations import format_count, list_first
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.commands import options as opt
from mtdlab.commands.printing import MOST_NAMED, print_json, wrap_text
from mtdlab.commands.report import parse_columns
from mtdlab.errors import MtdlabError, refusing
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.analysis.inference.decide import Decision

ANSWERS = {
    "keep": (0, "lies above 0"),
    "equivalent": (10, "lies within the margin"),
    "drop": (10, "lies below the margin"),
    "more seeds": (11, "does not decide"),
    "failures": (12, "would decide, but more runs of the side that it favours have failed"),
}
"""The exit code of an answer, and what the interval does."""
_REPAIR = (
    "Repair what fails and run those seeds again, or state with --failed-score what a failed run "
    "counts."
)


def decide(
    source: Annotated[
        str,
        typer.Argument(
            metavar="FILE|STUDY",
            autocompletion=opt.complete_study,
            help="CSV, TSV, Parquet or JSON file of runs made elsewhere, or the name of a study.",
        ),
    ],
    candidate: Annotated[
        str,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="Settings of the configuration with the change, its value in a column "
            "configuration, name, method or commit, or baseline for the study's own.",
        ),
    ],
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="KEY=VALUE,...",
            help="The configuration that it is compared with. Default: the study's baseline.",
        ),
    ] = None,
    margin: opt.Margin = None,
    session: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="File that keeps the looks and the candidates, so that 5 % holds for all of them.",
        ),
    ] = None,
    failed_score: Annotated[
        float | None,
        typer.Option(
            metavar="SCORE",
            help="What a run counts that failed or was pruned, such as the score of guessing, "
            "in points (score x 100) or the score's own unit. Default: its seed is left out.",
        ),
    ] = None,
    score: opt.Score = "",
    column: opt.Column = None,
    setting: opt.Setting = None,
    scale: opt.ScoreScale = None,
    direction: opt.ScoreDirection = None,
    storage: opt.Storage = None,
    as_json: opt.AsJson = False,
) -> None:
    """Keep or drop a change, or run more seeds: a candidate minus its baseline, seed by seed.

    keep: the interval of the difference lies above 0. equivalent: it lies within the margin. drop:
    it lies below the margin. failures: one of these, but more runs of the side that it favours have
    failed, or all runs of one side. Exit code 0 to keep, 10 for equivalent or drop, 11 for more
    seeds, 12 for failures.

    After every seed: mtdlab decide runs.csv --baseline lr=0.1 --candidate lr=0.2 --session s.json
    """
    from mtdlab.analysis.data.frames import StudyFrames
    from mtdlab.analysis.inference.decide import decide as find_decision
    from mtdlab.analysis.inference.looks import planned_looks
    from mtdlab.analysis.inference.session import find_session_scale
    from mtdlab.analysis.notebook import open_table
    from mtdlab.store.frames import load_frames

    columns, settings = parse_columns(column or []), tuple(setting or [])
    reading = Reading(score, columns, settings, scale, direction)
    is_file, named = source.endswith(TABLE_SUFFIXES), (candidate, baseline or "")
    if not is_file and reading != Reading():
        raise MtdlabError(
            "--score, --column, --setting, --scale and --direction describe a file; "
            f"{source!r} is the name of a study, since it ends in none of "
            f"{', '.join(TABLE_SUFFIXES)}"
        )
    with refusing(OSError, what=f"--session {session}"), refusing(ValueError):
        if session and scale is None:
            reading = replace(reading, scale=find_session_scale(session))
        study = (
            open_table(Path(source), replace(reading, margin=margin, configurations=named))
            if is_file
            else load_frames(source, storage, curves=False)
        )
        if not isinstance(study, StudyFrames):
            raise MtdlabError(f"{source} has level means; the runs of single seeds are needed")
        found = find_decision(
            study,
            candidate,
            baseline=baseline,
            margin=margin,
            session=session,
            failed_score=failed_score,
        )
    if as_json:
        told = ("score", "repeated") if is_file else ()
        of_table = {name: study.table.get(name) for name in told}
        fields = {"study": study.name, "metric": study.score_format.name, **of_table}
        print_json(fields | asdict(found))
    else:
        write = replace(study.score_format, margin=found.margin)
        texts = [*_sentences(found, write, plans_looks=bool(planned_looks(study)))]
        if "score" in study.table:
            texts.append(f"Score: {study.table['score']}")
        texts += [study.table["repeated"]] if "repeated" in study.table else []
        print_text("\n".join(map(wrap_text, texts)))
    raise typer.Exit(ANSWERS[found.answer][0])


def _sentences(decision: "Decision", write: ScoreFormat, *, plans_looks: bool) -> Iterator[str]:
    """The answer with the difference, what its bounds hold for, and what is left out or to do."""
    difference = decision.difference
    if len(decision.shared) < 2:
        yield from _untested_sentences(decision, write)
        return
    size = write.with_unit(write.unsigned.difference(difference.mean))
    interval = write.unsigned.interval(difference.low, difference.high)
    if math.isnan(difference.low):
        interval = "no interval, since all seeds differ by the same"
    yield (
        f"{decision.answer}: {decision.candidate} minus {decision.baseline} is "
        f"{size} ({interval}; {len(decision.shared)} common seeds; margin {write.stated_margin}); "
        f"the interval {write.say(ANSWERS[decision.answer][1])}."
    )
    if decision.answer == "failures":
        yield _REPAIR
    if decision.more_seeds:
        more = format_count(decision.more_seeds, "more seed")
        yield f"{more} would decide with 80 % power, if all is as estimated."
    elif decision.answer == "more seeds":
        yield _say_why_none(is_equal=math.isnan(difference.low), plans_looks=plans_looks)
    scope = "this look alone; --session FILE makes it hold over all looks"
    if decision.looks:
        scope = f"all looks at this candidate ({len(decision.looks)} so far)"
    if decision.candidates:
        bound = f"the {write.say('lower')} one"
        scope += f", {bound} for all candidates together ({decision.candidates} so far)"
    bound = f"a one-sided bound of {100 * (1 - decision.alpha):g} %"
    yield f"Each end of the interval is {bound} for {scope}."
    if decision.failures:
        yield f"{decision.failures}."
    if decision.failures and decision.failed_score is not None:
        yield f"A run that failed counts {write.with_unit(f'{decision.failed_score:g}')}."
    yield from _missing_sentences(decision)


def _say_why_none(*, is_equal: bool, plans_looks: bool) -> str:
    """Why it is not known how many more seeds would decide."""
    if is_equal:
        return (
            "How many seeds would decide is not known, since equal differences have no scatter: "
            "add seeds, and record scores with more digits if they are rounded."
        )
    if plans_looks:
        return "The study plans no further look."
    return "No number of seeds up to 512 would decide with 80 % power, if all is as estimated."


def _missing_sentences(decision: "Decision") -> Iterator[str]:
    """Which seeds are left out, and whose score they lack."""
    names = decision.candidate, decision.baseline
    for name, seeds in zip(names, decision.left_out, strict=True):
        if seeds:
            count, listed = format_count(len(seeds), "seed"), list_first(seeds, MOST_NAMED)
            yield f"Left out: {count} without a score of {name} ({listed})."


def _untested_sentences(decision: "Decision", write: ScoreFormat) -> Iterator[str]:
    """What is known with fewer than two common seeds, and what to run."""
    if decision.answer == "failures":
        yield f"failures: {decision.failures}; nothing is tested."
        yield _REPAIR
        return
    count = len(decision.shared)
    why = "no seeds were recorded"
    if count or any(decision.left_out):
        why = f"they have {format_count(count, 'common seed')} with scores"
    size = write.with_unit(f"{decision.difference.mean:+.4g}")
    yield (
        f"{decision.answer}: {decision.candidate} minus {decision.baseline} is {size}; nothing is "
        f"tested, since {why}."
    )
    yield from _missing_sentences(decision)
    if decision.failures:
        yield f"{decision.failures}."
    yield (
        "Next: run both with the same seeds, 3 or more, a row for each run with its seed in a "
        "column seed."
    )
