"""Whether the Hugging Face hub is there to be asked."""

from functools import cache

from huggingface_hub import constants, get_session

SECONDS = 3.0
"""How long the hub may take to answer before it counts as out of reach."""


@cache
def answers() -> bool:
    """Whether to ask the hub. Its client alone would retry an absent network for 40 seconds."""
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        get_session().head(constants.ENDPOINT, timeout=SECONDS)
    except Exception:
        # any transport's error: what is in the cache can still be loaded
        return False
    return True
