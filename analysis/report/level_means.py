"""Writes the page of level means: a published figure, or a table of means with bands."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pandas as pd

from analysis.level_means import LevelMeans
from analysis.means_verdict import MeansVerdict, judge_means
from analysis.report.cells import clean, make_table
from analysis.report.drawing import Drawing, render_figure
from analysis.report.files import write_files
from analysis.report.page import (
    BasePage,
    Headline,
    Recommendation,
    Section,
    Status,
    render,
)
from analysis.report.text import describe_curve
from analysis.runs import format_mtd
from analysis.verdict import format_p

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLE = "Mean score against maximum traceable distance"
_ASSUMPTION = (
    "Assumption: each band is a 95 % interval of its mean. If it is one standard error instead, "
    "every z on this page is 1.96 times too large."
)
_UNPAIRED = (
    "Only level means are known, not the runs. Nothing is compared seed by seed, differences "
    "between seeds count as noise, and the number of runs that would settle it cannot be computed."
)
_METHODS = (
    "A standard error is half the width of a band divided by 1.96, and is treated as known: the "
    "tests are z tests. Levels count as independent.",
    "Two-line test: at each inner level, a line on log MTD, weighted by 1/error², is fitted to the "
    "levels up to it and another to the levels from it. There is a peak if at one break the first "
    "line rises and the second falls, each with a z above its critical value. The critical value "
    "is what the largest z over all breaks exceeds with probability 5 % on a flat curve, from "
    "quasi-random normal vectors; it allows for the choice of the break.",
    "All levels equal: chi-square test of the weighted distances from the weighted mean. That p is "
    "also given without the level whose absence raises it most, to show how much rests on one "
    "level; this second p is a description and no test, since the level was chosen by it.",
    "Levels that are statistically indistinguishable from the best: 95 % confidence set by "
    "comparison of each level with all others (Hsu 1984), with one-sided critical values of the "
    "largest difference.",
    "The verdict is “flat” if every level lies within 0.5 points of the weighted mean (95 % "
    "intervals), else “peaked” by the two-line test, else “rising” or “falling” if the slope over "
    "all levels is significant (5 %, two-sided) and its end is within 0.5 points of the best mean, "
    "else “inconclusive”.",
)


@dataclass(frozen=True)
class MeansReport:
    """Where the page of level means was written, and its verdict."""

    page: Path
    figures: tuple[Path, ...]
    tables: tuple[Path, ...]
    verdict: MeansVerdict
    summary: tuple[str, ...]
    mtd_sufficient: Literal["cannot be tested"] = "cannot be tested"


def summarise_means(verdict: MeansVerdict) -> tuple[str, ...]:
    """The verdict, whether the levels differ, and which are indistinguishable from the best."""
    return (verdict.sentence, _describe_equality(verdict), _describe_best(verdict))


def _describe_equality(verdict: MeansVerdict) -> str:
    """Whether the levels differ at all, and how much of that rests on one level."""
    alpha = 1 - verdict.level
    if verdict.p_equal >= alpha:
        return f"A flat curve is not rejected ({format_p(verdict.p_equal)})."
    without = f"without MTD {format_mtd(verdict.left_out)}"
    if verdict.p_left_out < alpha:
        return (
            f"A flat curve is rejected ({format_p(verdict.p_equal)}), also {without} "
            f"({format_p(verdict.p_left_out)})."
        )
    return (
        f"A flat curve is rejected ({format_p(verdict.p_equal)}), but {without} it is not "
        f"({format_p(verdict.p_left_out)}): the difference rests on that level."
    )


def _describe_best(verdict: MeansVerdict) -> str:
    """The level with the highest mean, and those that are indistinguishable from it."""
    highest = f"The highest mean is at MTD {format_mtd(verdict.peak_mtd)}"
    others = [level for level in verdict.optimal_range if level != verdict.peak_mtd]
    if not others:
        return f"{highest}, and it is the best level at 95 % confidence."
    if len(others) == verdict.levels - 1:
        return f"{highest}; no other level is significantly worse."
    listed = ", ".join(map(format_mtd, others))
    return f"{highest}; statistically indistinguishable from it: MTD {listed}."


_ANSWERS: Mapping[str, str] = {
    "peaked": "The mean score peaks at MTD {best}",
    "rising": "The mean score rises with MTD",
    "falling": "The mean score falls with MTD",
    "flat": "MTD makes no difference",
    "inconclusive": "Inconclusive: no shape is significant",
}


def _headline(data: LevelMeans, verdict: MeansVerdict) -> Headline:
    """The answer, its p value, and the level with the highest mean."""
    best = format_mtd(verdict.peak_mtd)
    others = [format_mtd(level) for level in verdict.optimal_range if level != verdict.peak_mtd]
    equal = f"Statistically indistinguishable from it: MTD {', '.join(others)}." if others else ""
    row = data.frame.loc[data.frame["mtd"] == verdict.peak_mtd].iloc[0]
    score = f"Mean {row['mean']:.2f} (95 % CI {row['low']:.2f} to {row['high']:.2f})."
    of = "the slope" if verdict.verdict in ("rising", "falling") else "a peak"
    return Headline(
        question="How does the mean score depend on the maximum traceable distance (MTD)?",
        answer=_ANSWERS[verdict.verdict].format(best=best),
        certainty=f"{format_p(verdict.p_value)} for {of}; {verdict.levels} levels.",
        kind=verdict.verdict,
        status=Status("", clean(data.source)),
        recommendation=Recommendation("Highest mean", {"MTD": best}, f"{score} {equal}".strip()),
    )


def _numbers(verdict: MeansVerdict) -> Mapping[str, str]:
    lines = verdict.two_lines
    return {
        "highest mean at MTD": format_mtd(verdict.peak_mtd),
        "z of the rise (critical value)": f"{lines.rise:.2f} ({lines.critical_rise:.2f})",
        "z of the fall (critical value)": f"{lines.fall:.2f} ({lines.critical_fall:.2f})",
    }


def _table(data: LevelMeans, verdict: MeansVerdict) -> pd.DataFrame:
    best = data.frame["mtd"].isin(verdict.optimal_range).map({True: "yes", False: "no"})
    return data.frame.assign(error=data.errors.round(4), optimal=best)


def _draw(data: LevelMeans, verdict: MeansVerdict) -> Drawing:
    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_published_curve(data.frame, ax, name="mean score × 100")

    return Drawing(
        _TITLE,
        [("", panel)],
        height=3.8,
        caption="The means with their bands, taken as 95 % intervals.",
        alt=f"{describe_curve(data.frame, 'The mean is')} {verdict.sentence}",
    )


def write_level_means(data: LevelMeans, out: Path, *, generated: str, version: str) -> MeansReport:
    """Write the page, the figure and the table of level means into a folder.

    The arguments are those of `write_report`. Raises OSError if the folder cannot be written.
    """
    verdict = judge_means(data)
    summary = summarise_means(verdict)
    frame = _table(data, verdict)
    shown = frame.rename(
        columns={"error": "standard error", "optimal": "indistinguishable from the best"}
    )
    table = make_table(shown, caption="The means, and what is derived from them.", csv="means")
    figure = render_figure("means", _draw(data, verdict))
    sections = (Section("means", _TITLE, tables=(table,)),)
    page = BasePage(
        name=clean(data.name),
        generated=generated,
        version=version,
        headline=_headline(data, verdict),
        figure=figure,
        summary=summary,
        numbers=_numbers(verdict),
        limits=(_ASSUMPTION, _UNPAIRED),
        sections=sections,
        methods=_METHODS,
    )
    files = write_files(
        out,
        render(page),
        {"means": frame},
        sections,
        table_names=("means",),
        figure_names=("means",),
        figure=figure,
    )
    return MeansReport(files.page, files.figures, files.tables, verdict, summary)
