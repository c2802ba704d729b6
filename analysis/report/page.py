"""What a page consists of, as data, and how it becomes HTML."""

import base64
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from mtdlab.analysis.data.metric import write_minus
from mtdlab.analysis.questions.answer import Difference
from mtdlab.analysis.questions.next_steps import NextStep

_LINK = re.compile(r'<a href="#(trial-\d+)">')
_ROW = re.compile(r'<tr id="(trial-\d+)"')


def trial_anchor(number: int) -> str:
    return f"trial-{number}"


def drop_dead_links(html: str) -> str:
    """The page with links only for points whose trial has a row; the other points keep their text.

    A large study shows a part of its trials.
    """
    rows = set(_ROW.findall(html))

    def keep(link: re.Match[str]) -> str:
        return link[0] if link[1] in rows else '<a tabindex="0">'

    return _LINK.sub(keep, html)


TERMS = {
    "MTD": "maximum traceable distance, 1/(1 − η) + K/N: the expected age, in training steps, of "
    "the weights that encoded the oldest keys of the queue",
    "CI": "confidence interval",
    "η": "EMA decay of the momentum encoder",
    **dict.fromkeys(("seed", "seeds"), "seed of all random number generators of a trial"),
}


@dataclass(frozen=True)
class Column:
    """A column's heading, and whether its cells are numbers to be set to the right."""

    label: str
    numeric: bool


@dataclass(frozen=True)
class Table:
    """Cells ready to print.

    Attributes:
        csv: name of the files with the same data (CSV, Markdown, LaTeX), or empty.
        links: where the first cell of each row leads, or nothing.
        anchors: the id of each row, or nothing.
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

    Attributes:
        caption: what is drawn.
        svg: two `<svg>` elements, one of which the page shows, by its width.
        files: the PNG and the SVG file by the ending of their names.
    """

    name: str
    title: str
    caption: str
    svg: str
    files: Mapping[str, bytes]


@dataclass(frozen=True)
class Section:
    """A heading, its paragraphs, warnings, figures and tables, in that order.

    Attributes:
        group: the heading in the contents under which it stands.
        folded: whether the page shows its heading alone until a reader opens it.
    """

    anchor: str
    title: str
    text: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    group: str = "Results"
    folded: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing below its heading."""
        return not (self.text or self.warnings or self.figures or self.tables)


@dataclass(frozen=True)
class Status:
    """The state of a study.

    Attributes:
        kind: planned, running, paused, complete, failed or empty.
        text: the state with the numbers of trials.
        failures: the commonest reasons why trials failed, with their numbers.
        retry: the command that runs the failed trials again, or empty.
    """

    kind: str
    text: str
    failures: tuple[str, ...] = ()
    retry: str = ""

    @property
    def is_over(self) -> bool:
        """Whether no trial is left to run."""
        return self.kind in ("complete", "failed")


@dataclass(frozen=True)
class Recommendation:
    """A configuration: the heading above it, its settings, and the score it has.

    Attributes:
        model: which model was kept, and whether it is of this configuration; empty where none was.
        command: that makes a model of this configuration, where the kept one is of another.
    """

    label: str
    settings: Mapping[str, str]
    text: str
    model: str = ""
    command: str = ""


@dataclass(frozen=True)
class Headline:
    """The first screen of a page.

    Attributes:
        is_open: whether the answer decides nothing, for its colour.
        effect: the difference that the answer rests on; None where nothing is compared.
        points: what a point is, in one sentence, or empty.
        scope: what the certainty covers: encoder, text, seeds, evaluation items.
        caveats: the limits of the answer, at most three lines; the page has the reasons below.
        baseline: how the study's baseline compares with the recommended configuration, or empty.
        answers: what each of several studies answers, a line each.
        claims: the claims of the papers that were tested, with their verdicts, a line each.
        facts: what varied, data and metric, the kept model: name -> text.
        rerun: the commands that run the study again, or empty.
        rerun_where: where they are to be run, or empty.
        results: the scores as a LaTeX table, or empty.
    """

    question: str
    answer: str
    certainty: str
    is_open: bool
    status: Status
    recommendation: Recommendation | None = None
    next_step: NextStep | None = None
    effect: Difference | None = None
    points: str = ""
    scope: str = ""
    caveats: tuple[str, ...] = ()
    baseline: str = ""
    answers: tuple[str, ...] = ()
    claims: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    rerun: str = ""
    rerun_where: str = ""
    results: str = ""


@dataclass(frozen=True, kw_only=True)
class BasePage:
    """The parts that every page has.

    Attributes:
        figure: the main figure, beside the answer; None where there is none.
        commits: of the program that trained the runs, as far as they are known.
        cites_mtd: whether the paper on MTD is cited.
        limits: sentences on the limits of the conclusions.
        summary: the answer in full sentences, where no section has them.
        methods: paragraphs on how the numbers are computed.
        origin: what tells a table that was made elsewhere from others of its name, or empty.
    """

    name: str
    generated: str
    version: str
    headline: Headline
    methods: tuple[str, ...]
    sections: tuple[Section, ...] = ()
    figure: Figure | None = None
    summary: tuple[str, ...] = ()
    limits: tuple[str, ...] = ()
    commits: tuple[str, ...] = ()
    cites_mtd: bool = True
    origin: str = ""
    template: str = "base.html"


@dataclass(frozen=True, kw_only=True)
class Page(BasePage):
    """A study's page.

    Attributes:
        fixed: the settings that did not vary.
        cost: the time that the trials took, in a sentence.
        is_table: whether the runs are those of a table, made elsewhere, without a study file.
        has_data: whether its data are beside it, of which it can be made again.
    """

    description: str
    fixed: Mapping[str, str]
    cost: str
    glossary: Mapping[str, str]
    study_file: str
    facts: Mapping[str, str]
    is_table: bool = False
    has_data: bool = True
    template: str = "page.html"


def render(page: BasePage) -> str:
    """The page as one HTML document that loads nothing from anywhere.

    Every text is escaped; only the figures' own SVG is passed through. The scripts and styles are
    all `*.js` and `*.css` of this package; a script runs by its hash, so that no other can.
    """
    environment = _environment()
    scripts = _read(environment, "js")
    digests = [hashlib.sha256(script.encode()).digest() for script in scripts]
    html = environment.get_template(page.template).render(
        page=page,
        style=Markup("".join(_read(environment, "css"))),
        scripts=[Markup(script) for script in scripts],
        hashes=[base64.b64encode(digest).decode() for digest in digests],
    )
    return drop_dead_links(html)


@cache
def _environment() -> Environment:
    """The templates, which take as long to compile as a page to fill: once for all pages."""
    environment = Environment(
        loader=PackageLoader("mtdlab.analysis.report", package_path=""),
        autoescape=True,
        finalize=_write_minus,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["explain"] = _explain
    return environment


def _explain(text: str) -> Markup:
    """Text in which the first mention of each term states its meaning on hover."""
    left = dict(TERMS)

    def mark(match: re.Match[str]) -> str:
        meaning = left.pop(match[0], "")
        return f'<abbr title="{meaning}">{match[0]}</abbr>' if meaning else match[0]

    terms = "|".join(map(re.escape, TERMS))
    return Markup(re.sub(rf"\b(?:{terms})\b", mark, str(escape(_write_minus(text)))))


def _write_minus(value: object) -> object:
    """Text with the minus sign before negative numbers; markup, as that of commands, as it is."""
    return write_minus(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _read(environment: Environment, extension: str) -> list[str]:
    """The text of all files of the package with an extension; page.css before other styles."""
    names = environment.list_templates(extensions=[extension])
    ordered = sorted(names, key=lambda name: (name != "page.css", name))
    return [environment.get_template(name).render().strip() + "\n" for name in ordered]
