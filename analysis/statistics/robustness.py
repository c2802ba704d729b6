"""Whether the optimal MTD is the same at other learning rates and numbers of steps."""

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.data.items import ItemScores
from analysis.data.runs import traced_runs
from analysis.inference.pairing import compute_paired_curve, level_scores
from analysis.inference.verdict import CONDITIONS, Verdict, describe_conditions, judge_levels
from analysis.statistics.curves import compute_mtd_curve

_MIN_LEVELS = 2


@dataclass(frozen=True)
class Condition:
    """The runs of one learning rate and number of steps.

    Attributes:
        name: such as "learning rate 0.001, 160 steps".
        stated: `describe_conditions` of its runs.
        runs: its completed runs with an MTD.
        curve: `compute_mtd_curve`.
        paired: `compute_paired_curve`.
        half_life: mean measured half-life of keys at the best level, in steps; NaN if not measured.
    """

    name: str
    stated: str
    runs: pd.DataFrame
    curve: pd.DataFrame
    paired: pd.DataFrame
    verdict: Verdict
    half_life: float


def compute_conditions(
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    items: ItemScores | None = None,
    half_lives: pd.DataFrame | None = None,
    level: float = 0.95,
) -> tuple[Condition, ...]:
    """Verdict and curves for each learning rate and number of steps of a study that varies them.

    Conditions with fewer than two levels of MTD are left out; empty with fewer than two conditions.
    Raises ValueError for a level outside [0.5, 1).

    Args:
        trials, settings, items: as for `compute_verdict`.
        half_lives: `compute_half_lives` of these trials.
    """
    runs = traced_runs(trials)
    if half_lives is not None:
        runs = runs.merge(half_lives, on="number", how="left")
    varied = [name for name in CONDITIONS if name in runs and runs[name].nunique() > 1]
    if not varied:
        return ()
    found = []
    for _, group in runs.groupby(varied):
        if group["mtd"].nunique() >= _MIN_LEVELS:
            values = {name: float(group[name].iloc[0]) for name in varied}
            found.append(_condition(group, values, settings, items, level))
    return tuple(found) if len(found) > 1 else ()


def _condition(
    runs: pd.DataFrame,
    values: dict[str, float],
    settings: Collection[str],
    items: ItemScores | None,
    level: float,
) -> Condition:
    levels = level_scores(runs, settings, items)
    verdict = judge_levels(levels, level=level)
    texts = {
        "learning_rate": f"learning rate {values.get('learning_rate', 0):g}",
        "steps": f"{values.get('steps', 0):g} steps",
    }
    return Condition(
        name=", ".join(texts[name] for name in values),
        stated=describe_conditions(runs),
        runs=runs,
        curve=compute_mtd_curve(runs, level=level),
        paired=compute_paired_curve(levels, level=level),
        verdict=verdict,
        half_life=_half_life(runs, verdict.peak_mtd),
    )


def _half_life(runs: pd.DataFrame, mtd: float) -> float:
    if "half_life" not in runs:
        return float("nan")
    measured = runs.loc[np.isclose(runs["mtd"], mtd), "half_life"].astype("float64")
    return float(measured.mean())
