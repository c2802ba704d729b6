"""Language models that the user names, for text augmentation: paraphrase, translation, synonyms.

They are greedy, so that they can be repeated. A million sentences need a GPU.

Letters: N batch, L tokens, V vocabulary.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, Self

import torch
from torch import Tensor, nn
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
from mtdlab.encoders.loading import NEVER, refuse_own_code
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

    Raises:
        MtdlabError: saying how to get it, where it is neither here nor to be had, where it needs
            code of its own, and where it lacks the weights of that kind, which would be drawn at
            random.
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


REWRITTEN = 128


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
        for places in by_length(texts, REWRITTEN):
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


REPLACED = 0.3
"""The share of a sentence's words that is replaced."""
CANDIDATES = 5
"""Words looked at for one that differs by more than its capitals."""
MASKED = 32
"""Every position is scored against the whole vocabulary: 250 MB for sentences of 30 words."""
STARTS = ("Ġ", "▁")
"""What byte-level and SentencePiece vocabularies put before a token that begins a word."""


@dataclass(frozen=True)
class Word:
    """A word of a sentence: its place among the tokens of the pair, and its characters."""

    token: int
    start: int
    stop: int


@dataclass(frozen=True)
class Synonyms:
    """A masked language model that puts other words in the place of some.

    It reads the sentence and a copy of it with those words masked, so that it proposes what
    means the same and not only what fits (LSBert: Qiang et al. 2020, section 3.1). Only words of
    letters that are one token are replaced, `REPLACED` of them and at least one, each by the most
    probable whole word that differs from it.
    """

    language: LanguageModel

    @classmethod
    def load(cls, name: str, device: Device) -> Self:
        """A folder or a Hugging Face name. Raises MtdlabError where there is no such model."""
        language = load_model(AutoModelForMaskedLM, name, device, "synonyms")
        if language.tokenizer.mask_token_id is None or not language.tokenizer.is_fast:
            raise MtdlabError(
                f"synonyms model {name}: its tokenizer has no mask, or does not give "
                "tokens' positions; take a model like BERT or RoBERTa"
            )
        return cls(language)

    def __call__(self, texts: Sequence[str], draws: Sequence[Random]) -> list[str]:
        """Each text with some of its words replaced; its own draw decides which."""
        new = list(texts)
        for places in by_length(texts, MASKED):
            batch = [texts[place] for place in places]
            encoded = self.language.read(batch, batch, limit=2 * MAX_TOKENS)
            chosen = [
                _choose(_whole_words(encoded, row, text), draws[place])
                for row, (place, text) in enumerate(zip(places, batch, strict=True))
            ]
            proposed = self._propose(encoded, chosen)
            for place, words in zip(places, chosen, strict=True):
                new[place] = _replace(texts[place], words, itertools.islice(proposed, len(words)))
        return new

    def _propose(self, encoded: BatchEncoding, chosen: list[list[Word]]) -> Iterator[list[str]]:
        """The most probable whole words for every chosen one, in order, the best first."""
        language, device = self.language, self.language.device
        model: Any = language.model
        rows = [row for row, words in enumerate(chosen) for _ in words]
        tokens = [word.token for words in chosen for word in words]
        encoded["input_ids"][rows, tokens] = int(language.tokenizer.mask_token_id)
        with torch.inference_mode(), device.autocast():
            logits = model(**encoded.to(device.device)).logits[rows, tokens].float()
            logits = logits.masked_fill(~self._allowed.to(device.device), -torch.inf)
        best = logits.topk(CANDIDATES).indices.tolist()
        convert = language.tokenizer.convert_ids_to_tokens
        yield from ([token.lstrip("".join(STARTS)) for token in convert(ids)] for ids in best)

    @cached_property
    def _allowed(self) -> Tensor:
        """Which tokens are whole words, (V,)."""
        tokenizer, size = self.language.tokenizer, int(self.language.model.config.vocab_size)
        tokens = tokenizer.convert_ids_to_tokens(list(range(min(size, len(tokenizer)))))
        marked = any(token.startswith(STARTS) for token in tokens)
        allowed = torch.zeros(size, dtype=torch.bool)
        allowed[: len(tokens)] = torch.tensor(
            [
                (token[1:] if marked else token).isalpha() and token.startswith(STARTS) == marked
                for token in tokens
            ]
        )
        return allowed


def _whole_words(encoded: BatchEncoding, row: int, text: str) -> list[Word]:
    """The words of the pair's second sentence that are one token, of letters."""
    encoding = encoded[row]
    numbers, parts = encoding.word_ids, encoding.sequence_ids
    own = [number for number, part in zip(numbers, parts, strict=True) if part == 1]
    words = []
    for token, (start, stop) in enumerate(encoding.offsets):
        # some vocabularies count the space before a word as part of it
        start += len(text[start:stop]) - len(text[start:stop].lstrip())
        alone = parts[token] == 1 and own.count(numbers[token]) == 1
        if alone and text[start:stop].isalpha():
            words.append(Word(token, start, stop))
    return words


def _choose(words: list[Word], random: Random) -> list[Word]:
    count = min(len(words), max(1, round(REPLACED * len(words))))
    return sorted(random.sample(words, count), key=lambda word: word.token)


def _replace(text: str, words: list[Word], proposed: Iterator[list[str]]) -> str:
    parts, done = [], 0
    for word, candidates in zip(words, proposed, strict=True):
        old = text[word.start : word.stop]
        new = next((each for each in candidates if each.lower() != old.lower()), old)
        parts += [text[done : word.start], new.capitalize() if old.istitle() else new]
        done = word.stop
    return "".join([*parts, text[done:]])
