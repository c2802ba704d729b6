"""Language models that the user names, for text augmentation: paraphrase, translation, synonyms.

They are greedy, so that they can be repeated. A million sentences need a GPU.

Letters: N batch, L tokens, V vocabulary.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, ClassVar, NamedTuple, Self

import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    BatchEncoding,
    PreTrainedTokenizerBase,
)

from mtdlab.device import Device
from mtdlab.encoders.folders import quiet
from mtdlab.encoders.loading import load_tokenizer, load_weights
from mtdlab.errors import MtdlabError

MAX_TOKENS = 128
"""The most tokens of a sentence that a model reads or writes; the rest is cut."""


@dataclass(frozen=True)
class LanguageModel:
    """A model for one augmentation, on its device, and its tokenizer."""

    model: Any
    tokenizer: PreTrainedTokenizerBase
    device: Device
    augmentation: str
    kind: ClassVar[Any]
    """The class of transformers that loads the model, such as AutoModelForMaskedLM."""

    @classmethod
    def load(cls, name: str, device: Device, augmentation: str) -> Self:
        """A model from a folder or by its Hugging Face name, by the rules of `load_weights`."""
        what = f"{augmentation} model {name}"
        tokenizer = load_tokenizer(name, what)
        model, _ = load_weights(cls.kind, what, name)
        nn.Module.to(model.float(), device.device)
        # always in float32: its output must not depend on the training's precision
        return cls(model.eval(), tokenizer, Device(device.device, torch.float32), augmentation)

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


def in_batches(
    texts: Sequence[str], size: int, change: Callable[[list[int]], Iterable[str]]
) -> list[str]:
    """The texts changed in batches of their places, the longest first, so that little is padded."""
    new, order = list(texts), sorted(range(len(texts)), key=lambda place: -len(texts[place]))
    for start in range(0, len(order), size):
        places = order[start : start + size]
        for place, text in zip(places, change(places), strict=True):
            new[place] = text
    return new


REWRITTEN = 128


class Rewriter(LanguageModel):
    """A sequence-to-sequence model without names of languages: it translates, or paraphrases."""

    kind = AutoModelForSeq2SeqLM

    @property
    def prefix(self) -> str:
        """The text that T5 paraphrasers want before a sentence; empty for other models."""
        is_t5 = self.model.config.model_type in ("t5", "mt5")
        return "paraphrase: " if is_t5 and self.augmentation == "paraphrase" else ""

    def __call__(self, texts: Sequence[str]) -> list[str]:
        """The output of the model for each text, on one line."""
        return in_batches(
            texts, REWRITTEN, lambda places: self._write([self.prefix + texts[at] for at in places])
        )

    def _write(self, texts: list[str]) -> list[str]:
        encoded = self.read(texts, limit=MAX_TOKENS).to(self.device.device)
        with torch.inference_mode(), self.device.autocast(), quiet():
            ids = self.model.generate(
                input_ids=encoded["input_ids"],
                attention_mask=encoded["attention_mask"],
                max_new_tokens=min(MAX_TOKENS, self.positions),
                num_beams=1,
                do_sample=False,
            )
        written = self.tokenizer.batch_decode(ids, skip_special_tokens=True)
        return [" ".join(text.split()) for text in written]


REPLACED = 0.3
"""The share of a sentence's words that is replaced."""
CANDIDATES = 5
"""How many proposed words are searched for one that differs by more than its capitals."""
MASKED = 32
"""The size of a batch: scores of all positions and words are 250 MB for 30 words a sentence."""
STARTS = ("Ġ", "▁")
"""The marks of byte-level and SentencePiece vocabularies before a token that begins a word."""


class Word(NamedTuple):
    """A word of a sentence: its place among the tokens of the pair, and its characters."""

    token: int
    start: int
    stop: int


class Synonyms(LanguageModel):
    """A masked language model that puts other words in the place of some.

    It reads the sentence and a copy of it with those words masked, so that it proposes what
    means the same and not only what fits (LSBert: Qiang et al. 2020, section 3.1). Only words of
    letters that are one token are replaced, `REPLACED` of them and at least one, each by the most
    probable whole word that differs from it.
    """

    kind = AutoModelForMaskedLM

    @classmethod
    def load(cls, name: str, device: Device, augmentation: str = "synonyms") -> Self:
        """Load the model. Raises MtdlabError also where its tokenizer cannot be used for it."""
        loaded = super().load(name, device, augmentation)
        if loaded.tokenizer.mask_token_id is None or not loaded.tokenizer.is_fast:
            raise MtdlabError(
                f"synonyms model {name}: its tokenizer has no mask, or does not give "
                "tokens' positions; take a model like BERT or RoBERTa"
            )
        return loaded

    def __call__(self, texts: Sequence[str], draws: Iterator[Random]) -> list[str]:
        """Each text with some of its words replaced; random draws of its own decide which."""
        drawn = list(itertools.islice(draws, len(texts)))

        def replaced(places: list[int]) -> Iterator[str]:
            batch = [texts[place] for place in places]
            encoded = self.read(batch, batch, limit=2 * MAX_TOKENS)
            chosen = []
            for row, (place, text) in enumerate(zip(places, batch, strict=True)):
                words = _whole_words(encoded, row, text)
                count = min(len(words), max(1, round(REPLACED * len(words))))
                chosen.append(sorted(drawn[place].sample(words, count)))
            proposed = self._propose(encoded, chosen)
            for text, words in zip(batch, chosen, strict=True):
                yield _replace(text, words, itertools.islice(proposed, len(words)))

        return in_batches(texts, MASKED, replaced)

    def _propose(self, encoded: BatchEncoding, chosen: list[list[Word]]) -> Iterator[list[str]]:
        """The most probable whole words for every chosen one, in order, the best first."""
        rows = [row for row, words in enumerate(chosen) for _ in words]
        tokens = [word.token for words in chosen for word in words]
        encoded["input_ids"][rows, tokens] = int(self.tokenizer.mask_token_id)
        with torch.inference_mode(), self.device.autocast():
            logits = self.model(**encoded.to(self.device.device)).logits[rows, tokens].float()
            logits = logits.masked_fill(~self._allowed.to(logits.device), -torch.inf)
        best = logits.topk(CANDIDATES).indices.tolist()
        convert = self.tokenizer.convert_ids_to_tokens
        yield from ([token.lstrip("".join(STARTS)) for token in convert(ids)] for ids in best)

    @cached_property
    def _allowed(self) -> Tensor:
        """Which tokens are whole words, (V,)."""
        size = int(self.model.config.vocab_size)
        known = range(min(size, len(self.tokenizer)))
        tokens = self.tokenizer.convert_ids_to_tokens(list(known))
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


def _replace(text: str, words: list[Word], proposed: Iterator[list[str]]) -> str:
    parts, done = [], 0
    for word, candidates in zip(words, proposed, strict=True):
        old = text[word.start : word.stop]
        new = next((candidate for candidate in candidates if candidate.lower() != old.lower()), old)
        parts += [text[done : word.start], new.capitalize() if old.istitle() else new]
        done = word.stop
    return "".join([*parts, text[done:]])
