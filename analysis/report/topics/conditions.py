"""Topics: the optimum in MTD by learning rate and steps; the score by batch size (figure 3)."""

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.published import SCORE, SOURCE, load_curve
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.questions.conditions import (
    Condition,
    ConditionsQuestion,
    find_conditions,
    judge_conditions,
)
from mtdlab.analysis.questions.wording import (
    PERCENT,
    capitalise,
    describe_items,
    state_equivalence,
)
from mtdlab.analysis.report.cells import describe_covered, make_table
from mtdlab.analysis.report.topics.base import Contents, Draw, Drawing, StudyContext, Table, Topic

ROBUSTNESS = "Robustness of the optimum"
_MARGIN = 0.05


def _describe_shared_level(conditions: Sequence[Condition]) -> str:
    each = conditions[0].verdict.level
    return (
        f"The {len(conditions)} verdicts share the error rate of "
        f"{100 * len(conditions) * (1 - each):.3g} %: each is at {100 * each:.4g} % confidence "
        "(Bonferroni)."
    )


def _list_best(conditions: Sequence[Condition]) -> str:
    """A sentence for each condition: its verdict, and where the mean is best."""
    return " ".join(
        f"{capitalise(condition.name)}: {condition.verdict.label}, best at MTD "
        f"{format_mtd(condition.verdict.peak_mtd)}."
        for condition in conditions
    )


def build(context: StudyContext) -> Contents | None:
    """Where the mean is best in each condition, and what a verdict holds for."""
    if isinstance(main := context.question, ConditionsQuestion):
        conditions = main.conditions
    else:
        conditions = find_conditions(context)
    if not conditions:
        return None
    rows = [
        {
            "condition": condition.name,
            "seeds": condition.verdict.seeds,
            "verdict": condition.verdict.label,
            "best_mtd": condition.verdict.peak_mtd,
            "best_low": min(condition.verdict.optimal_range, default=math.nan),
            "best_high": max(condition.verdict.optimal_range, default=math.nan),
            "half_life": condition.half_life,
        }
        for condition in conditions
    ]
    table = pd.DataFrame(rows)
    curves = [
        context.write.frame(condition.curve).assign(condition=condition.name)
        for condition in conditions
    ]
    return Contents(
        csv={"robustness": table, "robustness_curves": pd.concat(curves, ignore_index=True)},
        figures={"robustness": _draw(conditions, _list_best(conditions))},
        text=(
            _describe_shared_level(conditions),
            "A verdict holds for the learning rate, the steps and the batch size at which its "
            "trials were made: how far the weights move in a step depends on them, and so may an "
            "optimum in MTD.",
            *(
                f"{capitalise(each.name)}. {state_equivalence(each.verdict)}"
                for each in conditions
                if each.verdict.is_within
            ),
        ),
        tables=[_show(table, f"{100 * conditions[0].verdict.level:.4g} %")],
    )


def _show(table: pd.DataFrame, confidence: str) -> Table:
    """The table of conditions, without a half-life where none was measured."""
    names = {
        "best_mtd": "best MTD",
        "best_low": f"its {confidence} CI",
        "half_life": "half-life of a key there, steps",
    }
    texts = {name: table[name].map(format_mtd) for name in ("best_mtd", "best_low", "best_high")}
    shown = table.assign(**texts, half_life=table["half_life"].round(1))
    caption = "The best level of MTD in each condition, in steps."
    known = shown.dropna(axis="columns", how="all")
    return make_table(known, caption=caption, csv="robustness", labels=names)


def _draw(conditions: Sequence[Condition], alt: str) -> Drawing | None:
    """A panel per condition, all with the same axes; None without two levels of common seeds."""
    compared = [condition for condition in conditions if len(condition.paired) > 1]
    if not compared:
        return None
    every = pd.concat([condition.paired for condition in compared])
    items = min(int(condition.curve["items"].min()) for condition in compared)
    # a level of one seed has no interval
    ends = every[["low", "mean", "high"]].to_numpy(dtype=np.float64)
    low, high = float(np.nanmin(ends)), float(np.nanmax(ends))
    limits = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    return Drawing(
        "Score against MTD by condition",
        [
            (condition.name, _panel(condition, every["mtd"], limits, condition is compared[-1]))
            for condition in compared
        ],
        height=2.8,
        caption=(
            "Each level of MTD minus the mean over the levels of its condition, within seeds; bars "
            f"are {PERCENT} intervals over seeds{describe_items(items)}, and rings mark the levels "
            "that are statistically indistinguishable from the best."
        ),
        alt=alt,
    )


def _panel(
    condition: Condition, levels: pd.Series, limits: tuple[float, float], explained: bool
) -> Draw:
    verdict, before = condition.verdict, f"{capitalise(condition.name)}. "
    paired = describe_means(
        condition.paired, condition.runs, write=verdict.score_format, before=before
    )
    return lambda ax: figures.draw_paired_curve(
        paired,
        ax,
        smooth=paired[:0],
        optimal=verdict.optimal_range,
        levels=levels,
        limits=limits,
        explained=explained,
    )


TOPIC = Topic(
    "robustness",
    ROBUSTNESS,
    build,
    csv=["robustness", "robustness_curves"],
    answers=(ConditionsQuestion,),
)


def _build_batches(context: StudyContext) -> Contents | None:
    """The curves of each batch size; None unless one of several has several levels of MTD."""
    groups = dict(list(context.traced.groupby("batch_size")))
    # a study of batch sizes alone has one MTD for each of them
    if len(groups) < 2 or all(runs["mtd"].nunique() < 2 for runs in groups.values()):
        return None
    named = [(_name_size(size), runs) for size, runs in groups.items()]
    conditions = judge_conditions(context, named)
    curves, paired = (
        pd.concat(tables, keys=groups, names=["batch_size"])
        .reset_index("batch_size")
        .reset_index(drop=True)
        for tables in zip(*((each.curve, each.paired) for each in conditions), strict=True)
    )
    caption = (
        f"Mean score by batch size and MTD with its {PERCENT} interval over "
        f"seeds{describe_covered(curves)}."
    )
    shown = curves.drop(columns="items")
    by = ["batch_size", "mtd"]
    stated = describe_means(curves, context.traced, by=by, write=context.write)
    drawing = _draw_batches(context, stated, paired, _list_best(conditions))
    return Contents(
        csv={"mtd_by_batch": context.write.frame(curves)},
        figures={"mtd_by_batch": drawing},
        text=(
            *(f"{capitalise(each.name)}. {each.verdict.sentence}" for each in conditions),
            _describe_shared_level(conditions),
        ),
        tables=[
            make_table(
                shown,
                caption=caption,
                csv="mtd_by_batch",
                labels=context.labels,
                write=context.write,
            )
        ],
    )


def _name_size(size: object) -> str:
    return f"batch size {float(str(size)):g}"


def _draw_batches(
    context: StudyContext, curves: pd.DataFrame, paired: pd.DataFrame, alt: str
) -> Drawing:
    published = load_curve("figure3_mtd_by_batch")
    order = [*map(_name_size, sorted({*curves["batch_size"], *published["batch_size"]}))]

    def panel(table: pd.DataFrame, label: str) -> Draw:
        drawn = {_name_size(size): curve for size, curve in table.groupby("batch_size")}
        return lambda ax: figures.draw_conditions(drawn, ax, name=label, order=order)

    deviation = "deviation from the mean over levels"
    panels = [
        ("this study: mean over seeds", panel(curves, context.score_label)),
        (f"this study: {deviation}", panel(paired, deviation.replace("the ", "the\n"))),
    ]
    # the paper's score has another direction
    if not context.write.is_turned:
        panels.append((SOURCE, panel(published, SCORE)))
    return Drawing(
        "Score against maximum traceable distance, by batch size",
        panels,
        caption=(
            "First: mean over seeds. Second: deviation from the mean over levels at that batch "
            f"size. Third: figure 3 of the paper; compare its shape, not its level. Bands of this "
            f"study are {PERCENT} intervals of one level over seeds{describe_covered(curves)}."
        ),
        alt=alt,
    )


BATCHES = Topic("batches", "By batch size", _build_batches, csv=["mtd_by_batch"])
