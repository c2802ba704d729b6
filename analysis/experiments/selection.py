"""Which runs of a study an experiment is read from."""

from collections.abc import Collection

import pandas as pd

from analysis.experiments.catalogue import Experiment
from analysis.experiments.settings import with_defaults
from analysis.frames import Settings
from analysis.runs import completed_runs, varied_settings


def select_runs(trials: pd.DataFrame, experiment: Experiment, settings: Settings) -> pd.DataFrame:
    """The completed runs with the experiment's columns; none unless it was varied.

    Of a study that has runs of the published method, these alone.
    """
    runs = with_defaults(completed_runs(trials), settings)
    if "method" in runs and (runs["method"] == experiment.method).any():
        runs = runs[runs["method"] == experiment.method]
    if not set(experiment.recorded) <= set(runs):
        return runs.iloc[:0]
    if experiment.derive is not None:
        runs = experiment.derive(runs)
    # a method without one of these settings has no row
    runs = runs.dropna(subset=list(experiment.by))
    varied = any(runs[name].nunique() > 1 for name in experiment.chosen_by)
    return runs if varied else runs.iloc[:0]


def list_others(runs: pd.DataFrame, experiment: Experiment, settings: Collection[str]) -> list[str]:
    """The settings that vary between these runs beside those of the experiment."""
    own = {*experiment.by, *experiment.made_of}
    return [name for name in varied_settings(runs, settings) if name not in own]


def balance_runs(
    runs: pd.DataFrame, experiment: Experiment, settings: Collection[str]
) -> tuple[pd.DataFrame, bool]:
    """The runs whose seed ran their other settings at every row, or all if there are none.

    A setting that some seeds lack at a row would give that row another mixture of settings
    than the next. Where nothing else varied, each row keeps the seeds that it has.
    """
    others = list_others(runs, experiment, settings)
    if not others:
        return runs, True
    row = runs.groupby(list(experiment.by)).ngroup()
    setting = runs.groupby([*others, "seed"], dropna=False).ngroup()
    rows_of = pd.DataFrame({"setting": setting, "row": row}).groupby("setting")["row"].nunique()
    everywhere = setting.map(rows_of) == row.nunique()
    return (runs[everywhere], True) if everywhere.any() else (runs, False)
