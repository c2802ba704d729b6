"""Two configurations of a study, or two studies: what differs, and the paired difference.

The two may be the best level of a study and its runner-up, which new seeds confirm. Scores are
compared within seeds. Letters: S shared seeds, C shared configurations.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import Settings, StudyFrames
from mtdlab.analysis.data.items import ItemScores, rank_errors
from mtdlab.analysis.data.metric import as_read
from mtdlab.analysis.data.runs import CONFIGURATION, completed_runs, is_missing, varied_settings
from mtdlab.analysis.inference.best import BestVerdict, number_configurations
from mtdlab.analysis.inference.intervals import UNKNOWN, Estimate, estimate
from mtdlab.analysis.inference.pairing import (
    LevelScores,
    complete_block,
    compute_paired_curve,
    level_scores,
    pair_runs,
    select_configuration,
)
from mtdlab.analysis.inference.verdict import Verdict


@dataclass(frozen=True)
class Contrast:
    """The first minus the second, over the seeds that both have.

    Attributes:
        settings: those that differ, with both values; None for a setting that is missing.
        table: a row per shared seed (trials) or shared configuration (studies): first, second,
            difference, and for configurations the t interval (low, high) over seeds.
        seeds, configurations: how many are shared.
        difference: its mean over configurations and seeds with the t interval over seeds, in points
            (score x 100); NaN where nothing is shared, its bounds with one seed.
        items: as `compare_items` gives them.
    """

    settings: Mapping[str, tuple[Any, Any]]
    table: pd.DataFrame
    seeds: int
    configurations: int
    difference: Estimate
    items: pd.DataFrame


def compare_trials(study: StudyFrames, first: int, second: int) -> Contrast:
    """The configurations of two trials of the search or the baseline, each named by its number.

    Raises ValueError where one is not complete, or both have the same.
    """
    runs = completed_runs(study.ranked_trials)
    for number in (first, second):
        if not (study.ranked_trials["number"] == number).any():
            raise ValueError(f"study {study.name} has no trial {number}, or did not run it yet")
        if not (runs["number"] == number).any():
            raise ValueError(f"trial {number} of study {study.name} is not complete")
    varied = varied_settings(runs, study.settings)
    rows = runs.set_index("number").loc[[first, second], varied]
    one, two = (select_configuration(runs, study.settings, number) for number in (first, second))
    if one.index.equals(two.index):
        raise ValueError(
            f"trials {first} and {second} of study {study.name} are of one configuration: it is "
            "configurations that are compared, over the seeds that both have"
        )
    first_mean, second_mean = (chosen.groupby("seed")["score"].mean() for chosen in (one, two))
    table = pd.DataFrame({"first": first_mean, "second": second_mean}).dropna()
    table["difference"] = table["first"] - table["second"]
    paired = pair_runs(one, two, (study.items, study.items)).estimate()
    settings = _differing({name: [_value(value) for value in rows[name]] for name in varied})
    one, two = (runs[runs["seed"].isin(table.index)] for runs in (one, two))
    items = compare_items(one, two, (study.items, study.items))
    return Contrast(settings, table.reset_index(), len(table), min(len(table), 1), paired, items)


def compare_studies(first: StudyFrames, second: StudyFrames) -> Contrast:
    """Two studies over the configurations that both ran, by the settings that either varied.

    Seeds and configurations are left out until each shared seed has a score at every shared
    configuration in both studies. Raises ValueError where the studies report different scores, or
    one has none.
    """
    if first.metric != second.metric:
        raise ValueError(
            f"study {first.name} reports {as_read(first.metric)}, study {second.name} "
            f"{as_read(second.metric)}: scores of different tasks or directions cannot be compared"
        )
    runs = [_with_all_settings(first, second.settings), _with_all_settings(second, first.settings)]
    for study, completed in zip((first, second), runs, strict=True):
        if not len(completed):
            raise ValueError(f"study {study.name} has no complete trial yet")
    known = [*dict.fromkeys([*first.settings, *second.settings])]
    keys = list(dict.fromkeys(name for trials in runs for name in varied_settings(trials, known)))
    settings = _differing(
        {name: [_fixed(trials[name]) for trials in runs] for name in known if name not in keys}
    )
    runs = [trials.assign(**{CONFIGURATION: _configurations(trials, keys)}) for trials in runs]
    scores = [trials.groupby(_CELL)["score"].mean().unstack(CONFIGURATION) for trials in runs]
    table = complete_block(scores[0] - scores[1])
    rows = _by_configuration(runs[0], scores, table, keys)
    if not table.size:
        return Contrast(settings, rows, 0, 0, UNKNOWN, pd.DataFrame())
    one, two = (_one_run_per_cell(trials, table) for trials in runs)
    both = first.items, second.items
    items = compare_items(one, two, both)
    return Contrast(settings, rows, *table.shape, pair_runs(one, two, both).estimate(), items)


def compare_items(
    first: pd.DataFrame, second: pd.DataFrame, items: Sequence[ItemScores | None]
) -> pd.DataFrame:
    """The items on which runs differ from others, the largest difference first.

    A row per item: its task, its number there from 1, its gold score (of graded pairs), then first,
    second and difference: means over runs of its value in points, or, of graded pairs, of the
    distance of its ranks by the two similarities, in % of the pairs. Of items that are right or
    wrong `flips` is whether one side has it right in most runs, and the other wrong. Empty where a
    run has no items, or the two have others.
    """
    sides = []
    for runs, recorded in zip((first, second), items, strict=True):
        if recorded is None or not (len(runs) and runs["number"].isin(recorded.numbers).all()):
            return pd.DataFrame()
        sides.append(recorded.of(runs["number"].tolist()))
    one, two = sides
    if one.digest != two.digest:
        return pd.DataFrame()
    names = [(task, at + 1) for task, count in one.tasks.items() for at in range(count)]
    table = pd.DataFrame(names, columns=["task", "item"])
    if one.gold is not None:
        table["gold"] = one.gold
    table["first"], table["second"] = (rank_errors(side).mean(axis=0) for side in sides)
    table["difference"] = table["first"] - table["second"]
    levels = np.unique([*np.unique(one.values), *np.unique(two.values)])
    if one.gold is None and len(levels) == 2:
        right = table[["first", "second"]] - levels.mean()
        table["flips"] = right["first"] * right["second"] < 0
    return table.sort_values("difference", key=lambda each: -each.abs(), kind="stable")


_CELL = ["seed", CONFIGURATION]


def _differing(settings: Mapping[str, Sequence[Any]]) -> dict[str, tuple[Any, Any]]:
    return {name: (one, two) for name, (one, two) in settings.items() if one != two}


def _one_run_per_cell(runs: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """The runs of the table's seeds and configurations; those that share both are averaged."""
    inside = runs["seed"].isin(table.index) & runs[CONFIGURATION].isin(table.columns)
    mean = runs.groupby(_CELL)["score"].transform("mean")
    return runs.assign(score=mean)[inside].drop_duplicates(_CELL)


def _with_all_settings(study: StudyFrames, others: Settings) -> pd.DataFrame:
    """The completed runs with each setting of both studies, by default where not recorded."""
    runs = completed_runs(study.trials)
    defaults = {name: setting.default for name, setting in study.settings.items()}
    columns = dict.fromkeys(others) | defaults
    return runs.assign(**{name: value for name, value in columns.items() if name not in runs})


def _fixed(values: pd.Series) -> Any:
    """The value of a setting that does not vary among the runs that have it."""
    known = values[~is_missing(values)]
    return _value(known.iloc[0]) if len(known) else None


def _configurations(runs: pd.DataFrame, keys: list[str]) -> pd.Series:
    values = [repr([_value(value) for value in row]) for row in runs[keys].to_numpy(dtype=object)]
    return pd.Series(values, index=runs.index, dtype="str")


def _by_configuration(
    runs: pd.DataFrame, scores: Sequence[pd.DataFrame], differences: pd.DataFrame, keys: list[str]
) -> pd.DataFrame:
    """A row per shared configuration, in the order of its values."""
    shared = runs[CONFIGURATION].isin(differences.columns if differences.size else [])
    rows = []
    for _, run in runs[shared].drop_duplicates(CONFIGURATION).sort_values(keys).iterrows():
        name = run[CONFIGURATION]
        interval = estimate(differences[name].to_numpy(dtype=np.float64))
        first, second = (float(table.loc[differences.index, name].mean()) for table in scores)
        values = (first, second, interval.mean, interval.low, interval.high)
        rows.append([*(_value(run[key]) for key in keys), *values])
    return pd.DataFrame(rows, columns=[*keys, "first", "second", "difference", "low", "high"])


def _value(value: Any) -> Any:
    """A setting's value that equals itself: None for a missing one, an int for a whole number."""
    if is_missing(pd.Series([value])).iloc[0]:
        return None
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


def choose_candidates(
    study: StudyFrames, trials: pd.DataFrame, verdict: Verdict
) -> tuple[pd.Series, pd.Series]:
    """The first complete trial of the best configuration, and that of the runner-up.

    The best level has the highest estimate. The runner-up is the best level outside the optimal
    range, because levels within it are statistically indistinguishable from the best; where no
    level is outside, it is the second-best level. Of several configurations at a level, the one
    with the highest mean is taken. `trials` are those that the verdict was computed from. Raises
    ValueError with fewer than two levels.
    """
    levels = level_scores(trials, study.compared, beyond_run=study.beyond_run)
    curve = compute_paired_curve(levels)
    if len(curve) < 2:
        raise ValueError("fewer than two levels of MTD have scores of the same seeds")
    others = curve[curve["mtd"] != verdict.peak_mtd]
    outside = others[~others["mtd"].isin(verdict.optimal_range)]
    ranked = (outside if len(outside) else others).sort_values("mean", ascending=False)
    best = _configuration(levels.runs, study.settings, verdict.peak_mtd)
    return best, _configuration(levels.runs, study.settings, float(ranked["mtd"].iloc[0]))


def _configuration(runs: pd.DataFrame, settings: Collection[str], level: float) -> pd.Series:
    """The configuration with the highest mean at the level of MTD that is nearest to `level`."""
    distance = (np.log(runs["mtd"]) - np.log(level)).abs()
    return _highest(runs[runs["mtd"] == runs.loc[distance.idxmin(), "mtd"]], settings)


def choose_best_candidates(
    scores: LevelScores, settings: Collection[str], verdict: BestVerdict
) -> tuple[pd.Series, pd.Series]:
    """The first complete trials of the best configuration, and of that with the next estimate.

    Of several configurations of a method at its level of MTD the one with the highest mean is
    taken. Raises ValueError with fewer than two that are compared.
    """
    if len(verdict.ranked) < 2:
        raise ValueError("fewer than two configurations have scores of the same seeds")
    runs = scores.runs.assign(mtd=scores.runs["mtd"].where(scores.runs["mtd"] > 0))
    best, second = (
        _highest(runs[runs["first"] == first], settings) for first in verdict.ranked[:2]
    )
    return best, second


def _highest(there: pd.DataFrame, settings: Collection[str]) -> pd.Series:
    """The first run of the configuration with the highest mean; its mtd is NaN without one."""
    configuration = number_configurations(there, varied_settings(there, settings))
    mean = there["score"].groupby(configuration).transform("mean")
    first: pd.Series = there[mean == mean.max()].sort_values("number").iloc[0]
    return first
