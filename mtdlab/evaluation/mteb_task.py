"""One of MTEB's tasks, scored by the library mteb (extra `mteb`) on the data of its test split.

Its data are those of a local folder `mteb/TASK`, one file a split (`test.jsonl`, `test.parquet`),
or what mteb loads from the Hugging Face hub or its cache.

Letters: S texts, D dimension.
"""

import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mtdlab.data_paths import find_data
from mtdlab.encoders.embed import Vectors
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import MtdlabError, one_line
from mtdlab.evaluation.embedder import Embedder
from mtdlab.evaluation.retrieval import Split
from mtdlab.evaluation.suite import TaskScore
from mtdlab.evaluation.text_encoder import TextEncoder
from mtdlab.settings.tasks import MTEB

FOLDER = "mteb"
_NEAREST = re.compile(r"Did you mean: '([^']+)'")


class MtebTask:
    """A task of MTEB with its data loaded; mteb's main score, averaged over splits and subsets."""

    has_dev = False

    def __init__(self, task: str, encoder: Encoder) -> None:
        """`task`: mteb:TASK. Raises MtdlabError where the library, the task or its data miss."""
        self.name = task
        self._encode = TextEncoder(encoder)
        self._task = _loaded(task.removeprefix(MTEB))

    def score(self, embedder: Embedder, split: Split) -> list[TaskScore]:
        """The main score x 100. Raises MtdlabError where mteb fails."""
        assert split == "test", "mteb reports test splits"
        peer = _Peer(self._encode, embedder)
        try:
            with _quiet():
                found = [
                    scores["main_score"]
                    for each in self._task.eval_splits
                    for scores in self._task.evaluate(
                        peer, each, encode_kwargs={"show_progress_bar": False}
                    ).values()
                ]
        except Exception as error:
            # mteb and its evaluators raise many kinds
            raise MtdlabError(f"{self.name}: mteb cannot score it: {one_line(error)}") from error
        score = 100 * float(np.mean(found))
        if not np.isfinite(score):
            return [TaskScore(self.name, None, "its main score is not finite", 1)]
        return [TaskScore(self.name, score, n=1)]

    def tokens(self, split: Split) -> int:  # noqa: ARG002
        """Not known: 0."""
        return 0


class _Peer:
    """The encoder as mteb calls it (`EncoderProtocol`); similarity is the cosine."""

    def __init__(self, encode: TextEncoder, embedder: Embedder) -> None:
        from mteb.models import ModelMeta

        self._encode, self._embedder = encode, embedder
        self.mteb_model_meta = ModelMeta.create_empty({"name": "mtdlab/encoder"})

    def encode(self, inputs: Any, **_context: Any) -> Vectors:
        """Vectors (S, D) of the texts of mteb's batches."""
        return self._encode(self._embedder, [text for batch in inputs for text in batch["text"]])

    def similarity(self, first: Any, second: Any) -> Any:
        """Cosines (S, S')."""
        from mteb.similarity_functions import cos_sim

        return cos_sim(first, second)

    def similarity_pairwise(self, first: Any, second: Any) -> Any:
        """Cosines (S,) of the rows."""
        from mteb.similarity_functions import pairwise_cos_sim

        return pairwise_cos_sim(first, second)


def _loaded(name: str) -> Any:
    try:
        import datasets
        import mteb
    except ModuleNotFoundError:
        raise MtdlabError(
            f"mteb:{name}: needs the library mteb; install the extra: pip install 'mtdlab[mteb]'"
        ) from None
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    with _quiet():
        try:
            task = mteb.get_task(name)
        except KeyError as error:
            # mteb's message names the nearest task, where one is near
            near = _NEAREST.search(str(error))
            hint = f"did you mean {near[1]}?" if near else "mteb.get_tasks() lists all"
            raise MtdlabError(f"mteb:{name}: mteb has no such task; {hint}") from None
        folder = _folder(name)
        if folder is not None:
            data = {"path": str(folder), "revision": "local"}
            task.metadata = task.metadata.model_copy(update={"dataset": data})
        try:
            task.load_data()
        except Exception as error:
            # of datasets, the hub's client, or the task's own transformation
            where = str(folder) if folder else f"neither a folder {FOLDER}/{name} nor the hub"
            raise MtdlabError(
                f"mteb:{name}: its data cannot be loaded ({where}): {one_line(error)[:300]}; put "
                f"them into {FOLDER}/{name} as test.jsonl or test.parquet with mteb's columns"
            ) from None
    return task


def _folder(name: str) -> Path | None:
    """The local folder of a task's data in the working folder or MTDLAB_DATA; None without one."""
    try:
        return find_data("tasks", f"{FOLDER}/{name}").absolute()
    except MtdlabError:
        return None


@contextmanager
def _quiet() -> Iterator[None]:
    """What mteb and datasets warn of is not the user's."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
