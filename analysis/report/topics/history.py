"""Topics: the half-life of keys beside MTD, and how similar the keys in use were."""

import numpy as np

from mtdlab.analysis import figures
from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.questions import MTD
from mtdlab.analysis.data.runs import choose_evenly, varied_settings
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.questions.history import (
    NAMES,
    History,
    HistoryQuestion,
    describe_range,
    measure_history,
)
from mtdlab.analysis.questions.varied_history import describe_variation, measure_variation
from mtdlab.analysis.questions.wording import PERCENT
from mtdlab.analysis.report.cells import BAND, describe_curve, make_table
from mtdlab.analysis.report.topics.base import Contents, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.history import summarise_half_lives

_MOST_LINES = 24
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
    if (info := context.once(measure_history)) is None:
        return None
    configurations = summarise_half_lives(info.runs, context.study.settings)
    half_lives = make_table(
        configurations.rename(columns={"beyond": "trials beyond the longest lag"}),
        caption=f"Mean half-life in steps, with its {PERCENT} t interval over seeds.",
        csv="half_life",
        labels=context.labels,
    )
    names = {**context.labels, **NAMES}
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
        text=(_DEFINITION, _finding(info), _others(context, info)),
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
    answers=(HistoryQuestion,),
)


_SIMILARITY = (
    "At a sixth, a half and five sixths of each run some sentences of the corpus are compared: "
    "their keys of the mean and of the greatest age in use, and what the online encoder makes of "
    "them now, without dropout. Similarity is the mean cosine of both; it is 1 where keys do not "
    "age."
)


def _build_keys(context: StudyContext) -> Contents | None:
    """The similarity of keys by level, averaged over a run; None where none was measured."""
    by_trial = context.study.history.groupby("number")
    known = by_trial[["similarity", "oldest_similarity"]].mean()
    runs = context.traced.merge(known, on="number").dropna(subset="similarity")
    if not len(runs):
        return None
    by = [*dict.fromkeys([*varied_settings(runs, context.study.settings), "mtd"])]
    oldest = runs.groupby(by)["oldest_similarity"].mean().to_numpy()
    levels = summarise(runs, by=by, value="similarity").assign(oldest=oldest)
    table = make_table(
        levels,
        caption=f"Mean similarity of keys of the mean age, with its {PERCENT} t interval over "
        "seeds, and of the oldest keys in use.",
        csv="key_similarity",
        labels={**context.labels, "mean": "similarity", "oldest": "of the oldest keys"},
    )
    within, _ = leave_out(runs, context.study.beyond_run)
    varied, score = measure_variation(context.study, within, [MTD]), context.score_label
    drawing = Drawing(
        "Score against the similarity of keys",
        [("", lambda ax: figures.draw_score_by_similarity(runs, ax, name=score))],
        caption="A point per trial, coloured by MTD; to the right keys are more like the online "
        "encoder's vectors.",
        alt=describe_curve(levels, "The mean similarity is", decimals=3),
    )
    return Contents(
        csv={"key_similarity": levels, "trials_key_similarity": runs},
        figures={"key_similarity": drawing},
        text=(_SIMILARITY, describe_variation(varied)),
        tables=(table,),
    )


KEYS = Topic(
    "keys",
    "History of the keys in use",
    _build_keys,
    csv=["key_similarity", "trials_key_similarity"],
    group="Representation",
)
