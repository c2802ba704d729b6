"""The main figure of a page, which stands below the headline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from analysis.report.drawing import Drawing
from analysis.report.topics.base import Topic

MAIN_FIGURE = "main"
"""Name of the figure where it is one panel of several."""
_HEIGHT = 3.0
"""In inches at a width of 8."""


@dataclass(frozen=True)
class MainFigure:
    """The main figure before it is drawn.

    name  `MAIN_FIGURE`, or that of the topic's figure where all of it is shown, which is then not
          repeated in its section.
    """

    name: str
    drawing: Drawing


def choose_main_figure(name: str, found: Sequence[tuple[Topic[Any], Any]]) -> MainFigure | None:
    """A topic's first figure, or its first panel where there are several rows of panels.

    name   of the topic; found: topics with what they computed.

    Low, so that the first screen shows it, unless rows of text need their height. None where the
    topic has no figure.
    """
    for topic, info in found:
        if topic.name != name:
            continue
        for key, draw in topic.figures.items():
            if (drawing := draw(info)) is None:
                continue
            low = drawing
            if not drawing.rigid:
                low = replace(drawing, height=min(drawing.height, _HEIGHT))
            if drawing.rows == 1:
                return MainFigure(key, low)
            panel, first = drawing.panels[0]
            more = f"{panel[:1].upper()}{panel[1:]}; more in the section “{topic.title}”."
            low = replace(low, panels=[("", first)], columns=1, caption=more)
            return MainFigure(MAIN_FIGURE, low)
    return None
