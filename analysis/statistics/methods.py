"""Comparison of the methods of a study: mean scores and paired differences."""

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.frames import DIFFERENCE, MEAN, Settings, StudyFrames
from mtdlab.analysis.data.runs import completed_runs, covers_equal_sentences, traced_runs
from mtdlab.analysis.inference.best import (
    METHOD_KEYS,
    method_keys,
    runs_by_method,
    varies_method,
    with_methods,
)
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.inference.shapes import highest_column
from mtdlab.analysis.statistics.configurations import COLUMNS, compare_groups, differences_to_best
from mtdlab.analysis.statistics.curves import rank_spectra

_VALUES = [*MEAN, *DIFFERENCE]


def select_curve_trials(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The trials for one curve over MTD: all, or those of one method.

    Where several methods have an MTD, the one with the most levels is chosen, then the one with the
    most runs, then the first by name, so that no mean is over several methods.
    """
    named = with_methods(trials, settings)
    runs = traced_runs(named)
    if "method" not in runs or runs["method"].nunique() < 2:
        return trials
    sizes = runs.groupby("method")["mtd"].agg(["nunique", "size"])
    chosen = sizes.sort_values(["nunique", "size"], ascending=False, kind="stable").index[0]
    selected: pd.DataFrame = trials[named["method"] == chosen]
    return selected


def compute_methods(study: StudyFrames, trials: pd.DataFrame, level: float = LEVEL) -> pd.DataFrame:
    """`compare_groups` of the methods at each of their levels of MTD; no rows for one method.

    mtd is NaN where a method has none. Where a method has several configurations at one level, as
    batch sizes without an MTD, each is a row, and the settings in which they differ are columns.
    """
    settings = study.compared
    if not varies_method(trials, settings):
        return pd.DataFrame(columns=[*METHOD_KEYS, *COLUMNS])
    runs = runs_by_method(trials, settings)
    keys = method_keys(runs, settings)
    table = compare_groups(study, runs, keys, level)
    table = table.sort_values(keys, ignore_index=True)
    return table.assign(mtd=table["mtd"].replace(0.0, np.nan))


def equal_budget(trials: pd.DataFrame) -> int | None:
    """The sentences that every completed run trained on, equal to within one batch; else None."""
    runs = completed_runs(trials)
    if not {"steps", "batch_size"} <= set(runs) or not covers_equal_sentences(runs, "steps"):
        return None
    return int((runs["steps"] * runs["batch_size"]).min())


def compute_method_properties(study: StudyFrames) -> pd.DataFrame:
    """Geometry, duration and memory of each method, compared with the best by mean score.

    A row per measure and row of `compute_methods`: measure, then the columns that identify the row,
    n, seeds, mean, low, high and the difference with its bounds, for alignment, uniformity, the
    effective rank of the singular values, the seconds of a trial per 1,000 training sentences,
    evaluation and encoding before training included, and peak memory of the process, on a GPU what
    is allocated there. Measures that not every run has are left out. The study has several methods.
    """
    runs = runs_by_method(study.trials, study.compared)
    keys = method_keys(runs, study.compared)
    runs = runs.assign(row=runs.groupby(keys, dropna=False).ngroup())
    rows = runs.drop_duplicates("row").set_index("row")[keys]
    rows["mtd"] = rows["mtd"].replace(0.0, np.nan)
    scores = runs.pivot_table(index="seed", columns="row", values="score")
    best = highest_column(scores.to_numpy(dtype=np.float64))
    steps = runs["steps"].astype("float64") if "steps" in runs else np.nan
    sentences = steps * runs["batch_size"]
    measured = {
        "alignment": runs["alignment"],
        "uniformity": runs["uniformity"],
        "effective rank": runs["number"].map(rank_spectra(study.spectra, "after")),
        "seconds per 1,000 sentences": 1000 * runs["wall_seconds"] / sentences,
        "peak memory, MB": runs["peak_memory"] / 1e6,
    }
    tables = []
    for name, values in measured.items():
        if np.isfinite(values).all():
            with_value = runs.assign(value=values)
            table = summarise(with_value, by=["row"], value="value").join(rows, on="row")
            by_seed = with_value.pivot_table(index="seed", columns="row", values="value")
            tables.append(table.join(differences_to_best(by_seed, best, None)).assign(measure=name))
    columns = ["measure", *keys, *_VALUES]
    return (
        pd.concat(tables, ignore_index=True)[columns] if tables else pd.DataFrame(columns=columns)
    )


def compute_paths(study: StudyFrames) -> pd.DataFrame:
    """Mean alignment and uniformity of each method at its evaluations, over the runs with curves.

    A configuration with a name is a method of that name. Columns: method, step, n, alignment,
    uniformity; steps that fewer runs reached are left out.
    """
    runs = runs_by_method(study.trials, study.compared)[["number", "method"]]
    runs = runs.assign(method=study.call(runs["number"], runs["method"]))
    curves = study.curves.reindex(columns=["number", "step", "alignment", "uniformity"])
    curves = curves.dropna().merge(runs, on="number")
    groups = curves.groupby(["method", "step"])
    table = groups[["alignment", "uniformity"]].mean()
    table.insert(0, "n", groups["number"].nunique())
    table = table.reset_index()
    return table[table["n"] == table.groupby("method")["n"].transform("max")]
