"""Whether the Hugging Face hub can be reached; and its libraries without their log messages."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

from huggingface_hub import constants, get_session
from transformers.utils import logging

SECONDS = 3.0
"""How long the hub may take to answer before it counts as out of reach."""


@cache
def reachable() -> bool:
    """Whether the hub can be reached; its own client would retry for 40 seconds."""
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception:
        # any transport's error: what is in the cache can still be loaded
        return False
    return True


@contextmanager
def quiet() -> Iterator[None]:
    """Without progress bars, and without reports on weights and options that are not used here."""
    before = logging.get_verbosity()
    logging.disable_progress_bar()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)
