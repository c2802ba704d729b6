"""Topic: whether the score depends on the EMA decay and the queue size through MTD alone."""

from dataclasses import replace

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.runs import choose_evenly
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.inference.pairing import compute_deviations
from mtdlab.analysis.questions.sufficiency import (
    SufficiencyQuestion,
    describe_sufficiency,
    name_cell,
)
from mtdlab.analysis.questions.wording import PERCENT, describe_items
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.topics.base import Contents, Drawing, StudyContext, Table, Topic
from mtdlab.analysis.statistics.sufficiency import Sufficiency, describe_confounding

_CELL = ["mtd", "ratio", "ema_decay"]
_MOST_LINES = 12
_NAMES = {
    "mtd": "MTD",
    "ema_decay": "1/(1 − η)",
    "queue_size": "K/N",
    "additive": "1/(1 − η) + K/N, additive",
    "components": "1/(1 − η) and K/N",
    "interaction": "their interaction",
}


def compute(context: StudyContext) -> Sufficiency | None:
    """The test of sufficiency; None where fewer than two levels of MTD have a score.

    Where both components vary and sufficiency cannot be tested, as with one seed, the cells are
    plain means.
    """
    sufficiency, main = context.sufficiency, context.question
    if sufficiency is not None and isinstance(main, SufficiencyQuestion):
        sufficiency = main.info
    if sufficiency is None or not len(sufficiency.runs):
        return sufficiency
    runs = sufficiency.runs
    means = summarise(runs, by=_CELL)
    if means.duplicated(["ratio", "ema_decay"]).any():
        return sufficiency
    cells = sufficiency.cells
    if not len(cells):
        cells = means.rename(columns={"n": "trials"})[[*_CELL, "mean", "trials"]]
    # the interval of an adjusted mean is not that of the plain one
    stated = cells.merge(means[[*_CELL, "seeds"]], on=_CELL).assign(low=np.nan, high=np.nan)
    labels = describe_means(stated, runs, by=_CELL, write=context.write)[["text", "trial"]]
    return replace(sufficiency, cells=_with_intervals(cells, runs).join(labels))


def _with_intervals(cells: pd.DataFrame, runs: pd.DataFrame) -> pd.DataFrame:
    """The configurations with the interval of what each has beyond the mean of its seed."""
    by = ["ema_decay", "ratio"]
    spread = summarise(compute_deviations(runs, by), by=by, value="deviation")
    placed = cells[by].merge(spread, on=by, how="left")
    half = (placed["high"] - placed["low"]).to_numpy(dtype=np.float64) / 2
    return cells.assign(within_low=cells["mean"] - half, within_high=cells["mean"] + half)


def build(context: StudyContext) -> Contents | None:
    """The answer with its tests; without configurations to show, why there is no test."""
    if (info := compute(context)) is None:
        return None
    text, is_tested = describe_sufficiency(info, context.write), info.answer != "cannot be tested"
    tests, tables = info.tests, []
    if len(tests):
        tests = tests.assign(explained=tests["base"].map(info.explained))
        tables = [_show(tests, info.items)]
    means = info.cells.drop(columns=["text", "trial"], errors="ignore")
    csv = {"sufficiency": tests, "sufficiency_means": context.write.frame(means)}
    if not is_tested and not len(info.cells):
        return Contents(csv=csv, missing=text[0])
    confounded = is_tested and describe_confounding(info.cells["ema_decay"], info.cells["ratio"])
    return Contents(
        csv=csv,
        figures={"sufficiency": _draw(context, info.cells, is_tested, " ".join(text))},
        text=text,
        # the design confounds MTD with a component
        warnings=[confounded] if confounded else [],
        tables=tables,
    )


def _show(tests: pd.DataFrame, items: int) -> Table:
    shown = pd.DataFrame(
        {
            "null model": tests["base"].map(_NAMES),
            "variance explained, %": (100 * tests["explained"]).round(1),
            "does this add to it?": tests["added"].map(_NAMES),
            "degrees of freedom": tests["freedom"],
            "p": tests["p_value"],
        }
    )
    caption = (
        "Nested models of the configuration means, with seeds as blocks and one error variance "
        "per configuration (ANOVA-type statistic); curves in logarithms. p values are not adjusted "
        "for the number of rows; the first row is the test of whether MTD suffices. Tests cover "
        f"seeds{describe_items(items)}."
    )
    return make_table(shown, caption=caption, csv="sufficiency")


def _draw(
    context: StudyContext, cells: pd.DataFrame, is_tested: bool, answer: str
) -> Drawing | None:
    """The figure of the mean of every configuration over MTD, a line for each EMA decay.

    None without two points of a line, and where an EMA decay and a K/N have several MTDs.
    """
    if "within_low" not in cells or cells["ema_decay"].is_unique:
        return None
    decays = pd.DataFrame({"ema_decay": np.unique(cells["ema_decay"])})
    drawn = cells.merge(choose_evenly(decays, _MOST_LINES), on="ema_decay")
    some = "" if len(drawn) == len(cells) else f" Drawn: {_MOST_LINES} of {len(decays)} EMA decays."
    adjusted = ", adjusted for seeds that are missing" if is_tested else ""
    best = cells.iloc[int(cells["mean"].argmax())]
    write, score = context.write, f"mean {context.score_label}"
    highest = f"The {write.say('highest')} mean is {write.score(best['mean'])}"
    ratios = ", ".join(f"{ratio:g}" for ratio in sorted(cells["ratio"].unique()))
    return Drawing(
        "Score by EMA decay over MTD",
        [("", lambda ax: figures.draw_divisions(drawn, ax, name=score))],
        caption=(
            f"Mean score{adjusted}: a line per EMA decay η, a point per K/N ({ratios} from "
            f"left to right); bars are {PERCENT} intervals within seeds. If MTD alone "
            f"determined the score, the lines would coincide.{some}"
        ),
        alt=f"{answer} {highest}, of {name_cell(best)}.",
    )


TOPIC = Topic(
    "sufficiency",
    "Does MTD alone determine the score?",
    build,
    csv=["sufficiency", "sufficiency_means"],
    answers=(SufficiencyQuestion,),
)
