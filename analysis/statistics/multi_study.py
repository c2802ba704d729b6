"""Comparison of studies: best configurations, curves over MTD, spectra of the best runs.

Letters: D dimension of the sentence embedding.
"""

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from analysis.data.beyond_run import leave_out
from analysis.data.defaults import BEYOND_RUN, BeyondRun
from analysis.data.frames import StudyFrames
from analysis.data.points import describe_means
from analysis.data.runs import completed_runs, traced_runs, untraced_runs, varied_settings
from analysis.data.settings import format_value
from analysis.inference.intervals import summarise
from analysis.measures import Floats
from analysis.statistics.configurations import name_configurations, rank_configurations
from analysis.statistics.curves import compute_mtd_curve, effective_rank
from analysis.statistics.methods import varies_method, with_methods

_SUMMARY = ["n", "seeds", "mean", "low", "high"]
_SAME = 1e-4
_COMPARED = ("steps", "learning_rate", "in_batch_negatives", "encoder", "corpus")


def find_best_setting(
    trials: pd.DataFrame, settings: Collection[str], *, beyond_run: BeyondRun = BEYOND_RUN
) -> pd.DataFrame:
    """The configuration with the highest mean score, as text.

    One row: setting (empty where nothing varied), n, seeds, mean, low, high; no row without a
    completed run that has a score. Levels of MTD beyond the run are left out, unless they are kept
    or there is no other.
    """
    every = completed_runs(trials)
    within, _ = leave_out(every, beyond_run)
    runs = within if len(within) else every
    varied = varied_settings(runs, settings)
    best = rank_configurations(runs, varied)[1].head(1)
    names = pd.Series(name_configurations(best[varied]), dtype="str")
    return best[_SUMMARY].assign(setting=names)


def compute_overview(studies: Sequence[StudyFrames]) -> pd.DataFrame:
    """A row per study: study, metric, completed, planned, then its best setting.

    The columns of `find_best_setting` are NaN for a study without a score.
    """
    rows = []
    for study in studies:
        done = int((study.trials["state"] == "COMPLETE").sum())
        facts = (study.name, study.metric, done, study.planned)
        row = pd.DataFrame([facts], columns=["study", "metric", "completed", "planned"])
        rows.append(
            row.join(find_best_setting(study.trials, study.settings, beyond_run=study.beyond_run))
        )
    columns = ["study", "metric", "completed", "planned", "setting", *_SUMMARY]
    return pd.concat(rows, ignore_index=True)[columns]


def compute_curves(studies: Sequence[StudyFrames]) -> pd.DataFrame:
    """Score against MTD of each study: study, metric, mtd, n, seeds, mean, low, high, text, trial.

    text and trial are what a point of a figure states, and the best trial of its configuration.

    Runs without an MTD are summarised in one row at an MTD of 0. A study that varies the method
    becomes one study for each method, named STUDY: METHOD.
    """
    parts = []
    for study in studies_by_method(studies):
        untraced = untraced_runs(study.trials)
        points = summarise(untraced, by=["mtd"])
        curve = compute_mtd_curve(study.trials)
        for part, runs in ((points, untraced), (curve, traced_runs(study.trials))):
            if len(part):
                labels = describe_means(part, runs)
                labels["text"] = f"{study.name}. " + labels["text"]
                named = part.assign(study=study.name, metric=study.metric)
                parts.append(named.join(labels))
    columns = ["study", "metric", "mtd", *_SUMMARY, "text", "trial"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def studies_by_method(studies: Sequence[StudyFrames]) -> list[StudyFrames]:
    """The studies; one that varies the method is split into studies named STUDY: METHOD."""
    parts = []
    for study in studies:
        if not varies_method(study.trials, study.settings):
            parts.append(study)
            continue
        trials = with_methods(study.trials, study.settings)
        for method, rows in trials.groupby("method"):
            name = study.methods.get(str(method), str(method))
            parts.append(replace(study, name=f"{study.name}: {name}", trials=rows))
    return parts


def find_shared_differences(studies: Sequence[StudyFrames]) -> dict[str, dict[str, list[str]]]:
    """Settings that differ between studies: setting -> values as text -> names of studies.

    Compared are steps, learning rate, in-batch negatives, encoder and corpus of the scored runs; a
    study that did not record a setting is not among the names of that setting.
    """
    differences: dict[str, dict[str, list[str]]] = {}
    for name in _COMPARED:
        values: dict[str, list[str]] = {}
        for study in studies:
            runs = completed_runs(study.trials)
            if name in runs and len(runs):
                texts = sorted({format_value(name, value) for value in runs[name]})
                values.setdefault(", ".join(texts), []).append(study.name)
        if len(values) > 1:
            differences[name] = values
    return differences


def compute_best_spectra(studies: Sequence[StudyFrames]) -> pd.DataFrame:
    """Spectra of the best run of each study that has one, and of the encoders before training.

    Returns:
        A row per model, indexed by (model, moment), moment "after" or "before"; column i is the
        i-th largest singular value divided by the largest, for the largest D; NaN beyond a model's
        own D. Studies with the same initial encoder share a row "encoder before training";
        several such rows are named by their studies.
    """
    after: dict[str, Floats] = {}
    before: list[tuple[list[str], Floats]] = []
    for study in studies:
        runs = completed_runs(study.trials).sort_values("score", ascending=False, kind="stable")
        for number in runs["number"] if len(study.spectra) else ():
            trained = _relative(study.spectra, number, "after")
            if len(trained):
                after[study.name] = trained
                _add_untrained(before, study.name, _relative(study.spectra, number, "before"))
                break
    rows = {(name, "after"): row for name, row in after.items()}
    for names, row in before:
        of = f" of {', '.join(names)}" if len(before) > 1 else ""
        rows[(f"encoder before training{of}", "before")] = row
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame([pd.Series(row) for row in rows.values()])
    table.index = pd.MultiIndex.from_tuples(list(rows), names=["model", "moment"])
    return table


def _relative(spectra: pd.DataFrame, number: int, moment: str) -> Floats:
    """A run's singular values divided by the largest, (D,); empty where none were recorded."""
    here = [index == (number, moment) for index in spectra.index]
    values = spectra[here].to_numpy(dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    usable = len(values) > 0 and values[0] > 0
    return np.asarray(values / values[0]) if usable else values[:0]


def _add_untrained(before: list[tuple[list[str], Floats]], study: str, row: Floats) -> None:
    if not len(row):
        return
    for names, other in before:
        if len(other) == len(row) and np.allclose(other, row, rtol=_SAME, atol=_SAME):
            names.append(study)
            return
    before.append(([study], row))


def compute_ranks(spectra: pd.DataFrame) -> pd.DataFrame:
    """Effective rank of each row of `compute_best_spectra`: model, moment, rank."""
    ranks = [effective_rank(row.dropna().to_numpy()) for _, row in spectra.iterrows()]
    index = spectra.index.to_frame(index=False) if len(spectra) else pd.DataFrame()
    return index.reindex(columns=["model", "moment"]).assign(rank=ranks)
