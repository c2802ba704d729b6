"""The URL of the study database: where it is given, and how it is printed without its password."""

import os
import re
import shlex
from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from mtdlab.errors import StorageError

_BEFORE_HOST = re.compile(r"(\w://)([^/:@]*:)(.*)@(\S*)")
_IN_QUERY = re.compile(r"([?&](?:ssl)?pass\w*=)[^&\s]*")
"""Where a URL has a password: scheme://user:PASSWORD@host, ?password=PASSWORD."""
DEFAULT_STORAGE = "sqlite:///mtdlab.db"


def storage_url(given: str | None) -> str:
    """The database URL: `given`, else MTDLAB_STORAGE, else OPTUNA_STORAGE, else the default.

    A path without a scheme names a SQLite file.
    """
    text = given or os.environ.get("MTDLAB_STORAGE") or os.environ.get("OPTUNA_STORAGE")
    text = text or DEFAULT_STORAGE
    return text if "://" in text else f"sqlite:///{text}"


def mask(url: str) -> str:
    """A storage URL without its password, for printing."""
    return _masked(parse_url(url).render_as_string(hide_password=True))


def without_passwords(command: str) -> str:
    """A command whose storage URLs have *** in place of their passwords."""
    try:
        words = shlex.split(command)
    except ValueError:
        return _masked(command)
    masked = [_masked(word) for word in words]
    return command if masked == words else shlex.join(masked)


def _masked(text: str) -> str:
    return _IN_QUERY.sub(r"\1***", _BEFORE_HOST.sub(_mask, text))


def _mask(url: re.Match[str]) -> str:
    scheme, user, password, host = url.groups()
    # of several @ any may be the one before the host
    return f"{scheme}***" if "@" in password else f"{scheme}{user}***@{host}"


def parse_url(url: str) -> URL:
    """The parts of a storage URL.

    Raises StorageError for a text that is none, and for one with several @: its parts, as which
    messages and drivers would print them, may be parts of the password.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StorageError(
            "--storage is not a database URL; write for example sqlite:///mtdlab.db"
        ) from None
    if url.count("@") > 1 and parsed.host is not None:
        raise StorageError(
            "--storage is a URL with several @, so that it is not certain where its password ends; "
            "write %40 for each @ but the one before the host"
        )
    return parsed


def absolute(url: str) -> str:
    """The same database for a process in another working folder."""
    path = sqlite_file(url)
    if path is None or path.is_absolute():
        return url
    named = parse_url(url).set(database=str(path.absolute()))
    return named.render_as_string(hide_password=False)


def sqlite_file(url: str) -> Path | None:
    """The file of a SQLite URL; None for other databases and for one in memory."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(str(parsed.database))
