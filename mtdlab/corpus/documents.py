"""Documents: consecutive lines of a corpus joined until they have a number of tokens.

A blank line, the end of a file and a missing value of a dataset end a document too, so that text of
different documents is never joined where they are marked.
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

from transformers import PreTrainedTokenizerBase

from mtdlab.corpus.corpus import Corpus, fingerprint_of
from mtdlab.corpus.lines import Tally
from mtdlab.encoders.tokenising import token_ids

RULES = 1
"""A part of a document corpus' fingerprint; it is raised when lines are joined otherwise."""
LINES = 1024
"""How many lines are tokenised at once, to count their tokens."""


@dataclass(frozen=True)
class DocumentCorpus(Corpus):
    """`source`, consecutive lines joined with spaces to documents of at most `max_length` tokens.

    Special tokens count. A line that no longer fits begins the next document; one that is longer
    than a document is one by itself, which tokenisation truncates.
    """

    source: Corpus
    tokenizer: PreTrainedTokenizerBase
    max_length: int

    def sentences(self, tally: Tally | None = None) -> Iterator[str]:
        """The documents, in order. Raises MtdlabError where the source turns out damaged."""
        tally = tally or Tally()
        special = self.tokenizer.num_special_tokens_to_add()
        document: list[str] = []
        length, ended = special, 0
        # each line, and the number of document ends before it
        numbered = ((line, tally.breaks) for line in self.source.sentences(tally))
        while chunk := list(itertools.islice(numbered, LINES)):
            encoded = token_ids(self.tokenizer, [line for line, _ in chunk], self.max_length)
            for (line, breaks), ids in zip(chunk, encoded, strict=True):
                tokens = len(ids) - special
                if document and (breaks != ended or length + tokens > self.max_length):
                    yield " ".join(document)
                    document, length = [], special
                document.append(line)
                length, ended = length + tokens, breaks
        if document:
            yield " ".join(document)


def join_documents(
    corpus: Corpus, tokenizer: PreTrainedTokenizerBase, max_length: int
) -> DocumentCorpus:
    """The documents of a corpus, of at most `max_length` tokens."""
    # without tokenizer and length: the cache of tokens has both in its key
    fingerprint = fingerprint_of(f"documents {RULES} {corpus.fingerprint}")
    name = f"{corpus.name}, documents"
    return DocumentCorpus(name, fingerprint, corpus, tokenizer, max_length)
