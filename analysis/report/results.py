"""Everything a report says about a study, computed once, before a word is written."""

from dataclasses import dataclass

import pandas as pd

from analysis.curves import (
    compute_batch_curves,
    compute_distances,
    compute_mtd_curve,
    compute_paired_batch_curves,
    compute_paired_curve,
    simcse_runs,
    traced_runs,
)
from analysis.experiments import (
    EXPERIMENTS,
    Comparison,
    compare,
    compute_collapse,
    compute_collapse_watch,
    compute_experiment_tasks,
)
from analysis.frames import StudyFrames
from analysis.spectrum import compute_effective_ranks, compute_spectra, find_width
from analysis.tables import compute_tasks, compute_trials_table
from analysis.verdict import Verdict, compute_verdict

LEVEL = 0.95
TABLE_NAMES = (
    "trials",
    "mtd_curve",
    "mtd_by_batch",
    "runs_geometry",
    "geometry",
    "spectra",
    "effective_rank",
    "tasks",
    *(experiment.name for experiment in EXPERIMENTS),
    *(f"{experiment.name}_tasks" for experiment in EXPERIMENTS),
    "collapse",
    "collapse_watch",
)


@dataclass(frozen=True)
class Results:
    """The frames and the verdicts; a frame without rows means there is nothing to show.

    runs            scored runs with a queue; simcse: those without one.
    batch_verdicts  a verdict per batch size, only where there are several.
    geometry        mean alignment, uniformity, l1 and l2 by MTD: measure, mtd, n, seeds,
                    mean, low, high.
    experiments     those of the papers that the study varied; experiment_tasks: those by task,
                    by the experiment's name.
    collapse        score over steps by structure, and what the watch saw of each.
    note            what every figure has to say of how its scores came about, or nothing.
    """

    trials: pd.DataFrame
    runs: pd.DataFrame
    simcse: pd.DataFrame
    verdict: Verdict
    curve: pd.DataFrame
    paired: pd.DataFrame
    batches: pd.DataFrame
    paired_batches: pd.DataFrame
    batch_verdicts: dict[int, Verdict]
    distances: pd.DataFrame
    geometry: pd.DataFrame
    spectra: pd.DataFrame
    ranks: pd.DataFrame
    tasks: pd.DataFrame
    experiments: tuple[Comparison, ...]
    experiment_tasks: dict[str, pd.DataFrame]
    collapse: pd.DataFrame
    collapse_watch: pd.DataFrame
    note: str


def _compute_geometry(distances: pd.DataFrame) -> pd.DataFrame:
    """The curves of the four measures over MTD, one below the other."""
    curves = [
        compute_mtd_curve(distances, value=measure, level=LEVEL).assign(measure=measure)
        for measure in ("alignment", "uniformity", "l1", "l2")
    ]
    columns = ["measure", "mtd", "n", "seeds", "mean", "low", "high"]
    return pd.concat(curves, ignore_index=True)[columns]


def _compare_all(study: StudyFrames) -> tuple[Comparison, ...]:
    width = find_width(study.spectra)
    found = (
        compare(study.trials, experiment, curves=study.curves, width=width, level=LEVEL)
        for experiment in EXPERIMENTS
    )
    return tuple(each for each in found if each is not None)


def compute_results(study: StudyFrames) -> Results:
    """All of a study's results, at 95 % confidence."""
    trials = study.trials
    runs = traced_runs(trials)
    sizes = sorted(runs["batch_size"].unique())
    batches = compute_batch_curves(trials, level=LEVEL)
    # a curve each: a study of batch sizes alone has one MTD for each of them
    curved = (batches.groupby("batch_size")["mtd"].nunique() > 1).any()
    several = sizes if len(sizes) > 1 and curved else []
    distances = compute_distances(trials)
    experiments = _compare_all(study)
    return Results(
        trials=compute_trials_table(trials),
        runs=runs,
        simcse=simcse_runs(trials),
        verdict=compute_verdict(trials, level=LEVEL),
        curve=compute_mtd_curve(trials, level=LEVEL),
        paired=compute_paired_curve(trials, level=LEVEL),
        batches=batches if several else batches.iloc[:0],
        paired_batches=compute_paired_batch_curves(trials, level=LEVEL),
        batch_verdicts={
            int(size): compute_verdict(runs[runs["batch_size"] == size], level=LEVEL)
            for size in several
        },
        distances=distances,
        geometry=_compute_geometry(distances),
        spectra=compute_spectra(trials, study.spectra),
        ranks=compute_effective_ranks(trials, study.spectra, level=LEVEL),
        tasks=compute_tasks(trials, study.scores, level=LEVEL),
        experiments=experiments,
        experiment_tasks={
            each.experiment.name: compute_experiment_tasks(each, study.scores, level=LEVEL)
            for each in experiments
        },
        collapse=compute_collapse(study, level=LEVEL),
        collapse_watch=compute_collapse_watch(study),
        note=describe_selection(trials),
    )


def describe_selection(trials: pd.DataFrame) -> str:
    """What figures say where checkpoints were chosen on the test pairs; nothing elsewhere."""
    chosen_on_test = "select_on" in trials and (trials["select_on"] == "test").any()
    return "checkpoints chosen on the TEST pairs" if chosen_on_test else ""


def tabulate(results: Results) -> dict[str, pd.DataFrame]:
    """The tables to write as CSV, by name. Trials and the curve are there even if empty."""
    paired = results.paired.rename(columns=lambda name: name if name == "mtd" else f"paired_{name}")
    curve = results.curve.merge(paired, on="mtd", how="left").assign(level=LEVEL)
    first = ["mtd", "n", "mean", "low", "high", "seeds", "level"]
    curve = curve[[*first, *(name for name in curve if name not in first)]]
    tables = {
        "trials": results.trials,
        "mtd_curve": curve,
        "mtd_by_batch": results.batches,
        "runs_geometry": results.distances,
        "geometry": results.geometry,
        "spectra": results.spectra.reset_index() if len(results.spectra) else results.spectra,
        "effective_rank": results.ranks,
        "tasks": results.tasks,
        **{each.experiment.name: each.table for each in results.experiments},
        **{f"{name}_tasks": table for name, table in results.experiment_tasks.items()},
        "collapse": results.collapse,
        "collapse_watch": results.collapse_watch,
    }
    always = TABLE_NAMES[:2]
    return {name: frame for name, frame in tables.items() if len(frame) or name in always}
