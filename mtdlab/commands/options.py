"""Arguments and options of several commands."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtdlab.commands.completion import complete_study, complete_study_file
from mtdlab.packaged import find_study_file

if TYPE_CHECKING:
    from mtdlab.programs import Program
    from mtdlab.user_code import UserModule


def found_study_file(given: Path | None) -> Path | None:
    """The file that FILE means: itself, or a packaged study's where it is the name of one."""
    return None if given is None else find_study_file(given)


StudyFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        callback=found_study_file,
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
        help="Database URL or SQLite file. Default: MTDLAB_STORAGE, OPTUNA_STORAGE, mtdlab.db.",
        show_default=False,
    ),
]
StudyOption = Annotated[
    str,
    typer.Option(
        "--study",
        metavar="STUDY",
        autocompletion=complete_study,
        show_default=False,
        help="Name of a study in the database (mtdlab studies).",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        show_default=False,
        help="One of the file's profiles: the study is then called STUDY-NAME.",
    ),
]
Models = Annotated[Path, typer.Option(help="Folder in which the best trial's model is kept.")]
Artifacts = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        show_default=False,
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
        show_default=False,
        help="Python file or module that defines training methods. Also: MTDLAB_IMPORT.",
    ),
]
Evaluator = Annotated[
    str | None,
    typer.Option(
        "--evaluator",
        metavar="MODULE:FUNCTION",
        show_default=False,
        help="Function of encode, or encode and split, that returns a dict of scores. "
        "Also: MTDLAB_EVALUATOR.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        show_default=False,
        help="Training program of your own, in place of mtdlab's trainer: digits:train.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Worker processes. Default: one a core, or GPU.", show_default=False),
]
MaxFailed = Annotated[
    int | None,
    typer.Option(
        "--max-failed",
        min=1,
        metavar="N",
        show_default=False,
        help="Stop, with exit code 1, when N trials of the study have failed.",
    ),
]
JobsPerGpu = Annotated[
    int, typer.Option(min=1, help="Worker processes on each GPU, for small encoders.")
]


def find_code(
    given: list[str] | None,
    evaluator: str | None,
    objective: str | None,
    file: Path | None = None,
) -> "tuple[tuple[UserModule, ...], Program | None]":
    """The modules and the program of --import, --evaluator and --objective, imported.

    Also from the folder of a study file. Raises MtdlabError as `import_named`, `find_objective`.
    """
    return import_named(given, file, evaluator), find_objective(objective, file)


def this_command() -> str:
    """The command that was typed, without the passwords of its storage URLs."""
    from mtdlab.store.urls import without_passwords

    return without_passwords(shlex.join(["mtdlab", *sys.argv[1:]]))


def import_named(
    given: list[str] | None, file: Path | None = None, evaluator: str | None = None
) -> "tuple[UserModule, ...]":
    """Import the modules of --import and MTDLAB_IMPORT, also from the folder of a study file.

    evaluator  the function of --evaluator; by default that of MTDLAB_EVALUATOR, if any.

    Raises MtdlabError where one is missing, fails, or defines no method.
    """
    from mtdlab.methods.user_evaluator import import_evaluator
    from mtdlab.methods.user_modules import import_modules, named_modules

    folders = _folders(file)
    import_evaluator(evaluator, folders)
    return import_modules(named_modules(given or []), folders)


def find_objective(given: str | None, file: Path | None = None) -> "Program | None":
    """The program of --objective, also from the folder of a study file; None where none is named.

    Raises MtdlabError where it is missing or cannot be called as expected.
    """
    if given is None:
        return None
    from mtdlab.programs import find_program

    return find_program(given, _folders(file))


def _folders(file: Path | None) -> list[Path]:
    """Where code of the user is looked up: the working folder, then that of the study file."""
    return [Path(), *([file.parent] if file else [])]


def models_option(models: str | Path) -> str | None:
    """A folder of models as the value of --models; None for the default one."""
    return None if str(models) == "models" else str(models)


def written_options(**given: str | list[str] | None) -> list[str]:
    """Options with their values as words of a command, by the names of the parameters."""
    words = []
    for name, values in given.items():
        for value in [values] if isinstance(values, str) else values or []:
            words += [f"--{name.rstrip('_')}", value]
    return words
