"""Topics: the optimum in MTD by learning rate and steps; the score by batch size (figure 3)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.published import SCORE, SOURCE, load_curve
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.inference.intervals import share_level
from mtdlab.analysis.inference.pairing import compute_paired_curve, level_scores, summarise_scores
from mtdlab.analysis.inference.verdict import Verdict, judge_levels
from mtdlab.analysis.report.cells import (
    LEVEL,
    PERCENT,
    describe_covered,
    describe_items,
    make_table,
)
from mtdlab.analysis.report.topics.base import Draw, Drawing, StudyContext, Table, Topic
from mtdlab.analysis.statistics.history import compute_half_lives, compute_retained
from mtdlab.analysis.statistics.robustness import Condition, compute_conditions

_COLUMNS = 2
_MARGIN = 0.05


def _describe_shared_level(verdicts: int) -> str:
    """A sentence that several verdicts share one error rate, with the confidence of each."""
    return (
        f"The {verdicts} verdicts share the error rate of {100 - 100 * LEVEL:g} %: each is at "
        f"{100 * share_level(verdicts):.4g} % confidence (Bonferroni)."
    )


@dataclass(frozen=True)
class Robustness:
    """The results: `conditions` is `compute_conditions`."""

    context: StudyContext
    conditions: tuple[Condition, ...]


def compute(context: StudyContext) -> Robustness | None:
    """The conditions; None unless learning rate or steps vary beside MTD."""
    study = context.study
    # a value that was chosen for a level is no condition in which levels are compared
    excluded = () if study.tuning is None else study.tuning.names
    conditions = compute_conditions(
        context.curve_trials,
        study.settings,
        items=study.items,
        half_lives=compute_half_lives(compute_retained(study.probes)),
        beyond_run=study.beyond_run,
        excluded=excluded,
    )
    return Robustness(context, conditions) if conditions else None


def tabulate(info: Robustness) -> pd.DataFrame:
    """A row per condition: its verdict, and where its score is best, in steps."""
    rows = [
        {
            "condition": condition.name,
            "seeds": condition.verdict.seeds,
            "verdict": condition.verdict.verdict,
            "best_mtd": condition.verdict.peak_mtd,
            "best_low": min(condition.verdict.optimal_range, default=math.nan),
            "best_high": max(condition.verdict.optimal_range, default=math.nan),
            "half_life": condition.half_life,
        }
        for condition in info.conditions
    ]
    return pd.DataFrame(rows)


def tabulate_curves(info: Robustness) -> pd.DataFrame:
    """The curves below each other, with the name of their condition."""
    return pd.concat(
        [condition.curve.assign(condition=condition.name) for condition in info.conditions],
        ignore_index=True,
    )


def describe(info: Robustness) -> tuple[str, ...]:
    """Sentences on where the mean is best in each condition, and on what a verdict holds for."""
    return (
        *(f"{_place(info, condition)}." for condition in info.conditions),
        _describe_shared_level(len(info.conditions)),
        "A verdict holds for the learning rate, the steps and the batch size at which its trials "
        "were made: how far the weights move in a step depends on them, and so may an optimum in "
        "MTD.",
    )


def _confidence(info: Robustness) -> str:
    """The confidence of each condition's verdict and levels."""
    return f"{100 * info.conditions[0].verdict.level:.4g} %"


def _place(info: Robustness, condition: Condition) -> str:
    best_mtd, optimal = condition.verdict.peak_mtd, condition.verdict.optimal_range
    best = f"the mean score is highest at MTD {format_mtd(best_mtd)}"
    if optimal:
        levels = f"{format_mtd(optimal[0])} to {format_mtd(optimal[-1])}"
        best += f" (levels indistinguishable from it with {_confidence(info)} confidence: {levels})"
    if math.isfinite(condition.half_life):
        ratio = best_mtd / condition.half_life
        best += f", {ratio:.2g} times the measured half-life of a key ({condition.half_life:.3g})"
    stated = f"{condition.stated[:1].upper()}{condition.stated[1:]}"
    return f"{stated}, {best}; verdict: {condition.verdict.verdict}"


def show(info: Robustness) -> tuple[Table, ...]:
    """The rows of `tabulate`, without a half-life where none was measured."""
    distances = ("best_mtd", "best_low", "best_high")
    table = tabulate(info)
    texts = {name: table[name].map(format_mtd) for name in distances}
    shown = table.assign(**texts, half_life=table["half_life"].round(1))
    names = {
        "best_mtd": "best MTD",
        "best_low": f"its {_confidence(info)} low",
        "best_high": f"its {_confidence(info)} high",
        "half_life": "half-life of a key there, steps",
    }
    known = shown.dropna(axis="columns", how="all").rename(columns=names)
    caption = "The best level of MTD in each condition, in steps."
    return (make_table(known, caption=caption, csv="robustness", many="conditions"),)


def draw(info: Robustness) -> Drawing:
    """A panel per condition, all with the same axes."""
    compared = [condition for condition in info.conditions if len(condition.paired) > 1]
    if not compared:
        name, curves = (
            info.context.score_label,
            {condition.name: condition.curve for condition in info.conditions},
        )
        return Drawing(
            "Score against MTD by condition",
            [("", lambda ax: figures.draw_conditions(curves, ax, name=name))],
            height=3.9,
            caption="One curve per learning rate and number of steps; one seed.",
            alt=" ".join(describe(info)),
        )
    every = pd.concat([condition.paired for condition in compared])
    items = min(int(condition.curve["items"].min()) for condition in compared)
    low, high = float(every["low"].min()), float(every["high"].max())
    limits = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    rows = -(-len(compared) // _COLUMNS)
    return Drawing(
        "Score against MTD by condition",
        [
            (condition.name, _panel(condition, every["mtd"], limits, condition is compared[-1]))
            for condition in compared
        ],
        height=0.6 + 2.2 * rows,
        columns=_COLUMNS,
        caption=(
            "Each level of MTD less the mean over the levels of its condition, within seeds; bars "
            f"are {PERCENT} intervals over seeds{describe_items(items)}, and rings mark the levels "
            "that are statistically indistinguishable from the best."
        ),
        alt=" ".join(describe(info)),
    )


def _panel(
    condition: Condition, levels: pd.Series, limits: tuple[float, float], explained: bool
) -> Draw:
    paired, optimal = condition.paired, condition.verdict.optimal_range
    labels = describe_means(paired, condition.runs)
    labels["text"] = f"{condition.name[:1].upper()}{condition.name[1:]}. " + labels["text"]
    return lambda ax: figures.draw_paired_curve(
        paired.join(labels),
        ax,
        smooth=paired[:0],
        optimal=optimal,
        levels=levels,
        limits=limits,
        explained=explained,
    )


TOPIC = Topic(
    name="robustness",
    title="Robustness of the optimum",
    compute=compute,
    csv={"robustness": tabulate, "robustness_curves": tabulate_curves},
    figures={"robustness": draw},
    text=describe,
    tables=show,
)


@dataclass(frozen=True)
class Batches:
    """Curves by batch size, the same less each seed's mean, and a verdict for each size.

    The verdicts share the error rate of 5 % (Bonferroni).
    """

    context: StudyContext
    curves: pd.DataFrame
    paired: pd.DataFrame
    verdicts: Mapping[int, Verdict]


def _find_batches(context: StudyContext) -> Batches | None:
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


def _tabulate_batches(info: Batches) -> pd.DataFrame:
    """The curves without the columns for their points."""
    return info.curves.drop(columns=["text", "trial"])


def _show_batches(info: Batches) -> tuple[Table, ...]:
    covered, labels = describe_covered(info.curves), info.context.labels
    caption = f"Mean score by batch size and MTD with its {PERCENT} interval over seeds{covered}."
    table = _tabulate_batches(info).drop(columns="items")
    return (make_table(table, caption=caption, csv="mtd_by_batch", labels=labels, many="rows"),)


def _describe_batches(info: Batches) -> tuple[str, ...]:
    return (
        *(f"Batch size {size}. {verdict.sentence}" for size, verdict in info.verdicts.items()),
        _describe_shared_level(len(info.verdicts)),
    )


def _draw_batches(info: Batches) -> Drawing:
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
            (
                "this study: mean over seeds",
                _batch_panel(info.curves, sizes, info.context.score_label),
            ),
            (
                f"this study: {paired}",
                _batch_panel(info.paired, sizes, paired.replace("the ", "the\n")),
            ),
            (SOURCE, _batch_panel(published, sizes, SCORE)),
        ],
        height=7.4,
        columns=2,
        caption=(
            "First: mean over seeds. Second: deviation from the mean over levels at that batch "
            f"size. Third: figure 3 of the paper; compare its shape, not its level. Bands of this "
            f"study are {PERCENT} intervals of one level over "
            f"seeds{describe_covered(info.curves)}."
        ),
        alt=" ".join(verdicts),
    )


def _batch_panel(curves: pd.DataFrame, sizes: Sequence[int], label: str) -> Draw:
    named = {f"batch size {size}": curve for size, curve in curves.groupby("batch_size")}
    order = [f"batch size {size}" for size in sizes]
    return lambda ax: figures.draw_conditions(named, ax, name=label, order=order)


BATCHES = Topic(
    name="batches",
    title="By batch size",
    compute=_find_batches,
    csv={"mtd_by_batch": _tabulate_batches},
    figures={"mtd_by_batch": _draw_batches},
    text=_describe_batches,
    tables=_show_batches,
)
