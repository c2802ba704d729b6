"""The files that a name stands for: the texts of a setting, and the studies that come with mtdlab.

Texts are in the working folder, or under MTDLAB_DATA; the paths of a study file are looked up
beside the file first (`mtdlab.config.paths`). The packaged studies are the folder `studies/` of the
repository: an installed copy holds it as `mtdlab/studies`; a checkout, also an editable
installation, as `studies` beside the package.
"""

import os
from pathlib import Path

from mtdlab.errors import MtdlabError, nearest, reason_of

VARIABLE = "MTDLAB_DATA"
"""The environment variable that names the folder of data sets."""
RUN = Path("mtdlab") / "run.json"
"""The path of the description of the run, in the folder of a saved model."""
DATABASE = "database"
"""What that description has of a study's trial: the identity of the database (`store.facts`)."""
exists, is_file, is_folder = os.path.exists, os.path.isfile, os.path.isdir
"""Whether a path exists, is a file, and is a folder; False for a name that no file system takes, or
without access."""


def find_data(setting: str, name: str) -> Path:
    """The file or folder that a setting names. Raises MtdlabError for a relative path to none."""
    path, folder = Path(name), os.environ.get(VARIABLE)
    if path.is_absolute() or exists(path):
        return path
    if folder and exists(Path(folder) / path):
        return Path(folder) / path
    tried = f", {VARIABLE} ({folder})" if folder else ""
    raise MtdlabError(
        f"{setting} {name}: cannot be read: no such file or folder in the working folder{tried} or "
        f"beside the study file, if any; set {VARIABLE} to the folder that holds it, or give "
        f"another path (of a study: --set trainer.{setting}=PATH)"
    )


def packaged_studies() -> dict[str, Path]:
    """The files of the studies that come with mtdlab, by name; those of the paper come last."""
    package = Path(__file__).parent
    folder = package / "studies"
    if not folder.is_dir():
        folder = package.parent / "studies"
    own, paper = (
        sorted(folder.glob(pattern), key=lambda path: path.stem)
        for pattern in ("*.yaml", "paper/*.yaml")
    )
    return {path.stem: path for path in (*own, *paper)}


def find_study_file(given: Path) -> Path:
    """The file to read for a path on the command line: itself, or a packaged study's.

    A bare name such as `mtd` means the packaged study where no file of that name is here. Raises
    MtdlabError for a file that is missing.
    """
    if is_file(given):
        return given
    studies = packaged_studies()
    if str(given) in studies:
        return studies[str(given)]
    try:
        given.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise MtdlabError(
            f"{given}: no such file; `mtdlab init NAME` copies a study that comes with mtdlab, and "
            f"NAME in place of the path uses it as it is: {nearest(given.stem, studies)}"
        ) from None
    except OSError as error:
        # such as a name that is too long
        raise MtdlabError(f"{str(given)[:60]}: cannot be read: {reason_of(error)}") from None
    return given
