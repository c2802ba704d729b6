"""Where the texts are that a study file names: in the working folder, or under MTDLAB_DATA."""

import os
from pathlib import Path

from mtdlab.errors import MtdlabError

VARIABLE = "MTDLAB_DATA"
"""The environment variable that names the folder of data sets."""


def find_data(setting: str, name: str) -> Path:
    """The file or folder that a trainer's setting names.

    A relative path is looked up in the working folder, then in the folder MTDLAB_DATA; an
    absolute one is taken as it is. Raises MtdlabError where a relative path is in neither.
    """
    path, folder = Path(name), os.environ.get(VARIABLE)
    if path.is_absolute() or _exists(path):
        return path
    if folder and _exists(Path(folder) / path):
        return Path(folder) / path
    tried = f"in the working folder or in {VARIABLE} ({folder})" if folder else "here"
    raise MtdlabError(
        f"{setting} {name}: cannot be read: no such file or folder {tried}; set {VARIABLE} to the "
        f"folder that holds it, or give another path: --set trainer.{setting}=PATH"
    )


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:
        # a name that no file system takes, or a folder that may not be entered
        return False
