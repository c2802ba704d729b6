"""Topic: what the scores are held against, the untrained encoder and words in common."""

from collections.abc import Mapping

import pandas as pd

from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.tasks import WORD_OVERLAP
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic

_MOST_NAMED = 4
_HOW = (
    "The encoder before training, read with each pooling that needs no prompt, in float32: as it "
    "is; whitened, to 256 dimensions or all but one; and mapped by a flow (BERT-flow). Both maps "
    "are fitted to the sentences of these pairs, without their scores. Word overlap is the share "
    "of the different words of a pair that both sentences have. The trials are read as the study "
    "says, without a map. None of these scores has an interval. A reading for which a tenth of the "
    "study's time was too short is scored by mtdlab report --study STUDY --references."
)


def rank_references(context: StudyContext) -> pd.DataFrame:
    """The references that have a score, the highest first, each with its name."""
    known = context.study.references
    several = known["encoder"].nunique() > 1
    names = [
        reading
        if reading == WORD_OVERLAP
        else f"untrained{f' {clean(encoder, most=40)}' if several else ''}, {_name(reading)}"
        for encoder, reading in zip(known["encoder"], known["reading"], strict=True)
    ]
    ranked = known.assign(name=names).drop_duplicates("name")
    return ranked.sort_values("score", ascending=False, kind="stable", ignore_index=True)


def _name(reading: str) -> str:
    pooling, comma, way = reading.partition(",")
    return f"{pooling} pooling{comma}{way}"


def choose_lines(context: StudyContext) -> Mapping[str, float]:
    """The references that a figure shows: the highest, the highest without a map, word overlap."""
    ranked = rank_references(context)
    is_plain = ~ranked["reading"].str.contains(",") & (ranked["reading"] != WORD_OVERLAP)
    of_encoder = ranked[ranked["reading"] != WORD_OVERLAP]
    overlap = ranked[ranked["reading"] == WORD_OVERLAP]
    shown = pd.concat([of_encoder.head(1), ranked[is_plain].head(1), overlap.head(1)])
    return dict(zip(shown["name"], shown["score"].astype(float), strict=True))


def describe_standing(context: StudyContext) -> str:
    """A sentence on where the best mean of the study lies among the references; else empty."""
    ranked, above = rank_references(context), _list_above(context)
    if not len(ranked) or context.best_mean is None:
        return ""
    count = f"{format_count(len(ranked), 'score')} without training"
    shown = (above if len(above) else ranked.head(1)).head(_MOST_NAMED)
    write = context.write
    named = [f"{row['name']} ({write.score(row['score'])})" for row in shown.to_dict("records")]
    named += [f"{len(above) - _MOST_NAMED} more"] if len(above) > _MOST_NAMED else []
    where = f"not above {len(above)} of the {count}" if len(above) else f"above all {count}, first"
    return (
        f"The {write.say('highest')} mean of this study, {write.score(context.best_mean)}, is "
        f"{write.say(where)}: {'; '.join(named)}."
    )


def _list_above(context: StudyContext) -> pd.DataFrame:
    ranked, best = rank_references(context), context.best_mean
    return ranked[ranked["score"] >= best] if best is not None else ranked[:0]


def is_below_untrained(context: StudyContext) -> bool:
    """Whether a reading of the untrained encoder has the best mean of the study, or more."""
    return bool((_list_above(context)["reading"] != WORD_OVERLAP).any())


def warn_of_references(context: StudyContext) -> str:
    """A caveat where the best mean is not above the untrained encoder, or word overlap."""
    above, best = _list_above(context), context.best_mean
    if best is None or not len(above):
        return ""
    write, of_encoder = context.write, above[above["reading"] != WORD_OVERLAP]
    below, mean = write.say("Below"), f"the best mean is {write.score(best)}"
    if not len(of_encoder):
        return f"{below} word overlap: it has {write.score(above['score'].iloc[0])}, {mean}."
    first, how = of_encoder["score"].iloc[0], _name(of_encoder["reading"].iloc[0])
    return f"{below} the untrained encoder: it has {write.score(first)} ({how}), {mean}."


def build(context: StudyContext) -> Contents | None:
    """The references by score; None without any."""
    if not len(every := context.study.references):
        return None
    shown = rank_references(context)[["name", "score"]].rename(columns={"name": "reference"})
    write = context.write
    highest = f"the {write.say('highest')} first"
    caption = f"{clean(write.name, most=40)} without training, {highest}."
    return Contents(
        csv={"references": write.frame(every)},
        text=[_HOW],
        tables=[make_table(shown, caption=caption, csv="references", write=write)],
        folded=True,
    )


TOPIC = Topic("references", "What the scores are held against", build, csv=["references"])
