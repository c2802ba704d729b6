"""MTEB: its tasks scored by the library mteb (extra `mteb`), and its tree of results written.

docs/how-to/own-metric.md has where the data of a task are looked for. Only tasks that MTEB has are
written: the seven of STS, whose main score is the same Spearman of cosines.

Letters: S texts, D dimension.
"""

import json
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from transformers import PreTrainedModel

from mtdlab.data_paths import find_data
from mtdlab.encoders.embed import Embedder, Vectors
from mtdlab.encoders.folders import refuse_retrieval_prompts
from mtdlab.encoders.loading import Encoder, weights_digest
from mtdlab.encoders.saved import SentenceEncoder
from mtdlab.errors import MtdlabError, one_line, refusing, require
from mtdlab.evaluation.suite import ExternalTask, Split, TaskScore
from mtdlab.settings.tasks import MTEB

NAMES = {year: year for year in ("STS12", "STS13", "STS14", "STS15", "STS16")} | {
    "STSB": "STSBenchmark",
    "SICKR": "SICK-R",
}
"""MTEB's names of the tasks of mtdlab."""

_FIELDS = """
name revision release_date languages loader n_parameters memory_usage_mb max_tokens embed_dim
license open_weights public_training_code public_training_data framework similarity_fn_name
use_instructions training_datasets
""".split()  # noqa: SIM905
"""The fields of model_meta.json; null where they are not known."""


def write_mteb(
    folder: Path,
    name: str,
    model: PreTrainedModel,
    scores: Sequence[TaskScore],
    layers: int | None = None,
) -> list[Path]:
    """Write the scored STS tasks; the files, model_meta.json first.

    They are `folder/results/<org>__<model>/<revision>/<Task>.json`: of an encoder `org/model`, of
    `builtin` mtdlab__builtin, of a folder local__<its name>; -layers-1-to-<layers> follows where
    only the first `layers` of it are kept. The revision is a fingerprint of the
    weights, so that no checkpoint overwrites another's.
    Raises MtdlabError where the folder cannot be written.
    """
    full = _model_name(name) + (f"-layers-1-to-{layers}" if layers else "")
    revision = weights_digest(model)[:40]
    place = folder / "results" / full.replace("/", "__") / revision
    contents: dict[str, dict[str, Any]] = {"model_meta.json": _meta(full, revision, model)}
    for score in scores:
        if score.task in NAMES and score.score is not None:
            main = {"main_score": score.score / 100, "cosine_spearman": score.score / 100}
            row = {"hf_subset": "default", "languages": ["eng-Latn"], **main}
            contents[f"{NAMES[score.task]}.json"] = {
                "dataset_revision": "local-senteval-files",
                "task_name": NAMES[score.task],
                "mteb_version": None,
                "evaluation_time": None,
                "scores": {"test": [row]},
            }
    what = f"mteb {place}: cannot be written"
    with refusing(OSError, what=what, hint="give a folder you may write to"):
        place.mkdir(parents=True, exist_ok=True)
        for file, content in contents.items():
            (place / file).write_text(json.dumps(content, indent=2) + "\n")
    return [place / file for file in contents]


def _model_name(name: str) -> str:
    if name == "builtin":
        return "mtdlab/builtin"
    if Path(name).is_dir():
        return f"local/{Path(name).resolve().name}"
    return name if name.count("/") == 1 else f"local/{name.replace('/', '_')}"


def _meta(name: str, revision: str, model: PreTrainedModel) -> dict[str, Any]:
    known = {
        "name": name,
        "revision": revision,
        "languages": ["eng-Latn"],
        "n_parameters": sum(one.numel() for one in model.parameters()),
        "embed_dim": int(model.config.hidden_size),
        "framework": ["PyTorch"],
        "similarity_fn_name": "cosine",
        "use_instructions": False,
    }
    return dict.fromkeys(_FIELDS) | known


_QUIET = partial(warnings.catch_warnings, action="ignore")
"""A block without warnings: those of mteb and datasets do not concern the user."""
_WITH_QUERIES = ("Retrieval", "Reranking", "InstructionRetrieval", "InstructionReranking")
"""Types of mteb's tasks that rank documents for queries."""
_NEAREST = re.compile(r"Did you mean: '([^']+)'")


class MtebTask(ExternalTask):
    """A task of MTEB with its data loaded; mteb's main score, averaged over splits and subsets."""

    def __init__(self, task: str, encoder: Encoder, prompt: str) -> None:
        """`task` is mteb:TASK.

        Raises MtdlabError without the library, the task or its data, and where it is one of
        retrieval and the encoder's own prompts differ for queries and documents.
        """
        self.name = task
        self._encoder = encoder
        self._task = _find_task(task.removeprefix(MTEB))
        if not prompt and self._task.metadata.type in _WITH_QUERIES:
            refuse_retrieval_prompts(str(encoder.model.name_or_path), task)
        _load_data(self._task)

    def score(self, embedder: Embedder, split: Split) -> list[TaskScore]:
        """The main score x 100. Raises MtdlabError where mteb fails."""
        assert split == "test", "mteb reports test splits"
        peer = _peer(SentenceEncoder(self._encoder, embedder))
        try:
            with _QUIET():
                main_scores = [
                    scores["main_score"]
                    for eval_split in self._task.eval_splits
                    for scores in self._task.evaluate(
                        peer, eval_split, encode_kwargs={"show_progress_bar": False}
                    ).values()
                ]
        except Exception as error:
            # mteb and its evaluators raise many kinds
            raise MtdlabError(f"{self.name}: mteb cannot score it: {one_line(error)}") from error
        score = 100 * float(np.mean(main_scores))
        if not np.isfinite(score):
            return [TaskScore(self.name, None, "its main score is not finite", 1)]
        return [TaskScore(self.name, score, n=1)]


def _peer(encoder: SentenceEncoder) -> SimpleNamespace:
    """An encoder with mteb's interface (`EncoderProtocol`); similarity is the cosine."""
    from mteb.models import ModelMeta
    from mteb.similarity_functions import cos_sim, pairwise_cos_sim

    def encode(inputs: Any, **_context: Any) -> Vectors:
        return encoder.encode([text for batch in inputs for text in batch["text"]])

    return SimpleNamespace(
        mteb_model_meta=ModelMeta.create_empty({"name": "mtdlab/encoder"}),
        encode=encode,
        # of vectors (S, D) and (S', D): (S, S'), and of rows (S,)
        similarity=cos_sim,
        similarity_pairwise=pairwise_cos_sim,
    )


def _find_task(name: str) -> Any:
    require(f"{MTEB}{name}", "mteb", "mteb")
    import mteb

    with _QUIET():
        try:
            return mteb.get_task(name)
        except KeyError as error:
            # mteb's message names the nearest task, where one is near
            near = _NEAREST.search(str(error))
            hint = f"did you mean {near[1]}?" if near else "mteb.get_tasks() lists all"
            raise MtdlabError(f"mteb:{name}: mteb has no such task; {hint}") from None


def _load_data(task: Any) -> None:
    """Load a task's data from a folder of the user, else from the hub."""
    import datasets

    name = task.metadata.name
    if not sys.stderr.isatty():
        datasets.disable_progress_bars()
    with _QUIET():
        where = f"neither a folder mteb/{name} nor the hub"
        with suppress(MtdlabError):
            where = str(find_data("tasks", f"mteb/{name}").absolute())
            data = {"path": where, "revision": "local"}
            task.metadata = task.metadata.model_copy(update={"dataset": data})
        try:
            task.load_data()
        except Exception as error:
            # of datasets, the hub's client, or the task's own transformation
            raise MtdlabError(
                f"mteb:{name}: its data cannot be loaded ({where}): {one_line(error)[:300]}; put "
                f"them into mteb/{name} as test.jsonl or test.parquet with mteb's columns"
            ) from None
