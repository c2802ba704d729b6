"""How text becomes sentences: what is kept, replaced or left out, and counted.

A line is a sentence, without the space around it; a line that shows nothing is left out. A
file is UTF-8, as it is or in gzip: a byte order mark is dropped, a byte that is not UTF-8
becomes U+FFFD, a NUL is removed, a line is cut after `CHARACTERS`. UTF-16 is refused.
"""

import gzip
import io
import itertools
import re
import unicodedata
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from mtdlab.errors import MtdlabError, reason_of

CHARACTERS = 100_000
"""The most characters of a line; the rest is left out, as a file may have no line ends."""

GZIP = b"\x1f\x8b"
"""The first bytes of gzip, which UTF-8 cannot have: the kind of file is read off its content."""

UTF_16 = (b"\xff\xfe", b"\xfe\xff")
MOST_BAD = 5
"""How many lines that do not fit are shown."""
REFRESH = 4096
"""How many lines are between two updates of the position in a file."""

_VISIBLE = re.compile(
    "[^\\s\0-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e0fff]"
)
"""A character that is neither space nor a control, nor ignorable by default in Unicode."""
_ESCAPED = re.compile("[\udc80-\udcff]")
"""What `surrogateescape` makes of bytes that are not UTF-8: one character each."""
_BETWEEN_WORDS = re.compile(r"[\W_]+")


def normalise(sentence: str) -> str:
    """A text in lower case after Unicode's NFKC, without punctuation and with single spaces."""
    folded = unicodedata.normalize("NFKC", sentence).casefold()
    return _BETWEEN_WORDS.sub(" ", folded).strip()


def is_blank(text: str) -> bool:
    """Whether a text shows nothing: it is empty, or of space and zero-width characters alone."""
    return _VISIBLE.search(text, endpos=CHARACTERS) is None


@dataclass
class BadLines:
    """The lines of `what` that do not fit: how many, and the first of them in words."""

    what: str
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, problem: str) -> None:
        """Count a line."""
        self.count += 1
        if self.count <= MOST_BAD:
            self.first.append(problem)

    def refuse(self) -> None:
        """Raise MtdlabError where there is a line."""
        if self.count == 1:
            raise MtdlabError(self.first[0])
        if self.count:
            head = f"{self.what}: {self.count:,} lines do not fit"
            head += f", the first {MOST_BAD}" if self.count > MOST_BAD else ""
            raise MtdlabError(f"{head}: {'; '.join(self.first)}")


@dataclass
class Tally:
    """Counts of what was read, and `done` of `total` bytes (of files) or rows (of a dataset).

    `remarks` says what is counted; `files` are those that were begun.
    """

    lines: int = 0
    blank: int = 0
    cut: int = 0
    bad_bytes: int = 0
    nuls: int = 0
    halves: int = 0
    done: int = 0
    total: int = 0
    files: int = field(default=0, compare=False)

    @property
    def breaks(self) -> int:
        """How many ends of documents were met: blank lines, and the beginning of each file."""
        return self.blank + self.files

    def sentence(self, line: str) -> str:
        """A line without its end as a sentence, and counted; empty where it is left out."""
        self.lines += 1
        if len(line) > CHARACTERS:
            self.cut += 1
            line = line[:CHARACTERS]
        if "\0" in line:
            self.nuls += line.count("\0")
            line = line.replace("\0", "")
        if not line.isascii():
            line, bad = _ESCAPED.subn("\ufffd", line)
            self.bad_bytes += bad
        line = "" if is_blank(line) else line.strip()
        self.blank += not line
        return line

    def remarks(self) -> list[str]:
        """What was left out or replaced, in words; empty where nothing was."""
        remarks = [
            (self.blank, f"blank lines left out: {self.blank:,} of {self.lines:,}"),
            (self.halves, f"pairs without one of the texts left out: {self.halves:,}"),
            (self.cut, f"lines cut after {CHARACTERS:,} characters: {self.cut:,}"),
            (self.bad_bytes, f"bytes not UTF-8, now U+FFFD: {self.bad_bytes:,}"),
            (self.nuls, f"NUL characters removed: {self.nuls:,}"),
        ]
        return [words for count, words in remarks if count]


def raw_lines(path: Path, tally: Tally) -> Iterator[str]:
    """The lines of a text file without their ends, in order and in bounded memory.

    Of a line longer than that of a pair of texts, 2 `CHARACTERS`, one character more. Updates the
    position in the file, `tally.done`. Raises MtdlabError where the file is UTF-16, damaged gzip,
    or cannot be read.
    """
    most, tally.files = 2 * CHARACTERS, tally.files + 1
    before = tally.done
    with reading(f"corpus {path}"), path.open("rb") as file:
        text = _decode(file, path)
        for number in itertools.count(1):
            if not (line := text.readline(most + 1)):
                break
            if len(line) > most and line[-1] != "\n":
                while (rest := text.readline(CHARACTERS)) and rest[-1] != "\n":
                    pass
            if number % REFRESH == 0:
                tally.done = before + file.tell()
            yield line.removesuffix("\n")
        tally.done = before + file.tell()


@contextmanager
def reading(
    what: str, hint: str = "give a text file, one sentence a line, or a folder of them"
) -> Iterator[None]:
    """Turn an error of reading what `what` names into an MtdlabError that ends with `hint`."""
    try:
        yield
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise MtdlabError(
            f"{what}: the gzip file is damaged or cut short; fetch or pack it again"
        ) from None
    except (OSError, ValueError) as error:
        raise MtdlabError(f"{what}: cannot be read: {reason_of(error)}; {hint}") from None


def _decode(file: io.BufferedReader, path: Path) -> io.TextIOWrapper:
    packed = file.peek(2)[:2] == GZIP
    content: io.BufferedReader | gzip.GzipFile = gzip.GzipFile(fileobj=file) if packed else file
    if content.peek(2)[:2] in UTF_16:
        raise MtdlabError(
            f"corpus {path}: is UTF-16 or UTF-32, not UTF-8; convert it, for example with iconv "
            "-f UTF-16 -t UTF-8"
        )
    return io.TextIOWrapper(content, encoding="utf-8-sig", errors="surrogateescape")
