"""Language models that the user names, for augmentations of text.

Letters: N batch, L tokens.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BatchEncoding,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)

from mtdlab.data_paths import is_folder
from mtdlab.device import Device
from mtdlab.encoders import hub
from mtdlab.encoders.own_code import NEVER, refuse_own_code
from mtdlab.errors import MtdlabError

MAX_TOKENS = 128
"""Of a sentence that a model reads or writes; the rest is cut."""

_KINDS = {
    AutoModelForMaskedLM: "a masked language model, with its head",
    AutoModelForSeq2SeqLM: "a sequence-to-sequence model, with its head",
}


@dataclass(frozen=True)
class LanguageModel:
    """A model for one augmentation, on its device, and its tokenizer."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    device: Device

    @property
    def positions(self) -> int:
        """How many tokens it can read; RoBERTa numbers them from 2."""
        return int(getattr(self.model.config, "max_position_embeddings", None) or 1 << 30) - 2

    def read(self, *texts: list[str], limit: int) -> BatchEncoding:
        """Token ids and mask (N, L), cut at `limit` tokens in all and what it has places for."""
        encoded: BatchEncoding = self.tokenizer(
            *texts,
            truncation=True,
            max_length=min(limit, self.positions),
            padding=True,
            return_tensors="pt",
        )
        return encoded


def load_model(kind: Any, name: str, device: Device, augmentation: str) -> LanguageModel:
    """A model of a kind of AutoModel, from a folder or by its Hugging Face name.

    Raises MtdlabError, saying how to get it, where it is neither here nor to be had, where it needs
    code of its own, and where it lacks the weights of that kind, which would be drawn at random.
    """
    refuse_own_code(f"{augmentation} model {name}", name)
    local = is_folder(Path(name)) or not hub.reachable()
    try:
        with hub.quiet():
            tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local, **NEVER)
            model, report = kind.from_pretrained(
                name, local_files_only=local, output_loading_info=True, **NEVER
            )
    except Exception as error:
        # a damaged folder makes each of their parts raise something of its own
        raise MtdlabError(f"{augmentation} model {name}: {_why(name, error)}") from None
    if report["missing_keys"]:
        raise MtdlabError(
            f"{augmentation} model {name}: is of another kind, since it lacks the weights "
            f"{', '.join(sorted(report['missing_keys'])[:3])}; take {_KINDS[kind]}"
        )
    nn.Module.to(model.float(), device.device)
    # always in float32: its output must not depend on the training's precision
    return LanguageModel(model.eval(), tokenizer, Device(device.device, torch.float32))


def _why(name: str, error: Exception) -> str:
    if isinstance(error, ImportError) and "sentencepiece" in str(error).lower():
        return "needs the library sentencepiece; install the extra: pip install 'mtdlab[augment]'"
    if is_folder(Path(name)):
        return f"the folder cannot be loaded: {type(error).__name__}: {error}".splitlines()[0]
    return (
        "neither a folder here nor in the local hub cache; give a folder, or run once online "
        "with HF_HUB_OFFLINE unset to fetch it"
    )


def by_length(texts: Sequence[str], size: int) -> Iterator[list[int]]:
    """The texts' places in batches of `size`, the longest first: so little is padded."""
    order = sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    for start in range(0, len(order), size):
        yield order[start : start + size]
