"""Topic: how similar the keys in use were to what the online encoder made of their sentences."""

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.questions import MTD
from mtdlab.analysis.data.runs import format_mtd, varied_settings
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.questions.varied_history import describe_variation, measure_variation
from mtdlab.analysis.questions.wording import PERCENT
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.topics.base import Axes, Contents, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.history import average_similarity

_DEFINITION = (
    "At a sixth, a half and five sixths of each run some sentences of the corpus are compared: "
    "their keys of the mean and of the greatest age in use, and what the online encoder makes of "
    "them now, without dropout. Similarity is the mean cosine of both; it is 1 where keys do not "
    "age."
)


def measure(context: StudyContext) -> pd.DataFrame:
    """The runs of the curve with a measured similarity at the mean age, averaged over the run."""
    known = average_similarity(context.study.history)
    return context.traced.merge(known, on="number").dropna(subset="similarity")


def build(context: StudyContext) -> Contents | None:
    runs = measure(context)
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
    varied = measure_variation(context.study, within, [MTD])
    return Contents(
        csv={"key_similarity": levels, "trials_key_similarity": runs},
        figures={"key_similarity": _draw(context, runs)},
        text=(_DEFINITION, _describe(runs), describe_variation(varied)),
        tables=(table,),
    )


def _describe(runs: pd.DataFrame) -> str:
    """What the levels of MTD did to the similarity, by their means."""
    means = runs.groupby("mtd")["similarity"].mean().sort_values()
    counted = format_count(len(runs), "trial")
    if len(means) < 2:
        return f"The mean similarity of {counted} is {means.iloc[0]:.3f}."
    low, high = means.index[0], means.index[-1]
    return (
        f"The mean similarity is {means.iloc[-1]:.3f} at MTD {format_mtd(high)} and "
        f"{means.iloc[0]:.3f} at MTD {format_mtd(low)} ({counted})."
    )


def _draw(context: StudyContext, runs: pd.DataFrame) -> Drawing:
    def against_mtd(ax: Axes) -> None:
        figures.draw_mtd_curve(
            context.curve,
            ax,
            runs=context.traced,
            value="score",
            name=context.score_label,
            beyond=context.verdict.left_out,
        )

    def against_similarity(ax: Axes) -> None:
        figures.draw_score_by_similarity(runs, ax, name=context.score_label)

    return Drawing(
        "Score against MTD and against the similarity of keys",
        [("score against MTD", against_mtd), ("score against similarity", against_similarity)],
        height=3.5,
        caption="First: a point per trial and the mean at each MTD. Second: a point per trial, "
        "coloured by MTD; to the right keys are more like the online encoder's vectors.",
        alt=_describe(runs),
    )


TOPIC = Topic(
    "keys",
    "History of the keys in use",
    build,
    csv=["key_similarity", "trials_key_similarity"],
    group="Representation",
)
