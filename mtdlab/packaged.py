"""The studies that come with mtdlab: the folder `studies/` of the repository.

An installed copy holds it as `mtdlab/studies`; a checkout, also an editable installation, as
`studies` beside the package.
"""

from pathlib import Path

from mtdlab.errors import MtdlabError, nearest


def packaged_studies() -> dict[str, Path]:
    """The file of each study that comes with mtdlab, by the study's name, in alphabetical order.

    Those of the paper, in the folder `paper`, come last.
    """
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
    MtdlabError for another bare name, and for a missing file whose name is that of a packaged
    study, such as studies/mtd.yaml: that one's own copy may have other contents.
    """
    try:
        if given.is_file():
            return given
    except OSError as error:
        # such as a name that is too long
        reason = (error.strerror or str(error)).lower()
        raise MtdlabError(f"{str(given)[:60]}...: cannot be read: {reason}") from None
    studies = packaged_studies()
    if str(given) in studies:
        return studies[str(given)]
    if given.suffix == ".yaml" and given.stem in studies and not given.exists():
        name = given.stem
        raise MtdlabError(
            f"{given}: no such file; mtdlab comes with a study {name}: write {name} in place of "
            f"the path to use it as it is, or copy it with `mtdlab init {name}`"
        )
    if given.name == str(given) and not given.suffix and not given.exists():
        raise MtdlabError(
            f"{given}: no such file, and no study of this name comes with mtdlab; "
            f"{nearest(str(given), studies)}"
        )
    return given
