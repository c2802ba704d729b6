"""Sentence vectors: distinct sentences only, in batches of similar length.

Letters: S distinct sentences, P positions at which they occur, B batch, L tokens, D dimension.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from mtdlab.device import Device
from mtdlab.encoders.dropout import evaluation_mode
from mtdlab.encoders.fast import first_tokens_of_ids, is_fast
from mtdlab.encoders.pooling import encode
from mtdlab.encoders.tokenising import token_ids
from mtdlab.settings import Representation

Vectors = NDArray[np.float32]
Rows = NDArray[np.intp]
MAX_LENGTH = 512
"""Maximum tokens of an evaluation sentence: as in SimCSE, no sentence of the STS tasks is cut."""
TOKENS_PER_BATCH = 4096
_KEPT = 31 << 20
"""The size of a block that is freed: below its limit of 32 MiB, glibc then keeps freed memory."""


def nothing(*_progress: object) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Embedder:
    """An encoder, and how and where vectors (N, D) are read; `head` is applied to each of them."""

    model: PreTrainedModel
    representation: Representation
    device: Device
    head: nn.Module | None = None


class Distinct:
    """The distinct texts among some, sorted: `texts` (S,), in the order of the rows of vectors."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = sorted(set(texts))
        self._rows = {text: row for row, text in enumerate(self.texts)}

    def __len__(self) -> int:
        return len(self.texts)

    def rows(self, texts: Sequence[str]) -> Rows:
        """The rows of these texts' vectors, (P,). Raises KeyError for an unknown text."""
        return np.array([self._rows[text] for text in texts], dtype=np.intp)


class Sentences(Distinct):
    """Distinct sentences, tokenised once, which several encoders can embed."""

    def __init__(
        self,
        sentences: Iterable[str],
        tokenizer: PreTrainedTokenizerBase,
        max_length: int,
        prompt: str = "",
    ) -> None:
        super().__init__(sentences)
        self.tokens = token_ids(tokenizer, self.texts, max_length, prompt)
        self.padding = int(tokenizer.pad_token_id or 0)

    @property
    def token_count(self) -> int:
        """The number of tokens of all sentences together."""
        return sum(map(len, self.tokens))

    def embed_all(self, texts: Sequence[str], embedder: Embedder) -> Vectors:
        """The vectors (P, D) of these texts, in their order, as of `embed` and `rows`."""
        return self.embed(embedder)[self.rows(texts)]

    def embed(self, embedder: Embedder, advance: Callable[[int, int], None] = nothing) -> Vectors:
        """Sentence vectors (S, D) in float32, without dropout; the model's mode is restored.

        An encoder with invalid weights gives values that are not finite; the caller has to check.
        `advance` is called after each batch with the number of sentences done, and of all.
        """
        model, device = embedder.model, embedder.device
        # glibc now keeps up to twice as much, else page faults take a quarter of an evaluation
        torch.empty(_KEPT, dtype=torch.uint8)
        lengths = [len(tokens) for tokens in self.tokens]
        order = np.argsort(lengths, kind="stable")
        vectors = np.empty((len(order), int(model.config.hidden_size)), dtype=np.float32)
        done = 0
        with torch.no_grad(), device.autocast(), evaluation_mode(model):
            for rows in batches(order, lengths):
                tokens = [torch.tensor(self.tokens[row]) for row in rows]
                ids = pad_sequence(tokens, batch_first=True, padding_value=self.padding)
                mask = pad_sequence([torch.ones_like(row) for row in tokens], batch_first=True)
                encoded = _encode(embedder, ids.to(device.device), mask.to(device.device))
                vectors[rows] = encoded.float().cpu().numpy()
                done += len(rows)
                advance(done, len(order))
        return vectors


def _encode(embedder: Embedder, ids: Tensor, mask: Tensor) -> Tensor:
    """Sentence vectors (N, D) of token ids (N, L) under a mask (N, L)."""
    model, representation, head = embedder.model, embedder.representation, embedder.head
    whole = representation.pooling == "cls" and not representation.segment_length and head is None
    if whole and is_fast(model) and ids.is_cpu and not torch.is_autocast_enabled("cpu"):
        return first_tokens_of_ids(model, ids, mask)
    words = model.get_input_embeddings()(ids)
    return encode(model, mask, representation, inputs_embeds=words, head=head)


def batches(order: Rows, lengths: Sequence[int]) -> list[Rows]:
    """Batches of rows sorted by length, of at most `TOKENS_PER_BATCH` padded tokens or one row."""
    parts, start = [], 0
    for end in range(1, len(order) + 1):
        full = (end - start + 1) * lengths[order[min(end, len(order) - 1)]] > TOKENS_PER_BATCH
        if full or end == len(order):
            parts.append(order[start:end])
            start = end
    return parts
