"""Errors, with the exit codes that the commands return for them."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec


class MtdlabError(Exception):
    """An error that the user can correct; the message is one sentence that states how.

    `kind` is its type in the output of --json.
    """

    exit_code, kind = 2, "invalid input"


class StorageError(MtdlabError):
    """The study database is missing, damaged, or not a database of mtdlab."""

    exit_code, kind = 4, "storage"


class ConnectionLost(StorageError):
    """The server ended a connection within a transaction, which may or may not be committed."""


class NothingToReport(MtdlabError):
    """The named study or trial does not exist, or the study has no trials yet."""

    exit_code, kind = 5, "nothing to report"


class MissingPackage(MtdlabError, ImportError):
    """A package that the light install leaves out is needed."""

    kind = "missing package"


@contextmanager
def refusing(*kinds: type[Exception], what: str = "", hint: str = "") -> Iterator[None]:
    """Raise MtdlabError for an error of these kinds: its message, or `what`, its reason and `hint`.

    The hint says what the user can do.
    """
    try:
        yield
    except kinds as error:
        text = f"{what}: {reason_of(error)}" if what else str(error)
        raise MtdlabError(f"{text}; {hint}" if hint else text) from None


_TRAINS = (
    "training and encoders need torch and transformers, which are not installed; in the folder of "
    "mtdlab: pip install . (without a GPU first pip install torch --index-url "
    "https://download.pytorch.org/whl/cpu, 0.2 GB instead of 6.3)"
)
_OF_TRAINING = ("torch", "transformers", "safetensors", "tokenizers", "huggingface_hub", "fsspec")
_LEFT_OUT = dict.fromkeys(_OF_TRAINING, _TRAINS) | {
    "pyarrow": "pyarrow is not installed, which reads and writes Parquet files: pip install "
    "--no-deps pyarrow"
}
"""What is said of a module that is missing: what needs it, and how to get it."""


@contextmanager
def naming_missing() -> Iterator[None]:
    """Raise MissingPackage for a module that the light install leaves out; also a decorator."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (name := (error.name or "").partition(".")[0]) not in _LEFT_OUT:
            raise
        raise MissingPackage(_LEFT_OUT[name]) from error


def require(what: str, extra: str, *packages: str) -> None:
    """Raise MtdlabError where `what` needs a package that is missing, which an extra installs."""
    for name in packages:
        if find_spec(name) is None:
            raise MtdlabError(
                f"{what} needs the package {name.replace('_', '-')}; install the extra: "
                f"pip install 'mtdlab[{extra}]'"
            )


class TrialError(Exception):
    """A trial has failed; `reason` and its code (`store.tables.REASON_CODES`) are recorded with it.

    Not an `MtdlabError`, since the study continues.
    """

    def __init__(self, reason: str, code: str = "error") -> None:
        super().__init__(reason)
        self.reason, self.code = reason, code


def message_of(error: BaseException) -> str:
    """An error's message, also where the user's code that writes it fails itself."""
    try:
        return str(error)
    except BaseException as failed:
        return f"(its message raises {type(failed).__name__})"


def one_line(error: BaseException) -> str:
    """The type and message of an unexpected error in one line; without a message, its type."""
    message = " ".join(message_of(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def reason_of(error: Exception) -> str:
    """Why a file could not be read or written, as the system says it, in small letters."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def similar(word: str, known: Iterable[str]) -> str | None:
    """The most similar known word; None where none is similar."""
    return next(iter(difflib.get_close_matches(word, sorted(known), n=1, cutoff=0.5)), None)


def nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """A hint for an unknown word: the most similar known one, or all of them, and `otherwise`."""
    options = sorted(known)
    if near := similar(word, options):
        return f"did you mean {near}?"
    return (f"choose from {', '.join(options)}" if options else "there is none yet") + otherwise


def describe(error: BaseException) -> str:
    """An error as text for a trial's reason or note; the type is left out for mtdlab's errors."""
    known = isinstance(error, TrialError | MtdlabError)
    return message_of(error) if known else one_line(error)[:500]
