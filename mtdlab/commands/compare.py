"""The command compare, for two trials of a study or two studies."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.commands import options as opt
from mtdlab.commands.printing import format_value, print_json, print_table, wrap_text
from mtdlab.errors import MtdlabError, refusing
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from pandas import DataFrame

    from mtdlab.analysis.data.frames import StudyFrames
    from mtdlab.analysis.statistics.contrasts import Contrast

_MOST_ITEMS = 10
_BASELINE = "baseline"
"""What names the study's own in place of a trial."""


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
        str | None,
        typer.Argument(
            metavar="TRIAL|baseline",
            help="The number of the trial that it is compared with, or the study's baseline.",
        ),
    ] = None,
    items: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CSV file to write with the difference on every item."),
    ] = None,
    storage: opt.Storage = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare two studies, or the configurations of two trials, over the seeds that both have.

    The difference is paired over these seeds and has a 95 % confidence interval. Listed are the
    evaluation items on which the two differ most, with their texts where these are on this machine.

    Two studies: mtdlab compare mtd mtd-equation-3

    Two trials of a study: mtdlab compare mtd 16 3, or with its baseline: compare mtd 16 baseline
    """
    from mtdlab.analysis.statistics.contrasts import compare_studies, compare_trials
    from mtdlab.store.frames import load_frames
    from mtdlab.store.recorded import read_trial, study_names
    from mtdlab.store.urls import storage_url

    frames = load_frames(study, storage, curves=False)
    words, problem = (first,) if second is None else (first, second), ""
    if wrong := [word for word in words if not (word.isdecimal() or word == _BASELINE)]:
        problem = "" if second is None else f"{wrong[0]!r} is none"
    elif second is None and first not in study_names(storage):
        problem = f"{first!r} is one"
    if problem:
        raise MtdlabError(
            "compare STUDY TRIAL TRIAL needs the numbers of two trials; "
            f"{problem}. Two studies are compared by compare STUDY STUDY"
        )
    with refusing(ValueError):
        if second is None:
            other = load_frames(first, storage, curves=False)
            contrast, names = compare_studies(frames, other), (study, first)
        else:
            one, two = (_find_number(frames, word) for word in words)
            for number in (one, two):
                # raises the error that other commands raise for a trial that is not there
                read_trial(storage_url(storage), study, number)
            contrast, names = compare_trials(frames, one, two), (f"trial {one}", f"trial {two}")
    if items and not len(contrast.items):
        raise MtdlabError("--items: the runs have recorded no items, or not the same ones")
    if items:
        with refusing(OSError, what=f"--items {items}: not written"):
            _items(frames, contrast).to_csv(items, index=False)
    if as_json:
        print_json(_fields(frames, contrast, names))
        return
    _print(frames, contrast, names)
    if len(contrast.items):
        _print_items(frames, contrast, names, _find_texts(frames, storage_url(storage)))


def _find_number(study: "StudyFrames", word: str) -> int:
    """The number of a trial, or of the baseline's first; MtdlabError where none is complete."""
    from mtdlab.analysis.data.runs import completed_runs

    if word != _BASELINE:
        return int(word)
    if study.baseline is None or not len(runs := completed_runs(study.baseline.trials)):
        raise MtdlabError(f"study {study.name} has no complete trial of a baseline")
    return int(runs["number"].min())


def _print_items(
    study: "StudyFrames", contrast: "Contrast", names: tuple[str, str], texts: list[tuple[str, ...]]
) -> None:
    """The items that differ most, with their texts where there are any, and how many flip."""
    what, items = f"mean {study.score_format.name}", contrast.items
    if "gold" in items:
        what = "distance of the ranks by encoder and by gold score, in % of the pairs"
    print_text(f"\n{wrap_text(f'items that differ most: {what}, of {names[0]} and {names[1]}')}")
    first = _items(study, contrast).head(_MOST_ITEMS)
    for at, row in zip(first.index.tolist(), first.to_dict("records"), strict=True):
        gold = f", gold {row['gold']:g}" if "gold" in items else ""
        text = f": {' | '.join(texts[at])}" if texts else ""
        means = f"{row['first']:.3g} and {row['second']:.3g}"
        print_text(wrap_text(f"{row['task']} {row['item']}{gold}: {means}{text}", "  "))
    if "flips" in items:
        flips = items[items["flips"]]
        won = int((flips["difference"] > 0).sum())
        print_text(
            wrap_text(
                f"{len(flips):,} of {len(items):,} items flip: {won:,} are right in most runs of "
                f"{names[0]} and wrong in most of {names[1]}, {len(flips) - won:,} the reverse. "
                "Of few runs many flip by chance."
            )
        )


def _items(study: "StudyFrames", contrast: "Contrast") -> "DataFrame":
    """The items with their values as they were read; rank errors have no direction."""
    if "gold" in contrast.items:
        return contrast.items
    return study.score_format.frame(contrast.items, "first", "second")


def _find_texts(study: "StudyFrames", url: str) -> list[tuple[str, ...]]:
    """The texts of the study's items, in their order, where this machine has them; else empty."""
    from mtdlab.analysis.data.items import digest_of_tasks
    from mtdlab.evaluation.pairs import load_scored
    from mtdlab.store.recorded import read_trial

    if study.items is None:
        return []
    trial = read_trial(url, study.name, int(study.items.numbers[0]))
    source = trial.settings.get("evaluation", "")
    try:
        pairs = [load_scored(task, source) for task in study.items.tasks]
    except MtdlabError:
        return []
    if digest_of_tasks([part.digest for part in pairs]) != study.items.digest:
        return []
    sides = [(part.first, part.second) if part.second else (part.first,) for part in pairs]
    return [text for side in sides for text in zip(*side, strict=True)]


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
    pair = f"{names[0]} minus {names[1]}: {write.with_unit(write.difference(what.mean))}"
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
    """The comparison as it is printed with --json: first minus second."""
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
        "items": _items(study, contrast).head(_MOST_ITEMS).to_dict("records"),
    }
