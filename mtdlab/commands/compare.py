"""The command compare, for two trials of a study or two studies."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.commands import options as opt
from mtdlab.commands.printing import format_value, print_json, print_table, wrap_text
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from pandas import DataFrame

    from mtdlab.analysis.data.frames import StudyFrames
    from mtdlab.analysis.statistics.contrasts import Contrast


def compare(
    study: opt.StudyName,
    first: Annotated[
        str,
        typer.Argument(
            metavar="STUDY|TRIAL",
            autocompletion=opt.complete_study,
            help="Another study, or the number of a trial of STUDY.",
        ),
    ],
    second: Annotated[
        int | None,
        typer.Argument(
            metavar="TRIAL", min=0, help="The number of the trial that it is compared with."
        ),
    ] = None,
    storage: opt.Storage = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare two studies, or the configurations of two trials, over the seeds that both have.

    The difference is paired over these seeds and has a 95 % confidence interval.

    Two studies: mtdlab compare mtd mtd-equation-3

    Two trials of a study: mtdlab compare mtd 16 3
    """
    from mtdlab.analysis.statistics.contrasts import compare_studies, compare_trials
    from mtdlab.store.frames import load_frames
    from mtdlab.store.names import study_names
    from mtdlab.store.recorded import read_trial
    from mtdlab.store.urls import storage_url

    frames = load_frames(study, storage, curves=False)
    problem = ""
    if second is not None and not first.isdecimal():
        problem = "none"
    elif second is None and first.isdecimal() and first not in study_names(storage):
        problem = "one"
    if problem:
        raise MtdlabError(
            "compare STUDY TRIAL TRIAL needs the numbers of two trials; "
            f"{first!r} is {problem}. Two studies are compared by compare STUDY STUDY"
        )
    try:
        if second is None:
            other = load_frames(first, storage, curves=False)
            contrast, names = compare_studies(frames, other), (study, first)
        else:
            numbers = (int(first), second)
            for number in numbers:
                # raises the error that other commands raise for a trial that is not there
                read_trial(storage_url(storage), study, number)
            contrast = compare_trials(frames, *numbers)
            names = (f"trial {numbers[0]}", f"trial {numbers[1]}")
    except ValueError as error:
        raise MtdlabError(str(error)) from None
    if as_json:
        print_json(_fields(frames, contrast, names))
    else:
        _print(frames, contrast, names)


def _print(study: "StudyFrames", contrast: "Contrast", names: tuple[str, str]) -> None:
    write = study.score_format
    unit = "in points" if write.unit else f"in its own unit; {write.say('higher')} is better"
    print_text(f"{names[0]} and {names[1]}: {write.name}, {unit}")
    differing = [
        {"setting": name, **dict(zip(names, map(format_value, values), strict=True))}
        for name, values in contrast.settings.items()
    ]
    print_text("\nsettings that differ" if differing else "\nno setting differs")
    if differing:
        print_table(differing)
    if len(contrast.table):
        counted = "configuration" if "low" in contrast.table else "seed"
        print_text(f"\nscores by {counted}")
        columns = {"first": names[0], "second": names[1], "low": "95 % CI", "high": ""}
        print_table(_scores(study, contrast).rename(columns=columns).to_dict("records"))
    print_text(f"\n{wrap_text(_sentence(contrast, names, write))}")


def _scores(study: "StudyFrames", contrast: "Contrast") -> "DataFrame":
    """The scores of both, and their differences, as they were read."""
    return study.score_format.frame(contrast.table, "first", "second")


def _sentence(contrast: "Contrast", names: tuple[str, str], write: ScoreFormat) -> str:
    what = contrast.difference
    if not contrast.seeds:
        return "No configuration was run with the same seed in both, so nothing can be compared."
    pair = f"{names[0]} less {names[1]}: {write.with_unit(write.difference(what.mean))}"
    seeds = format_count(contrast.seeds, "shared seed")
    if "low" in contrast.table:
        seeds += f", {format_count(contrast.configurations, 'shared configuration')}"
    if contrast.seeds < 2:
        return f"{pair} ({seeds}: no confidence interval)."
    note = (
        "The intervals of single configurations are not adjusted for their number."
        if "low" in contrast.table
        else "It is not adjusted for choosing this pair by its scores: mtdlab confirm measures the "
        "best configuration again, with fresh seeds."
    )
    return f"{pair} (95 % CI {write.interval(what.low, what.high)}; paired over {seeds}). {note}"


def _fields(study: "StudyFrames", contrast: "Contrast", names: tuple[str, str]) -> dict[str, Any]:
    """The comparison as it is printed with --json: first less second."""
    return {
        "study": study.name,
        "first": names[0],
        "second": names[1],
        "metric": study.score_format.name,
        "settings": {name: list(values) for name, values in contrast.settings.items()},
        "shared_seeds": contrast.seeds,
        "shared_configurations": contrast.configurations,
        "difference": vars(contrast.difference.as_read(study.score_format)),
        "scores": _scores(study, contrast).to_dict("records"),
    }
