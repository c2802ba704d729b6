"""Topic: the curve of a study over MTD beside that of the paper, and its best level."""

from dataclasses import dataclass

from analysis import figures
from analysis.data.published import SOURCE, load_curve
from analysis.report.cells import PERCENT, describe_curve
from analysis.report.topics.base import Drawing, StudyContext, Topic
from analysis.report.topics.experiment import describe_paper, is_curve


@dataclass(frozen=True)
class Published:
    """The sentences on the paper's experiments whose rows are the levels of the study's MTD."""

    context: StudyContext
    texts: tuple[str, ...]


def compute(context: StudyContext) -> Published | None:
    """The curves; None for a program of the user, whose data are others, or without two levels."""
    if len(context.paired) < 2 or context.study.program:
        return None
    curves = (
        comparison for comparison in context.comparisons.values() if is_curve(comparison, context)
    )
    return Published(context, tuple(map(describe_paper, curves)))


def draw(info: Published) -> Drawing:
    """The study's curve beside the paper's, each as deviations from its own mean."""
    context, published = info.context, load_curve("figure2_mtd")
    return Drawing(
        "Shape of the curve beside that of the paper",
        [("", lambda ax: figures.draw_deviations(context.paired, published, ax))],
        height=3.2,
        caption=(
            f"Each curve less its mean over its own levels, which differ; the paper's is figure 2 "
            f"({SOURCE}). Bands are {PERCENT} intervals."
        ),
        alt=describe_curve(published, "The published mean is"),
    )


TOPIC = Topic(
    name="published",
    title="Beside the paper's curve",
    compute=compute,
    csv={},
    figures={"mtd_published": draw},
    text=lambda info: info.texts,
    folded=lambda _: True,
)
