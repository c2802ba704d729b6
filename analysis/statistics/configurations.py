"""Configurations side by side: means, differences to the best, effects and importances of settings.

Effects are those of a factorial design: every combination of the settings' values was run, each
with the same seeds or nearly so. Seeds are blocks, and may have effects of their own: the variance
of a contrast is the largest of three, of which one is that of its own values by seed
(`mtdlab.analysis.inference.blocks`). Letters: S seeds, C configurations, V values of a setting,
K contrasts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from types import MappingProxyType

import numpy as np
import pandas as pd
import scipy
from numpy.typing import NDArray

from mtdlab.analysis.data.defaults import LEVEL, MOST_COMPARED
from mtdlab.analysis.data.frames import DIFFERENCE, RESULT_COLUMNS, StudyFrames
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.runs import (
    CONFIGURATION,
    choose_evenly,
    completed_runs,
    free_settings,
    is_missing,
    round_scores,
    varied_settings,
)
from mtdlab.analysis.data.settings import format_value, name_setting, write_setting
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.blocks import connected_table
from mtdlab.analysis.inference.pairing import (
    Mean,
    cell_covariance,
    estimate_mean,
    select_configuration,
    summarise_deviations,
    summarise_scores,
)
from mtdlab.analysis.inference.shapes import compare_columns, highest_column
from mtdlab.analysis.inference.simultaneous import compare_own
from mtdlab.analysis.measures import Floats

COLUMNS = ["number", *RESULT_COLUMNS]
"""The columns of a table of configurations after the settings that varied."""


_MOST_OF_VALUE = 24


def name_configuration(settings: pd.Series) -> str:
    """Settings as text: learning rate 0.001, steps 160."""
    return ", ".join(write_setting(str(name), value) for name, value in settings.items())


def name_configurations(settings: pd.DataFrame) -> list[str]:
    """The settings of each row as text."""
    return [name_configuration(row) for _, row in settings.astype("object").iterrows()]


def name_rows(
    table: pd.DataFrame,
    names: Sequence[str],
    *,
    beside: Collection[str],
    most: int,
    defaults: Mapping[str, object] = MappingProxyType({}),
) -> list[str]:
    """The rows of a table by the settings `names`, of which those in `beside` stand last.

    The rows of a method are named by the settings that differ between them: XBM (queue_size 64).
    Where a name has more letters than `most`, settings are left out without which the rows still
    differ, the last first, and those of methods at the values in `defaults` before those that are
    not in `beside`; of a longer one the table's number is stated.
    """
    names = sorted(names, key=lambda name: (name != "method", name in beside))
    values = table[names].astype("object")
    if "method" in names:
        others = [name for name in names[1:] if name not in beside]
        differs = values.groupby("method")[others].transform("nunique").gt(1)
        values[others] = values[others].where(differs & (values[others] != ""))
    kept, cells = names, _format_known(values)
    texts = named = _join_known(cells, kept) if names else ["all configurations"] * len(table)
    steps: list[str | None] = [*reversed(names)]
    if "method" in names:
        # the step of the defaults
        steps.insert(sum(name in beside for name in names), None)
    for left_out in steps:
        if max(map(len, texts), default=0) <= most:
            break
        rest = [name for name in kept if name != left_out]
        known = _leave_out(cells, defaults) if left_out is None else cells
        shorter = _join_known(known, rest)
        if len(set(shorter)) == len(set(named)):
            kept, cells, texts = rest, known, shorter
    return [
        text if len(text) <= most else f"trial {number}: {text}"
        for text, number in zip(texts, table["number"], strict=True)
    ]


def name_values(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The rows of a table by the values of the settings alone: 0.95, 0-1024, target."""
    return [", ".join(cells.values()) for cells in _format_known(table[names].astype("object"))]


def _format_known(values: pd.DataFrame) -> list[dict[str, str]]:
    """The settings of each row by name as text, without what its method lacks."""
    rows = []
    for row in values.to_dict("records"):
        known = {str(name): value for name, value in row.items()}
        texts = {
            name: format_value(name, value)
            for name, value in known.items()
            if "method" not in known or pd.notna(value)
        }
        # the end of a long value, such as a path, distinguishes it
        rows.append(
            {
                name: text if len(text) <= _MOST_OF_VALUE else f"…{text[1 - _MOST_OF_VALUE :]}"
                for name, text in texts.items()
            }
        )
    return rows


def _leave_out(
    cells: Sequence[Mapping[str, str]], values: Mapping[str, object]
) -> list[dict[str, str]]:
    """The settings of each row without those that have the given values."""
    texts = {name: format_value(name, value) for name, value in values.items()}
    return [{name: text for name, text in row.items() if texts.get(name) != text} for row in cells]


def _join_known(cells: Sequence[Mapping[str, str]], names: Sequence[str]) -> list[str]:
    """Some settings of each row as text: a method's in brackets."""
    texts = []
    for row in cells:
        method = row.get("method", "") if "method" in names else ""
        known = [name for name in names if name in row and name != "method"]
        text = ", ".join(f"{name_setting(name)} {row[name]}" for name in known)
        texts.append(f"{method} ({text})" if method and text else method or text)
    return texts


def rank_configurations(
    runs: pd.DataFrame,
    varied: list[str],
    items: ItemScores | None = None,
    *,
    beside: Collection[str] = (),
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Completed runs with the number of their configuration, and the configurations by their mean.

    Columns of these, the highest mean first: number of the first run, those of `varied` and
    `beside`, configuration, n, seeds, mean, low, high, items.
    """
    runs = runs.assign(**{CONFIGURATION: number_configurations(runs, varied)})
    table = summarise_scores(runs, by=[CONFIGURATION], items=items)
    first = runs.sort_values("number").drop_duplicates(CONFIGURATION)
    chosen = first[["number", *varied, *beside, CONFIGURATION]]
    table = chosen.merge(table, on=CONFIGURATION)
    # of equal means, which differ by rounding, the first trial stands first
    means = round_scores(table["mean"], table["mean"])
    order = means.sort_values(ascending=False, kind="stable").index
    return runs, table.loc[order].reset_index(drop=True)


def compute_configurations(
    study: StudyFrames, trials: pd.DataFrame, level: float = LEVEL
) -> pd.DataFrame:
    """`compare_groups` of the configurations: runs that differ in one of the compared settings."""
    runs = completed_runs(trials)
    return compare_groups(study, runs, free_settings(runs, study.compared), level)


def compare_groups(
    study: StudyFrames, runs: pd.DataFrame, by: list[str], level: float
) -> pd.DataFrame:
    """Mean score of completed runs by group, the best first, and its difference to the best.

    The order is that of the estimates with seeds as blocks, by means where all have all seeds.
    `level` is the confidence of comparisons.

    Returns:
        The columns `by`, nuisance settings in which groups differ, then `COLUMNS`: number is the
        first trial of the group; the difference is in points above the best group, with seeds as
        blocks. Its interval is simultaneous for all pairs of groups, because the best is chosen by
        the same scores; it is missing for the best itself, where seeds are not shared, and beyond
        the 100 best. may_be_best: whether no interval is below 0. seconds and memory, in MB, are
        the means of a trial's duration and of its peak memory.
    """
    runs = runs.sort_values("number")
    beside = [name for name in study.nuisance if name in runs and runs[name].nunique() > 1]
    runs, table = rank_configurations(runs, by, study.items, beside=beside)
    scores = runs.pivot_table(index="seed", columns=CONFIGURATION, values="score")
    ordered = scores.reindex(columns=table[CONFIGURATION][:MOST_COMPARED])
    covariance, _ = cell_covariance(runs, ordered, CONFIGURATION, study.items)
    best = highest_column(ordered.to_numpy(dtype=np.float64))
    table = table.join(differences_to_best(ordered, best, covariance, level))
    costs = runs.reindex(columns=[CONFIGURATION, "wall_seconds", "peak_memory"])
    of_group = costs.groupby(CONFIGURATION)
    table = table.assign(
        may_be_best=~(table["difference_high"] < 0),
        seconds=table[CONFIGURATION].map(of_group["wall_seconds"].mean()),
        memory=table[CONFIGURATION].map(of_group["peak_memory"].mean()) / 1e6,
    )
    return rank_rows(table, best)[[*by, *beside, *COLUMNS]]


def rank_rows(table: pd.DataFrame, best: int) -> pd.DataFrame:
    """The rows in the order of their differences to row `best`; those without one come last."""
    # the row that others are compared with stands before its equals
    differences = table["difference"].copy()
    differences.iloc[best : best + 1] = np.inf
    order = differences.sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)


def differences_to_best(
    scores: pd.DataFrame, best: int, covariance: Floats | None, level: float = LEVEL
) -> pd.DataFrame:
    """`compare_columns` of scores (S, C): the difference and its bounds, C rows.

    Values are NaN for the best itself. Where too few seeds are shared, there are no bounds, and the
    difference is over the common ones.
    """
    values = scores.to_numpy(dtype=np.float64)
    differences = compare_columns(values, best, 1 - level, covariance)
    for column in np.flatnonzero(np.isnan(differences[:, 0])):
        common = values[:, column] - values[:, best]
        common = common[np.isfinite(common)]
        differences[column, 0] = common.mean() if len(common) else np.nan
    differences[best : best + 1] = np.nan
    # without the sign of a 0
    differences = round_scores(differences, values) + 0.0
    return pd.DataFrame(differences, columns=DIFFERENCE, dtype="float64")


def estimate_configuration(
    trials: pd.DataFrame, settings: Collection[str], number: int, items: ItemScores | None = None
) -> Mean:
    """Mean score of a trial's configuration, `estimate_mean`.

    Raises KeyError where `number` is no completed trial with a score.
    """
    return estimate_mean(select_configuration(completed_runs(trials), settings, number), items)


FAILURE_LEVEL = 0.05


def find_frequent_failures(failed: pd.Series, groups: pd.Series) -> pd.DataFrame:
    """The groups of ended trials of which more failed than of all others.

    By Fisher's exact test (one-sided), the p values multiplied by the number of groups
    (Bonferroni). Returns sum (failed) and size (ended) by group; no rows of fewer than two groups.
    """
    table = failed.groupby(groups).agg(["sum", "size"]).astype("int64")
    if len(table) < 2:
        return table.iloc[:0]
    all_failed, all_ended = table.sum()
    # P(at least so many of all failures fall on the runs of this group)
    p = scipy.stats.hypergeom.sf(table["sum"] - 1, all_ended, all_failed, table["size"])
    return table[len(table) * np.asarray(p) < FAILURE_LEVEL]


FEWEST_RUNS = 20
"""The fewest runs from which importances are computed."""
MOST_RUNS = 300
"""The most runs that importances are computed from; of more, evenly chosen ones."""

_WIDE = 10.0


def independent_settings(runs: pd.DataFrame, settings: Collection[str]) -> list[str]:
    """The settings that varied and that no other of them determines, in the frame's order.

    A setting that is missing in some of the runs, which are completed ones, is left out.
    """
    varied = [name for name in varied_settings(runs, settings) if not is_missing(runs[name]).any()]
    codes = {name: runs[name].factorize()[0] for name in varied}
    kept: list[str] = []
    for name in varied:
        others = [
            other for other in varied if other != name and determines(codes[other], codes[name])
        ]
        # of two that determine each other the first stays
        if not any(other in kept or not determines(codes[name], codes[other]) for other in others):
            kept.append(name)
    return kept


def determines(first: NDArray[np.intp], second: NDArray[np.intp]) -> bool:
    """Whether runs of one value of the first setting all have one value of the second.

    Both are the numbers of the runs' values, (R,), -1 for one that is missing.
    """
    known = (first >= 0) & (second >= 0)
    pairs = first[known] * (second.max(initial=0) + 1) + second[known]
    return bool(len(pairs)) and len(np.unique(pairs)) == len(np.unique(first[known]))


def compute_importances(trials: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """The share of each varied setting, and of the seed, in what the score depends on.

    Functional ANOVA of a random forest (Hutter et al., ICML 2014) as Optuna computes it, with a
    fixed seed; shares sum to 1. Returns setting, importance, the largest first. No rows unless 20
    completed runs have a score and two settings varied independently.
    """
    runs = completed_runs(trials)
    names = independent_settings(runs, settings)
    if len(names) < 2 or len(runs) < FEWEST_RUNS:
        return pd.DataFrame(
            {"setting": pd.Series(dtype="str"), "importance": pd.Series(dtype=float)}
        )
    runs = choose_evenly(runs, MOST_RUNS)
    if runs["seed"].nunique() > 1:
        names.append("seed")
    shares = _evaluate(runs, names)
    table = pd.DataFrame({"setting": list(shares), "importance": list(shares.values())})
    return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _evaluate(runs: pd.DataFrame, names: list[str]) -> dict[str, float]:
    # imported here: it takes half a second, and most pages do not need it
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

    distributions: dict[str, BaseDistribution] = {}
    values = runs[names].copy()
    for name in names:
        if values[name].dtype.kind in "iuf":
            values[name] = values[name].astype("float64")
            low, high = float(values[name].min()), float(values[name].max())
            wide = low > 0 and high > _WIDE * low
            distributions[name] = FloatDistribution(low, high, log=wide)
        else:
            values[name] = values[name].astype("str")
            distributions[name] = CategoricalDistribution(sorted(set(values[name])))
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(direction="maximize")
        for params, score in zip(values.to_dict("records"), runs["score"], strict=True):
            known = {str(name): value for name, value in params.items()}
            study.add_trial(
                optuna.trial.create_trial(params=known, distributions=distributions, value=score)
            )
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        return optuna.importance.get_param_importances(study, evaluator=evaluator)
    finally:
        optuna.logging.set_verbosity(verbosity)


MOST_CONFIGURATIONS = 64
_INTERACTION = ["first", "upper", "lower", "second", "at", "less_at"]


@dataclass(frozen=True)
class Effects:
    """Main effects and interactions.

    Attributes:
        settings: setting, upper, lower (values), difference, low, high: the mean score with the
            upper value minus that with the lower, over all values of the other settings, in points;
            a row for each pair of values of each setting, the largest difference first. The
            intervals are simultaneous over all rows.
        interactions: first and second (settings), upper and lower (values of the first), at and
            less_at (of the second), difference, low, high: how many points more upper is above
            lower with second at `at` than at `less_at`; every such difference of differences, the
            highest low first. The intervals are simultaneous over all rows.
        cells: the score minus its seed's mean over all configurations, at each value of the two
            settings of the first interaction: first, second, n, seeds, mean, low, high, with
            intervals over seeds alone.
        items: evaluation items that the other intervals cover; 0: they cover seeds alone.
    """

    settings: pd.DataFrame
    interactions: pd.DataFrame
    cells: pd.DataFrame
    items: int


@dataclass(frozen=True, eq=False)
class Factors:
    """The configurations that settings tell apart, with their scores, as far as seeds connect them.

    Attributes:
        values: the settings, (C, V), indexed by the number of the configuration.
        table: scores by seed and configuration, (S, C), NaN where there is no run.
        covariance, items: as those of `cell_covariance`.
    """

    values: pd.DataFrame
    table: pd.DataFrame
    covariance: Floats | None
    items: int


def tabulate_factors(runs: pd.DataFrame, names: list[str], items: ItemScores | None) -> Factors:
    """The configurations of completed runs by the settings `names`, which all of the runs have."""
    runs = runs.assign(**{CONFIGURATION: runs.groupby(names).ngroup()})
    scores = runs.pivot_table(index="seed", columns=CONFIGURATION, values="score")
    table = scores.loc[*connected_table(scores.to_numpy(dtype=np.float64))]
    covariance, counted = cell_covariance(runs, table, CONFIGURATION, items)
    values = runs.drop_duplicates(CONFIGURATION).set_index(CONFIGURATION)[names].sort_index()
    return Factors(values.loc[table.columns], table, covariance, counted)


def compute_effects(study: StudyFrames) -> Effects | None:
    """The effects of the settings of a study that ran every combination of their values.

    None unless two settings or more varied independently, in at most 64 configurations that all
    share seeds.
    """
    runs = completed_runs(study.trials)
    names = independent_settings(runs, study.compared)
    count = prod(int(runs[name].nunique()) for name in names)
    if len(names) < 2 or count > MOST_CONFIGURATIONS:
        return None
    factors = tabulate_factors(runs, names, study.items)
    if len(factors.values) < count:
        return None
    values = factors.values
    contrasts = [effect_contrasts(values[name]) for name in names]
    pairs = [(name, *pair) for name in names for pair in combinations(values[name].unique(), 2)]
    effects = _estimate(factors, contrasts, pairs, ["setting", "upper", "lower"])
    effects = effects.sort_values("difference", ascending=False, ignore_index=True)
    interactions = _interactions(factors)
    cells = summarise_deviations(runs, *interactions[["first", "second"]].iloc[0].tolist())
    return Effects(effects, interactions, cells, factors.items)


def _interactions(factors: Factors) -> pd.DataFrame:
    named: list[tuple[object, ...]] = []
    contrasts, values = [], factors.values
    for first, second in combinations(values, 2):
        contrasts.append(interaction_contrasts(values[first], values[second]))
        ones, twos = (combinations(values[name].unique(), 2) for name in (first, second))
        named += [(first, *one, second, *two) for one, two in product(ones, twos)]
    frame = _estimate(factors, contrasts, named, _INTERACTION)
    return frame.sort_values("low", ascending=False, kind="stable", ignore_index=True)


def _estimate(
    factors: Factors,
    contrasts: Sequence[Floats],
    named: Sequence[tuple[object, ...]],
    columns: Sequence[str],
) -> pd.DataFrame:
    """The contrasts with simultaneous intervals, each of its upper value minus its lower one."""
    family, fit = compare_own(factors.table.to_numpy(), np.vstack(contrasts), factors.covariance)
    sizes, widths = family.intervals(fit, 1 - LEVEL)
    oriented = [
        (name, *((lower, upper) if size < 0 else (upper, lower)), *rest)
        for (name, upper, lower, *rest), size in zip(named, sizes, strict=True)
    ]
    size = np.abs(sizes)
    frame = pd.DataFrame(oriented, columns=pd.Index(columns)).astype("object")
    return frame.assign(difference=size, low=size - widths, high=size + widths)


def effect_contrasts(values: pd.Series) -> Floats:
    """Means over configurations of each value of a setting minus each later one, (K, C).

    `values` are those of the C configurations.
    """
    return np.array([one - two for one, two in combinations(_shares(values), 2)])


def interaction_contrasts(first: pd.Series, second: pd.Series) -> Floats:
    """Differences of differences between two settings of C configurations, (K, C).

    NaN where one of the four combinations of values has no configuration.
    """
    rows = []
    for one, other in combinations(_shares(first) > 0, 2):
        for low, high in combinations(_shares(second) > 0, 2):
            cells = np.array([one & low, one & high, other & low, other & high])
            signs = (one.astype(float) - other) * (low.astype(float) - high)
            is_whole = cells.any(axis=1).all()
            rows.append(
                signs / np.abs(signs).sum() * 4 if is_whole else np.full(len(first), np.nan)
            )
    return np.array(rows)


def _shares(values: pd.Series) -> Floats:
    """For each value of a setting, the weights of its configurations in their mean, (V, C)."""
    same = np.array([values == value for value in values.unique()], dtype=np.float64)
    return np.asarray(same / same.sum(axis=1, keepdims=True))
