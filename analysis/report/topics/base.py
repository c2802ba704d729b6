"""What a topic of a report consists of, and its figures: as SVG in two widths, and as files.

A topic is a function from a study to the CSV tables, figures, tables and text of a section.
`topics/__init__.py` registers it. What a topic is made of is imported from here. A figure is
described without matplotlib, which `render_figure` imports.
"""

import textwrap
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.metric import POINTS, ScoreFormat
from mtdlab.analysis.questions.wording import capitalise
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.page import Figure, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as MatplotlibFigure
else:
    Axes = Any  # annotations of panels name it, and matplotlib is not imported for them

__all__ = ["Axes", "Contents", "Draw", "Drawing", "StudyContext", "Table", "Topic"]

Draw = Callable[[Axes], None]

_WIDE, _NARROW, HEIGHT, _MOST_LEAD = 8.0, 4.2, 3.9, 5.4
LEAD_WIDTH = 7.0
"""The width of the main figure in inches; on a wide page it stands beside the answer."""
_MOST_NARROW = 3.5
# The width of a letter of a title, and of what stands at the left of it, in points.
_LETTER, _ASIDE = 6.4, 60


@dataclass(frozen=True)
class Drawing:
    """A figure before it is drawn.

    Attributes:
        panels: title of each panel and the function that draws it, row by row from the top left. It
            is called for each width and must draw the same.
        caption: what is drawn.
        alt: what the figure shows, for readers who do not see it.
        height, width: those of a row of panels where the page is wide, in inches.
        scores: how its scores are written; None: as those of the page.
        rigid: whether a panel needs its height on a narrow page too, and all of the width, as one
            with rows of text does.
    """

    title: str
    panels: Sequence[tuple[str, Draw]]
    caption: str
    alt: str
    height: float = HEIGHT
    rigid: bool = False
    width: float = _WIDE
    scores: ScoreFormat | None = None

    @property
    def columns(self) -> int:
        """How many columns of panels a wide page has; a narrow one has one."""
        return 1 if self.rigid else min(len(self.panels), 2)

    @property
    def rows(self) -> int:
        return -(-len(self.panels) // self.columns)


def render_figure(
    name: str, drawing: Drawing, *, note: str = "", scores: ScoreFormat = POINTS
) -> Figure:
    """Draw a figure; `note` stands in the figure itself, below its panels."""
    with figures.figure_style(name, drawing.scores or scores):
        wide = compose(drawing, note)
        vector = figures.to_svg(wide)
        described = {"name": name, "title": drawing.title, "description": drawing.alt}
        page = figures.to_page(wide, vector, **described)
        # The layout is known now: computing it again for the PNG takes as long as drawing.
        wide.set_layout_engine("none")
        png = figures.to_png(wide)
        narrow = compose(drawing, note, narrow=True)
        page += figures.to_page(narrow, figures.to_svg(narrow), **described, layout="narrow")
    files = {"png": png, "svg": vector.encode()}
    return Figure(name, drawing.title, drawing.caption, page, files)


def compose(drawing: Drawing, note: str = "", *, narrow: bool = False) -> "MatplotlibFigure":
    """The figure with all its panels, on a wide or on a narrow page, in `figures.figure_style`."""
    panels, rows, columns = drawing.panels, drawing.rows, drawing.columns
    width, height = drawing.width, drawing.height
    if narrow:
        rows, columns, width = len(panels), 1, _NARROW
        height = height if drawing.rigid else min(height, _MOST_NARROW)
    figure, axes = figures.new_figure(rows, columns, width=width, height=rows * height)
    letters = int((72 * width / columns - _ASIDE) / _LETTER)
    for ax, (title, draw) in zip(axes, panels, strict=False):
        draw(ax)
        figures.turn_axes(ax)
        # a given height spares matplotlib the search, in each draw, for what stands above the axes
        ax.set_title("\n".join(textwrap.wrap(title, letters)), y=None if ax.child_axes else 1.0)
    for ax in axes[len(panels) :]:
        ax.set_axis_off()
    if note:
        figure.supxlabel(note, fontsize=9, color=figures.OTHER, x=0.99, ha="right")
    return figure


@dataclass(frozen=True)
class Contents:
    """What a topic has to say, in the order in which its parts stand on the page.

    Attributes:
        csv: name of the file -> the table; without rows only that of trials or levels is written.
        text: its paragraphs; empty ones are left out.
        warnings: sentences on the limits of the conclusions.
        missing: a sentence that stands in place of the section, among what limits the conclusions,
            where the study cannot answer the topic's question; else empty.
        figures: name of the file and of the figure -> what is drawn, or None for no figure.
        tables: the tables shown on the page, but for those without rows.
        folded: whether its section shows its heading alone until a reader opens it.
    """

    csv: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    text: Iterable[str] = ()
    warnings: Iterable[str] = ()
    missing: str = ""
    figures: Mapping[str, Drawing | None] = field(default_factory=dict)
    tables: Iterable[Table] = ()
    folded: bool = False


Context = TypeVar("Context")


@dataclass(frozen=True)
class Topic(Generic[Context]):
    """One topic of a page. Its context is what the page is about: a study, or several.

    Attributes:
        name: anchor of its section, unique on the page.
        title: heading of its section.
        build: its contents, or None where the study has nothing on this topic; without matplotlib,
            which only the functions that draw a panel need.
        csv: the names of the tables that its contents may have.
        group: the heading in the contents under which its section stands.
        answers: the kinds of question whose answer it shows.
    """

    name: str
    title: str
    build: Callable[[Context], Contents | None]
    csv: Sequence[str] = ()
    group: str = "Results"
    answers: tuple[type, ...] = ()

    def answers_to(self, question: object) -> bool:
        """Whether it shows the answer to a question."""
        return isinstance(question, self.answers)


_ROW = 2.8
"""The height of a row of the main figure where there are two."""


def choose_main_figure(
    names: Collection[str] | None, built: Sequence[tuple[Topic[Any], Contents]]
) -> tuple[str, Drawing] | None:
    """The first figure of a topic with its name, by which its section does not repeat it.

    The figure is low, so that the first screen shows it, unless rows of text need their height; of
    more than two rows of panels it is the first panel, as a figure of its own. `names` are those of
    the topics that may have it; None: all. None without one.
    """
    for topic, contents in built:
        for key, drawing in (
            contents.figures.items() if names is None or topic.name in names else ()
        ):
            if drawing is None:
                continue
            most = _MOST_LEAD if drawing.rows == 1 else _ROW
            height = drawing.height if drawing.rigid else min(drawing.height, most)
            low = replace(drawing, width=LEAD_WIDTH, height=height)
            if drawing.rows <= 2 or drawing.rigid:
                return key, low
            first, draw = drawing.panels[0]
            caption = f"{capitalise(first)}; more in the section “{topic.title}”."
            height = min(drawing.height, HEIGHT)
            return "main", replace(low, panels=[("", draw)], caption=caption, height=height)
    return None
