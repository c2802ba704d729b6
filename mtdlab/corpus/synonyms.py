"""Words replaced by what a masked language model proposes in their place.

Greedy, so that it can be repeated. A million sentences need a GPU.

Letters: V vocabulary.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random
from typing import Any, Self

import torch
from torch import Tensor
from transformers import AutoModelForMaskedLM, BatchEncoding

from mtdlab.corpus.language import MAX_TOKENS, LanguageModel, by_length, load_model
from mtdlab.device import Device
from mtdlab.errors import MtdlabError

REPLACED = 0.3
"""The share of a sentence's words that is replaced."""
CANDIDATES = 5
"""Words looked at for one that differs by more than its capitals."""
BATCH = 32
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
        for places in by_length(texts, BATCH):
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
