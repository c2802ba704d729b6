"""Topics: configurations compared where neither MTD nor the method varies; settings and score."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.defaults import MOST_COMPARED
from mtdlab.analysis.data.frames import DIFFERENCE
from mtdlab.analysis.data.questions import ANY
from mtdlab.analysis.data.runs import completed_runs, varied_settings
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.questions.best import (
    NAME,
    BestQuestion,
    find_names,
    list_settings,
    name_table,
    prefer_names,
)
from mtdlab.analysis.questions.wording import PERCENT, clean, describe_interval
from mtdlab.analysis.report.cells import LEVEL, describe_covered, format_count, make_table
from mtdlab.analysis.report.topics.base import Axes, Contents, Drawing, StudyContext, Table, Topic
from mtdlab.analysis.report.topics.references import choose_lines
from mtdlab.analysis.statistics.baseline import add_baseline, name_baseline
from mtdlab.analysis.statistics.configurations import (
    MOST_RUNS,
    compute_importances,
    name_values,
)

_MOST_DRAWN = 12
_MOST_IN_FIGURE, _SHORT = 43, "short name of the row"
_MOST_SETTINGS = 80


def draw_ranked(context: StudyContext, table: pd.DataFrame, *, title: str) -> Drawing:
    """Means, the highest first, with the intervals of what is tested: their differences to it.

    With intervals of the means themselves where no difference is tested, or its interval is not
    stated.
    """
    drawn, rows, label = _choose(context, table)
    score, best, interval = context.score_label, np.nan, f"{PERCENT} CI"
    caption = f"Mean over seeds; bars are {PERCENT} CIs over seeds{describe_covered(table)}."
    if not context.best.basis.explores and table["difference_low"].notna().any():
        best, interval = float(context.best.ranked["mean"].iloc[0]), "CI of the difference"
        ends = {"low": best + drawn["difference_low"], "high": best + drawn["difference_high"]}
        drawn = drawn.assign(mean=(best + drawn["difference"]).fillna(drawn["mean"]), **ends)
        caption = (
            f"Mean over seeds. A bar is the {context.best.confidence} CI of the difference to the "
            "best, from whose mean (the line) it is drawn: one that does not reach the line is "
            f"significantly worse. CIs cover seeds{describe_covered(table)}."
        )
        if context.against_baseline:
            caption += " The baseline's differences have a section of their own."
    if len(table) > _MOST_DRAWN:
        caption += f" The {_MOST_DRAWN} best of {len(table):,}."

    # of a study without references the encoder before training alone is no line among rows
    lines = choose_lines(context) if len(context.study.references) else {}
    if lines:
        caption += " Dotted lines are scores without training."

    def panel(ax: Axes) -> None:
        if np.isfinite(best):
            ax.axvline(best, color=figures.RUN, linewidth=1)
        figures.draw_rows(drawn, ax, names=rows, label=label, name=score, interval=interval)
        figures.draw_references(lines, ax, across=True)
        figures.add_legend(ax)

    height, alt = 1.1 + 0.4 * len(drawn) + 0.2 * len(lines), drawn["text"].iloc[0]
    return Drawing(title, [("", panel)], caption, alt, height, rigid=True)


COSTS = (
    "Seconds and memory are means over trials: of the duration, evaluations included, and of the "
    "peak of the trial's process, or allocated on its GPU."
)


def show_ranked(context: StudyContext, table: pd.DataFrame, csv: str) -> Table:
    """The rows of a comparison with their differences to the best, by their display names."""
    differs = (
        f", the difference to the best row with a {context.best.confidence} CI that is "
        "simultaneous for all pairs of rows, and whether that CI includes 0"
    )
    table = table.assign(may_be_best=say_may_be_best(table))
    if context.best.basis.explores:
        table, differs = table.drop(columns=DIFFERENCE[1:]), ", and the difference to the best row"
    shown = add_names(context, table.drop(columns="items")).dropna(axis="columns", how="all")
    against, beside = context.against_baseline, ""
    if against is not None:
        shown = add_baseline(shown, against)
        beside = f" Trial {against.row['number']} is of the baseline: its section compares it."
    if "method" in shown:
        shown["method"] = [*map(context.name_method, shown["method"])]
    costs = f" {COSTS}" if {"seconds", "memory"} & set(shown) else ""
    interval = f"with its {PERCENT} CI" if "low" in shown else "(of too few seeds for a CI)"
    seeds = many = ""
    if table["seeds"].nunique() > 1:
        seeds = (
            " Rows lack seeds: a mean is over the row's own ones, differences and the order are "
            "adjusted for missing ones."
        )
    if len(table) > MOST_COMPARED:
        highest = context.write.say("the highest means")
        many = f" Of {len(table):,} rows the {MOST_COMPARED} with {highest} are compared."
    return make_table(
        shown.rename(columns={"number": "first trial"}).head(MOST_COMPARED),
        caption=(
            f"Mean score {interval}{differs}. CIs cover "
            f"seeds{describe_covered(table)}.{beside}{seeds}{many}{costs}"
        ),
        csv=csv,
        sortable=True,
        labels=context.labels,
        write=context.write,
    )


def add_names(context: StudyContext, table: pd.DataFrame) -> pd.DataFrame:
    """The rows with what the study file calls them, if it does, in place of their display names."""
    shown = table.drop(columns=NAME)
    if context.study.names:
        shown.insert(0, ANY, [name or None for name in find_names(context, table)])
    return shown


def say_may_be_best(table: pd.DataFrame) -> list[str]:
    """Whether the rows, the best first, may be the best, in words.

    That the interval of a row with fewer seeds than others includes 0 is no finding.
    """
    compared = table["difference_low"].notna().to_numpy().copy()
    compared[:1] = compared.any()
    words = np.where(compared, "yes", "not compared").astype("object")
    fewer = compared & (table["seeds"] < table["seeds"].max()).to_numpy()
    words[fewer] = [f"not decided ({format_count(n, 'seed')})" for n in table["seeds"][fewer]]
    words[~table["may_be_best"].to_numpy(dtype=np.bool_)] = "no"
    return [*words]


def _choose(context: StudyContext, table: pd.DataFrame) -> tuple[pd.DataFrame, list[str], str]:
    """The best rows with their points' texts; short names; the settings that these leave out."""
    order = np.argsort(-table["mean"].to_numpy(), kind="stable")[:_MOST_DRAWN]
    settings, label = list_settings(table), ""
    short: Sequence[str] = name_table(context, table, most=_MOST_IN_FIGURE)
    if any(name.endswith("…") for name in short) and "method" not in settings:
        short, label = name_values(table, settings), clean(", ".join(settings), most=_MOST_SETTINGS)
        short = [clean(text, most=_MOST_IN_FIGURE) for text in short]
    table = table.assign(**{_SHORT: prefer_names(context, table, short)}).iloc[order]
    name = f"baseline, {clean(name_baseline(context.study), most=_MOST_IN_FIGURE)}"
    drawn = add_baseline(table, context.against_baseline, **{_SHORT: name, NAME: name})
    texts = []
    for row in drawn.to_dict("records"):
        mean = Estimate(row["mean"], row["low"], row["high"])
        interval = describe_interval(mean, LEVEL, write=context.write)
        texts.append(
            f"{row[NAME]}: mean of {format_count(row['seeds'], 'seed')} "
            f"{context.write.score(mean.mean)}{interval and f' ({interval})'}"
        )
    return drawn.assign(text=texts, trial=drawn["number"]), drawn[_SHORT].tolist(), label


def compute(context: StudyContext) -> pd.DataFrame | None:
    """The configurations with the names of their rows.

    None where methods are compared, or the question is over MTD, and without two configurations.
    """
    if context.question.is_over_mtd or context.compares_methods:
        return None
    table = context.best.table
    return table if len(table) > 1 else None


def build(context: StudyContext) -> Contents | None:
    if (table := compute(context)) is None:
        return None
    return Contents(
        csv={"configurations": context.write.frame(add_names(context, table))},
        figures={"configurations": draw_ranked(context, table, title="Score by configuration")},
        text=context.best.describe(),
        tables=[show_ranked(context, table, "configurations")],
    )


TOPIC = Topic(
    "configurations",
    "Configurations compared",
    build,
    csv=["configurations"],
    answers=(BestQuestion,),
)
"""The topic of a study that varies, for example, the learning rate alone."""


_MOST_LABEL = 30


def _build_importances(context: StudyContext) -> Contents | None:
    """The importances; None unless two settings vary independently in at least 20 runs."""
    settings, runs = context.study.compared, completed_runs(context.trials)
    table = compute_importances(context.trials, settings)
    if not len(table):
        return None
    labels = [context.labels.get(name, name) for name in table["setting"]]
    table = table.assign(label=[clean(label, most=_MOST_LABEL) for label in labels])
    names = [name for name in varied_settings(runs, settings) if name not in {*table["setting"]}]
    left = ""
    if names:
        left = (
            " Left out, since other settings determine them or not all trials have them: "
            f"{', '.join(clean(name, most=_MOST_LABEL) for name in names)}."
        )
    first = table.iloc[0]
    text = (
        f"The score depends most on {first['label']} (importance {first['importance']:.2f}). "
        f"Importances are shares of the variance of the score over {min(len(runs), MOST_RUNS):,} "
        "trials that a random forest explains by each setting, with its interactions (functional "
        "ANOVA, as Optuna computes it); the share of the seed is what does not depend on a "
        f"setting.{left}"
    )
    shown = table[["label", "importance"]].round(3).rename(columns={"label": "setting"})
    tables = [make_table(shown, caption="Hyperparameter importances.", csv="importances")]
    return Contents(csv={"importances": table}, text=[text], tables=tables)


IMPORTANCES = Topic("importances", "Settings and score", _build_importances, csv=["importances"])
