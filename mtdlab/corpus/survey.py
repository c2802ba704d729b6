"""A survey of a corpus, before anything is trained on it."""

import itertools
from array import array
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from mtdlab.corpus.corpus import Corpus, chunks, open_corpus
from mtdlab.corpus.lines import Tally, normalise

EXAMPLES = 3
"""How many sentences of an overlap are shown."""


@dataclass(frozen=True)
class Overlap:
    """How many different sentences of an evaluation set stand in the training text."""

    evaluation: str
    sentences: int
    in_corpus: int
    examples: tuple[str, ...]


def overlap(evaluation: str, sentences: Iterable[str], corpus: Set[str]) -> Overlap:
    """The overlap of an evaluation set with a corpus, whose sentences are normalised."""
    texts = {normal: text for text in sentences if (normal := normalise(text))}
    shared = sorted(texts.keys() & corpus)
    examples = tuple(texts[normal] for normal in shared[:EXAMPLES])
    return Overlap(evaluation, len(texts), len(shared), examples)


@lru_cache(maxsize=4)
def count_repeats(corpus: Corpus) -> tuple[int, float, str]:
    """The number of rows, the chance that two rows are the same, 0 to 1, and what is left out.

    Pairs are the same where one of their texts is. The last is of lines and texts, with the reasons
    (`Tally.remarks`); empty where all is used. Reads the corpus once; takes 8 bytes of memory a
    text. Raises MtdlabError where a file turns out damaged.
    """
    tallies = [Tally() for _ in corpus.sides()]
    sides = [
        np.array(array("q", map(hash, side.sentences(tally))))
        for side, tally in zip(corpus.sides(), tallies, strict=True)
    ]
    # rows that are left out are so of both sides
    for name in ("cut", "bad_bytes", "nuls"):
        setattr(tallies[0], name, sum(getattr(tally, name) for tally in tallies))
    count = len(sides[0])
    same = sum(map(_count_equal, sides))
    if len(sides) > 1:
        # pairs whose two texts are the same are counted twice
        same -= _count_equal(sides[0] ^ (sides[1] << 1))
    return count, same / max(count * (count - 1), 1), "; ".join(tallies[0].remarks())


def _count_equal(hashes: NDArray[np.int64]) -> float:
    """The ordered pairs of equal values."""
    counts = np.unique(hashes, return_counts=True)[1].astype(np.float64)
    return float(counts @ (counts - 1))


EDGES = (8, 16, 32, 64, 128, 256, 512)
"""The largest number of tokens of each bin of the histogram; one more bin is open above."""


@dataclass(frozen=True)
class Bin:
    """Sentences of `low` to `high` tokens; without `high`, of `low` and more."""

    low: int
    high: int | None
    sentences: int


@dataclass(frozen=True)
class Survey:
    """Counts of a corpus, and its lengths in tokens, with the special ones and before any cut.

    `blank`, `halves`, `cut`, `bad_bytes` and `nuls` are those of `mtdlab.corpus.lines.Tally`.

    Attributes:
        duplicates: sentences that occurred before, by a 64-bit hash.
        unknown: tokens for words that the encoder's vocabulary lacks ([UNK]).
        too_long: sentences of more than `max_length` tokens, which training cuts there.
    """

    corpus: str
    fingerprint: str
    encoder: str
    max_length: int
    lines: int
    sentences: int
    blank: int
    halves: int
    cut: int
    bad_bytes: int
    nuls: int
    duplicates: int
    characters: int
    tokens: int
    unknown: int
    longest: int
    too_long: int
    histogram: tuple[Bin, ...]
    overlaps: tuple[Overlap, ...] = ()


def survey(
    corpus_name: str,
    encoder_name: str,
    max_length: int,
    evaluated: Mapping[str, Collection[str]] | None = None,
) -> Survey:
    """Read a corpus once and count its sentences, of pairs the texts of both sides.

    Takes 8 bytes of memory a sentence, for the duplicates. `evaluated` has the sentences of each
    evaluation set by name. Raises MtdlabError where corpus or encoder are missing.
    """
    # it imports torch
    from mtdlab.encoders.loading import load_tokenizer

    sets = evaluated or {}
    wanted = {normalise(text) for texts in sets.values() for text in texts}
    corpus, tokenizer = open_corpus(corpus_name), load_tokenizer(encoder_name)
    tallies = {side: Tally() for side in corpus.sides()}
    hashes, characters, unknown, in_corpus = array("q"), 0, 0, set[str]()
    # by how many tokens: as many entries as the longest sentence has tokens
    lengths = np.zeros(0, np.int64)
    for chunk in itertools.chain.from_iterable(itertools.starmap(chunks, tallies.items())):
        hashes.extend(map(hash, chunk))
        characters += sum(map(len, chunk))
        if wanted:
            in_corpus |= wanted.intersection(map(normalise, chunk))
        encoded = tokenizer(
            chunk, return_attention_mask=False, return_token_type_ids=False, verbose=False
        )["input_ids"]
        unknown += sum(ids.count(tokenizer.unk_token_id) for ids in encoded)
        counts = np.bincount([len(ids) for ids in encoded], minlength=len(lengths))
        counts[: len(lengths)] += lengths
        lengths = counts
    ordered = np.frombuffer(hashes, np.int64)
    ordered.sort()
    bounds = zip((1, *(edge + 1 for edge in EDGES)), (*EDGES, None), strict=True)
    # up to the one that holds the longest sentence
    bins = [
        Bin(low, high, int(lengths[low : high and high + 1].sum()))
        for low, high in bounds
        if low < len(lengths)
    ]
    return Survey(
        corpus=corpus_name,
        fingerprint=corpus.fingerprint,
        encoder=encoder_name,
        max_length=max_length,
        lines=tallies[corpus].lines,
        sentences=len(hashes),
        blank=tallies[corpus].blank,
        halves=tallies[corpus].halves,
        cut=sum(tally.cut for tally in tallies.values()),
        bad_bytes=sum(tally.bad_bytes for tally in tallies.values()),
        nuls=sum(tally.nuls for tally in tallies.values()),
        duplicates=int((ordered[1:] == ordered[:-1]).sum()),
        characters=characters,
        tokens=int(lengths @ np.arange(len(lengths))),
        unknown=unknown,
        longest=len(lengths) - 1,
        too_long=int(lengths[max_length + 1 :].sum()),
        histogram=tuple(bins),
        overlaps=tuple(overlap(name, texts, in_corpus) for name, texts in sets.items()),
    )
