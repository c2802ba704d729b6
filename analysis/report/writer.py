"""Writes a report: tables and figures first, the page that links to them last."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.frames import StudyFrames
from analysis.report.cells import clean
from analysis.report.context import StudyContext
from analysis.report.drawing import render_figure
from analysis.report.files import write_files
from analysis.report.header import (
    describe_settings,
    describe_status,
    list_terms,
    summarise_study,
    title_summary,
)
from analysis.report.page import Page, Section, render
from analysis.report.topics import TOPICS, Topic
from analysis.report.warnings import list_warnings
from analysis.runs import format_mtd
from analysis.sufficiency import Answer
from analysis.verdict import Verdict

_MOST_FILE = 20_000
_MOST_FACT = 2_000
_MOST_DESCRIPTION = 1_000


@dataclass(frozen=True)
class Report:
    """Where a report was written, and what it found: the summary's sentences, the verdict.

    mtd_sufficient  the answer of `compute_sufficiency`; "cannot be tested" without its section.
    """

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    verdict: Verdict
    summary: tuple[str, ...]
    mtd_sufficient: Answer


def _numbers(verdict: Verdict) -> Mapping[str, str]:
    """The verdict's figures for the box at the top."""
    numbers = {"best MTD": format_mtd(verdict.peak_mtd)}
    if verdict.optimal_range:
        first, last = format_mtd(verdict.optimal_range[0]), format_mtd(verdict.optimal_range[-1])
        numbers["levels not told from the best"] = f"{first} to {last}"
    if verdict.seeds_for_power:
        numbers["seeds for a verdict (80 % power)"] = f"{verdict.seeds_for_power:,}"
    return {
        **numbers,
        "seeds compared": str(verdict.seeds),
        "levels of MTD compared": str(verdict.levels),
    }


def _describe_methods(verdict: Verdict) -> tuple[str, ...]:
    """How the verdict and the intervals of a page are computed."""
    return (
        "A seed affects all runs that use it, so runs do not count as independent: means are "
        "over per-seed means, and intervals are t intervals over seeds.",
        "The verdict comes from a model of the score with an effect of the seed and one of the "
        f"level of MTD. It is “flat” if every level is shown to lie within {verdict.margin:g} "
        "points of the mean over levels; if not, “peaked” if the slope of the score on log MTD "
        "up to an inner level and the slope down from it are both clear of zero, corrected for "
        "the choice of the level; if not, “rising” or “falling” if the slope over all levels is "
        "clear of zero and that end cannot be told from the best level; otherwise "
        "“inconclusive”. A test uses the larger of two variances, that of the levels compared "
        "and that typical of all levels; critical values are simulated for this design, with "
        "equal and with unequal variances.",
        "The levels that cannot be told from the best come from multiple comparisons with the "
        "best: the best level is among them with a probability of at least "
        f"{100 * verdict.level:g} %.",
        "Published values come from BERT-base on a million Wikipedia sentences: compare shapes "
        "with them, not levels.",
    )


def _build_section(topic: Topic[Any], info: Any, note: str) -> Section:
    drawings = {name: draw(info) for name, draw in topic.figures.items()}
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
    )


def _tabulate(topic: Topic[Any], info: Any) -> dict[str, pd.DataFrame]:
    frames = {name: make(info) for name, make in topic.csv.items()}
    return {name: frame for name, frame in frames.items() if len(frame) or topic.keep_empty}


def _build_page(
    context: StudyContext,
    summary: tuple[str, ...],
    sections: tuple[Section, ...],
    generated: str,
    version: str,
) -> Page:
    study, verdict = context.study, context.verdict
    return Page(
        name=clean(study.name),
        description=clean(study.description, most=_MOST_DESCRIPTION),
        status=describe_status(study),
        generated=generated,
        version=version,
        heading=title_summary(context),
        kind=verdict.verdict,
        summary=summary,
        numbers=_numbers(verdict) if verdict.levels > 1 else {},
        settings=describe_settings(study),
        warnings=list_warnings(context),
        command=clean(study.command, most=_MOST_FACT),
        glossary=list_terms(study),
        sections=sections,
        study_file=clean(study.study_file, most=_MOST_FILE),
        facts={clean(name): clean(value, most=_MOST_FACT) for name, value in study.facts.items()},
        methods=_describe_methods(verdict),
    )


def write_report(
    study: StudyFrames,
    out: Path,
    *,
    generated: str,
    version: str,
    topics: Sequence[Topic[Any]] = TOPICS,
) -> Report:
    """Write a study's page, figures and tables into a folder, replacing an earlier report.

    study      any study, also one without trials, still running, or all failed.
    out        folder to write `index.html`, `figures/*.png` and `tables/*.csv` into; made if
               missing. A figure or table of an earlier report that this one lacks is
               removed, if one of the topics has it.
    generated  when the report is made, as it is to be printed.
    version    of the program, as it is to be printed.
    topics     of the page, in their order.

    The same arguments give the same bytes. Each file is written beside its place and then
    moved, the page last. Raises OSError if the folder cannot be written.
    """
    context = StudyContext(study)
    found = [(topic, info) for topic in topics if (info := topic.compute(context)) is not None]
    sections = tuple(_build_section(topic, info, context.note) for topic, info in found)
    summary = summarise_study(context)
    frames = {name: frame for pair in found for name, frame in _tabulate(*pair).items()}
    files = write_files(
        out,
        render(_build_page(context, summary, sections, generated, version)),
        frames,
        sections,
        table_names=[name for topic in topics for name in topic.csv],
        figure_names=[name for topic in topics for name in topic.figures],
    )
    found_of_mtd = context.sufficiency
    answer: Answer = found_of_mtd.answer if found_of_mtd else "cannot be tested"
    return Report(files.page, files.figures, files.tables, context.verdict, summary, answer)
