"""Arguments and options of several commands, and their shell completion."""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from mtdlab.analysis.data.defaults import MODELS_FOLDER, Direction, Scale
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.data_paths import packaged_studies
from mtdlab.errors import MtdlabError


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
    from mtdlab.store.recorded import study_names

    with suppress(MtdlabError):
        return [name for name in study_names() if name.startswith(incomplete)]
    return []


StudyFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        autocompletion=complete_study_file,
        help="A study file, or the name of a study that comes with mtdlab, such as mtd "
        "(mtdlab init --list).",
    ),
]
_STUDY: Mapping[str, Any] = {
    "metavar": "STUDY",
    "autocompletion": complete_study,
    "help": "Name of a study in the database (mtdlab studies).",
}
StudyName = Annotated[str, typer.Argument(**_STUDY)]
StudyOption = Annotated[str, typer.Option("--study", **_STUDY)]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Database URL or SQLite file. Default: MTDLAB_STORAGE, OPTUNA_STORAGE, mtdlab.db."
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="One of the file's profiles: the study is then called STUDY-NAME."
    ),
]
Models = Annotated[Path, typer.Option(help="Folder in which the best trial's model is kept.")]
MODELS = Path(MODELS_FOLDER)
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
        metavar="MODULE:FUNCTION",
        help="Function of encode, or encode and split, that returns a dict of scores. "
        "Also: MTDLAB_EVALUATOR.",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        metavar="MODULE:FUNCTION",
        help="What trains in place of mtdlab's trainer: a program of your own, digits:train, or a "
        "method that brings a trainer, sentence-transformers.",
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
Score = Annotated[
    str,
    typer.Option(
        metavar="COLUMN",
        help="Of a table: the column with the score. Default: score, Optuna's value, or the only "
        "metric of a tracker's table.",
    ),
]
Column = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME=COLUMN",
        help="Of a table: the column that holds NAME, such as ema_decay=moco_m.",
    ),
]
Setting = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Of a table: a column that is a setting; the others are none. Can be repeated.",
    ),
]
Margin = Annotated[
    float | None,
    typer.Option(
        metavar="NUMBER",
        help="The difference that counts as none, in points (score x 100) or the score's own unit, "
        "of which it has to be stated. Default: 0.5 points of a table, else the study's.",
    ),
]
ScoreScale = Annotated[
    Scale | None,
    typer.Option(
        help="Of a table: whether scores are from -1 to 1, x 100, or in a unit of their own. "
        "Default: by the score's name; a correlation or a share, such as an accuracy, is a "
        "fraction if all values lie between -1 and 1."
    ),
]
ScoreDirection = Annotated[
    Direction | None,
    typer.Option(
        help="Of a table: whether higher or lower scores are better. "
        "Default: maximize; required of a score that is a loss by its name."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
Jobs = Annotated[
    int | None, typer.Option(min=1, help="Worker processes. Default: one a core, or GPU.")
]
MaxFailed = Annotated[
    int | None,
    typer.Option(
        min=1, metavar="N", help="Stop, with exit code 1, when N trials of the study have failed."
    ),
]
JobsPerGpu = Annotated[
    int, typer.Option(min=1, help="Worker processes on each GPU, for small encoders.")
]


def invocation_of(context: typer.Context) -> Invocation:
    """The command as it was typed, without the passwords of its storage URLs."""
    from mtdlab.store.urls import without_password

    arguments, options = list[str](), dict[str, tuple[str, ...]]()
    for parameter in context.command.params:
        name, source = str(parameter.name), context.get_parameter_source(str(parameter.name))
        # typer may hold its own copy of click, whose enumeration is another one
        if source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        values = tuple(map(str, value if isinstance(value, list | tuple) else [value]))
        if parameter.param_type_name == "argument":
            arguments += values
        else:
            options[parameter.opts[0].lstrip("-")] = () if isinstance(value, bool) else values
    return Invocation(str(context.info_name), tuple(arguments), options).changed(without_password)
