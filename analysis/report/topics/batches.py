"""Topic: the score against MTD for each batch size (MoCoSE, figure 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.published import SCORE, SOURCE, load_curve
from analysis.data.runs import format_mtd
from analysis.inference.intervals import share_level
from analysis.inference.pairing import compute_paired_curve, level_scores, summarise_scores
from analysis.inference.verdict import Verdict, judge_levels
from analysis.report.cells import (
    PERCENT,
    describe_items,
    describe_shared_level,
    make_table,
)
from analysis.report.topics.base import Draw, Drawing, StudyContext, Table, Topic


@dataclass(frozen=True)
class Batches:
    """Curves by batch size, the same less each seed's mean, and a verdict for each size.

    The verdicts share the error rate of 5 % (Bonferroni).
    """

    context: StudyContext
    curves: pd.DataFrame
    paired: pd.DataFrame
    verdicts: Mapping[int, Verdict]


def compute(context: StudyContext) -> Batches | None:
    """The curves; None unless there are several batch sizes, one at several levels of MTD."""
    study, runs = context.study, context.traced
    curves = summarise_scores(runs, by=["batch_size", "mtd"], items=study.items)
    # a study of batch sizes alone has one MTD for each of them
    curved = (curves.groupby("batch_size")["mtd"].nunique() > 1).any()
    if runs["batch_size"].nunique() < 2 or not curved:
        return None
    levels = {
        int(str(size)): level_scores(
            group, study.settings, study.items, beyond_run=study.beyond_run
        )
        for size, group in runs.groupby("batch_size")
    }
    paired = [
        compute_paired_curve(scores).assign(batch_size=size) for size, scores in levels.items()
    ]
    return Batches(
        context,
        curves.join(describe_means(curves, runs, by=["batch_size", "mtd"])),
        pd.concat(paired, ignore_index=True),
        {
            size: judge_levels(scores, level=share_level(len(levels)))
            for size, scores in levels.items()
        },
    )


def tabulate(info: Batches) -> pd.DataFrame:
    """The curves without the columns for their points."""
    return info.curves.drop(columns=["text", "trial"])


def show(info: Batches) -> tuple[Table, ...]:
    covered, labels = describe_items(int(info.curves["items"].min())), info.context.labels
    caption = f"Mean score by batch size and MTD with its {PERCENT} interval over seeds{covered}."
    table = tabulate(info).drop(columns="items")
    return (make_table(table, caption=caption, csv="mtd_by_batch", labels=labels, many="rows"),)


def describe(info: Batches) -> tuple[str, ...]:
    return (
        *(f"Batch size {size}. {verdict.sentence}" for size, verdict in info.verdicts.items()),
        describe_shared_level(len(info.verdicts)),
    )


def draw(info: Batches) -> Drawing:
    published = load_curve("figure3_mtd_by_batch")
    sizes = sorted({*info.curves["batch_size"], *published["batch_size"]})
    verdicts = [
        f"Batch size {size}: {verdict.verdict}, best at MTD {format_mtd(verdict.peak_mtd)}."
        for size, verdict in info.verdicts.items()
    ]
    paired = "deviation from the mean over levels"
    return Drawing(
        "Score against maximum traceable distance, by batch size",
        [
            ("this study: mean over seeds", _panel(info.curves, sizes, info.context.score_label)),
            (f"this study: {paired}", _panel(info.paired, sizes, paired.replace("the ", "the\n"))),
            (SOURCE, _panel(published, sizes, SCORE)),
        ],
        height=7.4,
        columns=2,
        caption=(
            "First: mean over seeds. Second: deviation from the mean over levels at that batch "
            f"size. Third: figure 3 of the paper; compare its shape, not its level. Bands of this "
            f"study are {PERCENT} intervals of one level over "
            f"seeds{describe_items(int(info.curves['items'].min()))}."
        ),
        alt=" ".join(verdicts),
    )


def _panel(curves: pd.DataFrame, sizes: Sequence[int], label: str) -> Draw:
    return lambda ax: figures.draw_batch_curves(curves, ax, sizes=sizes, name=label)


TOPIC = Topic(
    name="batches",
    title="By batch size",
    compute=compute,
    csv={"mtd_by_batch": tabulate},
    figures={"mtd_by_batch": draw},
    text=describe,
    tables=show,
)
