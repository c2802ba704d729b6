"""What every sweep is checked for before it writes to the database.

A sweep that is refused leaves no study behind: the corrected file then begins one.
"""

import tempfile
from pathlib import Path

from mtdlab.analysis.data.beyond_run import describe_lengths
from mtdlab.config import StudySpec
from mtdlab.errors import MtdlabError


def length_warnings(spec: StudySpec) -> list[str]:
    """A sentence for each history that is long beside the run, and for levels beyond the run."""
    return list(describe_lengths(spec.configurations().values(), spec.beyond_run))


def check_writable(folder: Path) -> None:
    """Raise MtdlabError if files cannot be written to a folder, or it cannot be created."""
    existing = folder
    try:
        existing = next(path for path in (folder, *folder.parents) if path.exists())
        # a file without a name where the system has them: nothing is left behind
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        problem = f"cannot be written to ({reason})" if existing.is_dir() else "is not a folder"
        raise MtdlabError(
            f"models cannot be saved in {folder}: {existing} {problem}; "
            "name another folder with --models"
        ) from None
