"""Topic: where the optimum in MTD is at several learning rates and numbers of training steps."""

import math
from dataclasses import dataclass

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.runs import format_mtd
from analysis.report.cells import (
    PERCENT,
    describe_items,
    describe_shared_level,
    make_table,
)
from analysis.report.topics.base import Draw, Drawing, StudyContext, Table, Topic
from analysis.statistics.history import compute_half_lives, compute_retained
from analysis.statistics.robustness import Condition, compute_conditions

_COLUMNS = 2
_MARGIN = 0.05


@dataclass(frozen=True)
class Robustness:
    """conditions: `compute_conditions`."""

    context: StudyContext
    conditions: tuple[Condition, ...]


def compute(context: StudyContext) -> Robustness | None:
    """None unless learning rate or steps vary beside MTD."""
    study = context.study
    found = compute_conditions(
        context.curve_trials,
        study.settings,
        items=study.items,
        half_lives=compute_half_lives(compute_retained(study.probes)),
        beyond_run=study.beyond_run,
    )
    return Robustness(context, found) if found else None


def tabulate(info: Robustness) -> pd.DataFrame:
    """A row per condition: its verdict, and where its score is best, in steps."""
    rows = [
        {
            "condition": each.name,
            "seeds": each.verdict.seeds,
            "verdict": each.verdict.verdict,
            "best_mtd": each.verdict.peak_mtd,
            "best_low": min(each.verdict.optimal_range, default=math.nan),
            "best_high": max(each.verdict.optimal_range, default=math.nan),
            "half_life": each.half_life,
        }
        for each in info.conditions
    ]
    return pd.DataFrame(rows)


def tabulate_curves(info: Robustness) -> pd.DataFrame:
    """The curves below each other, with the name of their condition."""
    return pd.concat(
        [each.curve.assign(condition=each.name) for each in info.conditions], ignore_index=True
    )


def describe(info: Robustness) -> tuple[str, ...]:
    """Where the mean is best in each condition, and what that is a statement about."""
    return (
        *(f"{_place(info, each)}." for each in info.conditions),
        describe_shared_level(len(info.conditions)),
        "A verdict holds for the learning rate, the steps and the batch size at which its trials "
        "were made: how far the weights move in a step depends on them, and so may an optimum in "
        "MTD.",
    )


def _confidence(info: Robustness) -> str:
    """That of each condition's verdict and levels."""
    return f"{100 * info.conditions[0].verdict.level:.4g} %"


def _place(info: Robustness, each: Condition) -> str:
    best_mtd, optimal = each.verdict.peak_mtd, each.verdict.optimal_range
    best = f"the mean score is highest at MTD {format_mtd(best_mtd)}"
    if optimal:
        levels = f"{format_mtd(optimal[0])} to {format_mtd(optimal[-1])}"
        best += f" (levels indistinguishable from it with {_confidence(info)} confidence: {levels})"
    if math.isfinite(each.half_life):
        ratio = best_mtd / each.half_life
        best += f", {ratio:.2g} times the measured half-life of a key ({each.half_life:.3g})"
    return f"{each.stated[:1].upper()}{each.stated[1:]}, {best}; verdict: {each.verdict.verdict}"


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
    compared = [each for each in info.conditions if len(each.paired) > 1]
    if not compared:
        name, curves = info.context.score_label, {each.name: each.curve for each in info.conditions}
        return Drawing(
            "Score against MTD by condition",
            [("", lambda ax: figures.draw_conditions(curves, ax, name=name))],
            height=3.9,
            caption="One curve per learning rate and number of steps; one seed.",
            alt=" ".join(describe(info)),
        )
    every = pd.concat([each.paired for each in compared])
    items = min(int(each.curve["items"].min()) for each in compared)
    low, high = float(every["low"].min()), float(every["high"].max())
    limits = low - _MARGIN * (high - low), high + _MARGIN * (high - low)
    rows = -(-len(compared) // _COLUMNS)
    return Drawing(
        "Score against MTD by condition",
        [
            (each.name, _panel(each, every["mtd"], limits, each is compared[-1]))
            for each in compared
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
        paired,
        ax,
        smooth=paired[:0],
        optimal=optimal,
        labels=labels,
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
