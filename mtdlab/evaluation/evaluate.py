"""Evaluate one encoder on the chosen tasks."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from torch import nn

from mtdlab.data_paths import VARIABLE
from mtdlab.device import choose_device
from mtdlab.encoders.embed import MAX_LENGTH
from mtdlab.encoders.loading import load_encoder
from mtdlab.encoders.saved import saved_representation
from mtdlab.encoders.traits import check_pooling, natural_pooling
from mtdlab.errors import MtdlabError
from mtdlab.evaluation.mteb_tree import write_mteb
from mtdlab.evaluation.pairs import Pairs, read_table
from mtdlab.evaluation.processing import Flow, Processing, Whiten
from mtdlab.evaluation.suite import Advance, Embedder, Suite
from mtdlab.evaluation.table import Report
from mtdlab.evaluation.tasks import sts_benchmark_pairs
from mtdlab.evaluation.word_vectors import PREFIX, WordAverages
from mtdlab.settings import Pooling, Representation, TrainerSettings
from mtdlab.settings.tasks import BUILTIN, KNOWN, parse_tasks

SENTEVAL = "senteval"
"""SentEval's folder, where MTDLAB_DATA names a folder of several data sets."""


def evaluate(
    model: str,
    *,
    tasks: str | None,
    data: Path | None,
    pooling: str | None,
    whiten: int | None,
    flow: int | None = None,
    pairs: Path | None,
    mteb: Path | None,
    advance: Advance,
) -> Report:
    """Score `builtin`, a folder, a Hugging Face name or `vectors:FILE`, averages of word vectors.

    pooling  None: that of a model saved by mtdlab with its prompt and segments, else cls, and of
             a decoder last-token.
    tasks    names separated by commas, `sts`, `transfer`; None: all, or without data `builtin`.
    data     a folder in SentEval's layout; None: MTDLAB_DATA, if it is set, or the folder
             `senteval` in it.
    whiten   dimensions kept by whitening; None: none.
    flow     seed of a flow (BERT-flow); None: none.
    pairs    a tab-separated file of first, second, score, for alignment and uniformity.
    mteb     a folder for MTEB's tree of results.

    Raises MtdlabError for what is unknown, damaged or cannot be loaded, and where no task's
    data are there.
    """
    processing = _processing(whiten, flow)
    words = model.startswith(PREFIX)
    if words and (pooling or mteb):
        raise MtdlabError(f"{model}: word vectors have no --pooling and no --mteb; remove them")
    given = None if words else _representation(model, pooling)
    named = data is not None or bool(tasks)
    data = senteval_folder(data)
    chosen = _tasks(tasks) or (KNOWN if data else (BUILTIN,))
    spaces = _spaces(chosen, data, pairs)
    if words:
        suite = Suite(chosen, data, Path(model.removeprefix(PREFIX)), MAX_LENGTH, spaces)
        _check_data(suite, named=named)
        assert isinstance(suite.sentences, WordAverages)
        vectors, remark = suite.sentences.vectors, suite.sentences.remark()
        scores = suite.score_all(vectors, processing, advance=advance)
        found = [suite.space(name, vectors, processing) for name in suite.spaces]
        return Report(model, None, processing, "cpu", scores, found, [], remark)
    encoder = load_encoder(model, None)
    representation = given or natural_pooling(encoder.traits)
    check_pooling(model, encoder.traits, representation)
    limit = encoder.token_limit(MAX_LENGTH)
    suite = Suite(chosen, data, encoder.tokenizer, limit, spaces, representation.prompt)
    _check_data(suite, named=named)
    device = choose_device(TrainerSettings(encoder=model))
    nn.Module.to(encoder.model, device.device)
    vectors = suite.embed(Embedder(encoder.model, representation, device), advance=advance)
    scores = suite.score_all(vectors, processing, advance=advance)
    found = [suite.space(name, vectors, processing) for name in suite.spaces]
    files = write_mteb(mteb, model, encoder.model, scores) if mteb else []
    return Report(model, representation, processing, str(device), scores, found, files)


def _processing(whiten: int | None, flow: int | None) -> Processing | None:
    if whiten is not None and flow is not None:
        raise MtdlabError("whitening and a flow cannot be combined; give --whiten or --flow")
    if flow is not None:
        return Flow(flow)
    return None if whiten is None else Whiten(whiten)


def _check_data(suite: Suite, *, named: bool) -> None:
    """Raise MtdlabError where no task's data are there, or none of those that were named."""
    if suite.missing and (not suite.loaded or (named and suite.loaded.keys() == {BUILTIN})):
        name, reason = next(iter(suite.missing.items()))
        raise MtdlabError(
            f"evaluate: no task's data are there ({name}: {reason}); give SentEval's folder by "
            "--data or MTDLAB_DATA, or take --tasks builtin"
        )


def _tasks(text: str | None) -> tuple[str, ...]:
    try:
        return parse_tasks(text or "")
    except ValueError as error:
        raise MtdlabError(str(error)) from None


def _representation(model: str, pooling: str | None) -> Representation | None:
    """That of a saved model, or of a pooling; `mask` needs the prompt of a saved model.

    None where neither is given.
    """
    saved = saved_representation(model)
    if pooling is None or (saved and pooling == saved.pooling):
        return saved
    known: dict[str, Pooling] = {name: name for name in get_args(Pooling) if name != "mask"}
    if pooling not in known:
        raise MtdlabError(f"unknown pooling {pooling!r}; choose from {', '.join(known)}")
    return Representation(known[pooling])


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
