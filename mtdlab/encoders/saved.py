"""Encoders with the representation that they were trained with: `mtdlab.load_encoder`.

Letters: S sentences, D dimension.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from torch import nn

from mtdlab.data_paths import RUN
from mtdlab.device import choose_device
from mtdlab.encoders.embed import Embedder, Vectors
from mtdlab.encoders.folders import declared_pooling
from mtdlab.encoders.loading import Encoder
from mtdlab.encoders.loading import load_encoder as load
from mtdlab.encoders.traits import check_pooling
from mtdlab.errors import MtdlabError
from mtdlab.settings import Pooling, Representation, TrainerSettings
from mtdlab.settings.trainer import Precision

DEFAULT_PRECISION: Precision = "float32"
"""The precision of an encoder that mtdlab did not save; published scores have it."""


@dataclass(frozen=True)
class SavedRun:
    """The way in which a model saved by mtdlab was evaluated: representation and precision."""

    representation: Representation
    precision: Precision


def saved_run(name: str) -> SavedRun | None:
    """How a model saved by mtdlab was evaluated; None for another encoder.

    Raises MtdlabError if the description of its run is damaged.
    """
    path = Path(name) / RUN
    if not path.is_file():
        return None
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        representation = Representation.of(run["settings"])
        representation.check()
        precision = _check_precision(run.get("precision", DEFAULT_PRECISION))
    except (OSError, ValueError, KeyError, TypeError, MtdlabError) as error:
        raise MtdlabError(f"{path}: is damaged ({error}); save the model again") from None
    return SavedRun(representation, precision)


def _check_precision(value: str) -> Precision:
    known: dict[str, Precision] = {name: name for name in get_args(Precision)}
    if value not in known:
        raise MtdlabError(f"unknown precision {value!r}; choose from {', '.join(known)}")
    return known[value]


@dataclass(frozen=True)
class SentenceEncoder:
    """An encoder that turns sentences into vectors, as in its evaluation during training.

    `encoder` gives the tokenizer; `embedder` may have other weights.
    """

    encoder: Encoder
    embedder: Embedder

    @property
    def representation(self) -> Representation:
        """How token vectors become the vector of a sentence."""
        return self.embedder.representation

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Vectors (S, D) of sentences, in their order, in float32 and not normalised.

        Raises TypeError for anything but a list of texts.
        """
        if isinstance(sentences, str) or not all(isinstance(text, str) for text in sentences):
            raise TypeError("encode takes a list of texts")
        distinct = self.encoder.sentences(sentences, self.representation.prompt)
        return distinct.embed(self.embedder)[distinct.rows(sentences)]


def load_encoder(
    name: str, *, pooling: str | None = None, device: str = "auto", precision: str | None = None
) -> SentenceEncoder:
    """An encoder with the representation that it was trained with.

    Args:
        name: the folder of a model saved by mtdlab, `builtin`, another folder or a Hugging Face
            name.
        pooling: in place of that of a model saved by mtdlab, with its prompt and segments; of
            another encoder in place of the one in its `1_Pooling/config.json`, or without that file
            of [CLS], and of a decoder the last token.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        precision: `float32`, `bfloat16`, or `auto`, bfloat16 on hardware with instructions for it;
            None: that in which a model saved by mtdlab was trained and scored, else float32.

    Raises:
        MtdlabError: if it cannot be loaded, has no such pooling, or the precision is unknown.
    """
    run = saved_run(name)
    recorded = run.precision if run else DEFAULT_PRECISION
    computed = recorded if precision is None else _check_precision(precision)
    stated = run.representation if run else None
    if pooling is not None and (stated is None or pooling != stated.pooling):
        # `mask` needs the prompt of a saved model
        known: dict[str, Pooling] = {kind: kind for kind in get_args(Pooling) if kind != "mask"}
        if pooling not in known:
            raise MtdlabError(f"unknown pooling {pooling!r}; choose from {', '.join(known)}")
        stated = Representation(known[pooling])
    chosen = choose_device(TrainerSettings(encoder=name, device=device, precision=computed))
    encoder = load(name, None)
    natural: Pooling = "last-token" if encoder.traits.causal else "cls"
    representation = stated or Representation(declared_pooling(name) or natural)
    check_pooling(name, encoder.traits, representation)
    nn.Module.to(encoder.model, chosen.device)
    return SentenceEncoder(encoder, Embedder(encoder.model, representation, chosen))
