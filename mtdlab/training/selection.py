"""The data on which a run's checkpoint is selected: graded pairs, several sets of them, dev data.

Letters: S distinct sentences, D dimension.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np

from mtdlab.analysis.data.tasks import STS
from mtdlab.encoders.embed import Embedder, Sentences, Vectors
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.evaluation.external import find_task, score_split
from mtdlab.evaluation.pairs import evaluation_folder, load_pairs, task_folder
from mtdlab.evaluation.sts import NAN, Evaluation, StsTask
from mtdlab.evaluation.suite import ExternalTask, Suite
from mtdlab.settings import TrainerSettings
from mtdlab.settings.tasks import DEV
from mtdlab.training.inputs import RunInputs


def averaged_sets(evaluation: str) -> tuple[str, ...]:
    """The STS sets in the folder of `evaluation`, where it has SentEval's layout.

    Raises MtdlabError for a folder that is not there.
    """
    folder = evaluation_folder(evaluation)
    return tuple(name for name in STS if (path := task_folder(name, folder)) and path.is_dir())


def describe_sets(evaluation: str) -> str:
    """The sets that the average is over, as text, such as `STS12, STSB (STS13 missing)`."""
    sets = averaged_sets(evaluation)
    if not sets:
        return "the test pairs of `evaluation`, which holds none of the seven STS sets"
    missing = ", ".join(name for name in STS if name not in sets)
    return ", ".join(sets) + (f" ({missing} missing)" if missing else "")


def warn_of_missing_sets(evaluation: str) -> str:
    """A sentence that names the sets that the average lacks; empty where all seven are there."""
    if len(averaged_sets(evaluation)) == len(STS):
        return ""
    return (
        f"select_on: sts_average with evaluation {evaluation}: checkpoints are selected on "
        f"{describe_sets(evaluation)}; published programs average all seven"
    )


class StsAverage(StsTask):
    """The pairs of several STS sets, each sentence encoded once; the score is their mean.

    All else, and the score without any such set, is that of the test pairs of `evaluation`.
    """

    def __init__(self, evaluation: str, encoder: Encoder, test: StsTask, prompt: str = "") -> None:
        """`test` are the test pairs of `evaluation`. Raises MtdlabError for a damaged file."""
        self._suite = _suite(evaluation, evaluation_folder(evaluation), encoder, prompt)
        self.sentences, self._test = self._suite.sentences, test
        self._test_rows = self.sentences.rows(test.sentences.texts)

    def evaluate(self, vectors: Vectors) -> Evaluation:
        """The mean of the sets' Spearman correlations x 100; NaN where one has none."""
        geometry = self._test.evaluate(vectors[self._test_rows])
        if not self._suite.tasks:
            return geometry
        scores = [task_score.score for task_score in self._suite.score_all(vectors)]
        mean = float(np.mean([NAN if score is None else score for score in scores]))
        return replace(geometry, score=mean, items=None)


@lru_cache(maxsize=1)
def _suite(evaluation: str, folder: Path | None, encoder: Encoder, prompt: str) -> Suite[Sentences]:
    """The sets of pairs, cached, since every trial of a study reads the same ones."""
    pairs = {"test": load_pairs(evaluation, "test")}
    collect = partial(encoder.sentences, prompt=prompt)
    return Suite(averaged_sets(evaluation), folder, collect, pairs)


class DevSelection:
    """Selection on an external task's dev data; geometry is that of the dev pairs."""

    def __init__(self, name: str, tasks: Sequence[ExternalTask], pairs: StsTask) -> None:
        """`name` is that of a dev score. Raises MtdlabError as `find_task`."""
        self._name, self._task, self._pairs = name, find_task(name, tasks), pairs

    def measure(self, embedder: Embedder) -> tuple[Vectors, Evaluation]:
        """The dev score of an encoder, NaN for none, and the vectors of the dev pairs (S, D).

        Raises TrialError where vectors are not finite, or the function does not return the score.
        """
        vectors, geometry = self._pairs.measure(embedder)
        try:
            scores = score_split(embedder, self._task, "dev")
        except MtdlabError as error:
            raise TrialError(str(error), "error") from error
        by_task = {task_score.task: task_score.score for task_score in scores}
        if self._name not in by_task:
            raise TrialError(f"select_on {self._name}: there is no such score", "error")
        score = by_task[self._name]
        return vectors, replace(geometry, score=NAN if score is None else score, items=None)


def selection_of(settings: TrainerSettings, inputs: RunInputs) -> StsTask | DevSelection:
    """The data that `select_on` names, for `last` the dev pairs. Raises MtdlabError for none."""
    if settings.select_on.endswith(DEV):
        return DevSelection(settings.select_on, inputs.external, inputs.dev)
    if settings.select_on == "sts_average":
        return StsAverage(settings.evaluation, inputs.encoder, inputs.test, settings.prompt)
    return inputs.test if settings.select_on == "test" else inputs.dev
