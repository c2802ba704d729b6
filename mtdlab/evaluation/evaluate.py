"""Evaluate one encoder on the chosen tasks."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.progress import TaskID
from torch import nn
from transformers import PreTrainedModel

from mtdlab.data_paths import VARIABLE
from mtdlab.device import choose_device
from mtdlab.encoders.embed import MAX_LENGTH, Embedder, Vectors, collect_with
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.saved import find_representation
from mtdlab.encoders.traits import check_pooling, natural_pooling
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.external import open_tasks, score_external
from mtdlab.evaluation.mteb import write_mteb
from mtdlab.evaluation.pairs import Pairs, read_table
from mtdlab.evaluation.processing import Flow, Processing, Whiten
from mtdlab.evaluation.suite import Advance, Suite, T, TaskScore, embed_suite
from mtdlab.evaluation.table import ScoreReport
from mtdlab.evaluation.tasks import sts_benchmark_pairs
from mtdlab.evaluation.word_vectors import PREFIX, WordAverages
from mtdlab.methods.user_modules import import_evaluator
from mtdlab.settings import Representation, TrainerSettings
from mtdlab.settings.tasks import (
    BUILTIN,
    EVALUATOR,
    KNOWN,
    external_tasks,
    parse_tasks,
    published_tasks,
)
from mtdlab.terminal import progress_bar

SENTEVAL = "senteval"
"""SentEval's folder, where MTDLAB_DATA names a folder of several data sets."""


def evaluate(
    model: str = "builtin",
    *,
    tasks: str | None = None,
    data: str | Path | None = None,
    pooling: str | None = None,
    whiten: int | None = None,
    flow: int | Flow | None = None,
    pairs: str | Path | None = None,
    mteb: str | Path | None = None,
    evaluator: str | None = None,
) -> ScoreReport:
    """Score an encoder, as `mtdlab evaluate`.

    Args:
        model: `builtin`, a folder, a Hugging Face name, or `vectors:FILE`, averages of word
            vectors.
        pooling: None: that of a model saved by mtdlab with its prompt and segments, else that of
            the encoder's `1_Pooling/config.json`, else cls, and of a decoder last-token.
        tasks: names separated by commas, `sts`, `transfer`, or tasks besides the published ones
            (`beir:FOLDER`, `mteb:TASK`, `evaluator`); None: all published, or without data
            `builtin`.
        data: a folder in SentEval's layout; None: MTDLAB_DATA, if it is set, or the folder
            `senteval` in it.
        whiten: dimensions kept by whitening; None: none.
        flow: settings of a flow (BERT-flow), or its seed alone; None: none.
        pairs: a tab-separated file of first, second, score, for alignment and uniformity.
        mteb: a folder for MTEB's tree of results.
        evaluator: MODULE:FUNCTION, by default that of MTDLAB_EVALUATOR; without tasks it alone
            scores.

    Raises:
        MtdlabError: for what is unknown, damaged or cannot be loaded, and where no task's data are
            there.
    """
    if import_evaluator(evaluator) and not tasks:
        tasks = EVALUATOR
    processing, tasks = _processing(whiten, flow), _tasks(tasks)
    words = model.startswith(PREFIX)
    if words and (pooling or mteb):
        raise MtdlabError(f"{model}: word vectors have no --pooling and no --mteb; remove them")
    if (words or processing) and external_tasks(tasks or ""):
        raise MtdlabError(
            f"{', '.join(external_tasks(tasks or ''))}: scored for an encoder as it is; remove "
            "--whiten and --flow, and name an encoder"
        )
    folder, own = (None if each is None else Path(each) for each in (data, pairs))
    given = _Data(tasks, folder, own)
    with _progress() as advance:
        embedded = (
            _average_words(model.removeprefix(PREFIX), given)
            if words
            else _encode(model, find_representation(model, pooling), given, advance)
        )
        suite, vectors = embedded.suite, embedded.vectors
        scores = suite.score_all(vectors, processing, advance=advance) + embedded.external
        found = [suite.space(name, vectors, processing) for name in suite.spaces]
    files = write_mteb(Path(mteb), model, embedded.model, scores) if mteb and embedded.model else []
    return ScoreReport(
        model,
        embedded.representation,
        processing,
        embedded.device,
        scores,
        found,
        files,
        embedded.remark,
    )


@dataclass(frozen=True)
class _Data:
    """The data that an evaluation names, see `evaluate`."""

    tasks: str | None
    data: Path | None
    pairs: Path | None

    def suite(self, collect: Callable[[Iterable[str]], T]) -> Suite[T]:
        """The tasks and sets of pairs. Raises MtdlabError where no task's data are there."""
        folder = senteval_folder(self.data)
        everything = KNOWN if folder else (BUILTIN,)
        chosen = published_tasks(self.tasks) if self.tasks else everything
        suite = Suite(chosen, folder, collect, _spaces(chosen, folder, self.pairs))
        _check_data(suite, named=self.data is not None or bool(self.tasks))
        return suite


@dataclass(frozen=True)
class _Embedded:
    """A suite and the vectors (S, D) of its texts.

    Attributes:
        representation, model: where an encoder made them.
        external: scores of tasks besides the published ones.
    """

    suite: Suite[Any]
    vectors: Vectors
    device: str
    representation: Representation | None = None
    model: PreTrainedModel | None = None
    external: list[TaskScore] = field(default_factory=list)
    remark: str = ""


def _average_words(file: str, given: _Data) -> _Embedded:
    suite = given.suite(lambda texts: WordAverages(texts, Path(file)))
    return _Embedded(suite, suite.sentences.vectors, "cpu", remark=suite.sentences.remark())


def _encode(name: str, named: Representation | None, given: _Data, advance: Advance) -> _Embedded:
    encoder = load_encoder(name, None)
    representation = named or natural_pooling(name, encoder.traits)
    check_pooling(name, encoder.traits, representation)
    limit = encoder.token_limit(MAX_LENGTH)
    suite = given.suite(collect_with(encoder.tokenizer, limit, representation.prompt))
    device = choose_device(TrainerSettings(encoder=name))
    nn.Module.to(encoder.model, device.device)
    embedder = Embedder(encoder.model, representation, device)
    vectors = embed_suite(embedder, suite, advance=advance)
    tasks = open_tasks(external_tasks(given.tasks or ""), encoder, representation.prompt)
    external = score_external(embedder, tasks)
    return _Embedded(suite, vectors, str(device), representation, encoder.model, external)


def _processing(whiten: int | None, flow: int | Flow | None) -> Processing | None:
    if whiten is not None and flow is not None:
        raise MtdlabError("whitening and a flow cannot be combined; give --whiten or --flow")
    if flow is not None:
        return Flow(seed=flow) if isinstance(flow, int) else flow
    return None if whiten is None else Whiten(whiten)


def _check_data(suite: Suite[Any], *, named: bool) -> None:
    """Raise MtdlabError where no task's data are there, or none of those that were named."""
    if suite.missing and (not suite.loaded or (named and suite.loaded.keys() == {BUILTIN})):
        name, reason = next(iter(suite.missing.items()))
        raise MtdlabError(
            f"evaluate: no task's data are there ({name}: {reason}); give SentEval's folder by "
            "--data or MTDLAB_DATA, or take --tasks builtin"
        )


def _tasks(text: str | None) -> str | None:
    """The names, checked. Raises MtdlabError for one that is not known."""
    try:
        return ",".join(parse_tasks(text)) if text else None
    except ValueError as error:
        raise MtdlabError(str(error)) from None


def senteval_folder(data: Path | None) -> Path | None:
    """SentEval's folder: `data`, else MTDLAB_DATA or the folder `senteval` in it, if any."""
    variable = os.environ.get(VARIABLE)
    folder = data or (Path(variable) if variable else None)
    if folder is not None and not folder.is_dir():
        named = "--data" if data else VARIABLE
        raise MtdlabError(f"{named} {folder}: no such folder; give one in SentEval's layout")
    if data is None and folder is not None and (folder / SENTEVAL).is_dir():
        return folder / SENTEVAL
    return folder


def _spaces(tasks: Sequence[str], data: Path | None, pairs: Path | None) -> dict[str, Pairs]:
    spaces = sts_benchmark_pairs(data) if data and "STSB" in tasks else {}
    if pairs is not None:
        spaces[str(pairs)] = read_table(pairs, first=0, second=1, gold=2)
    return spaces


@contextmanager
def _progress() -> Iterator[Advance]:
    """An `Advance` that shows a bar for each name it is called with."""
    with progress_bar() as bar:
        rows: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in rows:
                rows[what] = bar.add_task(what, total=total)
            bar.update(rows[what], completed=done)

        yield advance
