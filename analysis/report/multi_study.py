"""Writes one page over several studies, and each study's own page that it links to."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pandas as pd

from analysis.frames import StudyFrames
from analysis.multi_study import (
    compute_best_spectra,
    compute_curves,
    compute_overview,
    compute_ranks,
    find_shared_differences,
    studies_by_method,
)
from analysis.report.cells import clean, make_table
from analysis.report.context import StudyContext, describe_selection
from analysis.report.drawing import Drawing, render_figure
from analysis.report.files import write_files
from analysis.report.multi_headline import compare_studies, describe_verdict
from analysis.report.page import BasePage, Figure, Section, Table, render
from analysis.report.text import LEVEL, PERCENT
from analysis.report.transfer import AGREEMENT, CANDIDATES, section_transfer
from analysis.report.trial_links import trial_anchor
from analysis.report.writer import Report, write_report
from analysis.runs import format_mtd
from analysis.tasks import label_score
from analysis.transfer import Agreement

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TABLES = ("studies", "mtd_curves", "spectra", "effective_rank", AGREEMENT, CANDIDATES)
_METHODS = (
    "Means are over per-seed means; intervals are t intervals over seeds. The best of several "
    "means is biased upwards, more so the more configurations a study has: compare studies at the "
    "same configuration before drawing conclusions from their best.",
    "Spectra are of the run with each study's best score, each divided by its largest value.",
)


@dataclass(frozen=True)
class MultiStudyReport:
    """Where a page over several studies was written, and each study's own by its name.

    agreements  how the first study's answer agrees with the others', where this was requested.
    """

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    pages: Mapping[str, Report]
    agreements: tuple[Agreement, ...] = ()

    def __repr__(self) -> str:
        """The pages, a line each."""
        own = (f"{name}: {report.page}" for name, report in self.pages.items())
        return "\n".join([str(self.page), *own])


def _section_studies(overview: pd.DataFrame) -> Section:
    links = tuple(f"../{quote(name)}/index.html" for name in overview["study"])
    shown = overview.drop(columns=["completed", "planned"]).rename(
        columns={"setting": "best configuration", "n": "trials of it", "mean": "best mean"}
    )
    trials = [
        f"{done} of {planned}"
        for done, planned in zip(overview["completed"], overview["planned"], strict=True)
    ]
    shown.insert(2, "trials", trials)
    shown["best configuration"] = shown["best configuration"].replace("", "nothing varied")
    table = make_table(
        shown,
        caption=(
            f"Each study's best configuration with its {PERCENT} CI over seeds, and its verdict "
            "on MTD. A study's name links to its page."
        ),
        csv="studies",
    )
    linked = Table(table.caption, table.columns, table.rows, table.csv, links=links)
    empty = overview.loc[overview["n"].isna(), "study"]
    said = tuple(f"{clean(name)} has no completed run with a score yet." for name in empty)
    return Section("studies", "The studies", said, tables=(linked,))


def describe_differences(studies: Sequence[StudyFrames]) -> str:
    """In what else studies differ that are drawn in the same axes; nothing where they agree."""
    texts = []
    for name, values in find_shared_differences(studies).items():
        of = (f"{clean(value)} in {clean(', '.join(names))}" for value, names in values.items())
        texts.append(f"{name} ({'; '.join(of)})")
    if not texts:
        return ""
    return f" The studies differ in more than this: {', '.join(texts)}."


def with_curves(curves: pd.DataFrame) -> pd.DataFrame:
    """The studies of more than one MTD, and runs without one; all if none has several."""
    levels = curves.groupby("study")["mtd"].transform("nunique")
    if not (levels > 1).any():
        return curves
    return curves[(levels > 1) | (curves["mtd"] == 0)]


def _draw_metric(
    place: int, metric: str, every: pd.DataFrame, note: str, studies: Sequence[StudyFrames]
) -> Figure:
    curves = with_curves(every)
    shown = [study for study in studies_by_method(studies) if study.name in set(curves["study"])]
    untraced = {study.name: StudyContext(study).untraced_methods for study in shown}
    differences = describe_differences(shown)
    alone = " Studies at a single MTD are in the table only." if len(curves) < len(every) else ""
    best = curves.iloc[int(curves["mean"].argmax())]
    names = [study.name for study in studies]
    evaluations = {study.facts.get("evaluation", "") for study in shown}
    label = clean(label_score(metric, evaluations.pop() if len(evaluations) == 1 else ""), most=60)
    linked = curves.assign(href=[_address(row, names) for row in curves.to_dict("records")])

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_studies(linked, ax, studies=names, untraced=untraced, name=label)

    drawing = Drawing(
        f"Score against maximum traceable distance: {clean(metric)}",
        [("", panel)],
        height=3.1,
        caption=(
            f"Mean over seeds for each study; the band is the {PERCENT} t interval. A "
            f"horizontal line is the mean of trials without an MTD.{alone}{differences}"
        ),
        alt=(
            f"The highest mean is {best['mean']:.2f}, of {clean(best['study'])} at MTD "
            f"{format_mtd(best['mtd'])}."
        ),
    )
    return render_figure(f"mtd_curves_{place}", drawing, note=note)


def _address(row: Mapping[Hashable, Any], names: Sequence[str]) -> str:
    """Where a point leads: the row of its trial on its study's own page."""
    name = str(row["study"])
    owner = name if name in names else name.rpartition(": ")[0]
    return f"../{quote(owner)}/index.html#{trial_anchor(int(row['trial']))}"


def _section_score(studies: Sequence[StudyFrames], curves: pd.DataFrame, note: str) -> Section:
    title = "Score against maximum traceable distance"
    if not len(curves):
        return Section("score", title, ("No completed trial has a score, so there is no curve.",))
    metrics = list(curves["metric"].unique())
    drawn = tuple(
        _draw_metric(place, metric, curves[curves["metric"] == metric], note, studies)
        for place, metric in enumerate(metrics, start=1)
    )
    said = tuple(figure.alt for figure in drawn)
    if len(metrics) > 1:
        names = ", ".join(clean(metric) for metric in metrics)
        said = (
            f"The studies have different metrics ({names}), which are not drawn in one figure: "
            "their scores cannot be compared.",
            *said,
        )
    shown = curves.drop(columns=["text", "trial"])
    table = make_table(shown, caption="Mean score of each study by MTD.", csv="mtd_curves")
    return Section("score", title, said, figures=drawn, tables=(table,))


def _section_spectra(
    spectra: pd.DataFrame, ranks: pd.DataFrame, note: str, studies: Sequence[StudyFrames]
) -> Section | None:
    if not len(spectra):
        return None
    alt = " ".join(
        f"{clean(model)}: effective rank {rank:.1f}."
        for model, rank in zip(ranks["model"], ranks["rank"], strict=True)
    )
    names = [study.name for study in studies]

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_models(spectra, ax, studies=names)

    drawing = Drawing(
        "Singular values of the best models",
        [("", panel)],
        height=4.4,
        caption=(
            "Singular values of the evaluation sentences' embeddings, each divided by the "
            "largest; dashed before training. A flatter line means that more dimensions are used."
        ),
        alt=alt,
    )
    figure = render_figure("spectra", drawing, note=note)
    table = make_table(ranks, caption="Effective rank of each model.", csv="effective_rank")
    return Section("spectra", "Spectra", (alt,), figures=(figure,), tables=(table,))


def _take_first_figure(
    sections: tuple[Section, ...],
) -> tuple[Figure | None, tuple[Section, ...]]:
    """The first figure, for below the headline, and the sections without it."""
    for at, section in enumerate(sections):
        if section.figures:
            rest = replace(section, figures=section.figures[1:])
            return section.figures[0], (*sections[:at], rest, *sections[at + 1 :])
    return None, sections


def write_multi_study(
    studies: Sequence[StudyFrames],
    out: Path,
    *,
    name: str,
    generated: str,
    version: str,
    transfer: bool = False,
) -> MultiStudyReport:
    """Write each study's own page into `out / STUDY` and one over all into `out / name`.

    studies    one or more, of different names, also unfinished ones and those without a score.
    name       of the page's folder; none of the studies'.
    transfer   whether to compare the first study's answer with the others' (`analysis.transfer`).
    generated, version  as for `write_report`.

    The same arguments give the same bytes. Raises ValueError for a name that is a study's, and
    OSError if a folder cannot be written.
    """
    if name in {study.name for study in studies}:
        raise ValueError(f"the page cannot be called {name}: one of its studies is; choose another")
    pages = {
        study.name: write_report(study, out / study.name, generated=generated, version=version)
        for study in studies
    }
    overview = compute_overview(studies, level=LEVEL).assign(
        verdict=[describe_verdict(pages[study.name].verdict) for study in studies]
    )
    curves, spectra = compute_curves(studies, level=LEVEL), compute_best_spectra(studies)
    ranks = compute_ranks(spectra)
    noted: dict[str, list[str]] = {}
    for study in studies:
        if selection := describe_selection(study.trials):
            noted.setdefault(selection, []).append(study.name)
    note = "; ".join(f"{text}: {', '.join(names)}" for text, names in noted.items())
    predicted, compared, agreements = (
        section_transfer(studies, note) if transfer else (None, {}, [])
    )
    found = (
        _section_studies(overview),
        _section_score(studies, curves, note),
        predicted,
        _section_spectra(spectra, ranks, note, studies),
    )
    sections = tuple(section for section in found if section is not None)
    figure, sections = _take_first_figure(sections)
    page = BasePage(
        name=clean(name),
        generated=generated,
        version=version,
        headline=compare_studies(studies, overview),
        figure=figure,
        limits=(f"{clean(note[0].upper() + note[1:])}.",) if note else (),
        sections=sections,
        methods=_METHODS,
    )
    frames = {
        "studies": overview,
        "mtd_curves": curves.drop(columns=["text", "trial"]),
        "spectra": spectra.reset_index(),
        "effective_rank": ranks,
        **compared,
    }
    kept = {key: frame for key, frame in frames.items() if len(frame)}
    earlier = [path.stem for path in (out / name / "figures").glob("mtd_curves_*.png")]
    files = write_files(
        out / name,
        render(page),
        kept,
        sections,
        table_names=_TABLES,
        figure_names=["spectra", "transfer", *earlier],
        figure=figure,
    )
    return MultiStudyReport(files.page, files.figures, files.tables, pages, tuple(agreements))
