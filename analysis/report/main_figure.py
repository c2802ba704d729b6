"""The main figure of a page, which stands below the headline."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from analysis.report.drawing import render_figure
from analysis.report.page import Figure, Section
from analysis.report.topics.base import Topic

MAIN_FIGURE = "main"
"""Name of the figure where it is one panel of several."""
_HEIGHT = 3.0
"""In inches at a width of 8: what is left of a screen of 1280 x 800 below the headline."""


def choose_main_figure(
    name: str, found: Sequence[tuple[Topic[Any], Any]], sections: tuple[Section, ...], note: str
) -> tuple[Figure | None, tuple[Section, ...]]:
    """A topic's first figure, or its first panel where there are several rows of panels.

    Returns it and the sections without it.

    name   of the topic; found: topics with what they computed; note: `StudyContext.note`.

    Low enough for the first screen. A whole figure is not repeated in its section.
    """
    for topic, info in found:
        if topic.name != name:
            continue
        for key, draw in topic.figures.items():
            drawing = draw(info)
            if drawing is None:
                continue
            whole = drawing.rows == 1
            low = replace(drawing, height=min(drawing.height, _HEIGHT))
            if not whole:
                panel, _ = drawing.panels[0]
                more = f"{panel[:1].upper()}{panel[1:]}; more in the section “{topic.title}”."
                low = replace(low, panels=[("", drawing.panels[0][1])], columns=1, caption=more)
            figure = render_figure(key if whole else MAIN_FIGURE, low, note=note)
            return figure, _without(sections, key) if whole else sections
    return None, sections


def _without(sections: tuple[Section, ...], figure: str) -> tuple[Section, ...]:
    """The sections without one figure."""
    return tuple(
        replace(part, figures=tuple(each for each in part.figures if each.name != figure))
        for part in sections
    )
