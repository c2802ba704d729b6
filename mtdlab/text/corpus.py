"""Training sentences: the built-in world's, or a text file's."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mtdlab.errors import MtdlabError
from mtdlab.text.world import builtin_sentences


@dataclass(frozen=True)
class Corpus:
    """Where sentences come from; `fingerprint` changes when any of them does."""

    name: str
    fingerprint: str

    def sentences(self) -> Iterator[str]:
        """The sentences, in order: a file's lines without surrounding space or empty lines.

        A leading byte order mark is dropped; bytes that are not UTF-8 become U+FFFD.
        """
        if self.name == "builtin":
            yield from builtin_sentences()
            return
        with Path(self.name).open(encoding="utf-8-sig", errors="replace") as lines:
            yield from (line.strip() for line in lines if line.strip())


def open_corpus(name: str) -> Corpus:
    """A corpus by name: `builtin`, or the path of a text file with one sentence a line.

    Raises MtdlabError where the file cannot be read or holds no sentence.
    """
    digest = hashlib.sha256()
    if name == "builtin":
        digest.update("\n".join(builtin_sentences()).encode())
        return Corpus(name, digest.hexdigest()[:16])
    try:
        with Path(name).open("rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
    except (OSError, ValueError) as error:
        reason = (getattr(error, "strerror", None) or str(error)).lower()
        raise MtdlabError(
            f"corpus {name}: cannot be read: {reason}; give a text file, one sentence a line"
        ) from None
    corpus = Corpus(name, digest.hexdigest()[:16])
    if next(corpus.sentences(), None) is None:
        raise MtdlabError(f"corpus {name}: holds no sentence; one is expected a line")
    return corpus
