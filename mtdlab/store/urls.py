"""This module finds the URL of the study database, and prints it without its password."""

import os
import re
from pathlib import Path
from urllib.parse import unquote_plus

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from mtdlab.errors import StorageError

_BEFORE_HOST = re.compile(r"(\w://)([^/:@]*:)(.*)@(\S*)")
"""Where a URL has a password before its query: scheme://user:PASSWORD@host."""
_IS_URL = re.compile(r"[a-z][\w+.-]*:/(/|.*(://|@))", re.IGNORECASE | re.DOTALL)
"""A scheme and ://, or what may be a URL with a password that was mistyped."""
DEFAULT_STORAGE = "sqlite:///mtdlab.db"


def storage_url(given: str | Path | None) -> str:
    """Return the database URL: `given`, MTDLAB_STORAGE, OPTUNA_STORAGE, or else the default.

    A text without a scheme is the path of a SQLite file, whatever characters it has. Raises
    StorageError for a path that is not UTF-8, and as `parse_url`.
    """
    if isinstance(given, Path):
        return sqlite_url(given)
    text = given or os.environ.get("MTDLAB_STORAGE") or os.environ.get("OPTUNA_STORAGE")
    text = text or DEFAULT_STORAGE
    if not _IS_URL.match(text):
        return sqlite_url(text)
    # what is none is refused before anything else is done
    parse_url(text)
    return text


def sqlite_url(path: str | Path) -> str:
    """Return the URL of a SQLite file. Raises StorageError for a path that is not UTF-8."""
    try:
        # with the characters escaped that have a meaning in URLs
        return URL.create("sqlite", database=str(path)).render_as_string()
    except UnicodeEncodeError:
        raise StorageError(f"{str(path)!r} is a path that is not UTF-8; rename it") from None


def mask(url: str) -> str:
    """Return a storage URL without its password, for printing."""
    return _printed(parse_url(url))


def _printed(parsed: URL) -> str:
    return without_password(parsed.render_as_string(hide_password=True))


def without_password(text: str) -> str:
    """A text that may be a storage URL, with *** in place of its password."""
    if "://" not in text:
        return text
    head, mark, query = _BEFORE_HOST.sub(_mask, text).partition("?")
    return head + mark + "&".join(map(_mask_value, query.split("&")))


def _mask(url: re.Match[str]) -> str:
    scheme, user, password, host = url.groups()
    # of several @ any may be the one before the host, and a ? may be the end of the host
    return f"{scheme}***" if {"@", "?"} & set(password) else f"{scheme}{user}***@{host}"


def _mask_value(pair: str) -> str:
    """Mask KEY=VALUE of a query, in which drivers and SQLAlchemy take a key in any spelling."""
    key, equals, _ = pair.partition("=")
    name = unquote_plus(key).lower()
    is_secret = "pass" in name and not name.endswith("passfile")
    return f"{key}=***" if equals and is_secret else pair


def parse_url(url: str) -> URL:
    """Return the parts of a storage URL.

    Raises StorageError for a text that is none, for one of another database than SQLite and
    PostgreSQL, and for one with several @, or ? before it: its parts, as which messages and drivers
    would print them, may be parts of the password.
    """
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise StorageError(
            "--storage is not a database URL; write for example sqlite:///mtdlab.db"
        ) from None
    is_ambiguous = url.count("@") > 1 or (parsed.password and "?" in url.partition("@")[0])
    if is_ambiguous and parsed.host is not None:
        raise StorageError(
            "--storage is a URL with several @, or with ? before it, so that it is not certain "
            "where its password ends; write %40 for each @ but the one before the host, and %3F "
            "for each ? of the password"
        )
    if parsed.get_backend_name() not in ("sqlite", "postgresql"):
        raise StorageError(
            f"{_printed(parsed)}: a database of mtdlab is SQLite or PostgreSQL; write "
            "sqlite:///mtdlab.db or postgresql+psycopg://..., the URL of the driver psycopg 3"
        )
    return parsed


def absolute(url: str) -> str:
    """Return the URL of a database for a process in another working folder."""
    path = sqlite_file(url)
    if path is None or path.is_absolute():
        return url
    named = parse_url(url).set(database=str(path.absolute()))
    return named.render_as_string(hide_password=False)


def sqlite_file(url: str) -> Path | None:
    """Return the file of a SQLite URL; None for other databases and for one in memory."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite" or parsed.database in (None, "", ":memory:"):
        return None
    return Path(str(parsed.database))
