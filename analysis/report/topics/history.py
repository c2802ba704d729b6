"""Topic: measured history, the half-life of keys beside the maximum traceable distance."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.runs import choose_evenly, completed_runs, format_mtd
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.verdict import describe_interval
from mtdlab.analysis.report.cells import BAND, LEVEL, PERCENT, format_count, make_table
from mtdlab.analysis.report.topics.base import Contents, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.history import (
    compute_half_lives,
    compute_history_runs,
    compute_retained,
    compute_retained_curves,
    correlate_history,
    summarise_half_lives,
)

_MOST_LINES = 24
_NAMES = {"half_life": "half-life", "mtd": "MTD"}
_DEFINITION = (
    "MTD is a formula; this section measures what it stands for. During each trial the same "
    "sentences of the corpus are encoded again by the branch that encodes keys, in evaluation "
    "mode. c is the mean cosine of a sentence's key now and some steps (the lag) ago, b that of "
    "different sentences' keys now, and (c − b)/(1 − b) is what is retained: 1 where keys do not "
    "change, 0 where an old key is no nearer than another sentence's. The half-life is the lag at "
    "which one half is retained, by linear interpolation."
)
_LIMITS = (
    "What is retained is a mean over the trial. The learning rate decays, so keys change faster at "
    "its beginning than at its end, and long lags rest on fewer probes. A rank correlation does "
    "not see a peak between the lowest and the highest value."
)


@dataclass(frozen=True)
class History:
    """The measured history of a study's keys; `every` has the runs without an MTD too."""

    every: pd.DataFrame
    runs: pd.DataFrame
    retained: pd.DataFrame
    curve: pd.DataFrame
    correlations: pd.DataFrame


def compute(context: StudyContext) -> History | None:
    """The half-lives; None where no completed run was probed."""
    retained = compute_retained(context.study.probes)
    done = completed_runs(context.trials)[["number"]]
    every = compute_half_lives(retained).merge(done, on="number")
    if not len(every):
        return None
    runs = compute_history_runs(context.curve_trials, every)
    return History(
        every,
        runs,
        compute_retained_curves(runs, retained),
        summarise_half_lives(runs),
        correlate_history(runs),
    )


def describe_range(info: History) -> str:
    """Where the half-life is longest and shortest, without a full stop."""
    medians = info.curve["median"]
    if not np.isfinite(medians).any():
        return "The median half-life of a key is longer than the longest lag at every MTD"
    lowest, highest = (info.curve.iloc[int(at)] for at in (medians.argmin(), medians.argmax()))
    text = f"The median half-life of a key is {_steps(lowest)}"
    if len(info.curve) > 1:
        text += f", the shortest, and {_steps(highest)}, the longest"
    return text


def _finding(info: History) -> str:
    if not len(info.runs):
        return "No completed trial with an MTD has a half-life."
    text = describe_range(info)
    if beyond := int(info.curve["beyond"].sum()):
        longest = info.runs.loc[np.isinf(info.runs["half_life"]), "longest_lag"]
        text += (
            f". It is longer than the longest lag ({longest.min():,} steps) in {beyond:,} of "
            f"{format_count(len(info.runs), 'trial')}; a level with such a trial has no mean"
        )
    return f"{text}."


def _steps(level: pd.Series) -> str:
    median = level["median"]
    length = f"{median:.1f} steps" if np.isfinite(median) else "longer than the longest lag"
    return f"{length} at MTD {format_mtd(level['mtd'])}"


def describe_association(context: StudyContext, info: History) -> str:
    """A sentence on the rank correlations of the half-life; empty without one."""
    rows = info.correlations[info.correlations["first"] == "half_life"]
    if not len(rows):
        return ""
    names = {**context.labels, **_NAMES}
    correlations = []
    for second, *estimate in rows[["second", "mean", "low", "high"]].itertuples(index=False):
        interval = describe_interval(size := Estimate(*estimate), LEVEL)
        shown = f"{size.mean:.2f}{interval and f' ({interval})'}"
        correlations.append(f"with {names.get(second, second)} {shown}")
    seeds = format_count(int(rows["seeds"].max()), "seed")
    return f"Rank correlation of the half-life, mean over {seeds}: {', '.join(correlations)}."


def _others(context: StudyContext, info: History) -> str:
    """Methods without an MTD, whose encoder itself was probed."""
    half_lives = []
    for name, runs in context.untraced_by_method.items():
        probed = runs.merge(info.every, on="number")["half_life"]
        if name and len(probed):
            known = np.isfinite(probed.mean())
            half_lives.append(f"{f'{probed.mean():.1f} steps' if known else 'unknown'} in {name}")
    return f"Mean half-life without an MTD: {', '.join(half_lives)}." if half_lives else ""


def build(context: StudyContext) -> Contents | None:
    if (info := context.once(compute)) is None:
        return None
    configurations = summarise_half_lives(info.runs, context.study.settings)
    association = describe_association(context, info)
    half_lives = make_table(
        configurations.rename(columns={"beyond": "trials beyond the longest lag"}),
        caption=f"Mean half-life in steps, with its {PERCENT} t interval over seeds.",
        csv="half_life",
        labels=context.labels,
    )
    names = {**context.labels, **_NAMES}
    named = info.correlations.replace({"first": names, "second": names})
    correlations = make_table(
        named.rename(columns={"trials": "trials of a seed"}),
        caption=(
            "Spearman's rank correlation over the trials of a seed: mean over seeds, and its "
            f"{PERCENT} t interval over seeds, cut at −1 and 1. Half-lives longer than the longest "
            "lag share the highest rank."
        ),
        csv="history_correlations",
    )
    return Contents(
        csv={
            "half_life": configurations,
            "trials_half_life": info.every,
            "retained": info.retained,
            "history_correlations": info.correlations,
        },
        figures={"history": _draw(context, info)},
        text=(_DEFINITION, _finding(info), association, _others(context, info)),
        warnings=[_LIMITS],
        tables=(half_lives, correlations),
    )


def _draw(context: StudyContext, info: History) -> Drawing | None:
    if not len(info.runs):
        return None
    runs, score = info.runs, context.score_label
    levels = choose_evenly(info.curve, _MOST_LINES)["mtd"]
    drawn = info.retained[info.retained["mtd"].isin(levels)]
    some = "" if len(levels) == len(info.curve) else f" Drawn: {len(levels)} levels, evenly chosen."
    return Drawing(
        "Measured history of the keys",
        [
            ("what is retained of a key, by lag", lambda ax: figures.draw_retained(drawn, ax)),
            (
                "half-life of keys against MTD",
                lambda ax: figures.draw_half_lives(runs, info.curve, ax),
            ),
            (
                "score against half-life",
                lambda ax: figures.draw_score_by_half_life(runs, ax, name=score),
            ),
        ],
        height=3.5,
        caption=(
            "First: mean over the trials of a level of MTD; the dashed line is one half, and the "
            f"CSV has the intervals.{some} Second: a point per trial and the mean at each MTD. "
            f"{BAND} Third: a point per trial, coloured by MTD."
        ),
        alt=_finding(info),
    )


TOPIC = Topic(
    "history",
    "Measured history",
    build,
    csv=["half_life", "trials_half_life", "retained", "history_correlations"],
    group="Representation",
)
