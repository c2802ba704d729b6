"""Terminal output: columns of text, progress bars, and what a process does before it trains."""

import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, TextIO, cast

from mtdlab.errors import MtdlabError, reason_of

if TYPE_CHECKING:
    from rich.progress import Progress

UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""The characters that are escaped: control characters except tab and line feed, invisible ones, and
those that change the direction of writing: names in files and databases may hold them, to move the
cursor or to disguise text."""


def printable(text: str) -> str:
    """Text with the characters of `UNSAFE` written as Python escapes them: ESC as \\x1b."""
    return UNSAFE.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def print_text(text: str = "", *, file: TextIO | None = None, flush: bool = False) -> None:
    """Print text, by default on standard output, with unsafe characters escaped.

    Raises OutputError where it cannot be written, BrokenPipeError where its reader has ended.
    """
    with whole_output(file or sys.stdout):
        print(printable(text), file=file, flush=flush)


def warn(text: str) -> None:
    """Print a sentence of mtdlab on standard error; nothing for an empty one."""
    if text:
        print_text(f"mtdlab: {text}", file=sys.stderr)


class OutputError(MtdlabError):
    """What a command prints cannot be written."""

    exit_code = 1


@contextmanager
def whole_output(stream: TextIO) -> Iterator[None]:
    """Raise OutputError for an error of writing to a stream in this block."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(
            f"{stream.name.strip('<>')} cannot be written to: {reason_of(error)}"
        ) from None


def open_streams() -> None:
    """Open those of the standard streams that are closed: what is printed there is discarded.

    Their numbers would be those of the next files that are opened, into which would be printed.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            # gets the lowest free number, which is this one
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
        stream = getattr(sys, name)
        if stream is None or stream.closed:
            mode = "w" if number else "r"
            again = open(number, mode, buffering=1, closefd=False)  # noqa: SIM115
            setattr(sys, name, again)


class _Lent:
    """A standard stream that code of the user cannot close by its method."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Flush the stream and leave it open."""
        self._stream.flush()


@contextmanager
def lent_streams() -> Iterator[None]:
    """Restore the standard streams, which code of the user may close, after this block."""
    open_streams()
    before = sys.stdin, sys.stdout, sys.stderr
    copies = [os.dup(number) for number in range(3)]
    sys.stdout, sys.stderr = cast(TextIO, _Lent(sys.stdout)), cast(TextIO, _Lent(sys.stderr))
    try:
        yield
    finally:
        for number, copy in enumerate(copies):
            os.dup2(copy, number)
            os.close(copy)
        sys.stdin, sys.stdout, sys.stderr = before
        # an object that was closed by another name, such as sys.__stdout__
        open_streams()


def in_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with right-aligned columns; `rows` are at least one, all of the same length."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]


def progress_bar(*, transient: bool = False, counts: bool = False) -> "Progress":
    """Progress bars on a terminal's standard error, with percentages or `counts`, n of N."""
    # imported here to keep --help fast
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, TimeRemainingColumn

    console = Console(stderr=True)
    text, bar, share, _ = Progress.get_default_columns()
    columns = (text, bar, MofNCompleteColumn() if counts else share, TimeRemainingColumn())
    return Progress(*columns, console=console, disable=not console.is_terminal, transient=transient)


_begun: ContextVar[Callable[[str], None]] = ContextVar("begun", default=lambda _phase: None)


def begin_phase(phase: str) -> None:
    """Report to `following_phases` that a phase begins, such as "scoring the untrained encoder"."""
    _begun.get()(phase)


@contextmanager
def following_phases(begun: Callable[[str], None]) -> Iterator[None]:
    """Call `begun` with each phase that begins in this block."""
    previous = _begun.set(begun)
    try:
        yield
    finally:
        _begun.reset(previous)


class Phases:
    """Prints each phase once as a line on standard error, when it begins first, with the time since
    the start as `describe` writes seconds.
    """

    def __init__(self, describe: Callable[[float], str]) -> None:
        self._describe, self._started, self._known = describe, time.monotonic(), set[str]()

    def __call__(self, phase: str) -> None:
        """A phase begins in this process or in a worker."""
        if phase not in self._known:
            self._known.add(phase)
            passed = self._describe(time.monotonic() - self._started)
            print_text(f"{passed}: {phase}", file=sys.stderr, flush=True)
