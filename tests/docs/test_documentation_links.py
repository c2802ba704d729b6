"""Relative links and anchors of the documentation lead somewhere, and every page can be found."""

import re
from pathlib import Path

import pytest
import yaml
from markdown_blocks import DOCUMENTS, ROOT, prose_of

INDEX = ROOT / "docs" / "README.md"
LINK = re.compile(r"\]\(([^)\s]+)\)")


def slug(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    words = re.sub(r"[^\w\- ]", "", heading.strip().lower())
    return words.replace(" ", "-")


def anchors(document: Path) -> set[str]:
    return {slug(text) for text in re.findall(r"^#+ (.*)$", prose_of(document), re.MULTILINE)}


def links(document: Path) -> list[str]:
    """The relative targets of a document's links and images."""
    found = LINK.findall(prose_of(document))
    return [target for target in found if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    for target in links(document):
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        assert path.exists(), f"{document.name}: {target}"
        if anchor:
            assert anchor in anchors(path), f"{document.name}: {target}"


def test_every_page_is_linked_from_the_index() -> None:
    linked = {(INDEX.parent / target.split("#")[0]).resolve() for target in links(INDEX)}
    pages = {path for path in DOCUMENTS if path.is_relative_to(INDEX.parent)} - {INDEX}
    assert pages <= linked


def test_every_image_has_a_text_for_those_who_do_not_see_it() -> None:
    for document in DOCUMENTS:
        for text in re.findall(r"!\[(.*?)\]\(", prose_of(document), re.DOTALL):
            assert len(text.split()) > 5, f"{document.name}: {text}"


def test_the_readme_is_short() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1200
    assert len(text.splitlines()) <= 135


def test_the_citation_names_the_paper_and_no_version() -> None:
    """The version stands once, in the package."""
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert "version" not in citation
    assert citation["authors"] == [{"name": "mtdlab contributors"}]
    assert citation["references"][0]["doi"] == "10.18653/v1/2022.findings-acl.248"
