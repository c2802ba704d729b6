"""A study in a notebook: its verdict, its main figure, and a small view of it as HTML.

These are the methods of `StudyFrames` that compute something, imported when one is called: the
statistics and matplotlib take a second to import.
"""

from html import escape
from typing import TYPE_CHECKING

from analysis.frames import StudyFrames
from analysis.report.configuration import list_varied
from analysis.report.context import StudyContext
from analysis.report.findings import find_best_level
from analysis.report.gain import find_no_gain
from analysis.report.header import summarise_study
from analysis.report.status import describe_status
from analysis.report.topics import methods, score
from analysis.runs import completed_runs
from analysis.verdict import Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def find_verdict(study: StudyFrames) -> Verdict:
    """The verdict of the study's page."""
    return StudyContext(study).verdict


def find_summary(study: StudyFrames) -> str:
    """The first sentence of the page's summary: the verdict, or how methods differ."""
    return summarise_study(StudyContext(study))[0]


def find_no_gain_of(study: StudyFrames) -> str:
    """That training did not raise the score at the best level, with numbers; empty where it did."""
    context = StudyContext(study)
    if not len(completed_runs(context.curve_trials)):
        return ""
    found = find_no_gain(context, find_best_level(context))
    return f"{found.answer}. {found.certainty}" if found else ""


def draw_study(study: StudyFrames) -> "Figure":
    """The main figure of the page: score against MTD, or the methods where MTD did not vary."""
    context = StudyContext(study)
    drawing = None
    if context.verdict.levels < 2 and (compared := methods.compute(context)) is not None:
        drawing = next(iter(methods.TOPIC.figures.values()))(compared)
    if drawing is None:
        draw = next(iter(score.TOPIC.figures.values()))
        drawing = draw(score.compute(context))
    if drawing is None:
        raise ValueError(f"study {study.name}: no run has completed with a score yet")
    from analysis.figures.shown import draw_panels

    return draw_panels(study.name, drawing.panels, drawing.height)


def write_html(study: StudyFrames) -> str:
    """The study's name, status, question, finding and varied settings as a small table."""
    status = describe_status(study)
    rows = {
        "question": study.description,
        "status": f"{status.kind}: {status.text}",
        "finding": find_summary(study),
        **{f"varied: {name}": values for name, values in list_varied(study).items()},
        "training": find_no_gain_of(study),
        "score": f"{study.metric}, in points",
    }
    cells = "".join(
        f'<tr><th style="text-align:left;vertical-align:top">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(text)}</td></tr>'
        for name, text in rows.items()
        if text
    )
    return f"<div><b>Study {escape(study.name)}</b><table>{cells}</table></div>"
