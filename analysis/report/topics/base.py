"""What a topic of a report consists of.

A topic is one file: it computes its results from a study, and turns them into CSV tables,
figures, tables of the page and text by separate functions. `topics/__init__.py` registers it. What
a topic is made of is imported from here.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

import pandas as pd

from analysis.report.context import StudyContext
from analysis.report.drawing import LEAD_WIDTH, Axes, Draw, Drawing
from analysis.report.page import Table

__all__ = ["Axes", "Draw", "Drawing", "StudyContext", "Table", "Topic"]

Context = TypeVar("Context")
Info = TypeVar("Info")


@dataclass(frozen=True)
class Topic(Generic[Context, Info]):
    """One topic of a page, in the order in which its parts stand there.

    Its context is what the page is about: a study, several studies, or level means.

    Attributes:
        name: anchor of its section, unique on the page.
        title: heading of its section.
        compute: its results, or None where the study has nothing on this topic; without matplotlib,
            as are all functions here but those that draw a panel.
        text: its paragraphs; empty ones are left out.
        warnings: sentences on the limits of the conclusions.
        missing: a sentence that stands in place of the section, among what limits the conclusions,
            where the study cannot answer the topic's question; else empty.
        figures: name of the file and of the figure -> what is drawn, or None for no figure.
        tables: the tables shown on the page, but for those without rows.
        group: the heading in the contents under which its section stands.
        folded: whether its section shows its heading alone until a reader opens it.
        csv: name of the file -> the table written; one without rows is not written, unless
            keep_empty.
    """

    name: str
    title: str
    compute: Callable[[Context], Info | None]
    csv: Mapping[str, Callable[[Info], pd.DataFrame]]
    figures: Mapping[str, Callable[[Info], Drawing | None]] = field(default_factory=dict)
    text: Callable[[Info], Iterable[str]] = lambda _: ()
    warnings: Callable[[Info], Iterable[str]] = lambda _: ()
    missing: Callable[[Info], str] = lambda _: ""
    tables: Callable[[Info], Iterable[Table]] = lambda _: ()
    keep_empty: bool = False
    group: str = "Results"
    folded: Callable[[Info], bool] = lambda _: False


MAIN_FIGURE = "main"
"""Name of the figure where it is one panel of several."""
_LOWEST, _ROW = 3.9, 2.1
"""Height of the main figure with one row of panels, and of each row where there are two."""
_MOST_ROWS = 2


def choose_main_figure(
    name: str | None, computed: Sequence[tuple[Topic[Any, Any], Any]]
) -> tuple[str, Drawing] | None:
    """A topic's first figure, or its first panel where there are many rows of panels.

    The figure is low, so that the first screen shows it, unless rows of text need their height.

    Args:
        name: the topic's name; None for the first topic that has a figure.
        computed: topics with their results.

    Returns:
        `MAIN_FIGURE`, or the name of the topic's figure where all of it is shown, which is then not
        repeated in its section; and the figure. None where the topic has none.
    """
    for topic, info in computed:
        for key, draw in topic.figures.items() if name in (None, topic.name) else ():
            if (drawing := draw(info)) is None:
                continue
            low = replace(drawing, width=LEAD_WIDTH)
            if not drawing.rigid:
                most = _LOWEST if drawing.rows == 1 else _ROW * drawing.rows
                low = replace(low, height=min(drawing.height, most))
            if drawing.rows <= _MOST_ROWS:
                return key, low
            panel, first = drawing.panels[0]
            more = f"{panel[:1].upper()}{panel[1:]}; more in the section “{topic.title}”."
            height = min(low.height, _LOWEST)
            low = replace(low, height=height, panels=[("", first)], columns=1, caption=more)
            return MAIN_FIGURE, low
    return None
