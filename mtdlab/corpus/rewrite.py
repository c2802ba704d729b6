"""Sentences rewritten by a sequence-to-sequence model: paraphrases and translations.

Greedy, so that they can be repeated. A million sentences need a GPU.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from transformers import AutoModelForSeq2SeqLM

from mtdlab.corpus.language import MAX_TOKENS, LanguageModel, by_length, load_model
from mtdlab.device import Device
from mtdlab.encoders import hub

BATCH = 128


@dataclass(frozen=True)
class Rewriter:
    """A sequence-to-sequence model: from one language to another, or a paraphrase.

    It must not need the name of a language (Marian's opus-mt do not). T5 paraphrasers get the
    prefix `paraphrase: `.
    """

    language: LanguageModel
    prefix: str = ""

    @classmethod
    def load(cls, name: str, device: Device, augmentation: str) -> Self:
        """A folder or a Hugging Face name. Raises MtdlabError where there is no such model."""
        language = load_model(AutoModelForSeq2SeqLM, name, device, augmentation)
        is_t5 = language.model.config.model_type in ("t5", "mt5")
        return cls(language, "paraphrase: " if is_t5 and augmentation == "paraphrase" else "")

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """What the model makes of each text, on one line."""
        new = [""] * len(texts)
        for places in by_length(texts, BATCH):
            written = self._write([self.prefix + texts[place] for place in places])
            for place, text in zip(places, written, strict=True):
                new[place] = " ".join(text.split())
        return new

    def _write(self, texts: list[str]) -> list[str]:
        language, device = self.language, self.language.device
        model: Any = language.model
        encoded = language.read(texts, limit=MAX_TOKENS).to(device.device)
        with torch.inference_mode(), device.autocast(), hub.quiet():
            ids = model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=min(MAX_TOKENS, language.positions),
                num_beams=1,
                do_sample=False,
            )
        return list(language.tokenizer.batch_decode(ids, skip_special_tokens=True))
