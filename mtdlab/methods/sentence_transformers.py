"""Losses of sentence-transformers, trained by its SentenceTransformerTrainer.

Encoder, pooling, dropout, batches, optimizer, schedule and evaluation are mtdlab's, so that runs
compare with those of other methods; the loop and the loss are theirs. A positive pair is the same
sentence twice with two dropout masks, or a pair of a corpus of pairs. There is no head.

Letters: N batch.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

import torch
import yaml
from pydantic import BeforeValidator, WithJsonSchema
from torch import Tensor, nn

from mtdlab.device import Device
from mtdlab.encoders.dropout import Dropout
from mtdlab.errors import MtdlabError, one_line, require
from mtdlab.methods.base import Method, Step, Steps, Tokens, Transformer
from mtdlab.methods.losses import at_least_float32
from mtdlab.settings import TrainerSettings, setting
from mtdlab.settings.augmentation import EMBEDDING_LEVEL, parse_augmentation

if TYPE_CHECKING:
    # they import transformers, and reading a study file needs only the settings
    from mtdlab.encoders.loading import Encoder


def _as_text(given: Any) -> str:
    """The arguments of a loss, a mapping or its text, as the text that is recorded."""
    try:
        values = yaml.safe_load(given) if isinstance(given, str) else given
        if not values:
            return ""
        if not isinstance(values, dict) or any(type(name) is not str for name in values):
            raise TypeError
        return json.dumps(values, sort_keys=True, allow_nan=False)
    except (yaml.YAMLError, TypeError, ValueError):
        raise ValueError(
            f"{given!r}: write the arguments of the loss by name, as in {{mini_batch_size: 16}}"
        ) from None


Arguments = Annotated[
    str, BeforeValidator(_as_text), WithJsonSchema({"type": ["object", "string"]})
]
"""The arguments of a loss by name: a mapping, or its text."""


class SentenceTransformersSettings(TrainerSettings):
    """The settings that all methods share, and the loss."""

    least_batch = 2

    loss: str = setting(
        "MultipleNegativesRankingLoss",
        "loss of sentence-transformers, by the name of its class; one that needs neither labels "
        "nor a third text",
        min_length=1,
    )
    loss_arguments: Arguments = setting(
        "",
        "arguments of the loss by their names, `{mini_batch_size: 16}`; its scale is "
        "1 / `temperature`; `guide`: an encoder, as in `encoder`; of a loss around another, "
        "`loss: NAME`; empty: its defaults",
    )

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the loss by name."""
        return dict(json.loads(self.loss_arguments or "{}"))

    @property
    def without_effect(self) -> Mapping[str, str]:
        """The temperature, with a loss that has none."""
        takes = self.loss == type(self).model_fields["loss"].default
        # the missing library is reported where it is needed
        with suppress(MtdlabError):
            takes = takes or _library().takes_temperature(self.loss, self.arguments)
            return {} if takes else {"temperature": f"loss: {self.loss}"}
        return {}

    def check(self) -> None:
        super().check()
        if {"scale", "temperature"} & self.arguments.keys():
            raise ValueError(
                "loss_arguments give the loss a scale or a temperature; take it out, and write the "
                "temperature, 1 / scale, as trainer.temperature"
            )
        names = {augmentation.name for augmentation in parse_augmentation(self.augmentation)}
        if changing := sorted(names.intersection(EMBEDDING_LEVEL)):
            raise ValueError(
                f"augmentation {changing[0]} changes embeddings, but losses of "
                "sentence-transformers read tokens; choose one of the text, such as typos:0.1"
            )


class SentenceTransformers(Method[SentenceTransformersSettings]):
    """A loss of sentence-transformers on two views, minimised by their trainer."""

    name = "sentence-transformers"
    title = "sentence-transformers"
    source = "Reimers and Gurevych, EMNLP 2019"
    negatives = (
        "It was trained by the trainer of sentence-transformers with its loss {settings.loss}, in "
        "batches of {settings.batch_size}."
    )
    Settings = SentenceTransformersSettings
    packages = ("sentence-transformers",)
    brings_trainer = True

    def __init__(
        self, encoder: Transformer, settings: SentenceTransformersSettings, device: Device
    ) -> None:
        super().__init__(encoder, settings, device)
        self.transformer = encoder
        self.dropout = Dropout(settings.dropout, settings.seed, replayed=True)
        theirs = _library()
        model = theirs.make_model(encoder, self._encode, settings.max_length, device.device)
        loss = theirs.make_loss(model, settings.loss, settings.arguments, settings.temperature)
        # in a tuple, so that a state contains the encoder once, and a guide not at all
        self._theirs = (model, loss)

    @classmethod
    def check_encoder(cls, encoder: "Encoder", settings: Any) -> None:
        """Try the loss on a pair of texts, untrained."""
        # it imports transformers
        from mtdlab.encoders.tokenising import token_ids

        model, limit = encoder.model, encoder.token_limit(settings.max_length)
        was_training = model.training
        method = cls(model, settings, Device(model.device, torch.float32))
        ids = torch.tensor(token_ids(encoder.tokenizer, ["one"] * 2, limit, settings.prompt))
        view = ids.to(model.device), torch.ones_like(ids).to(model.device)
        try:
            with torch.no_grad():
                method(0, [view])
        except Exception as error:
            # each loss fails in its own way without labels, or without a third text
            raise MtdlabError(
                f"loss {settings.loss} cannot be computed of pairs of texts without labels "
                f"({one_line(error)}); correct loss_arguments, or choose another loss, such as "
                "MultipleNegativesRankingLoss"
            ) from None
        finally:
            model.train(was_training)

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:  # noqa: ARG002
        """Their loss of the first and the last view, or of the only one with itself."""
        return Step(_library().loss_of(self._theirs[1], views))

    def take_steps(self, steps: Steps) -> None:
        _library().take_steps(*self._theirs, steps)

    def parts(self) -> dict[str, nn.Module]:
        return {"encoder": self.transformer}

    def _encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        words = self.transformer.get_input_embeddings()(ids)
        return at_least_float32(self.vectors(self.transformer, words, mask, self.dropout))


def _library() -> Any:
    """The module that imports sentence-transformers. Raises MtdlabError where it is missing."""
    extra, used = SentenceTransformers.name, ("sentence_transformers", "accelerate", "datasets")
    require(f"method {extra}", extra, *used)
    # it takes seconds to import
    return import_module("mtdlab.methods.sentence_transformers_trainer")
