"""Which configuration of a study is the best, and whether that is decided.

What is compared has no order: methods at their levels of MTD where there are several, else
configurations. Of a table of models with one score in every block, such as tasks, blocks take the
place of seeds: two models differ where the interval of their mean difference over blocks,
simultaneous for all pairs, excludes 0. The set that may be the best follows from the same
intervals: one-sided comparisons with the best (Hsu 1984) leave out one of several equal models more
often, and ranks (Nemenyi, Wilcoxon) do not compare means.
Letters: S seeds or blocks, C configurations or models, B tables (S, C).
"""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mtdlab.analysis.data.defaults import LEVEL, MOST_COMPARED
from mtdlab.analysis.data.frames import DIFFERENCE, Settings
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.runs import (
    completed_runs,
    free_settings,
    mtd_or_0,
    round_scores,
    varied_settings,
)
from mtdlab.analysis.data.settings import with_defaults
from mtdlab.analysis.inference.blocks import Fit, connected_table
from mtdlab.analysis.inference.pairing import LevelScores, cell_covariance
from mtdlab.analysis.inference.shapes import ShapeTests
from mtdlab.analysis.inference.verdict import Held, Judgement
from mtdlab.analysis.measures.trace import PARTS

BestKind = Literal["separated", "equivalent", "inconclusive"]
METHOD_KEYS = ["method", "mtd"]
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


def with_methods(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The trials with their method; the default method, if any, where none was recorded."""
    only = {"method": settings["method"]} if "method" in settings else {}
    return with_defaults(trials, only)


def runs_by_method(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The completed runs with their method, and an MTD of 0 where the method has none."""
    runs = completed_runs(with_methods(trials, settings))
    return runs.assign(mtd=mtd_or_0(runs))


def varies_method(trials: pd.DataFrame, settings: Settings) -> bool:
    """Whether the completed runs with a score have more than one method."""
    runs = completed_runs(with_methods(trials, settings))
    return "method" in runs and runs["method"].nunique() > 1


def method_keys(runs: pd.DataFrame, settings: Collection[str]) -> list[str]:
    """The columns that tell apart what a study of several methods compares.

    They are the method and the MTD, 0 for none, with the settings that vary where those are not one
    configuration. Configurations that make up one MTD differently are one.
    """
    within = [name for name in free_settings(runs, settings) if name not in METHOD_KEYS]
    apart = [name for name in within if name not in PARTS]
    rows = runs.drop_duplicates([*METHOD_KEYS, *apart])
    without = runs[runs["mtd"] == 0].drop_duplicates([*METHOD_KEYS, *within])
    is_one = not (rows.duplicated(METHOD_KEYS).any() or without.duplicated(METHOD_KEYS).any())
    return METHOD_KEYS if is_one else [*METHOD_KEYS, *within]


def number_configurations(runs: pd.DataFrame, varied: list[str]) -> pd.Series:
    """The number of each run's configuration: grouped by value, since texts are rounded."""
    if not varied:
        return pd.Series(0, index=runs.index)
    return runs.groupby(varied, dropna=False).ngroup()


def best_scores(
    trials: pd.DataFrame, settings: Settings, items: ItemScores | None = None
) -> LevelScores:
    """The scores by seed of what a study compares, where it asks for the best.

    Of more than `MOST_COMPARED` those with the highest means are compared.

    The sampling error of `items` is counted where every run of the table has them.
    """
    runs = runs_by_method(trials, settings)
    find_keys = method_keys if varies_method(trials, settings) else varied_settings
    keys = find_keys(runs, settings)
    groups = runs["number"].groupby(number_configurations(runs, keys))
    runs = runs.assign(first=groups.transform("min"))
    table = runs.pivot_table(index="seed", columns="first", values="score")
    if len(table.columns) > MOST_COMPARED:
        # the same as in the table of configurations
        table = table[table.mean().nlargest(MOST_COMPARED).index.sort_values()]
    table = table.loc[*connected_table(table.to_numpy(dtype=np.float64))]
    covariance = cell_covariance(runs, table, "first", items)
    return LevelScores(table, *covariance, runs, ordered=False)


def classify_best(tests: ShapeTests, fit: Fit, alpha: float, margin: float) -> NDArray[np.object_]:
    """What is decided about the best of B tables, (B,) names of `BestKind`.

    At significance level alpha; margin in points.

    separated     the intervals of the best minus each other column, simultaneous for all pairs, lie
                  above 0. The one-sided comparison with the best (Hsu 1984) is not enough: of two
                  equal columns it leaves out either in 2 alpha of studies.
    equivalent    all columns that may be the best, at least two, are shown to differ by less than
                  the margin.
    """
    may_be_best = tests.find_may_be_best(fit, alpha)
    kind = np.full(len(may_be_best), "inconclusive", dtype=object)
    several = may_be_best.sum(axis=-1) > 1
    kind[several & tests.are_flat(fit, alpha, margin, may_be_best)] = "equivalent"
    kind[tests.test_best(fit) <= alpha] = "separated"
    return kind


@dataclass(frozen=True)
class BestVerdict(Judgement):
    """What a study shows about which configuration is the best.

    Attributes:
        verdict: separated, equivalent or inconclusive.
        p_value: of the best being above each other one.
        ranked: what is compared, each named by the number of its first trial, the highest estimate
            first.
        may_be_best: the first of them, and those whose difference to it has an interval, as it is
            stated, that includes 0.
    """

    verdict: BestKind | Held = "inconclusive"
    ranked: tuple[int, ...] = ()
    may_be_best: tuple[int, ...] = ()

    @property
    def is_separated(self) -> bool:
        """Whether the best is shown to be above each other one."""
        return self.verdict == "separated"


def judge_best(scores: LevelScores, *, level: float, margin: float) -> BestVerdict:
    """What is decided on scores as of `best_scores`; "inconclusive" where nothing is compared."""
    blank = BestVerdict(level=level, margin=margin)
    if not scores.comparable:
        return blank
    tests, fit, numbers = scores.tests, scores.fit.part(None), scores.table.columns.to_numpy()
    verdict = classify_best(tests, fit, 1 - level, margin)[0]
    may_be_best = tests.find_may_be_best(fit, 1 - level)
    is_within = verdict == "equivalent"
    order = np.argsort(-round_scores(scores.fit.effects, scores.table), kind="stable")
    return replace(
        blank,
        verdict=verdict,
        p_value=float(tests.test_best(fit)[0]),
        ranked=tuple(numbers[order].tolist()),
        may_be_best=tuple(numbers[may_be_best[0]].tolist()),
        within=float(tests.bound_each(fit, 1 - level, may_be_best)[0]) if is_within else math.nan,
        seeds=len(scores.table),
        items=scores.items,
    )


def group_models(apart: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """The largest groups of models of which no two are apart, (C, C); the first models first.

    They are those of a compact letter display, by the insert-and-absorb algorithm (Piepho 2004).
    """
    groups = {frozenset(range(len(apart)))}
    for pair in np.argwhere(np.triu(apart)).tolist():
        split = {group for group in groups if group.issuperset(pair)}
        groups = (groups - split) | {group - {one} for group in split for one in pair}
        groups = {group for group in groups if not any(group < other for other in groups)}
    return sorted(tuple(sorted(group)) for group in groups)


def rank_models(scores: pd.DataFrame) -> tuple[BestVerdict, pd.DataFrame]:
    """The comparison of a table (S, C) without holes, and the models, the highest mean first.

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
    table = pd.DataFrame(less, columns=DIFFERENCE)
    letters = ["".join(a for a, group in lettered if row in group) for row in range(len(order))]
    table.insert(0, "model", scores.columns[order].astype("str"))
    table.insert(1, "groups", letters)
    table.insert(2, "mean", scores.mean().to_numpy()[order])
    table["may_be_best"] = [place in judged.may_be_best for place in order]
    return judged, table
