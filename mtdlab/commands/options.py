"""Arguments and options of several commands."""

from pathlib import Path
from typing import Annotated

import typer

StudyFile = Annotated[Path, typer.Argument(help="A study file, such as studies/mtd.yaml.")]
Storage = Annotated[
    str | None,
    typer.Option(
        help="Database URL or SQLite file. Default: MTDLAB_STORAGE, OPTUNA_STORAGE, mtdlab.db.",
        show_default=False,
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
Overrides = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override the file: trainer.steps=50."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="Worker processes. Default: one a core, or GPU.", show_default=False),
]
JobsPerGpu = Annotated[
    int, typer.Option(min=1, help="Worker processes on each GPU, for small encoders.")
]
