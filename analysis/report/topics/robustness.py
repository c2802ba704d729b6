"""Topic: where the optimum in MTD is at several learning rates and numbers of training steps."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.runs import format_mtd
from analysis.report.cells import BAND, PERCENT, make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.history import compute_half_lives, compute_retained
from analysis.statistics.robustness import Condition, compute_conditions

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Robustness:
    """conditions: `compute_conditions`; label: of scores."""

    conditions: tuple[Condition, ...]
    label: str


def compute(context: StudyContext) -> Robustness | None:
    """None unless learning rate or steps vary beside MTD."""
    study = context.study
    found = compute_conditions(
        context.curve_trials,
        study.settings,
        items=study.items,
        half_lives=compute_half_lives(compute_retained(study.probes)),
    )
    return Robustness(found, context.score_label) if found else None


def tabulate(info: Robustness) -> pd.DataFrame:
    """A row per condition: its verdict, and where its score is best, in steps."""
    rows = []
    for each in info.conditions:
        found = each.verdict
        optimal = found.optimal_range or (math.nan,)
        row = (each.name, found.seeds, found.verdict, found.peak_mtd, optimal[0], optimal[-1])
        rows.append((*row, each.half_life))
    names = ["condition", "seeds", "verdict", "best_mtd", "best_low", "best_high", "half_life"]
    return pd.DataFrame(rows, columns=names)


def tabulate_curves(info: Robustness) -> pd.DataFrame:
    """The curves below each other, with the name of their condition."""
    return pd.concat(
        [each.curve.assign(condition=each.name) for each in info.conditions], ignore_index=True
    )


def describe(info: Robustness) -> tuple[str, ...]:
    """Where the mean is best in each condition, and what that is a statement about."""
    return (
        *(f"{_place(each)}." for each in info.conditions),
        "A verdict holds for the learning rate, the steps and the batch size at which its trials "
        "were made: how far the weights move in a step depends on them, and so may an optimum in "
        "MTD.",
    )


def _place(each: Condition) -> str:
    best_mtd, optimal = each.verdict.peak_mtd, each.verdict.optimal_range
    interval = ""
    if optimal:
        first, last = format_mtd(optimal[0]), format_mtd(optimal[-1])
        interval = (
            f" (levels indistinguishable from it with {PERCENT} confidence: {first} to {last})"
        )
    half_life = ""
    if math.isfinite(each.half_life):
        ratio = best_mtd / each.half_life
        half_life = f", {ratio:.2g} times the measured half-life of a key ({each.half_life:.3g})"
    stated = each.stated[:1].upper() + each.stated[1:]
    best = f"the mean score is highest at MTD {format_mtd(best_mtd)}"
    return f"{stated}, {best}{interval}{half_life}; verdict: {each.verdict.verdict}"


def show(info: Robustness) -> tuple[Table, ...]:
    """The rows of `tabulate`, without a half-life where none was measured."""
    table = tabulate(info)
    distances = ("best_mtd", "best_low", "best_high")
    shown = table.assign(
        **{name: [format_mtd(value) for value in table[name]] for name in distances}
    )
    rows, remark = thin_rows(shown.dropna(axis="columns", how="all"), "conditions")
    names = {
        "best_mtd": "best MTD",
        "best_low": f"its {PERCENT} low",
        "best_high": f"its {PERCENT} high",
        "half_life": "half-life of a key there, steps",
    }
    caption = f"The best level of MTD in each condition, in steps.{remark}"
    return (make_table(rows.rename(columns=names), caption=caption, csv="robustness"),)


def draw(info: Robustness) -> Drawing:
    """The score over MTD in each condition, and less each seed's mean over its levels."""
    curves = {each.name: _describe(each, each.curve) for each in info.conditions}
    panels: list[tuple[str, Draw]] = [("mean score", _panel(curves, info.label))]
    paired = {each.name: each.paired for each in info.conditions if len(each.paired) > 1}
    if paired:
        title = "deviation from the mean over levels"
        panels.append((title, _panel(paired, "deviation from the\nmean over levels")))
    return Drawing(
        "Score against MTD by condition",
        panels,
        height=4.4,
        columns=len(panels),
        caption=f"One curve per learning rate and number of steps. {BAND}",
        alt=" ".join(describe(info)),
    )


def _describe(each: Condition, curve: pd.DataFrame) -> pd.DataFrame:
    """The curve with what its points state."""
    labels = describe_means(curve, each.runs)
    name = each.name[:1].upper() + each.name[1:]
    return curve.join(labels.assign(text=f"{name}. " + labels["text"]))


def _panel(curves: dict[str, pd.DataFrame], name: str) -> Draw:
    return lambda ax: figures.draw_conditions(curves, ax, name=name)


TOPIC = Topic(
    name="robustness",
    title="Robustness of the optimum",
    compute=compute,
    csv={"robustness": tabulate, "robustness_curves": tabulate_curves},
    figures={"robustness": draw},
    text=describe,
    tables=show,
)
