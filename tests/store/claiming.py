"""Claims trials in a process of its own, which imports no more than the store needs."""

from mtdlab.store.store import Store


def claim_all(url: str, process: int) -> list[str]:
    """Claim trials of study 1 until none is left; returns their configurations."""
    store = Store(url, study_id=1)
    owner = {"host": "here", "pid": process}
    claimed = []
    while (claim := store.claim(owner)) is not None:
        claimed.append(claim.configuration)
    return claimed
