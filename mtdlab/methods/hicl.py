"""HiCL (Wu et al., Findings of EMNLP 2023): contrast of segments within another method.

Every sentence is cut into segments that are encoded separately, which takes time linear in its
length; its vector is the mean of theirs, weighted by length. The loss of another method, the
backbone, on these vectors (global) is combined with a loss on the segments (local) and, as version
2, with one between segments and sentences (entailment).

The published program was not available: docs/methods/hicl.md has what the paper leaves open. The
entailment term compares segments of the first pass with sentences of the second, since in the same
pass a sentence of one segment would be compared with itself.

Letters: N batch, S segments of all sentences of a batch, D dimension.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from pydantic import SerializerFunctionWrapHandler, model_serializer
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mtdlab.device import Device
from mtdlab.encoders.pooling import Segments, places_of
from mtdlab.methods.base import Method, Step, Tokens, Transformer, View
from mtdlab.methods.esimcse import ESimCSE, ESimCSESettings
from mtdlab.methods.heads import SegmentMean
from mtdlab.methods.losses import cosines
from mtdlab.methods.mocose import MoCoSE
from mtdlab.methods.mocose_settings import MoCoSESettings
from mtdlab.methods.simcse import SimCSE
from mtdlab.methods.sncse import SNCSE, SNCSESettings
from mtdlab.settings import TrainerSettings, setting
from mtdlab.settings.trainer import Positive

Backbone = Literal["simcse", "esimcse", "mocose", "sncse"]
BACKBONES: Mapping[str, type[Method[Any]]] = {
    method.name: method for method in (SimCSE, ESimCSE, MoCoSE, SNCSE)
}


class HiCLSettings(MoCoSESettings, ESimCSESettings, SNCSESettings):
    """The settings of all backbones, with the defaults of the chosen one, and HiCL's own."""

    backbone: Backbone = setting("simcse", "method whose loss is applied to sequence vectors")
    segment_length: Positive = setting(
        32,
        "tokens of the segments into which a sentence is cut; its vector is the mean of theirs, "
        "weighted by length",
        unit="tokens",
        loaded=True,
    )
    local_weight: float = setting(
        0.05,
        "weight of the loss on segments; that of the backbone's loss is 1 − α",
        symbol="α",
        step_cost="switch",
        ge=0,
        le=1,
    )
    entailment_weight: float = setting(
        0.0,
        "weight of the loss between segments and sentences; above 0: version 2 of the method",
        symbol="β",
        step_cost="switch",
        ge=0,
    )

    @classmethod
    def fill(cls, values: Mapping[str, Any]) -> dict[str, Any]:
        method = BACKBONES.get(str(values.get("backbone", "simcse")))
        if method is None:
            return {}
        kind = method.Settings
        fields = kind.model_fields
        defaults = {name: fields[name].default for name in fields.keys() - _OWN}
        return {**defaults, **kind.fill(values)}

    def check(self) -> None:
        kind = self.kind
        if self.preset not in kind.presets:
            raise ValueError(
                f"preset {self.preset}: the backbone {self.backbone} has {', '.join(kind.presets)}"
            )
        for name, field in type(self).model_fields.items():
            if name in _OWN or name in kind.model_fields or getattr(self, name) == field.default:
                continue
            raise ValueError(f"{name} is not a setting of the backbone {self.backbone}; remove it")
        self.inner.check()
        if self.backbone == "mocose" and self.fgsm_gradient == "current" and self.fgsm_epsilon:
            raise ValueError(
                "fgsm_gradient current: its extra pass has no loss on segments; with hicl choose "
                "previous, or fgsm_epsilon 0"
            )

    @model_serializer(mode="wrap")
    def _applying(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """The settings without those that the backbone lacks, so that records do not state them."""
        known = _OWN | self.kind.model_fields.keys()
        return {name: value for name, value in handler(self).items() if name in known}

    @property
    def kind(self) -> type[TrainerSettings]:
        """The class of the backbone's settings."""
        return BACKBONES[self.backbone].Settings

    @property
    def inner(self) -> TrainerSettings:
        """The settings of the backbone."""
        values = {name: getattr(self, name) for name in self.kind.model_fields}
        return self.kind.partial({**values, "method": self.backbone})

    @property
    def mtd(self) -> float | None:  # type: ignore[override]  # a backbone may have no queue
        """Maximum traceable distance of the backbone in steps; None if it has none."""
        return self.inner.mtd

    @property
    def encoder_copies(self) -> int:
        return self.inner.encoder_copies


_OWN = frozenset(["method", *HiCLSettings.__annotations__])
"""The settings that are not passed on as defaults of a backbone."""


class HiCL(Method[HiCLSettings]):
    """A backbone whose sentences are encoded in segments, with a loss on the segments."""

    name = "hicl"
    title = "HiCL"
    source = "Wu et al., Findings of EMNLP 2023"
    Settings = HiCLSettings

    def __init__(self, encoder: Transformer, settings: HiCLSettings, device: Device) -> None:
        super().__init__(encoder, settings, device)
        self.backbone = BACKBONES[settings.backbone](encoder, settings.inner, device)

    @classmethod
    def views(cls, settings: Any) -> tuple[View, ...]:
        return BACKBONES[settings.backbone].views(settings.inner)

    @classmethod
    def views_differ(cls, settings: Any) -> bool:
        return BACKBONES[settings.backbone].views_differ(settings.inner)

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        """α times the local loss, 1 − α times the backbone's, and β times the entailment term."""
        settings = self.settings
        with record_passes(self.backbone) as passes:
            result: Step = self.backbone(step, views)
        # the passes of a backbone begin with the two of the positive pair
        first, second = passes[:2]
        local = local_loss(first, second, settings.temperature)
        loss = settings.local_weight * local + (1 - settings.local_weight) * result.loss
        if settings.entailment_weight:
            entailment = entailment_loss(first, second, settings.temperature)
            loss = loss + settings.entailment_weight * entailment
        return replace(result, loss=loss)

    def use_pooler(self, pooler: nn.Module | None) -> None:
        self.backbone.use_pooler(pooler)

    def selection_head(self) -> nn.Module | None:
        return self.backbone.selection_head()

    def update(self, step: int, result: Step) -> None:
        self.backbone.update(step, result)

    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.backbone.keys(ids, mask)

    def online_keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.backbone.online_keys(ids, mask)

    def ages_in_use(self, step: int) -> tuple[int, int] | None:
        return self.backbone.ages_in_use(step)

    def parts(self) -> dict[str, nn.Module]:
        return self.backbone.parts()

    @classmethod
    def describe(cls, settings: HiCLSettings) -> str:
        backbone = BACKBONES[settings.backbone]
        return (
            f"Its loss was that of {backbone.title} on sentences in segments of "
            f"{settings.segment_length} tokens, with a loss on the segments (weight "
            f"{settings.local_weight}). {backbone.describe(settings.inner)}"
        )


@dataclass(frozen=True)
class Pass:
    """Vectors (S, D) of segments, the sentence (S,) of each, and their means (N, D) by sentence."""

    segments: Tensor
    sentence: Tensor
    sentences: Tensor


@contextmanager
def record_passes(backbone: nn.Module) -> Iterator[list[Pass]]:
    """The forward passes of all branches of `backbone` meanwhile, in their order."""
    passes: list[Pass] = []

    def record(_module: nn.Module, inputs: tuple[Tensor, Segments], output: Tensor) -> None:
        vectors, segments = inputs
        passes.append(Pass(vectors, segments.sentence, output))

    means = [module for module in backbone.modules() if isinstance(module, SegmentMean)]
    hooks = [module.register_forward_hook(record) for module in means]
    try:
        yield passes
    finally:
        for hook in hooks:
            hook.remove()


def local_loss(first: Pass, second: Pass, temperature: float) -> Tensor:
    """InfoNCE () of the segments of one pass against those of the other.

    −log [exp(s·s'/τ) / (exp(s·s'/τ) + Σ exp(s·t'/τ))] with normalised vectors: s' is the segment
    at the same place of the same sentence, t' runs over the segments of all other sentences.
    Summed over the segments of a sentence, mean over the sentences.
    """
    logits = cosines(first.segments, second.segments) / temperature
    same = first.sentence.unsqueeze(1) == second.sentence
    twins = same & (places_of(first.sentence).unsqueeze(1) == places_of(second.sentence))
    logits = logits.masked_fill(same & ~twins, -torch.inf)
    paired = twins.any(dim=1)
    labels = twins.int().argmax(dim=1)
    total = cross_entropy(logits[paired], labels[paired], reduction="sum")
    return total / len(first.sentences)


def entailment_loss(first: Pass, second: Pass, temperature: float) -> Tensor:
    """InfoNCE () of the segments of one pass against the sentences of the other.

    The positive of a segment is its own sentence, its negatives are all others. Summed over the
    segments of a sentence, mean over the sentences.
    """
    logits = cosines(first.segments, second.sentences) / temperature
    return cross_entropy(logits, first.sentence, reduction="sum") / len(first.sentences)
