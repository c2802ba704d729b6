"""The command doctor, which checks a study's records and folders."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from mtdlab.analysis.data.durations import format_count
from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.manage.doctor import Examination


def doctor(
    study: Annotated[
        str | None,
        typer.Argument(
            metavar="STUDY",
            autocompletion=opt.complete_study,
            help="Name of a study. Default: all of the database.",
        ),
    ] = None,
    storage: opt.Storage = None,
    models: opt.Models = opt.MODELS,
    as_json: opt.AsJson = False,
) -> None:
    """Check the database, a study's trials and its folders, and describe this machine.

    Nothing is changed: each problem is printed with the command that repairs it. Exit code 0 if
    there is none, 6 otherwise.
    """
    from mtdlab.manage.doctor import examine
    from mtdlab.store.urls import storage_url

    examination = examine(storage_url(storage), models, study)
    if as_json:
        print_json(
            {"storage": examination.storage, "holds": examination.holds} | asdict(examination)
        )
    else:
        print_text("\n".join(_lines(examination)))
    raise typer.Exit(0 if examination.holds else 6)


def _lines(examination: "Examination") -> Iterator[str]:
    for name, problems in {"database": examination.database, **examination.studies}.items():
        what = examination.storage if name == "database" else f"study {name}"
        yield f"{what}: {format_count(len(problems), 'problem')}"
        for problem in problems:
            yield f"  {problem.found}"
            yield f"    expected: {problem.invariant}"
            yield f"    to repair: {problem.repair}"
        for note in examination.notes.get(name, ()):
            yield f"  note: {note}"
    if not examination.studies:
        yield "no study yet"
    machine = examination.machine
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    yield f"Python {machine['python']}, {versions}; schema {machine['schema']}"
    yield (
        f"{machine['system']}; device {machine['device']}, {machine['gpus']} GPUs, "
        f"{machine['cores']} cores, {machine['threads']} threads"
    )
    free = ", ".join(f"{name} {size / 1e9:.1f} GB" for name, size in machine["disk"].items())
    yield f"free disk: {free}"
