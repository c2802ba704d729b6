"""The texts that a setting names: they are in the working folder, or under MTDLAB_DATA.

The paths of a study file are looked up beside the file first (`mtdlab.config.paths`). The name of
the description of a run in the folder of a saved model stands here too.
"""

import os
from pathlib import Path

from mtdlab.errors import MtdlabError

VARIABLE = "MTDLAB_DATA"
"""The environment variable that names the folder of data sets."""
RUN = Path("mtdlab") / "run.json"
"""The path of the description of the run, in the folder of a saved model."""
exists, is_folder = os.path.exists, os.path.isdir
"""Whether a path exists, and is a folder; False for a name that no file system takes, or without
access."""


def find_data(setting: str, name: str) -> Path:
    """The file or folder that a trainer's setting names.

    A relative path is looked up in the working folder, then in the folder MTDLAB_DATA; an
    absolute one is taken as it is. Raises MtdlabError where a relative path is in neither.
    """
    path, folder = Path(name), os.environ.get(VARIABLE)
    if path.is_absolute() or exists(path):
        return path
    if folder and exists(Path(folder) / path):
        return Path(folder) / path
    tried = f", the working folder or {VARIABLE} ({folder})" if folder else " or the working folder"
    raise MtdlabError(
        f"{setting} {name}: cannot be read: no such file or folder in the study file's "
        f"folder{tried}; set {VARIABLE} to the folder that holds it, or give another path: "
        f"--set trainer.{setting}=PATH"
    )
