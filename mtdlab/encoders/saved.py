"""Encoders with the representation that they were trained with: `mtdlab.load_encoder`.

Letters: S sentences, D dimension.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from torch import nn

from mtdlab.data_paths import RUN
from mtdlab.device import choose_device
from mtdlab.encoders.embed import MAX_LENGTH, Embedder, Vectors
from mtdlab.encoders.folders import declared_modes, declared_pooling, declared_prompt
from mtdlab.encoders.loading import Encoder
from mtdlab.encoders.loading import load_encoder as load
from mtdlab.encoders.traits import check_pooling
from mtdlab.errors import MtdlabError
from mtdlab.settings import Pooling, Representation, TrainerSettings
from mtdlab.settings.trainer import Precision

DEFAULT_PRECISION: Precision = "float32"
"""The precision of an encoder that mtdlab did not save; published scores have it."""
PRECISIONS: tuple[Precision, ...] = get_args(Precision)
Name = TypeVar("Name", bound=str)


def saved_run(name: str) -> tuple[Representation | None, Precision]:
    """How a model saved by mtdlab was evaluated; None and float32 for another encoder.

    Raises MtdlabError where the description of its run is damaged.
    """
    path = Path(name) / RUN
    if not path.is_file():
        return None, DEFAULT_PRECISION
    try:
        run: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        representation = Representation.of(run["settings"])
        representation.check()
        precision = run.get("precision", DEFAULT_PRECISION)
        return representation, _known("precision", precision, PRECISIONS)
    except (OSError, ValueError, KeyError, TypeError, MtdlabError) as error:
        raise MtdlabError(f"{path}: is damaged ({error}); save the model again") from None


def other_pooling(name: str, pooling: Pooling) -> str:
    """A sentence where an encoder is not read as it was trained, or its files say; else empty."""
    trained, _ = saved_run(name)
    made = [trained.pooling] if trained else declared_modes(name)
    if not made or made == [pooling]:
        return ""
    return f"read with {pooling} pooling, but made with {' and '.join(made)} pooling"


def _known(what: str, value: str, known: Sequence[Name]) -> Name:
    for name in known:
        if name == value:
            return name
    raise MtdlabError(f"unknown {what} {value!r}; choose from {', '.join(known)}")


@dataclass(frozen=True)
class SentenceEncoder:
    """An encoder that turns sentences into vectors, as in its evaluation during training.

    `encoder` gives the tokenizer; `embedder` may have other weights.
    """

    encoder: Encoder
    embedder: Embedder

    @property
    def max_length(self) -> int:
        """The most tokens of a sentence that are read."""
        return self.encoder.token_limit(MAX_LENGTH)

    @property
    def representation(self) -> Representation:
        """How token vectors become the vector of a sentence."""
        return self.embedder.representation

    def encode(self, sentences: Sequence[str]) -> Vectors:
        """Vectors (S, D) of sentences in float32, not normalised, in their order.

        Raises TypeError for anything but a list of texts.
        """
        if isinstance(sentences, str) or not all(isinstance(text, str) for text in sentences):
            raise TypeError("encode takes a list of texts")
        distinct = self.encoder.sentences(sentences, self.representation.prompt)
        return distinct.embed_all(sentences, self.embedder)


def load_encoder(
    name: str,
    *,
    pooling: str | None = None,
    device: str = "auto",
    precision: str | None = None,
    encoder_layers: int | None = None,
) -> SentenceEncoder:
    """An encoder with the representation that it was trained with.

    Args:
        name: the folder of a model saved by mtdlab, `builtin`, another folder or a Hugging Face
            name.
        pooling: in place of that of a model saved by mtdlab, with its prompt and segments, or of
            `1_Pooling/config.json`; without that file [CLS], of a decoder the last token. The
            prompt and the most tokens that sentence-transformers' files declare are used.
        device: `auto`, `cpu`, `cuda` or `cuda:1`.
        precision: `float32`, `bfloat16`, or `auto`, bfloat16 on hardware with instructions for it;
            None: that in which a model saved by mtdlab was trained and scored, else float32.
        encoder_layers: how many of its layers are kept, the first ones; None: all.

    Raises:
        MtdlabError: if it cannot be loaded, has no such pooling or fewer layers, or the precision
            is unknown.
    """
    trained, computed = saved_run(name)
    stated, prompt = trained, "" if trained else declared_prompt(name)
    if precision is not None:
        computed = _known("precision", precision, PRECISIONS)
    if pooling is not None and (stated is None or pooling != stated.pooling):
        # `mask` needs the prompt of a saved model
        known: list[Pooling] = [kind for kind in get_args(Pooling) if kind != "mask"]
        stated = Representation(_known("pooling", pooling, known), prompt)
    chosen = choose_device(TrainerSettings(encoder=name, device=device, precision=computed))
    encoder = load(name, None, kept=encoder_layers)
    natural: Pooling = "last-token" if encoder.causal else "cls"
    representation = stated or Representation(declared_pooling(name) or natural, prompt)
    check_pooling(name, representation, causal=encoder.causal)
    nn.Module.to(encoder.model, chosen.device)
    return SentenceEncoder(encoder, Embedder(encoder.model, representation, chosen))
