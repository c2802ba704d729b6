"""A corpus in pieces that fit in memory, with a progress bar on a terminal."""

from collections.abc import Iterator

from mtdlab.corpus.corpus import Corpus
from mtdlab.corpus.lines import Tally
from mtdlab.terminal import progress_bar

SENTENCES = 8192
CHARACTERS = 1 << 20
"""Of a chunk: long lines make it shorter, since a tokenizer needs some 100 bytes a character."""


def chunks(corpus: Corpus, tally: Tally, doing: str) -> Iterator[list[str]]:
    """All sentences in order, in lists; `tally` counts what was met.

    Raises MtdlabError where a file turns out damaged.
    """
    with progress_bar(transient=True) as bar:
        task = bar.add_task(doing, total=None)
        for chunk in _cut(corpus.sentences(tally)):
            yield chunk
            bar.update(task, completed=tally.done, total=tally.total or None)


def _cut(sentences: Iterator[str]) -> Iterator[list[str]]:
    chunk: list[str] = []
    characters = 0
    for sentence in sentences:
        chunk.append(sentence)
        characters += len(sentence)
        if len(chunk) == SENTENCES or characters >= CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
