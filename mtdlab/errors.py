"""What can go wrong for a user, each with the exit code that the commands return."""


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


def describe(error: Exception) -> str:
    """An error as the reason or the note of a trial: our own by its message alone."""
    return str(error) if isinstance(error, TrialError | MtdlabError) else one_line(error)[:500]
