"""Topic: the score against MTD for each batch size (MoCoSE, figure 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis.curves import compute_batch_curves
from analysis.pairing import compute_paired_batch_curves
from analysis.points import describe_means
from analysis.published import SCORE, SOURCE, load_curve
from analysis.report.cells import make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.text import BAND, LEVEL
from analysis.report.topics.base import Topic
from analysis.runs import format_mtd
from analysis.verdict import Verdict, compute_verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Batches:
    """Curves by batch size, the same less each seed's mean, and a verdict for each size.

    labels  of the columns that are settings; score: of scores.
    """

    curves: pd.DataFrame
    paired: pd.DataFrame
    verdicts: Mapping[int, Verdict]
    labels: Mapping[str, str]
    score: str


def compute(context: StudyContext) -> Batches | None:
    """None unless there are several batch sizes, one of them at several levels of MTD."""
    runs, settings, items = context.traced, context.study.settings, context.study.items
    sizes = sorted(runs["batch_size"].unique())
    curves = compute_batch_curves(context.curve_trials, level=LEVEL)
    labels = describe_means(curves, runs, by=["batch_size", "mtd"])
    # a study of batch sizes alone has one MTD for each of them
    curved = (curves.groupby("batch_size")["mtd"].nunique() > 1).any()
    if len(sizes) < 2 or not curved:
        return None
    return Batches(
        curves=curves.join(labels),
        paired=compute_paired_batch_curves(
            context.curve_trials, settings, items=items, level=LEVEL
        ),
        verdicts={
            int(size): compute_verdict(
                runs[runs["batch_size"] == size], settings, items=items, level=LEVEL
            )
            for size in sizes
        },
        labels=context.labels,
        score=context.score_label,
    )


def show(info: Batches) -> tuple[Table, ...]:
    """The curves as a table."""
    rows, remark = thin_rows(_numbers(info), "rows")
    caption = f"Mean score by batch size and MTD.{remark}"
    return (make_table(rows, caption=caption, csv="mtd_by_batch", labels=info.labels),)


def _numbers(info: Batches) -> pd.DataFrame:
    """The curves without what their points state."""
    return info.curves.drop(columns=["text", "trial"])


def describe(info: Batches) -> tuple[str, ...]:
    """The verdict on each batch size."""
    return tuple(
        f"Batch size {size}. {verdict.sentence}" for size, verdict in info.verdicts.items()
    )


def draw(info: Batches) -> Drawing:
    """The curves, the paired curves, and the paper's curves."""
    published = load_curve("figure3_mtd_by_batch")
    sizes = sorted({*info.curves["batch_size"], *published["batch_size"]})
    verdicts = [
        f"Batch size {size}: {verdict.verdict}, best at MTD {format_mtd(verdict.peak_mtd)}."
        for size, verdict in info.verdicts.items()
    ]
    return Drawing(
        "Score against maximum traceable distance, by batch size",
        [
            ("this study: mean over seeds", _panel(info.curves, sizes, info.score)),
            (
                "this study: deviation from the mean over levels",
                _panel(info.paired, sizes, "deviation from the\nmean over levels"),
            ),
            (SOURCE, _panel(published, sizes, SCORE)),
        ],
        height=7.4,
        columns=2,
        caption=(
            "First: mean over seeds. Second: deviation from the mean over levels at that batch "
            f"size. Third: figure 3 of the paper; compare its shape, not its level. {BAND}"
        ),
        alt=" ".join(verdicts),
    )


def _panel(curves: pd.DataFrame, sizes: Sequence[int], label: str) -> Draw:
    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_batch_curves(curves, ax, sizes=sizes, name=label)

    return panel


TOPIC = Topic(
    name="batches",
    title="By batch size",
    compute=compute,
    csv={"mtd_by_batch": _numbers},
    figures={"mtd_by_batch": draw},
    text=describe,
    tables=show,
)
