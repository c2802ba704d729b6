"""Writes a report: tables and figures first, the page that links to them last."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.data.frames import StudyFrames
from analysis.data.runs import round_mtd
from analysis.data.stored_frames import to_parquet
from analysis.inference.verdict import Verdict
from analysis.report.cells import clean
from analysis.report.context import StudyContext
from analysis.report.drawing import render_figure
from analysis.report.files import Files, write_data, write_files
from analysis.report.findings import Finding, find_answer
from analysis.report.headline import build_headline
from analysis.report.page import BasePage, Figure, Page, Section, render
from analysis.report.study_facts import describe_cost, list_fixed
from analysis.report.summary import describe_methods, list_terms, summarise_study
from analysis.report.topics import TOPICS, Topic
from analysis.report.topics.base import MAIN_FIGURE, Context, choose_main_figure
from analysis.report.warnings import list_warnings
from analysis.statistics.sufficiency import Answer

_COMMIT = re.compile(r"\(commit (\w+)")
_MOST_FILE = 20_000
_MOST_FACT = 2_000
_MOST_DESCRIPTION = 1_000


@dataclass(frozen=True)
class Report:
    """Where a report was written, and what it found: the summary's sentences, the verdict.

    Attributes:
        mtd_sufficient: the answer of `compute_sufficiency`; "cannot be tested" without its section.
        seeds_for_verdict: of an inconclusive study: seeds for a verdict with 80 % power; else None.
    """

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    verdict: Verdict
    summary: tuple[str, ...]
    mtd_sufficient: Answer
    seeds_for_verdict: int | None

    def __repr__(self) -> str:
        """The page and what it says, in a few lines."""
        return "\n".join([str(self.page), *self.summary])


@dataclass(frozen=True)
class Parts:
    """What the topics of a page give it; missing: what those without a section say instead."""

    sections: tuple[Section, ...]
    figure: Figure | None
    missing: tuple[str, ...]


def compute_topics(
    topics: Sequence[Topic[Context, Any]], context: Context
) -> list[tuple[Topic[Context, Any], Any]]:
    """The topics that a page has, with what they computed."""
    computed = [(topic, topic.compute(context)) for topic in topics]
    return [(topic, info) for topic, info in computed if info is not None]


def write_page(
    out: Path,
    topics: Sequence[Topic[Context, Any]],
    found: Sequence[tuple[Topic[Context, Any], Any]],
    build: Callable[[Parts], BasePage],
    *,
    main: str,
    note: str = "",
    earlier: Iterable[str] = (),
    as_shown: bool = False,
) -> Files:
    """Write a page of topics with its figures and tables into a folder.

    Args:
        topics: that such a page may have, whose files of an earlier page are removed.
        found: those of this page (`compute_topics`).
        build: the page from what its topics give.
        main: the topic whose figure stands below the headline.
        note: what every figure states.
        earlier: further names of figures that an earlier page may have.
        as_shown: whether an MTD is written in CSV files as on the page.

    Raises:
        OSError: if the folder cannot be written.
    """
    chosen = choose_main_figure(main, found)
    figure = render_figure(chosen.name, chosen.drawing, note=note) if chosen else None
    shown = chosen.name if chosen else ""
    missing = [topic.missing(info) for topic, info in found]
    sections = tuple(
        _build_section(topic, info, note, shown)
        for (topic, info), instead in zip(found, missing, strict=True)
        if not instead
    )
    frames = {name: frame for pair in found for name, frame in _tabulate(*pair, as_shown).items()}
    return write_files(
        out,
        render(build(Parts(sections, figure, tuple(filter(None, missing))))),
        frames,
        sections,
        table_names=[name for topic in topics for name in topic.csv],
        figure_names=[MAIN_FIGURE, *earlier, *(name for topic in topics for name in topic.figures)],
        figure=figure,
    )


def _build_section(topic: Topic[Any, Any], info: Any, note: str, main: str) -> Section:
    """The section of a topic, without the figure called `main`, which stands above."""
    drawings = {name: draw(info) for name, draw in topic.figures.items() if name != main}
    return Section(
        topic.name,
        topic.title,
        tuple(topic.text(info)),
        warnings=tuple(topic.warnings(info)),
        figures=tuple(
            render_figure(name, drawing, note=note)
            for name, drawing in drawings.items()
            if drawing is not None
        ),
        tables=tuple(topic.tables(info)),
        group=topic.group,
    )


def _tabulate(topic: Topic[Any, Any], info: Any, as_shown: bool) -> dict[str, pd.DataFrame]:
    """The topic's CSV files."""
    frames = {name: make(info) for name, make in topic.csv.items()}
    return {
        name: frame.assign(mtd=frame["mtd"].map(round_mtd))
        if as_shown and "mtd" in frame
        else frame
        for name, frame in frames.items()
        if len(frame) or topic.keep_empty
    }


def _build_page(
    context: StudyContext,
    finding: Finding,
    summary: tuple[str, ...],
    made: Mapping[str, str],
    parts: Parts,
) -> Page:
    study = context.study
    commit = _COMMIT.search(study.facts.get("versions", ""))
    headline = build_headline(context, finding)
    description = study.description.strip().removeprefix(headline.question).strip()
    return Page(
        name=clean(study.name),
        generated=made["generated"],
        version=made["version"],
        headline=headline,
        figure=parts.figure,
        summary=summary if finding.best is not None else (),
        commit=commit[1] if commit else "",
        limits=(*list_warnings(context), *parts.missing),
        sections=parts.sections,
        methods=describe_methods(context, finding),
        description=clean(description, most=_MOST_DESCRIPTION),
        fixed=list_fixed(study) if len(study.trials) else {},
        cost=describe_cost(study),
        glossary=list_terms(study),
        study_file=clean(study.study_file, most=_MOST_FILE),
        facts={clean(name): clean(value, most=_MOST_FACT) for name, value in study.facts.items()},
    )


def write_report(
    study: StudyFrames,
    out: Path,
    *,
    generated: str,
    version: str,
    topics: Sequence[Topic[StudyContext, Any]] = TOPICS,
) -> Report:
    """Write a study's page, figures, tables and data into a folder, replacing an earlier report.

    The same arguments give the same bytes. Each file is written beside its place and then
    moved, the page last. Raises OSError if the folder cannot be written.

    Args:
        study: any study, also one without trials, still running, or all failed.
        out: folder to write `index.html`, `figures/*.png`, `tables/*` (CSV, Markdown, LaTeX) and
            `data/*.parquet` into; made if missing. A file of an earlier report that this one lacks
            is removed, if one of the topics has it.
        generated: when the report is made, as it is to be printed.
        version: of the program, as it is to be printed.
        topics: of the page, in their order.
    """
    context = StudyContext(study)
    found = compute_topics(topics, context)
    infos = {topic.name: None for topic in topics} | {topic.name: info for topic, info in found}
    finding = find_answer(context, {topic.name: info for topic, info in found})
    summary = summarise_study(context, infos)
    made = {"generated": generated, "version": version}
    write_data(out / "data", to_parquet(study, generated=generated))
    files = write_page(
        out,
        topics,
        found,
        partial(_build_page, context, finding, summary, made),
        main=finding.topic,
        note=context.note,
        as_shown=True,
    )
    found_of_mtd = context.sufficiency
    answer: Answer = found_of_mtd.answer if found_of_mtd else "cannot be tested"
    return Report(
        files.page,
        files.figures,
        files.tables,
        context.verdict,
        summary,
        answer,
        context.seeds_for_verdict,
    )
