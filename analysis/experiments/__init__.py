"""The published experiments: what each varies, and the comparison of a study with them."""

from analysis.experiments.catalogue import EXPERIMENTS, Experiment
from analysis.experiments.compare import (
    Comparison,
    Gap,
    compare,
    compute_experiment,
    compute_experiment_tasks,
    needs_curves,
)
from analysis.statistics.training import compute_collapse, detect_collapse

__all__ = [
    "EXPERIMENTS",
    "Comparison",
    "Experiment",
    "Gap",
    "compare",
    "compute_collapse",
    "compute_experiment",
    "compute_experiment_tasks",
    "detect_collapse",
    "needs_curves",
]
