"""Writes a report: tables and figures first, the page that links to them last."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.metric import POINTS, ScoreFormat
from mtdlab.analysis.data.runs import round_mtd
from mtdlab.analysis.inference.kept import write_whole
from mtdlab.analysis.inference.power import Needed
from mtdlab.analysis.inference.verdict import Judgement
from mtdlab.analysis.questions.study import describe_error_rates, list_fields
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.headline import build_headline
from mtdlab.analysis.report.page import BasePage, Page, Section, render
from mtdlab.analysis.report.study_facts import describe_cost, list_fixed
from mtdlab.analysis.report.summary import describe_methods, list_terms, summarise_study
from mtdlab.analysis.report.text_tables import TEXT_TABLES
from mtdlab.analysis.report.topics import TOPICS, Topic
from mtdlab.analysis.report.topics.base import Contents, Context, choose_main_figure, render_figure
from mtdlab.analysis.report.topics.baseline import BaselineComparison, compare_baseline
from mtdlab.analysis.report.warnings import list_warnings
from mtdlab.analysis.statistics.sufficiency import Tested

_FORMULA = re.compile(r"(?![+-][\d.]+(?:e[+-]?\d+)?$)[=+\-@\t\r]", re.IGNORECASE)
"""The beginning of a text that a spreadsheet runs as a formula; a signed number is none."""


@dataclass(frozen=True)
class Files:
    """Where a page, its figures (a PNG and an SVG file each) and its tables (CSV) are.

    Attributes:
        sections: the anchors of the page's sections on its topics.
    """

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    sections: tuple[str, ...] = field(default=(), kw_only=True)


def write_files(folder: Path, files: Mapping[str, bytes], earlier: Iterable[str] = ()) -> None:
    """Write contents by their paths in a folder, in order; then remove the others of `earlier`.

    A reader sees an old file or a new one, never a part. `earlier` are paths that an earlier report
    may have written. Raises OSError if the folder cannot be written.
    """
    for name, content in files.items():
        write_whole(folder / name, content)
    for name in set(earlier).difference(files):
        (folder / name).unlink(missing_ok=True)


def to_csv(frame: pd.DataFrame) -> bytes:
    """The frame without text that a spreadsheet would run as a formula: it gets an apostrophe."""
    plain = frame.copy(deep=False)
    for name in frame.select_dtypes(exclude=["number", "bool"]):
        plain[name] = frame[name].map(_inert)
    text = plain.rename(columns=_inert).to_csv(index=False, lineterminator="\n")
    return text.encode(errors="replace")


def _inert(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value


_CURVE = "score"
_ALWAYS = ("trials", "mtd_curve")
"""The tables that are written of any study, also without a row."""
_FIGURE_FILE = re.compile(r'href="(figures/[\w-]+\.(?:png|svg))"')
_MOST_FILE = 20_000
_MOST_FACT = 2_000
_MOST_DESCRIPTION = 1_000


@dataclass(frozen=True)
class Report(Files):
    """A written report: its folder, its verdict, and the sentences of its summary beside that.

    Attributes:
        verdict: the numbers of its answer, with that as their sentence.
        fields: the same for JSON.
        mtd_sufficient: the answer of `compute_sufficiency`; "cannot be tested" without its section.
        needed: of an inconclusive study: seeds or items for a verdict with 80 % power; else None.
        baseline: its baseline compared with the recommended configuration; None without one.
    """

    verdict: Judgement
    summary: tuple[str, ...]
    fields: Mapping[str, Any] = field(default_factory=dict)
    mtd_sufficient: Tested = "cannot be tested"
    needed: Needed | None = None
    baseline: BaselineComparison | None = None

    def __repr__(self) -> str:
        lines = dict.fromkeys([str(self.page), self.verdict.sentence, *self.summary])
        return "\n".join(lines)


def write_page(
    out: Path,
    page: BasePage,
    topics: Sequence[Topic[Context]],
    context: Context,
    *,
    main: Collection[str] | None = None,
    note: str = "",
    as_shown: bool = False,
    scores: ScoreFormat = POINTS,
) -> Files:
    """Write a page of topics with its figures and tables into a folder.

    Args:
        page: without its sections, its figure and the limits that stand in place of a section.
        topics: the topics that such a page may have, whose tables of an earlier page are removed,
            and so are the figures that it shows.
        context: what the page is about.
        main: the topics of which one has the figure below the headline; None: the first with one.
        note: the note below every figure.
        scores: how the scores of figures are written.
        as_shown: whether an MTD is written in CSV files as on the page.

    Raises:
        OSError: if the folder cannot be written.
    """
    found = ((topic, topic.build(context)) for topic in topics)
    built = [(topic, contents) for topic, contents in found if contents is not None]
    chosen = choose_main_figure(main, built)
    figure = render_figure(*chosen, note=note, scores=scores) if chosen else None
    possible = (
        _build_section(topic, contents, note, scores, figure.name if figure else "")
        for topic, contents in built
        if not contents.missing
    )
    # what another section tells has no section, but its CSV files
    sections = tuple(part for part in possible if not part.is_empty)
    missing = filter(None, (contents.missing for _, contents in built))
    whole = replace(page, figure=figure, sections=sections, limits=(*page.limits, *missing))
    whole = _lead_with_result(whole, main or ())
    drawn = [*filter(None, [figure]), *(shown for part in sections for shown in part.figures)]
    csv = {
        f"tables/{name}.csv": to_csv(
            frame.assign(mtd=frame["mtd"].map(round_mtd)) if as_shown and "mtd" in frame else frame
        )
        for _, contents in built
        for name, frame in contents.csv.items()
        if len(frame) or name in _ALWAYS
    }
    texts = {
        f"tables/{table.csv}.{ending}": write(table).encode(errors="replace")
        for section in sections
        for table in section.tables
        for ending, write in TEXT_TABLES.items()
        if table.csv
    }
    images = {
        f"figures/{shown.name}.{kind}": content
        for shown in drawn
        for kind, content in shown.files.items()
    }
    html = {"index.html": render(whole).encode(errors="replace")}
    old = [
        f"tables/{name}.{ending}"
        for topic in topics
        for name in topic.csv
        for ending in ("csv", *TEXT_TABLES)
    ]
    index = out / "index.html"
    if index.exists():
        old += _FIGURE_FILE.findall(index.read_text(encoding="utf-8", errors="replace"))
    write_files(out, csv | texts | images | html, old)
    figures, tables = (tuple(out / name for name in names) for names in (images, csv))
    return Files(index, figures, tables, sections=tuple(part.anchor for part in sections))


def _lead_with_result(page: BasePage, main: Collection[str]) -> BasePage:
    """The page whose first section is that of the main topic, with what the answer rests on."""
    leading = [section for section in page.sections if section.anchor in main]
    if not leading:
        return page
    text = tuple(dict.fromkeys((*page.summary, *leading[0].text)))
    result = replace(leading[0], title="Result in detail", text=text, group="Results", folded=False)
    # a curve over MTD that is not the answer is looked up
    others = (
        replace(section, folded=section.folded or section.anchor == _CURVE)
        for section in page.sections
        if section.anchor not in main
    )
    return replace(page, sections=(result, *others), summary=())


def _build_section(
    topic: Topic[Any], contents: Contents, note: str, scores: ScoreFormat, main: str
) -> Section:
    """The section of a topic, without the figure called `main`, which stands above."""
    return Section(
        topic.name,
        topic.title,
        tuple(filter(None, contents.text)),
        warnings=tuple(contents.warnings),
        figures=tuple(
            render_figure(name, drawing, note=note, scores=scores)
            for name, drawing in contents.figures.items()
            if drawing is not None and name != main
        ),
        tables=tuple(table for table in contents.tables if table.rows),
        group=topic.group,
        folded=contents.folded,
    )


def write_report(
    study: StudyFrames | StudyContext,
    out: Path,
    *,
    generated: str,
    version: str,
    topics: Sequence[Topic[StudyContext]] = TOPICS,
) -> Report:
    """Write a study's page, figures, tables and data into a folder, replacing an earlier report.

    The same arguments give the same bytes. Each file is written beside its place and then
    moved, the page last. Raises OSError if the folder cannot be written.

    Args:
        study: any study, also one without trials, still running, or all failed; its context where
            there is one.
        out: folder to write `index.html`, `figures/*.png`, `tables/*` (CSV, Markdown, LaTeX) and
            `data/*.parquet`, which take pyarrow, into; made if missing. Of an earlier report, the
            figures, the data and the tables of these topics that this one lacks are removed.
        generated: when the report is made, as it is to be printed.
        version: of the program, as it is to be printed.
        topics: the topics of the page, in their order.
    """
    context = study if isinstance(study, StudyContext) else StudyContext(study)
    study = context.study
    try:
        from mtdlab.analysis.data.stored_frames import to_parquet

        data = to_parquet(study, generated=generated)
    except ModuleNotFoundError:
        data = {}  # the light install has no pyarrow
    answer, baseline = context.answer, compare_baseline(context)
    # the box above has the answer
    said = context.answer.sentence
    rest = [text.removeprefix(said).strip() for text in summarise_study(context)]
    summary = tuple(filter(None, rest))
    page = Page(
        name=clean(study.name),
        generated=generated,
        version=version,
        headline=build_headline(context, baseline.sentence if baseline else ""),
        summary=() if answer.number is None else summary,
        commits=study.commits,
        limits=tuple(filter(None, (*list_warnings(context), describe_error_rates(context)))),
        methods=describe_methods(context),
        description=clean(study.description.strip(), most=_MOST_DESCRIPTION),
        fixed=list_fixed(study) if len(study.trials) else {},
        cost=describe_cost(study),
        glossary=list_terms(study),
        study_file=clean(study.study_file, most=_MOST_FILE),
        is_table=bool(study.table),
        origin=study.origin,
        has_data=bool(data),
        facts={clean(name): clean(value, most=_MOST_FACT) for name, value in study.facts.items()},
    )
    earlier = [path.name for path in (out / "data").glob("*.parquet")]
    write_files(out / "data", data, earlier)
    main = [topic.name for topic in topics if topic.answers_to(answer.topic)]
    files = write_page(
        out,
        page,
        topics,
        context,
        main=main,
        note=context.note,
        as_shown=True,
        scores=context.write,
    )
    return Report(
        **vars(files),
        verdict=answer.verdict,
        summary=summary,
        fields=list_fields(context),
        mtd_sufficient=context.sufficiency.answer if context.sufficiency else "cannot be tested",
        needed=context.question.need if len(context.runs) else None,
        baseline=baseline,
    )
