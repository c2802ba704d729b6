"""Writes the page of level means: a published figure, or a table of means with bands."""

from dataclasses import replace
from pathlib import Path

from mtdlab.analysis import figures
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.inference.level_means import PUBLISHED, LevelMeans, MeansVerdict, judge_means
from mtdlab.analysis.inference.verdict import VariedHistory, Verdict
from mtdlab.analysis.questions.answer import list_numbers
from mtdlab.analysis.questions.next_steps import NextStep
from mtdlab.analysis.questions.shape import list_shape
from mtdlab.analysis.questions.shape_wording import (
    answer_shape,
    describe_certainty,
    explain_shape,
    find_effect,
    write_sentence,
)
from mtdlab.analysis.questions.varied_history import hold
from mtdlab.analysis.questions.wording import clean, format_p
from mtdlab.analysis.report.cells import describe_curve, make_table
from mtdlab.analysis.report.page import BasePage, Headline, Recommendation, Status
from mtdlab.analysis.report.topics.base import Contents, Drawing, Topic
from mtdlab.analysis.report.writer import Report, write_page

_TITLE = "Mean score against maximum traceable distance"
_ASSUMPTION = (
    "Assumption: each band is a 95 % interval of its mean. If it is one standard error instead, "
    "every z on this page is 1.96 times too large."
)
_UNPAIRED = (
    "Only level means are known, not the trials. Nothing is compared seed by seed, differences "
    "between seeds count as noise, and the trials that would settle it cannot be counted."
)
_ERRORS = (
    "A standard error is half the width of a band divided by 1.96, and is treated as known. Levels "
    "count as independent."
)
_EQUALITY = (
    "All levels equal: chi-square test of the weighted distances from the weighted mean. That p is "
    "also given without the level whose absence raises it most, to show how much rests on one "
    "level; this second p is a description and no test, since the level was chosen by it."
)


def _headline(data: LevelMeans, verdict: Verdict) -> Headline:
    best = format_mtd(verdict.peak_mtd)
    row = data.frame.loc[data.frame["mtd"] == verdict.peak_mtd].iloc[0]
    score = f"Mean {row['mean']:.2f} (95 % CI {row['low']:.2f} to {row['high']:.2f})."
    published = [name for name, (_, title) in PUBLISHED.items() if title == data.name]
    return Headline(
        question="How does the mean score depend on the maximum traceable distance (MTD)?",
        answer=answer_shape(verdict),
        certainty=describe_certainty(verdict),
        is_open=verdict.is_open,
        status=Status("", clean(data.source)),
        recommendation=Recommendation("Highest mean", {"MTD": best}, score),
        next_step=NextStep(
            "Run these levels with at least 3 seeds, and compare them seed by seed; mtdlab plan "
            "estimates the time of a study file."
        ),
        effect=find_effect(verdict),
        points="Points are mean scores × 100, as in the source.",
        scope="Covers the standard errors as given, for these evaluation data only.",
        facts={
            "Varied": f"MTD: {', '.join(map(format_mtd, data.frame['mtd']))}",
            "Data and metric": "mean score × 100, as in the source; number of trials not known",
            "Model": "none",
        },
        rerun=f"mtdlab report --published {published[0]}" if published else "",
    )


def _build(judged: MeansVerdict) -> Contents:
    data, verdict = judged.data, judged.verdict
    best = data.frame["mtd"].isin(verdict.optimal_range).map({True: "yes", False: "no"})
    table = data.frame.assign(error=data.errors.round(4), optimal=best)
    names = {"error": "standard error", "optimal": "indistinguishable from the best"}
    caption, curve = "The means, and what is derived from them.", {"mean": data.frame}
    drawing = Drawing(
        _TITLE,
        [("", lambda ax: figures.draw_conditions(curve, ax, name="mean score × 100"))],
        caption="The means with their bands, taken as 95 % intervals.",
        alt=f"{describe_curve(data.frame, 'The mean is')} {write_sentence(verdict)}",
    )
    tables = (make_table(table.rename(columns=names), caption=caption, csv="means"),)
    return Contents(csv={"means": table}, figures={"means": drawing}, tables=tables)


def write_level_means(data: LevelMeans, out: Path, *, generated: str, version: str) -> Report:
    """Write the page, the figure and the table of level means into a folder.

    The arguments are those of `write_report`. Raises OSError if the folder cannot be written.
    """
    judged = judge_means(data)
    verdict = hold(judged.verdict, VariedHistory())
    verdict = replace(verdict, sentence=write_sentence(verdict))
    judged = replace(judged, verdict=verdict)
    equality = (
        f"A test that all levels are equal has {format_p(judged.p_equal)}; without MTD "
        f"{format_mtd(judged.left_out)}, on which this rests most, it has "
        f"{format_p(judged.p_left_out)}."
    )
    summary = (verdict.sentence, equality)
    page = BasePage(
        name=clean(data.name),
        generated=generated,
        version=version,
        origin=data.origin,
        headline=_headline(data, verdict),
        summary=summary,
        limits=(_ASSUMPTION, _UNPAIRED),
        methods=(_ERRORS, *explain_shape(verdict), _EQUALITY),
    )
    topic = Topic("means", _TITLE, _build, csv=["means"])
    files = write_page(out, page, [topic], judged, main=[topic.name])
    fields = {**list_numbers(verdict), **list_shape(verdict)}
    return Report(**vars(files), verdict=verdict, summary=summary, fields=fields)
