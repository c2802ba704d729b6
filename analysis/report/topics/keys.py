"""Topic: how similar the keys in use were to what the online encoder made of their sentences."""

from mtdlab.analysis import figures
from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.questions import MTD
from mtdlab.analysis.data.runs import varied_settings
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.questions.varied_history import describe_variation, measure_variation
from mtdlab.analysis.questions.wording import PERCENT
from mtdlab.analysis.report.cells import describe_curve, make_table
from mtdlab.analysis.report.topics.base import Contents, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.history import average_similarity

_DEFINITION = (
    "At a sixth, a half and five sixths of each run some sentences of the corpus are compared: "
    "their keys of the mean and of the greatest age in use, and what the online encoder makes of "
    "them now, without dropout. Similarity is the mean cosine of both; it is 1 where keys do not "
    "age."
)


def build(context: StudyContext) -> Contents | None:
    """The similarity of keys by level, averaged over a run; None where none was measured."""
    known = average_similarity(context.study.history)
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
        height=3.5,
        caption="A point per trial, coloured by MTD; to the right keys are more like the online "
        "encoder's vectors.",
        alt=describe_curve(levels, "The mean similarity is", decimals=3),
    )
    return Contents(
        csv={"key_similarity": levels, "trials_key_similarity": runs},
        figures={"key_similarity": drawing},
        text=(_DEFINITION, describe_variation(varied)),
        tables=(table,),
    )


TOPIC = Topic(
    "keys",
    "History of the keys in use",
    build,
    csv=["key_similarity", "trials_key_similarity"],
    group="Representation",
)
