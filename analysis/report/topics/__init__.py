"""The topics of a study's page, by file; a new topic is a line here."""

from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import (
    baseline,
    claims,
    conditions,
    configurations,
    effects,
    history,
    looks,
    methods,
    questions,
    references,
    representation,
    score,
    sufficiency,
    training,
    trials,
    tuning,
)
from mtdlab.analysis.report.topics.base import Topic
from mtdlab.analysis.report.topics.experiment import EXPERIMENT_TOPICS

TOPICS: tuple[Topic[StudyContext], ...] = (
    questions.DIFFERENCE,
    score.TOPIC,
    questions.DECLARED,
    claims.TOPIC,
    baseline.TOPIC,
    references.TOPIC,
    tuning.TOPIC,
    score.PUBLISHED,
    looks.TOPIC,
    sufficiency.TOPIC,
    conditions.TOPIC,
    configurations.IMPORTANCES,
    score.CORRELATION,
    methods.TOPIC,
    methods.PUBLISHED,
    configurations.TOPIC,
    effects.TOPIC,
    conditions.BATCHES,
    *EXPERIMENT_TOPICS,
    training.TOPIC,
    training.COLLAPSE,
    score.BY_TASK,
    representation.ALIGNMENT,
    representation.PATHS,
    history.TOPIC,
    history.KEYS,
    representation.SPECTRA,
    representation.SPHERICAL_CAP,
    trials.BEST,
    trials.TOPIC,
)
"""The topics in the order of the page."""

__all__ = ["TOPICS", "Topic"]
