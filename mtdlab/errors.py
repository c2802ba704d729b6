"""What can go wrong for a user, each with the exit code that the commands return."""

import difflib
from collections.abc import Iterable


class MtdlabError(Exception):
    """A mistake or a state that a user can mend; the message is one sentence and how to."""

    exit_code = 2


class StorageError(MtdlabError):
    """The study database is missing, damaged or of another kind."""

    exit_code = 4


class NothingToReport(MtdlabError):
    """The named study does not exist or holds nothing yet."""

    exit_code = 5


class TrialError(Exception):
    """A trial that cannot go on; `reason` is recorded with the trial.

    Not an `MtdlabError`: the study survives it.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def one_line(error: Exception) -> str:
    """An unforeseen error's kind and message, whatever lines it has."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint for a word that is not known: the nearest that is, or all of them."""
    options = sorted(known)
    near = difflib.get_close_matches(word, options, n=1, cutoff=0.5)
    if near:
        return f"did you mean {near[0]}?"
    return f"known are {', '.join(options)}" if options else "there is none yet"
