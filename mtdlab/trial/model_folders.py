"""The folders of models: those of checkpoints, and of which trial a folder holds the model.

    MODELS/STUDY/                                          the model of the best trial
    MODELS/.checkpoints/IDENTITY/STUDY/CONFIGURATION-SEED/ the checkpoints of a trial that runs

They belong to a study of one database, whose identity (`store.facts`) is in the description of a
model. Studies of one name in several databases do not share checkpoints, and none replaces the
model of another.
"""

import json
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtdlab.data_paths import DATABASE, RUN
from mtdlab.errors import MtdlabError, reason_of

if TYPE_CHECKING:
    from mtdlab.store.store import Store

CHECKPOINTS = ".checkpoints"
"""Folder of the models' folder in which each database has one for its studies' checkpoints."""
RESULT = "result"
"""Folder of a result that is to be recorded, in that of the trial's checkpoints."""
STAGED = "model"
"""Folder of a model whose trial is to be recorded, in that of the trial's checkpoints."""


def read_run(model: Path) -> dict[str, Any]:
    """What is written in a folder of the run of a trial whose model it holds; empty where none."""
    with suppress(OSError, ValueError):
        run = json.loads((model / RUN).read_text("utf-8"))
        if isinstance(run, dict) and "trial" in run:
            return run
    return {}


def kept_trial(model: Path, url: str) -> int | None:
    """The number of the database's trial whose model a study's folder keeps; None for none."""
    # imported here: commands that name a folder start without it
    from mtdlab.store.recorded import is_recorded

    run = read_run(model)
    return run["trial"] if run and is_recorded(url, model.name, run) else None


def is_of_other(model: Path, url: str) -> bool:
    """Whether the folder of a study holds the model of a study in another database.

    One of an earlier version, without an identity, is this database's if its trial is recorded.
    """
    from mtdlab.store.recorded import read_identity

    run = read_run(model)
    if DATABASE in run:
        return bool(run[DATABASE] != read_identity(url))
    return bool(run) and kept_trial(model, url) is None


def refuse_other_model(model: Path, url: str) -> None:
    """Raise MtdlabError where the model of a study in another database would be replaced."""
    if is_of_other(model, url):
        raise MtdlabError(
            f"{model} holds the model of a study {model.name} in another database; move it away, "
            "or name another folder with --models"
        )


def checkpoints_of(models: Path, identity: str, study: str) -> Path:
    """The folder of the checkpoints of a study's trials; `identity` is that of its database."""
    return models / CHECKPOINTS / identity / study


def own_folders(store: "Store | None", study: str, models: Path) -> list[Path]:
    """Those of a study's model and of its checkpoints that are there, without another study's.

    A study that was imported has the name, and so the folder, of the one it is a copy of, until
    trials of it are claimed in its own database.
    """
    if store is None or not store.has_claimed():
        return []
    model, own = models / study, [checkpoints_of(models, store.identity(), study)]
    if not is_of_other(model, store.database.url):
        own.insert(0, model)
    return [folder for folder in own if folder.exists()]


def check_writable(folder: Path) -> None:
    """Raise MtdlabError if files cannot be written to a folder, or it cannot be created."""
    existing = folder
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        # a file without a name where the system has them: nothing is left behind
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        problem = (
            f"cannot be written to ({reason_of(error)})" if existing.is_dir() else "is not a folder"
        )
        raise MtdlabError(
            f"models cannot be saved in {folder}: {existing} {problem}; "
            "name another folder with --models"
        ) from None


def remove_checkpoints_of(folder: Path) -> None:
    """Remove the folder of a trial that has ended, and the folders of checkpoints without any."""
    shutil.rmtree(folder, ignore_errors=True)
    # not empty while other trials have checkpoints; missing where there never was one
    with suppress(OSError):
        for parent in folder.parents:
            if CHECKPOINTS not in parent.parts:
                break
            parent.rmdir()
