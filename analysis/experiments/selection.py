"""Selection of the runs of a study for an experiment."""

from collections.abc import Collection

import pandas as pd

from analysis.experiments.catalogue import Experiment
from analysis.experiments.settings import with_defaults
from analysis.frames import Settings
from analysis.runs import completed_runs, varied_settings


def select_runs(trials: pd.DataFrame, experiment: Experiment, settings: Settings) -> pd.DataFrame:
    """The completed runs with the experiment's columns; none unless a setting of it varies.

    If the study has runs of the published method, only these.
    """
    runs = with_defaults(completed_runs(trials), settings)
    if "method" in runs and (runs["method"] == experiment.method).any():
        runs = runs[runs["method"] == experiment.method]
    if not set(experiment.recorded) <= set(runs):
        return runs.iloc[:0]
    if experiment.derive is not None:
        runs = experiment.derive(runs)
    # runs of a method that lacks one of these settings are left out
    runs = runs.dropna(subset=list(experiment.by))
    varied = any(runs[name].nunique() > 1 for name in experiment.chosen_by)
    return runs if varied else runs.iloc[:0]


def list_others(runs: pd.DataFrame, experiment: Experiment, settings: Collection[str]) -> list[str]:
    """The settings, other than those of the experiment, that vary between these runs."""
    its_settings = {*experiment.by, *experiment.made_of}
    return [name for name in varied_settings(runs, settings) if name not in its_settings]


def balance_runs(
    runs: pd.DataFrame, experiment: Experiment, settings: Collection[str]
) -> tuple[pd.DataFrame, bool]:
    """The runs whose seed and other settings were run at every row, and whether this succeeded.

    A balanced selection averages every row over the same seeds and other settings. Without such
    runs all runs are returned, with False. If no other setting varies, nothing is left out.
    """
    others = list_others(runs, experiment, settings)
    if not others:
        return runs, True
    row = runs.groupby(list(experiment.by)).ngroup()
    setting = runs.groupby([*others, "seed"], dropna=False).ngroup()
    rows_of = pd.DataFrame({"setting": setting, "row": row}).groupby("setting")["row"].nunique()
    everywhere = setting.map(rows_of) == row.nunique()
    return (runs[everywhere], True) if everywhere.any() else (runs, False)
