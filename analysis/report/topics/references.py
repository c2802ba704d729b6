"""Topic: what the scores are held against, the untrained encoder and words in common."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd

from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.tasks import WORD_OVERLAP
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic

BEFORE = "before training"
"""The name of the encoder before training, read as the trials are."""
_MOST_NAMED = 4
_ALIKE = 0.005
"""Points: what is rounded away."""
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
    """The references that a figure shows, none with a map, which is fitted to the test sentences.

    They are the encoder before training, read as all trials are, the highest reading of it, if that
    is another one, and word overlap.
    """
    ranked, before = rank_references(context), context.runs["score_before"].astype("float64")
    same = float(before.mean()) if before.max() - before.min() < _ALIKE else math.nan
    lines = {BEFORE: same} if math.isfinite(same) else {}
    of_words = ranked["reading"] == WORD_OVERLAP
    for chosen in (ranked[_is_plain(ranked)], ranked[of_words]):
        for name, score in chosen[["name", "score"]].head(1).itertuples(index=False):
            if not np.isclose(score, same, rtol=0, atol=_ALIKE):
                lines[name] = float(score)
    return lines


def _is_plain(references: pd.DataFrame) -> pd.Series:
    """Whether each is a reading of the encoder as it is, without a map."""
    return ~references["reading"].str.contains(",") & (references["reading"] != WORD_OVERLAP)


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
    text = (
        f"The {write.say('highest')} mean of this study, {write.score(context.best_mean)}, is "
        f"{write.say(where)}: {'; '.join(named)}."
    )
    if shown["reading"].str.contains(",").any():
        text += " Whitening and flow are fitted to the sentences of the test pairs."
    return text


def _list_above(context: StudyContext) -> pd.DataFrame:
    ranked, best = rank_references(context), context.best_mean
    return ranked[ranked["score"] >= best] if best is not None else ranked[:0]


def find_untrained(context: StudyContext) -> tuple[str, float] | None:
    """The reading of the untrained encoder above the best mean, and its score; None without one.

    It is the highest that is not fitted to the test sentences, where there is one.
    """
    above = _list_above(context)
    of_encoder = above[above["reading"] != WORD_OVERLAP]
    plain = of_encoder[_is_plain(of_encoder)]
    for chosen in (plain if len(plain) else of_encoder).head(1).to_dict("records"):
        fitted = "" if len(plain) else " on the test pairs"
        return f"{_name(chosen['reading'])}{fitted}", float(chosen["score"])
    return None


def warn_of_references(context: StudyContext) -> str:
    """A caveat where the best mean is not above the untrained encoder, or word overlap."""
    above, best = _list_above(context), context.best_mean
    if best is None or not len(above):
        return ""
    write = context.write
    below, mean = write.say("Below"), f"the best mean is {write.score(best)}"
    if (untrained := find_untrained(context)) is None:
        return f"{below} word overlap: it has {write.score(above['score'].iloc[0])}, {mean}."
    reading, first = untrained
    return f"{below} the untrained encoder, {write.score(first)} ({reading}): {mean}."


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
