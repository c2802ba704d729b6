"""Shell completion of study files and of the names of studies."""

from contextlib import suppress
from pathlib import Path

from mtdlab.errors import MtdlabError
from mtdlab.packaged import packaged_studies


def complete_study_file(incomplete: str) -> list[str]:
    """Study files and folders here, and the packaged studies, that begin so."""
    found = sorted(Path().glob(f"{incomplete}*"))
    files = [str(path) for path in found if path.suffix in (".yaml", ".yml")]
    folders = [f"{path}/" for path in found if path.is_dir()]
    return [*files, *folders, *complete_packaged(incomplete)]


def complete_packaged(incomplete: str) -> list[str]:
    """The packaged studies that begin so."""
    return [name for name in packaged_studies() if name.startswith(incomplete)]


def complete_study(incomplete: str) -> list[str]:
    """The studies of the default database that begin so; none where it cannot be read."""
    from mtdlab.store import study_names

    with suppress(MtdlabError):
        return [name for name in study_names() if name.startswith(incomplete)]
    return []
