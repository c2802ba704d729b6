"""Reachability of the Hugging Face hub; suppression of the log messages of its libraries."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from huggingface_hub import constants, get_session
from transformers.utils import logging

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


@contextmanager
def quiet() -> Iterator[None]:
    """Suppress progress bars and messages on unused weights and options."""
    before = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
