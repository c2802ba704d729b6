"""An encoder as a function of texts.

Letters: S texts, D dimension.
"""

from collections.abc import Sequence
from dataclasses import replace

from mtdlab.encoders.embed import Vectors
from mtdlab.encoders.loading import Encoder
from mtdlab.encoders.saved import encode_texts
from mtdlab.evaluation.embedder import Embedder


class TextEncoder:
    """An encoder as a callable of texts, for code that knows nothing of mtdlab."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def __call__(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """Vectors (S, D) in float32, in the order of the texts. Raises TypeError for a non-text."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise TypeError("encode takes a list of texts")
        encoder = replace(self._encoder, model=embedder.model)
        return encode_texts(encoder, texts, embedder.representation, embedder.device)
