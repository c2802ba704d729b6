"""Arguments and options of several commands, and their shell completion."""

import shlex
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from mtdlab.errors import MtdlabError
from mtdlab.packaged import find_study_file, packaged_studies


def complete_study_file(incomplete: str) -> list[str]:
    """Study files and folders here, and the packaged studies, that begin so."""
    paths = sorted(Path().glob(f"{incomplete}*"))
    files = [str(path) for path in paths if path.suffix in (".yaml", ".yml")]
    folders = [f"{path}/" for path in paths if path.is_dir()]
    return [*files, *folders, *complete_packaged(incomplete)]


def complete_packaged(incomplete: str) -> list[str]:
    """The packaged studies that begin so."""
    return [name for name in packaged_studies() if name.startswith(incomplete)]


def complete_study(incomplete: str) -> list[str]:
    """The studies of the default database that begin so; none where it cannot be read."""
    from mtdlab.store import study_names

    with suppress(MtdlabError):
        return [name for name in study_names() if name.startswith(incomplete)]
    return []


def replace_name(given: Path | None) -> Path | None:
    """The file that FILE means: itself, or a packaged study's where it is the name of one."""
    return None if given is None else find_study_file(given)


StudyFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        callback=replace_name,
        autocompletion=complete_study_file,
        help="A study file, or the name of a study that comes with mtdlab, such as mtd "
        "(mtdlab init --list).",
    ),
]
StudyName = Annotated[
    str,
    typer.Argument(
        metavar="STUDY",
        autocompletion=complete_study,
        help="Name of a study in the database (mtdlab studies).",
    ),
]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Database URL or SQLite file. Default: MTDLAB_STORAGE, OPTUNA_STORAGE, mtdlab.db."
    ),
]
StudyOption = Annotated[
    str,
    typer.Option(
        "--study",
        metavar="STUDY",
        autocompletion=complete_study,
        help="Name of a study in the database (mtdlab studies).",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="One of the file's profiles: the study is then called STUDY-NAME."
    ),
]
Models = Annotated[Path, typer.Option(help="Folder in which the best trial's model is kept.")]
Artifacts = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Folder or fsspec URL (s3://bucket/runs) that all machines share, for checkpoints and "
        "models. Default: that of the study's first sweep with one.",
    ),
]
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override the file: trainer.steps=50."),
]
Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Python file or module that defines training methods. Also: MTDLAB_IMPORT.",
    ),
]
Evaluator = Annotated[
    str | None,
    typer.Option(
        "--evaluator",
        metavar="MODULE:FUNCTION",
        help="Function of encode, or encode and split, that returns a dict of scores. "
        "Also: MTDLAB_EVALUATOR.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="Training program of your own, in place of mtdlab's trainer: digits:train.",
    ),
]
Measure = Annotated[
    bool,
    typer.Option(
        "--measure/--no-measure", help="Time a few steps to estimate the cost on this machine."
    ),
]
ModelFolder = Annotated[
    Path | None, typer.Option(help="Folder for the model, as SentenceTransformer opens it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Worker processes. Default: one a core, or GPU.")
]
MaxFailed = Annotated[
    int | None,
    typer.Option(
        "--max-failed",
        min=1,
        metavar="N",
        help="Stop, with exit code 1, when N trials of the study have failed.",
    ),
]
JobsPerGpu = Annotated[
    int, typer.Option(min=1, help="Worker processes on each GPU, for small encoders.")
]


def this_command() -> str:
    """The command that was typed, without the passwords of its storage URLs."""
    from mtdlab.store.urls import without_passwords

    return without_passwords(shlex.join(["mtdlab", *sys.argv[1:]]))
