"""Reachability of the Hugging Face hub; suppression of the log messages of its libraries."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from huggingface_hub import constants, get_session, hf_hub_download, try_to_load_from_cache

SECONDS = 3.0
"""Timeout of the request that tests whether the hub can be reached."""


@cache
def reachable() -> bool:
    """Whether the hub can be reached. The hub's client would retry for 40 seconds."""
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception:
        # the type depends on the transport; files in the cache can still be loaded
        return False
    return True


def find_on_hub(name: str, file: str) -> Path | None:
    """A repository's file: of the local cache, else fetched; None where neither has it."""
    try:
        path = try_to_load_from_cache(name, file)
        # None: not known to be missing either
        if path is None and reachable():
            path = hf_hub_download(name, file)
    except Exception:
        # the type depends on the transport, and on what is wrong with the name
        return None
    return Path(path) if isinstance(path, str) else None


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars and messages on unused weights and options."""
    # imported here: a study file is read without transformers
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
