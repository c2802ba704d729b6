"""The effective configuration of a study: the value of every setting, as the trials recorded it."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.experiments.settings import format_value
from analysis.frames import StudyFrames
from analysis.report.cells import clean
from analysis.report.text import count
from analysis.runs import completed_runs, is_missing, varied_settings

_MOST_VALUES = 12


def list_varied(study: StudyFrames) -> Mapping[str, str]:
    """What was varied, the seeds last, with the values tried, many of them as a range."""
    names = [*varied_settings(study.trials, study.settings), "seed"]
    return {_label(study, name): _list_values(study.trials[name], name) for name in names}


def list_fixed(study: StudyFrames) -> Mapping[str, str]:
    """What was the same in all trials: how they were compared, then every other setting.

    A setting that no trial recorded is left out; the study's profile and `--set` are in it.
    """
    trials = _resolve_auto(study)
    varied = set(varied_settings(trials, study.settings))
    general = {
        "metric": study.metric,
        "select_by": study.select_by or study.metric,
        "sampler": study.sampler,
        "margin": f"{study.margin:g} points",
        "alpha": f"{study.alpha:g}",
    }
    fixed = [
        str(name)
        for name in trials
        if name in study.settings and name not in varied and not is_missing(trials[name]).all()
    ]
    settings = {_label(study, name): _list_values(trials[name], name) for name in fixed}
    return {name: clean(value) for name, value in general.items()} | settings


def _resolve_auto(study: StudyFrames) -> pd.DataFrame:
    """The trials with what their machines made of `device` and `precision` where those are auto."""
    trials, known = study.trials, study.environment.set_index("number")
    for name in ("device", "precision"):
        if name in known and name in trials:
            used = trials["number"].map(known[name])
            auto = (trials[name] == "auto") & used.notna() & (used != "")
            trials = trials.assign(**{name: trials[name].mask(auto, used)})
    return trials


def describe_cost(study: StudyFrames) -> str:
    """The time that trials took; empty where none was recorded."""
    seconds = completed_runs(study.trials)["wall_seconds"].astype("float64")
    if not np.isfinite(seconds).any():
        return ""
    return (
        f"The trials took {format_seconds(float(seconds.sum()))} in all, "
        f"{format_seconds(float(seconds.median()))} each (median)."
    )


def describe_time(study: StudyFrames, trials: int) -> str:
    """So many trials and, where it was recorded, their time at the mean of those that are done."""
    seconds = float(completed_runs(study.trials)["wall_seconds"].astype("float64").mean())
    amount = count(trials, "trial")
    if not np.isfinite(seconds):
        return amount
    return f"{amount}, about {format_seconds(trials * seconds)} of computing"


def format_seconds(seconds: float) -> str:
    """A duration: 12.5 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{seconds:.3g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


def _label(study: StudyFrames, name: str) -> str:
    setting = study.settings.get(name)
    return clean(setting.label if setting else name)


def _list_values(column: pd.Series, name: str) -> str:
    values = sorted(column[~is_missing(column)].unique(), key=_sort_key)
    texts = [clean(format_value(name, value)) for value in values]
    if len(texts) > _MOST_VALUES:
        return f"{len(texts):,} values from {texts[0]} to {texts[-1]}"
    return ", ".join(texts) or "none yet"


def _sort_key(value: object) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, int | float | np.number) else (0.0, str(value))
