"""The topics of a study's page, one file each; a new topic is a new file and a line here."""

from typing import Any

from analysis.report.context import StudyContext
from analysis.report.topics import (
    baseline,
    batches,
    best_trial,
    collapse,
    comparison,
    correlation,
    geometry,
    history,
    importances,
    looks,
    methods,
    published_curve,
    robustness,
    score,
    spectra,
    spherical_cap,
    sufficiency,
    tasks,
    training,
    trials,
    tuning,
)
from analysis.report.topics.base import Topic
from analysis.report.topics.experiment import EXPERIMENT_TOPICS

TOPICS: tuple[Topic[StudyContext, Any], ...] = (
    score.TOPIC,
    baseline.TOPIC,
    tuning.TOPIC,
    published_curve.TOPIC,
    looks.TOPIC,
    sufficiency.TOPIC,
    robustness.TOPIC,
    importances.TOPIC,
    correlation.TOPIC,
    methods.TOPIC,
    methods.PUBLISHED,
    comparison.TOPIC,
    batches.TOPIC,
    *EXPERIMENT_TOPICS,
    training.TOPIC,
    collapse.TOPIC,
    tasks.TOPIC,
    geometry.TOPIC,
    history.TOPIC,
    spectra.TOPIC,
    spherical_cap.TOPIC,
    best_trial.TOPIC,
    trials.TOPIC,
)
"""The topics in the order of the page."""

__all__ = ["TOPICS", "Topic"]
