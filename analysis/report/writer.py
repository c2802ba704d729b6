"""Writes a report: tables and figures first, the page that links to them last."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.frames import StudyFrames
from analysis.report.cells import clean
from analysis.report.configuration import describe_cost, list_fixed
from analysis.report.context import StudyContext
from analysis.report.drawing import render_figure
from analysis.report.files import write_data, write_files
from analysis.report.findings import Finding, find_answer
from analysis.report.header import list_terms, summarise_study
from analysis.report.headline import build_headline
from analysis.report.main_figure import MAIN_FIGURE, choose_main_figure
from analysis.report.methods_text import describe_methods
from analysis.report.page import Figure, Page, Section, render
from analysis.report.topics import TOPICS, Topic
from analysis.report.warnings import list_warnings
from analysis.runs import round_mtd
from analysis.stored_frames import to_parquet
from analysis.sufficiency import Answer
from analysis.verdict import Verdict

_COMMIT = re.compile(r"\(commit (\w+)")
_MOST_FILE = 20_000
_MOST_FACT = 2_000
_MOST_DESCRIPTION = 1_000


@dataclass(frozen=True)
class Report:
    """Where a report was written, and what it found: the summary's sentences, the verdict.

    mtd_sufficient  the answer of `compute_sufficiency`; "cannot be tested" without its section.
    seeds_for_verdict  of an inconclusive study: seeds for a verdict with 80 % power; else None.
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


def _build_section(topic: Topic[Any], info: Any, note: str, main: str) -> Section:
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


def _tabulate(topic: Topic[Any], info: Any) -> dict[str, pd.DataFrame]:
    """The topic's CSV files, in which an MTD is written as on the page."""
    frames = {name: make(info) for name, make in topic.csv.items()}
    return {
        name: frame.assign(mtd=frame["mtd"].map(round_mtd)) if "mtd" in frame else frame
        for name, frame in frames.items()
        if len(frame) or topic.keep_empty
    }


def _build_page(
    context: StudyContext,
    finding: Finding,
    sections: tuple[Section, ...],
    figure: Figure | None,
    summary: tuple[str, ...],
    missing: Sequence[str],
    made: Mapping[str, str],
) -> Page:
    """missing  what topics that have no section say instead."""
    study = context.study
    commit = _COMMIT.search(study.facts.get("versions", ""))
    headline = build_headline(context, finding)
    description = study.description.strip().removeprefix(headline.question).strip()
    return Page(
        name=clean(study.name),
        generated=made["generated"],
        version=made["version"],
        headline=headline,
        figure=figure,
        summary=summary if finding.best is not None else (),
        commit=commit[1] if commit else "",
        limits=(*list_warnings(context), *missing),
        sections=sections,
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
    topics: Sequence[Topic[Any]] = TOPICS,
) -> Report:
    """Write a study's page, figures, tables and data into a folder, replacing an earlier report.

    study      any study, also one without trials, still running, or all failed.
    out        folder to write `index.html`, `figures/*.png`, `tables/*` (CSV, Markdown, LaTeX) and
               `data/*.parquet` into; made if missing. A file of an earlier report that this one
               lacks is removed, if one of the topics has it.
    generated  when the report is made, as it is to be printed.
    version    of the program, as it is to be printed.
    topics     of the page, in their order.

    The same arguments give the same bytes. Each file is written beside its place and then
    moved, the page last. Raises OSError if the folder cannot be written.
    """
    context = StudyContext(study)
    infos = {topic.name: topic.compute(context) for topic in topics}
    found = [(topic, info) for topic in topics if (info := infos[topic.name]) is not None]
    finding = find_answer(context, {topic.name: info for topic, info in found})
    main = choose_main_figure(finding.topic, found)
    figure = render_figure(main.name, main.drawing, note=context.note) if main else None
    shown = main.name if main else ""
    missing = {topic.name: topic.missing(info) for topic, info in found}
    sections = tuple(
        _build_section(topic, info, context.note, shown)
        for topic, info in found
        if not missing[topic.name]
    )
    summary = summarise_study(context, infos)
    frames = {name: frame for pair in found for name, frame in _tabulate(*pair).items()}
    made = {"generated": generated, "version": version}
    write_data(out / "data", to_parquet(study, generated=generated))
    files = write_files(
        out,
        render(
            _build_page(
                context, finding, sections, figure, summary, [*filter(None, missing.values())], made
            )
        ),
        frames,
        sections,
        table_names=[name for topic in topics for name in topic.csv],
        figure_names=[MAIN_FIGURE, *(name for topic in topics for name in topic.figures)],
        figure=figure,
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
