"""Topic: whether the score depends on the EMA decay and the queue size through MTD alone."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.runs import format_mtd
from analysis.inference.design import describe_confounding
from analysis.inference.intervals import summarise
from analysis.inference.verdict import format_p
from analysis.report.cells import PERCENT, count, make_table
from analysis.report.context import StudyContext
from analysis.report.drawing import Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic
from analysis.statistics.sufficiency import NEAR, Sufficiency

if TYPE_CHECKING:
    pass

_TITLE = "Does MTD alone determine the score?"
_MOST_LEVELS = 20
_CELL = ["mtd", "ratio", "ema_decay"]
_NAMES = {
    "mtd": "MTD",
    "ema_decay": "1/(1 − η)",
    "queue_size": "K/N",
    "additive": "1/(1 − η) + K/N, additive",
    "components": "1/(1 − η) and K/N",
    "interaction": "their interaction",
}


def compute(context: StudyContext) -> Sufficiency | None:
    """None where fewer than two levels of MTD have a score.

    Where both vary and sufficiency cannot be tested, as with one seed, the cells are plain means.
    """
    found = context.sufficiency
    if found is None or len(found.varied) < 2:
        return found
    runs = context.traced.assign(ratio=context.traced["queue_size"] / context.traced["batch_size"])
    means = summarise(runs, by=_CELL)
    if means.duplicated(["ratio", "ema_decay"]).any():
        return found
    if not len(found.cells):
        plain = means.rename(columns={"n": "trials"})[[*_CELL, "mean", "trials"]]
        return replace(found, cells=plain.join(describe_means(means, runs, by=_CELL)))
    # the interval of an adjusted mean is not that of the plain one
    cells = found.cells.merge(means[[*_CELL, "seeds"]], on=_CELL).assign(low=np.nan, high=np.nan)
    return replace(found, cells=found.cells.join(describe_means(cells, runs, by=_CELL)))


def tabulate_cells(info: Sufficiency) -> pd.DataFrame:
    """The configurations, without what their cells state in the figure."""
    return info.cells.drop(columns=["text", "trial"], errors="ignore")


def describe(info: Sufficiency) -> tuple[str, ...]:
    """The answer in two sentences: the test, and what the models and configurations show."""
    if info.answer == "cannot be tested":
        return (_cannot(info),)
    basis = (
        f"{format_p(info.p_value)}; {count(len(info.cells), 'configuration')}, "
        f"{count(info.seeds, 'seed')}, {count(info.trials, 'trial')}"
    )
    if info.answer == "rejected":
        first = (
            "MTD alone does not determine the score here: at equal MTD the score also depends on "
            f"how the history is divided between the EMA, 1/(1 − η), and the queue, K/N ({basis})."
        )
    else:
        first = (
            "That MTD alone determines the score is not rejected: no effect of 1/(1 − η) and K/N "
            f"beyond MTD was found, which does not show that there is none ({basis})."
        )
    return (first, f"{_describe_models(info)}{_describe_pair(info)}.")


def _cannot(info: Sufficiency) -> str:
    return f"Whether MTD alone determines the score cannot be tested here: {info.reason}."


def describe_missing(info: Sufficiency) -> str:
    """Why there is no test, where there are no configurations to show either."""
    return "" if info.answer != "cannot be tested" or len(info.cells) else _cannot(info)


def _describe_models(info: Sufficiency) -> str:
    interaction = ""
    if np.isfinite(info.interaction_p):
        interaction = f" (interaction beyond that: {format_p(info.interaction_p)})"
    return (
        f"A curve over MTD explains {_share(info, 'mtd')} of the variance between configuration "
        f"means, curves over 1/(1 − η) and K/N that add up {_share(info, 'additive')}{interaction}"
    )


def _share(info: Sufficiency, model: str) -> str:
    return f"{100 * info.explained[model]:.0f} % ({info.freedom[model]} degrees of freedom)"


def _describe_pair(info: Sufficiency) -> str:
    pair = info.pair
    if pair is None:
        return f"; no two configurations differ by less than {100 * NEAR - 100:.0f} % in MTD"
    high, low = info.cells.iloc[pair.high_row], info.cells.iloc[pair.low_row]
    return (
        f"; the largest difference at nearly equal MTD is {pair.difference:.2f} points, of "
        f"{name_cell(high)} over {name_cell(low)} (simultaneous {PERCENT} CI "
        f"{pair.low:.2f} to {pair.high:.2f})"
    )


def name_cell(cell: pd.Series) -> str:
    """A configuration by its EMA decay and queue size, with its MTD."""
    return f"η {cell['ema_decay']:g} with K/N {cell['ratio']:g} (MTD {format_mtd(cell['mtd'])})"


def _describe_best(cells: pd.DataFrame) -> str:
    best = cells.iloc[int(cells["mean"].argmax())]
    return f"The highest mean is {best['mean']:.2f}, of {name_cell(best)}."


def warn(info: Sufficiency) -> tuple[str, ...]:
    """That the design confounds MTD with a component."""
    if info.answer == "cannot be tested":
        return ()
    text = describe_confounding(info.cells["ema_decay"], info.cells["ratio"])
    return (text,) if text else ()


def tabulate(info: Sufficiency) -> pd.DataFrame:
    """The tests of nested models, with the share of variance that the null model explains."""
    if not len(info.tests):
        return pd.DataFrame()
    shares = [info.explained[base] for base in info.tests["base"]]
    return info.tests.assign(explained=shares)


def _round_p(p_value: float) -> str:
    if np.isnan(p_value):
        return "–"
    return "< 0.0001" if p_value < 1e-4 else f"{p_value:.4f}"


def show(info: Sufficiency) -> tuple[Table, ...]:
    """A row per test."""
    tests = tabulate(info)
    if not len(tests):
        return ()
    shown = pd.DataFrame(
        {
            "null model": [_NAMES[name] for name in tests["base"]],
            "variance explained, %": (100 * tests["explained"]).round(1),
            "does this add to it?": [_NAMES[name] for name in tests["added"]],
            "degrees of freedom": tests["freedom"],
            "p": tests["p_value"].map(_round_p),
        }
    )
    caption = (
        "Nested models of the configuration means, with seeds as blocks and one error variance "
        "per configuration (ANOVA-type statistic); curves in logarithms. p values are not adjusted "
        "for the number of rows; the first row is the test of whether MTD suffices."
    )
    return (make_table(shown, caption=caption, csv="sufficiency"),)


def draw(info: Sufficiency) -> Drawing | None:
    """The mean of every configuration, the EMA decay down and K/N across."""
    cells = info.cells
    if not len(cells):
        return None
    decays = sorted(cells["ema_decay"].unique())
    if max(len(decays), cells["ratio"].nunique()) > _MOST_LEVELS:
        return None

    tested = info.answer != "cannot be tested"
    adjusted = ", adjusted for seeds that are missing" if tested else ""
    return Drawing(
        "Score by EMA decay and queue size",
        [
            (
                "",
                lambda ax: figures.draw_grid(
                    cells,
                    ax,
                    by=("ema_decay", "ratio"),
                    value="mean",
                    labels=("EMA decay η", "queue size in batches, K/N"),
                    names=[f"{decay:g}" for decay in decays],
                    spots=cells if "text" in cells else None,
                ),
            )
        ],
        height=1.1 + 0.4 * len(decays),
        rigid=True,
        caption=(
            f"Mean score of each configuration{adjusted}. If MTD alone determined the score, "
            "cells of equal 1/(1 − η) + K/N would have equal scores."
        ),
        alt=f"{' '.join(describe(info))} {_describe_best(cells)}",
    )


TOPIC = Topic(
    name="sufficiency",
    title=_TITLE,
    compute=compute,
    csv={"sufficiency": tabulate, "sufficiency_means": tabulate_cells},
    figures={"sufficiency": draw},
    text=describe,
    warnings=warn,
    missing=describe_missing,
    tables=show,
)
