"""How the setting `corpus` names kinds of text."""

PAIRS = "pairs:"
"""Before the name of a file of text pairs, see `mtdlab.corpus.text_pairs`."""


def is_pairs(corpus: str) -> bool:
    """Whether a corpus consists of pairs, whose texts are the two views."""
    return corpus.startswith(PAIRS)
