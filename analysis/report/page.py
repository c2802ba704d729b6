"""What a page consists of, as data, and how it becomes HTML."""

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


@dataclass(frozen=True)
class Column:
    """A column's heading, and whether its cells are numbers to be set to the right."""

    label: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """Cells ready to print. csv is the name of the file with the same data, or empty.

    links  where the first cell of each row leads, or nothing.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    csv: str = ""
    sortable: bool = False
    links: tuple[str, ...] = ()


@dataclass(frozen=True)
class Figure:
    """A figure as SVG markup for the page and as PNG for a file.

    alt states what the figure shows, for readers who do not see it; caption what is drawn.
    """

    name: str
    title: str
    caption: str
    alt: str
    svg: str
    png: bytes


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

    Every text is escaped; only the figures' own SVG is passed through. The script runs by
    its hash, so that no other script can.
    """
    environment = Environment(
        loader=PackageLoader("analysis.report", package_path=""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    script = environment.get_template("sort.js").render().strip()
    template = _TEMPLATES[type(page)]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template(template).render(
        page=page,
        style=Markup(environment.get_template("page.css").render()),
        script=Markup(script),
        script_hash=digest,
        drawings={
            figure.name: Markup(figure.svg)
            for section in page.sections
            for figure in section.figures
        },
    )
