"""Which of several models is the best over blocks, such as tasks, and which are not separated.

A model has one score in every block, and blocks take the place of seeds: two models differ where
the interval of their mean difference over blocks, simultaneous for all pairs, excludes 0. The set
that may be the best follows from the same intervals: one-sided comparisons with the best (Hsu 1984)
leave out one of several equal models more often, and ranks (Nemenyi, Wilcoxon) do not compare
means. Letters: B blocks, M models.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.runs import round_scores
from mtdlab.analysis.inference.best import BestVerdict, judge_best
from mtdlab.analysis.inference.pairing import LevelScores

_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def group_models(apart: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The largest groups of models of which no two are apart, (M, M); the first models first.

    They are those of a compact letter display, by the insert-and-absorb algorithm (Piepho 2004).
    """
    groups = {frozenset(range(len(apart)))}
    for pair in np.argwhere(np.triu(apart)).tolist():
        split = {group for group in groups if group.issuperset(pair)}
        groups = (groups - split) | {group - {one} for group in split for one in pair}
        groups = {group for group in groups if not any(group < other for other in groups)}
    return sorted(tuple(sorted(group)) for group in groups)


def rank_models(scores: pd.DataFrame) -> tuple[BestVerdict, pd.DataFrame]:
    """The comparison of a table (B, M) without holes, and the models, the highest mean first.

    Columns: model, groups (a letter for each group that it is in; empty where there are more than
    26), mean, difference (to the first) with difference_low and difference_high, may_be_best. In
    the comparison, models are their places in the table, from 0.
    """
    levels = LevelScores(scores.set_axis(range(scores.shape[1]), axis=1), ordered=False)
    judged, tests, fit = judge_best(levels, level=LEVEL, margin=0.0), levels.tests, levels.fit
    order = list(judged.ranked)
    above = tests.find_above(fit, 1 - LEVEL)[np.ix_(order, order)]
    groups = group_models(above | above.T)
    lettered = [*zip(_LETTERS, groups, strict=False)] if len(groups) <= len(_LETTERS) else []
    less = round_scores(tests.compare_with(fit, order[0], 1 - LEVEL)[order], scores)
    less[0] = np.nan
    table = pd.DataFrame(less, columns=["difference", "difference_low", "difference_high"])
    letters = ["".join(a for a, group in lettered if row in group) for row in range(len(order))]
    table.insert(0, "model", scores.columns[order].astype("str"))
    table.insert(1, "groups", letters)
    table.insert(2, "mean", scores.mean().to_numpy()[order])
    table["may_be_best"] = [place in judged.may_be_best for place in order]
    return judged, table
