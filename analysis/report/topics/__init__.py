"""The topics of a study's page, one file each: another one is another file and a line here."""

from typing import Any

from analysis.report.topics import (
    batches,
    collapse,
    geometry,
    looks,
    methods,
    score,
    spectra,
    spherical_cap,
    tasks,
    trials,
)
from analysis.report.topics.base import Topic
from analysis.report.topics.experiment import EXPERIMENT_TOPICS

TOPICS: tuple[Topic[Any], ...] = (
    score.TOPIC,
    looks.TOPIC,
    methods.TOPIC,
    batches.TOPIC,
    *EXPERIMENT_TOPICS,
    collapse.TOPIC,
    tasks.TOPIC,
    geometry.TOPIC,
    spectra.TOPIC,
    spherical_cap.TOPIC,
    trials.TOPIC,
)
"""In the order of the page."""

__all__ = ["TOPICS", "Topic"]
