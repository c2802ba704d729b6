"""The folders of models: that of the checkpoints in it, and which trial's model a folder holds."""

import json
import shutil
import tempfile
from collections.abc import Iterator, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from mtdlab.data_paths import RUN
from mtdlab.errors import MtdlabError, reason_of

if TYPE_CHECKING:
    # commands that name a folder start without it
    from mtdlab.store import Claim, Store

CHECKPOINTS = ".checkpoints"
"""Folder of the models' folder in which each study has one for its trials' checkpoints."""
RESULT = "result"
"""Folder of a result that is to be recorded, in that of the trial's checkpoints."""
STAGED = "model"
"""Folder of a model whose trial is to be recorded, in that of the trial's checkpoints."""


def kept_trial(model: Path) -> int | None:
    """The number of the trial whose model is kept in a folder; None where there is none."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return int(json.loads((model / RUN).read_text("utf-8"))["trial"])
    return None


def own_folders(store: "Store | None", study: str, models: Path) -> list[Path]:
    """Those of a study's model and of its checkpoints that are there, without another study's.

    A study that was imported has the name, and so the folders, of the one it is a copy of, until
    trials of it are claimed in its own database.
    """
    if store is None or not (claimed := store.claimed_here()):
        return []
    model, own = models / study, [models / CHECKPOINTS / study]
    if (kept := kept_trial(model)) is None or kept in claimed:
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
        folder.parent.rmdir()
        folder.parent.parent.rmdir()


def folders_of_ended(
    store: "Store", checkpoints: Path, shared: Set[str] = frozenset()
) -> "Iterator[tuple[Claim, Path]]":
    """The ended trials with a folder in that of the checkpoints, or a `shared` one elsewhere."""
    if shared or checkpoints.exists():
        for claim in store.ended():
            folder = checkpoints / f"{claim.configuration}-{claim.seed}"
            if folder.name in shared or folder.exists():
                yield claim, folder
