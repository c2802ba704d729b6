"""The result of a run: its training curve, its best checkpoint and their scores."""

from dataclasses import dataclass, field

import numpy as np

from mtdlab.evaluation.items import Items
from mtdlab.evaluation.suite import TaskScore
from mtdlab.settings.tasks import PAIR_SCORES, needed
from mtdlab.training.inputs import EncoderScores
from mtdlab.training.state import Column, State


@dataclass(frozen=True)
class Outcome:
    """A finished run. `best_step` counts from 1; `before` is the encoder before training.

    probes  `Probe.columns`; empty without probes.
    peak_memory
            in bytes, since the run began or was resumed (`Device.peak_memory`); NaN where a peak
            from before cannot be told from it.
    scores  on each of the settings' tasks, of the best checkpoint; scores_before: before training.
    """

    best_step: int
    before: EncoderScores
    after: EncoderScores
    curve: dict[str, Column]
    states: dict[str, State]
    scores: tuple[TaskScore, ...]
    scores_before: tuple[TaskScore, ...]
    wall_seconds: float
    peak_memory: float = np.nan
    probes: dict[str, Column] = field(default_factory=dict)

    def score_of(self, metric: str) -> tuple[float, float]:
        """A metric of the best checkpoint and of the encoder before training, x 100; NaN for none.

        An average is NaN unless all of its tasks have a score.
        """
        if metric in PAIR_SCORES:
            split = metric.removeprefix("sts_")
            return getattr(self.after, split).score, getattr(self.before, split).score
        return _mean(metric, self.scores), _mean(metric, self.scores_before)

    def items_of(self, metric: str) -> dict[str, Items]:
        """The items of a metric of the best checkpoint, by task; none unless each task has some."""
        if metric in PAIR_SCORES:
            found = {metric: getattr(self.after, metric.removeprefix("sts_")).items}
        else:
            by_task = {each.task: each.items for each in self.scores}
            found = {task: by_task.get(task) for task in needed(metric)}
        items = {task: each for task, each in found.items() if each is not None}
        return items if len(items) == len(found) else {}

    def all_scores(self) -> dict[str, float]:
        """All scores of the best checkpoint by name, x 100; NaN for none."""
        return _by_name(self.after, self.scores)

    def all_scores_before(self) -> dict[str, float]:
        """As `all_scores`, of the encoder before training."""
        return _by_name(self.before, self.scores_before)

    @property
    def weights(self) -> State:
        """The encoder's weights in the best checkpoint."""
        return self.states["encoder"]


def _by_name(pairs: EncoderScores, tasks: tuple[TaskScore, ...]) -> dict[str, float]:
    found = {"sts_dev": pairs.dev.score, "sts_test": pairs.test.score}
    return found | {each.task: np.nan if each.score is None else each.score for each in tasks}


def _mean(metric: str, scores: tuple[TaskScore, ...]) -> float:
    found = {each.task: each.score for each in scores}
    values = [found.get(task) for task in needed(metric)]
    return float(np.mean([np.nan if value is None else value for value in values]))
