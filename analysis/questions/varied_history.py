"""Whether what is compared changed the history of keys, and what is said where it did not.

That scores do not differ says nothing of a history that was not shown to vary.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from math import comb, isfinite
from typing import TypeVar

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.questions import ANY, MTD
from mtdlab.analysis.data.runs import format_mtd, free_settings, has_mtd
from mtdlab.analysis.data.settings import write_setting
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.intervals import estimate, share_level
from mtdlab.analysis.inference.pairing import merge_levels
from mtdlab.analysis.inference.verdict import (
    LEAST_VARIED,
    UNMEASURED,
    UNVARIED,
    Judgement,
    VariedHistory,
)
from mtdlab.analysis.questions.wording import clean, join_sentences, join_words

SETTINGS = (
    *(MTD, "ema_decay", "ema_decay_end", "ema_schedule_steps"),
    *("queue_size", "queue_slice", "batch_size"),
)
"""What changes the history of keys."""
_MOST_ENDS = 20
Judged = TypeVar("Judged", bound=Judgement)


def measure_variation(
    study: StudyFrames, runs: pd.DataFrame, names: Sequence[str]
) -> VariedHistory | None:
    """What the values of `names` in completed runs did to history; None where it is not asked.

    Of all pairs of levels it is the one whose difference in similarity, paired by seed, has the
    highest lower bound at 95 % confidence, by Bonferroni's rule for their number.
    """
    asked = free_settings(runs, study.compared) if ANY in names else names
    by = [name for name in asked if name in SETTINGS and name in runs]
    if not by or (by == ["batch_size"] and not has_mtd(runs).any()):
        return None
    if MTD in by:
        runs = runs.assign(mtd=merge_levels(runs[MTD]))
    found, keys = VariedHistory(), runs.get("queue_size", runs["seed"][:0])
    # of a user's program it may be text
    if {MTD, "queue_size"} & {*by} and keys.dtype.kind in "iuf" and keys.nunique() > 1:
        found = VariedHistory(keys=(int(keys.min()), int(keys.max())))
    similarity = study.history.groupby("number")["similarity"].mean()
    measured = runs.assign(similarity=runs["number"].map(similarity)).dropna(subset="similarity")
    measured["level"] = number_configurations(measured, by)
    levels = measured.drop_duplicates("level").set_index("level")
    table = measured.pivot_table(index="seed", columns="level", values="similarity")
    order, level = table.mean().sort_values().index, share_level(comb(table.shape[1], 2) or 1)
    sizes = {
        (high, low): estimate(differences.to_numpy(np.float64), level)
        for low, high in product(order[:_MOST_ENDS], order[::-1][:_MOST_ENDS])
        if low != high and len(differences := (table[high] - table[low]).dropna())
    }
    if not sizes:
        return found
    # with one seed no pair has a bound
    ends = max(
        sizes, key=lambda pair: (isfinite(sizes[pair].low), sizes[pair].low, sizes[pair].mean)
    )
    names = tuple(_name_level(by, levels.loc[number]) for number in ends)
    return replace(found, size=sizes[ends], names=names)


def _name_level(names: Sequence[str], row: pd.Series) -> str:
    written = {name: clean(write_setting(name, row[name])) for name in names}
    if MTD in written:
        written[MTD] = f"MTD {format_mtd(row[MTD])}"
    return join_words([*written.values()])


def hold(judged: Judged, history: VariedHistory | None) -> Judged:
    """What was computed; differences within the margin are named by what is known of history."""
    if history is None or not judged.is_within or history.is_shown:
        return replace(judged, history=history)
    return replace(judged, verdict=UNVARIED if history.names else UNMEASURED, history=history)


def claim_within(judged: Judgement, claim: str, compared: str) -> str:
    """What differences within the margin show, in a few words.

    It is the `claim` that there is none where history is shown to vary, or is not asked about;
    `compared` is what differs by less than the margin, such as "Any two levels".
    """
    if judged.verdict == UNVARIED:
        return "History was not shown to vary"
    if judged.verdict == UNMEASURED:
        within = f"{compared} differ by less than {judged.score_format.stated_margin}"
        return f"{within}; whether history differed was not measured"
    return claim


def describe_history(judged: Judgement) -> str:
    """What is known of history where no difference in score is shown; else empty."""
    return describe_variation(judged.history) if judged.is_within or judged.is_open else ""


def describe_variation(history: VariedHistory | None) -> str:
    """What was measured of history, in sentences; empty where it was not asked about."""
    if history is None:
        return ""
    measured, of_age = "", "whether their age did was not measured"
    if history.names:
        shown, size, (least, most) = history.is_shown, history.size, history.names
        of_age = f"their age was {'' if shown else 'not '}shown to differ"
        interval = "no interval with one seed"
        if isfinite(size.low):
            interval = f"{100 * LEVEL:g} % CI {size.low:.3f} to {size.high:.3f} for all pairs"
        measured = (
            f"History was {'' if shown else 'not '}shown to vary: the mean cosine of keys in use "
            f"and the online encoder's vectors of their sentences is {size.mean:.3f} higher at "
            f"{least} than at {most} ({interval}; it has to be at least {LEAST_VARIED:g})."
        )
    if not history.keys:
        return measured
    least_keys, most_keys = history.keys
    number = f"The number of keys (K) varied, from {least_keys:,} to {most_keys:,}"
    return join_sentences(measured, f"{number}; {of_age}.")
