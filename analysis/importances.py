"""Which hyperparameters the score depends on: Optuna's importances of the settings that varied."""

from collections.abc import Collection

import numpy as np
import pandas as pd

from analysis.runs import completed_runs, is_missing, varied_settings

FEWEST_RUNS = 20
"""Runs below which no importances are computed."""
MOST_RUNS = 300
"""Runs that importances are computed from; of more, so many evenly chosen ones."""

_SEED = "seed"
_WIDE = 10.0


def independent_settings(runs: pd.DataFrame, settings: Collection[str]) -> list[str]:
    """The settings that varied and that no other of them determines, in the frame's order.

    runs  completed runs; settings  which columns are settings. A setting that is missing in some
    runs is left out.
    """
    varied = [name for name in varied_settings(runs, settings) if not is_missing(runs[name]).any()]
    kept: list[str] = []
    for name in varied:
        others = [other for other in varied if other != name and _determines(runs, other, name)]
        # of two that determine each other the first stays
        if not any(other in kept or not _determines(runs, name, other) for other in others):
            kept.append(name)
    return kept


def _determines(runs: pd.DataFrame, first: str, second: str) -> bool:
    """Whether runs of one value of the first setting all have one value of the second."""
    return bool(runs.groupby(first)[second].nunique().max() == 1)


def compute_importances(trials: pd.DataFrame, settings: Collection[str]) -> pd.DataFrame:
    """The share of each varied setting, and of the seed, in what the score depends on.

    trials    `StudyFrames.trials`; settings  which columns are settings.

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
    if len(runs) > MOST_RUNS:
        runs = runs.iloc[np.linspace(0, len(runs) - 1, MOST_RUNS).round().astype(int)]
    if runs[_SEED].nunique() > 1:
        names.append(_SEED)
    found = _evaluate(runs, names)
    table = pd.DataFrame({"setting": list(found), "importance": list(found.values())})
    return table.sort_values("importance", ascending=False, kind="stable", ignore_index=True)


def _evaluate(runs: pd.DataFrame, names: list[str]) -> dict[str, float]:
    # imported here: it takes half a second, and most pages do not need it
    import optuna
    from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

    distributions: dict[str, BaseDistribution] = {}
    for name in names:
        values = runs[name]
        if pd.api.types.is_numeric_dtype(values) and not pd.api.types.is_bool_dtype(values):
            low, high = float(values.min()), float(values.max())
            wide = low > 0 and high > _WIDE * low
            distributions[name] = FloatDistribution(low, high, log=wide)
        else:
            distributions[name] = CategoricalDistribution(sorted({str(value) for value in values}))
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        study = optuna.create_study(direction="maximize")
        for row in runs.to_dict("records"):
            params = {
                name: float(row[name]) if isinstance(kind, FloatDistribution) else str(row[name])
                for name, kind in distributions.items()
            }
            study.add_trial(
                optuna.trial.create_trial(
                    params=params, distributions=distributions, value=float(row["score"])
                )
            )
        evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
        return optuna.importance.get_param_importances(study, evaluator=evaluator)
    finally:
        optuna.logging.set_verbosity(verbosity)
