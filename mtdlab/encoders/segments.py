"""Segments: consecutive parts of a sentence that are encoded separately (HiCL).

Letters: N batch, L tokens, S segments of all sentences of a batch, D dimension.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from mtdlab.settings import Representation


@dataclass(frozen=True)
class Segments:
    """Consecutive segments of the sentences of a batch.

    words     (S, L', D) word embeddings, L' tokens at most.
    mask      (S, L').
    sentence  (S,) the sentence that each segment belongs to, in ascending order.
    lengths   (S,) tokens of the sentence in each segment, without those of a prompt.
    """

    words: Tensor
    mask: Tensor
    sentence: Tensor
    lengths: Tensor

    def mean(self, vectors: Tensor) -> Tensor:
        """Vectors (N, D) of the sentences: the mean of their segments', weighted by length."""
        lengths = self.lengths.unsqueeze(1).to(vectors.dtype)
        count = int(self.sentence[-1]) + 1
        totals = vectors.new_zeros(count, 1).index_add(0, self.sentence, lengths)
        summed = vectors.new_zeros(count, vectors.shape[1])
        return summed.index_add(0, self.sentence, vectors * lengths) / totals


def cut(words: Tensor, mask: Tensor, representation: Representation) -> Segments:
    """Segments of words (N, L, D) under a mask (N, L); the last of a sentence is shorter.

    A sentence of n tokens has 1 + ⌊(n − 1) / segment_length⌋ segments (HiCL). With a prompt, its
    tokens are repeated in each segment, and n and segment_length count the others.
    """
    if representation.prompt:
        return _cut_prompted(words, mask, representation)
    length = representation.segment_length
    count, tokens, width = words.shape
    missing = -tokens % length
    words = torch.nn.functional.pad(words, (0, 0, 0, missing)).view(-1, length, width)
    mask = torch.nn.functional.pad(mask, (0, missing)).view(-1, length)
    sentence = torch.arange(count, device=mask.device).repeat_interleave(len(mask) // count)
    real = mask[:, 0].bool()
    return Segments(words[real], mask[real], sentence[real], mask[real].sum(dim=1))


def _cut_prompted(words: Tensor, mask: Tensor, representation: Representation) -> Segments:
    before, after = representation.tokens_before, representation.tokens_after
    most = representation.segment_length - before - after
    tokens = mask.sum(dim=1)
    own = tokens - before - after
    # also of a sentence without tokens there is one segment, which weighs nothing beside others
    counts = (-(-own // most)).clamp(min=1)
    sentence = torch.arange(len(mask), device=mask.device).repeat_interleave(counts)
    start = most * places_of(sentence)
    lengths = (own[sentence] - start).clamp(max=most)
    place = torch.arange(representation.segment_length, device=mask.device)
    # positions in the sentence: its prompt, then from `start` on, then the prompt's end
    inside, ends = lengths.unsqueeze(1) + before, (tokens[sentence] - after).unsqueeze(1)
    source = torch.where(place < before, place, place + start.unsqueeze(1))
    source = torch.where(place < inside, source, place - inside + ends)
    real = place < inside + after
    source = source.where(real, torch.zeros_like(source))
    return Segments(
        words[sentence.unsqueeze(1), source], real.to(mask.dtype), sentence, lengths.clamp(min=1)
    )


def places_of(sentence: Tensor) -> Tensor:
    """The place (S,) of each segment in its sentence, from 0; sentence: see `Segments`."""
    counts = sentence.bincount()
    first = counts.cumsum(dim=0) - counts
    return torch.arange(len(sentence), device=sentence.device) - first[sentence]
