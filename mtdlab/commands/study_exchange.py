"""The commands delete, rename, export-study and import-study."""

from pathlib import Path
from typing import Annotated

import typer

from mtdlab.commands import options as opt
from mtdlab.errors import MtdlabError
from mtdlab.terminal import print_text


def delete(
    study: opt.StudyName,
    storage: opt.Storage = None,
    models: opt.Models = opt.MODELS,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a study from the database, and its checkpoints.

    The folders of its model and its page are kept. Refused while a sweep runs it.
    """
    from mtdlab.manage.exchange import delete_study
    from mtdlab.store.urls import mask, storage_url

    url = storage_url(storage)
    if not yes and not typer.confirm(f"Delete study {study} from {mask(url)}?", err=True):
        raise MtdlabError(f"study {study} was not deleted")
    checkpoints = ", and its checkpoints" if delete_study(study, url, models) else ""
    print_text(f"deleted study {study} from {mask(url)}{checkpoints}")
    kept = [str(folder) for folder in (models / study, Path("reports") / study) if folder.exists()]
    if kept:
        print_text(f"kept: {', '.join(kept)}")


def rename(
    old: opt.StudyName,
    new: Annotated[str, typer.Argument(metavar="NEW", help="The new name.")],
    storage: opt.Storage = None,
    models: opt.Models = opt.MODELS,
) -> None:
    """Rename a study, with the folders of its model and its checkpoints.

    Its page keeps its folder; mtdlab report writes another. The study file still has the old name:
    resume the study with --set study=NEW. Refused while a sweep runs it.
    """
    from mtdlab.manage.exchange import rename_study
    from mtdlab.store.urls import mask, storage_url

    url = storage_url(storage)
    renamed = rename_study(old, new, url, models)
    print_text(f"renamed study {old} to {new} in {mask(url)}")
    if renamed:
        print_text(f"renamed folders: {', '.join(map(str, renamed))}")
    print_text(f"resume it with: mtdlab sweep FILE --set study={new}")


def export_study(
    study: opt.StudyName,
    storage: opt.Storage = None,
    out: Annotated[Path | None, typer.Option(help="The file to write. Default: STUDY.db.")] = None,
) -> None:
    """Write a study with its trials, scores and curves to a SQLite file of its own.

    mtdlab report --storage FILE reads it. Models and checkpoints are not part of it. A trial that
    is running is exported as waiting.
    """
    from mtdlab.manage.exchange import export_study as export
    from mtdlab.store.urls import storage_url

    target = out or Path(f"{study}.db")
    export(study, storage_url(storage), target)
    print_text(f"exported study {study} to {target}; models and checkpoints are not part of it")


def import_study(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A file that mtdlab export-study wrote.")
    ],
    storage: opt.Storage = None,
    name: Annotated[
        str | None, typer.Option(help="Name of the study here. Default: as exported.")
    ] = None,
) -> None:
    """Add the study of an exported file to the database, which may be SQLite or PostgreSQL.

    Refused if the database has a study of that name: choose another with --name. Folders of models
    and checkpoints stay those of the study that was exported, until the imported one is run.
    """
    from mtdlab.manage.exchange import import_study as import_
    from mtdlab.store.urls import mask, storage_url

    url = storage_url(storage)
    added = import_(file, url, name)
    print_text(f"imported study {added} into {mask(url)}")
