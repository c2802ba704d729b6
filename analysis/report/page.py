"""What a page consists of, as data, and how it becomes HTML."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from analysis.report.trial_links import drop_dead_links


@dataclass(frozen=True)
class Column:
    """A column's heading, and whether its cells are numbers to be set to the right."""

    label: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """Cells ready to print. csv is the name of the file with the same data, or empty.

    links    where the first cell of each row leads, or nothing.
    anchors  the id of each row, or nothing.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    csv: str = ""
    sortable: bool = False
    links: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure as markup for the page and as files.

    alt     what the figure shows, for readers who do not see it; caption: what is drawn.
    svg     two `<svg>` elements, one of which the page shows, by its width.
    vector  the SVG file; png: the PNG file.
    """

    name: str
    title: str
    caption: str
    alt: str
    svg: str
    png: bytes
    vector: str


@dataclass(frozen=True)
class Section:
    """A heading, its paragraphs, warnings, figures and tables, in that order."""

    anchor: str
    title: str
    text: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()


@dataclass(frozen=True)
class Page:
    """A whole report. heading: of the summary; kind: the verdict's shape, for its colour."""

    name: str
    description: str
    status: str
    generated: str
    version: str
    heading: str
    kind: str
    summary: tuple[str, ...]
    numbers: Mapping[str, str]
    settings: Mapping[str, str]
    warnings: tuple[str, ...]
    command: str
    glossary: Mapping[str, str]
    sections: tuple[Section, ...]
    study_file: str
    facts: Mapping[str, str]
    methods: tuple[str, ...]


@dataclass(frozen=True)
class MultiStudyPage:
    """A page over several studies: how they compare, with a link to each one's own."""

    name: str
    status: str
    generated: str
    version: str
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    methods: tuple[str, ...]


@dataclass(frozen=True)
class LevelMeansPage:
    """A page on level means: their verdict, without a study. kind: the verdict, for its colour."""

    name: str
    status: str
    generated: str
    version: str
    heading: str
    kind: str
    summary: tuple[str, ...]
    numbers: Mapping[str, str]
    warnings: tuple[str, ...]
    sections: tuple[Section, ...]
    methods: tuple[str, ...]


_TEMPLATES = {
    Page: "page.html",
    MultiStudyPage: "multi_study.html",
    LevelMeansPage: "level_means.html",
}


def render(page: Page | MultiStudyPage | LevelMeansPage) -> str:
    """The page as one HTML document that loads nothing from anywhere.

    Every text is escaped; only the figures' own SVG is passed through. The scripts and styles are
    all `*.js` and `*.css` of this package; a script runs by its hash, so that no other can.
    """
    environment = Environment(
        loader=PackageLoader("analysis.report", package_path=""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    scripts = _read(environment, "js")
    html = environment.get_template(_TEMPLATES[type(page)]).render(
        page=page,
        style=Markup("".join(_read(environment, "css"))),
        scripts=[Markup(script) for script in scripts],
        hashes=[_hash(script) for script in scripts],
        drawings={
            figure.name: Markup(figure.svg)
            for section in page.sections
            for figure in section.figures
        },
    )
    return drop_dead_links(html)


def _read(environment: Environment, extension: str) -> list[str]:
    """The text of all files of the package with an extension; page.css before other styles."""
    names = environment.list_templates(extensions=[extension])
    ordered = sorted(names, key=lambda name: (name != "page.css", name))
    return [environment.get_template(name).render().strip() + "\n" for name in ordered]


def _hash(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
