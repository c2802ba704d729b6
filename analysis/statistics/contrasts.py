"""Two configurations of a study, or two studies: what differs, and the paired difference.

The two may be the best level of a study and its runner-up, which new seeds confirm. Scores are
compared within seeds. Letters: S shared seeds, C shared configurations.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from analysis.data.frames import Settings, StudyFrames
from analysis.data.items import ItemScores
from analysis.data.runs import completed_runs, is_missing, traced_runs, varied_settings
from analysis.inference.intervals import Estimate, estimate
from analysis.inference.pairing import (
    complete_block,
    compute_paired_curve,
    estimate_difference,
    level_scores,
    select_configuration,
)
from analysis.inference.verdict import Verdict

LEVEL = 0.95
_UNKNOWN = Estimate(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Contrast:
    """The first less the second, over the seeds that both have.

    Attributes:
        settings: those that differ, with both values; None for a setting that is missing.
        table: a row per shared seed (trials) or shared configuration (studies): first, second,
            difference, and for configurations the t interval (low, high) over seeds.
        seeds: the number of shared seeds.
        configurations: of shared ones.
        difference: its mean over configurations and seeds with the t interval over seeds, in points
            (score x 100); NaN where nothing is shared, its bounds with one seed.
    """

    settings: Mapping[str, tuple[Any, Any]]
    table: pd.DataFrame
    seeds: int
    configurations: int
    difference: Estimate


def compare_trials(study: StudyFrames, first: int, second: int) -> Contrast:
    """The configurations of two complete trials, each named by its number.

    Raises:
        ValueError: where one has no score.
    """
    runs = completed_runs(study.trials).set_index("number", drop=False)
    for number in (first, second):
        if number not in runs.index:
            raise ValueError(f"trial {number} of study {study.name} is not complete")
    varied = varied_settings(runs, study.settings)
    rows = [runs.loc[[number]].iloc[0] for number in (first, second)]
    settings = {
        name: values
        for name in varied
        if (values := (_value(rows[0][name]), _value(rows[1][name])))[0] != values[1]
    }
    sides = [select_configuration(runs, varied, row) for row in rows]
    table = pd.DataFrame(
        {
            name: side.groupby("seed")["score"].mean()
            for name, side in zip(("first", "second"), sides, strict=True)
        }
    ).dropna()
    table["difference"] = table["first"] - table["second"]
    difference, seeds = estimate_difference(
        sides[0], sides[1], (study.items, study.items), level=LEVEL
    )
    return Contrast(settings, table.reset_index(), seeds, min(seeds, 1), difference)


def compare_studies(first: StudyFrames, second: StudyFrames) -> Contrast:
    """Two studies over the configurations that both ran, by the settings that either varied.

    Seeds and configurations are left out until each shared seed has a score at every shared
    configuration in both studies. Raises ValueError where the studies report different scores, or
    one has none.
    """
    if first.metric != second.metric:
        raise ValueError(
            f"study {first.name} reports {first.metric}, study {second.name} {second.metric}: "
            "scores of different tasks cannot be compared"
        )
    runs = [_with_all_settings(first, second.settings), _with_all_settings(second, first.settings)]
    for study, completed in zip((first, second), runs, strict=True):
        if not len(completed):
            raise ValueError(f"study {study.name} has no complete trial yet")
    known = [*dict.fromkeys([*first.settings, *second.settings])]
    varied = [name for each in runs for name in varied_settings(each, known)]
    keys = list(dict.fromkeys(varied))
    fixed = {name: (_fixed(runs[0][name]), _fixed(runs[1][name])) for name in known}
    settings = {
        name: values
        for name, values in fixed.items()
        if name not in keys and values[0] != values[1]
    }
    scores = [_score_table(each, keys) for each in runs]
    table = complete_block(scores[0] - scores[1])
    if not table.size:
        return Contrast(settings, _by_configuration(runs[0], scores, table, keys), 0, 0, _UNKNOWN)
    rows = _by_configuration(runs[0], scores, table, keys)
    sides = [_one_run_per_cell(each, keys, table) for each in runs]
    items = (first.items, second.items)
    difference, _ = estimate_difference(sides[0], sides[1], items, level=LEVEL)
    return Contrast(settings, rows, *table.shape, difference)


def _one_run_per_cell(runs: pd.DataFrame, keys: list[str], table: pd.DataFrame) -> pd.DataFrame:
    """The runs of the table's seeds and configurations; those that share both are averaged."""
    named = runs.assign(configuration=_configurations(runs, keys))
    inside = named["seed"].isin(table.index) & named["configuration"].isin(table.columns)
    cell = ["seed", "configuration"]
    mean = named.groupby(cell)["score"].transform("mean")
    return named.assign(score=mean)[inside].drop_duplicates(cell)


def _with_all_settings(study: StudyFrames, others: Settings) -> pd.DataFrame:
    """The completed runs with a column for each setting of both studies.

    A setting that was not recorded had its default; one that this study's methods lack is missing.
    """
    runs = completed_runs(study.trials)
    defaults = {name: setting.default for name, setting in study.settings.items()}
    columns = dict.fromkeys(others) | defaults
    return runs.assign(**{name: value for name, value in columns.items() if name not in runs})


def _fixed(values: pd.Series) -> Any:
    """The value of a setting that does not vary among the runs that have it."""
    known = values[~is_missing(values)]
    return _value(known.iloc[0]) if len(known) else None


def _score_table(runs: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Scores by seed and configuration, (S, C); a configuration is named by its values as text."""
    named = runs.assign(configuration=_configurations(runs, keys))
    return named.groupby(["seed", "configuration"])["score"].mean().unstack("configuration")


def _configurations(runs: pd.DataFrame, keys: list[str]) -> pd.Series:
    values = [repr([_value(value) for value in row]) for row in runs[keys].to_numpy(dtype=object)]
    return pd.Series(values, index=runs.index, dtype="str")


def _by_configuration(
    runs: pd.DataFrame, scores: Sequence[pd.DataFrame], differences: pd.DataFrame, keys: list[str]
) -> pd.DataFrame:
    """A row per shared configuration, in the order of its values."""
    named = runs.assign(configuration=_configurations(runs, keys)).drop_duplicates("configuration")
    rows = []
    for _, run in named.sort_values(keys).iterrows() if keys else named.iterrows():
        if (name := run["configuration"]) not in differences or not differences.size:
            continue
        found = estimate(differences[name].to_numpy(dtype=np.float64), LEVEL)
        first, second = (float(table.loc[differences.index, name].mean()) for table in scores)
        rows.append(
            {key: _value(run[key]) for key in keys}
            | {"first": first, "second": second}
            | {"difference": found.mean, "low": found.low, "high": found.high}
        )
    return pd.DataFrame(rows, columns=[*keys, "first", "second", "difference", "low", "high"])


def _value(value: Any) -> Any:
    """A setting's value that equals itself: None for a missing one, an int for a whole number."""
    if is_missing(pd.Series([value])).iloc[0]:
        return None
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, float) and plain.is_integer() else plain


@dataclass(frozen=True)
class Candidate:
    """A configuration: its MTD in steps, and the number of its first complete trial."""

    mtd: float
    number: int


@dataclass(frozen=True)
class Difference:
    """The best configuration less the runner-up, paired by seed, in points (x 100).

    Attributes:
        seeds: those that have both configurations.
        estimate: interval over them, NaN for one seed.
    """

    seeds: int
    estimate: Estimate


def choose_candidates(
    trials: pd.DataFrame, settings: Collection[str], verdict: Verdict
) -> tuple[Candidate, Candidate]:
    """The best configuration and the runner-up.

    The best level has the highest estimate. The runner-up is the best level outside the optimal
    range, because levels within it are statistically indistinguishable from the best; where no
    level is outside, it is the second-best level. Of several configurations at a level, the one
    with the highest mean is taken. Raises ValueError with fewer than two levels.

    Args:
        trials: those that the verdict was computed from.
        settings: which columns are settings.
    """
    curve = compute_paired_curve(level_scores(trials, settings))
    if len(curve) < 2:
        raise ValueError("fewer than two levels of MTD have scores of the same seeds")
    others = curve[curve["mtd"] != verdict.peak_mtd]
    outside = others[~others["mtd"].isin(verdict.optimal_range)]
    ranked = (outside if len(outside) else others).sort_values("mean", ascending=False)
    runs = traced_runs(trials)
    best = _configuration(runs, settings, verdict.peak_mtd)
    return best, _configuration(runs, settings, float(ranked["mtd"].iloc[0]))


def _configuration(runs: pd.DataFrame, settings: Collection[str], level: float) -> Candidate:
    """The configuration with the highest mean at the level of MTD that is nearest to `level`."""
    distance = (np.log(runs["mtd"]) - np.log(level)).abs()
    there = runs[runs["mtd"] == runs.loc[distance.idxmin(), "mtd"]]
    varied = varied_settings(there, settings)
    if varied:
        mean = there.groupby(varied, dropna=False)["score"].transform("mean")
        there = there[mean == mean.max()]
    first = there.sort_values("number").iloc[0]
    return Candidate(float(first["mtd"]), int(first["number"]))


def compare_candidates(
    trials: pd.DataFrame,
    settings: Collection[str],
    best: int,
    runner_up: int,
    items: ItemScores | None = None,
) -> Difference:
    """The paired difference of two configurations, each given by the number of one of its trials.

    Args:
        items: `StudyFrames.items`, whose sampling the interval then covers too.

    Raises:
        KeyError: for a number without a completed trial.
    """
    runs = traced_runs(trials).set_index("number", drop=False)
    varied = varied_settings(runs, settings)
    first, second = (
        select_configuration(runs, varied, runs.loc[[number]].iloc[0])
        for number in (best, runner_up)
    )
    found, seeds = estimate_difference(first, second, (items, items))
    return Difference(seeds, found)
