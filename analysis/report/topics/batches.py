"""Topic: the score against MTD for each batch size (MoCoSE, figure 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.published import SCORE, SOURCE, load_curve
from analysis.data.runs import format_mtd
from analysis.inference.pairing import compute_paired_curve, level_scores
from analysis.inference.verdict import Verdict, judge_levels
from analysis.report.cells import BAND, make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.curves import compute_batch_curves

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Batches:
    """Curves by batch size, the same less each seed's mean, and a verdict for each size.

    Attributes:
        labels: of the columns that are settings.
        score: of scores.
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
    curves = compute_batch_curves(context.curve_trials)
    labels = describe_means(curves, runs, by=["batch_size", "mtd"])
    # a study of batch sizes alone has one MTD for each of them
    curved = (curves.groupby("batch_size")["mtd"].nunique() > 1).any()
    if len(sizes) < 2 or not curved:
        return None
    levels = {
        int(size): level_scores(runs[runs["batch_size"] == size], settings, items) for size in sizes
    }
    paired = [compute_paired_curve(each).assign(batch_size=size) for size, each in levels.items()]
    return Batches(
        curves=curves.join(labels),
        paired=pd.concat(paired, ignore_index=True),
        verdicts={size: judge_levels(each) for size, each in levels.items()},
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
    return lambda ax: figures.draw_batch_curves(curves, ax, sizes=sizes, name=label)


TOPIC = Topic(
    name="batches",
    title="By batch size",
    compute=compute,
    csv={"mtd_by_batch": _numbers},
    figures={"mtd_by_batch": draw},
    text=describe,
    tables=show,
)
