"""An encoder as a function of texts.

Letters: S texts, D dimension.
"""

from collections.abc import Sequence

from mtdlab.encoders.embed import MAX_LENGTH, Sentences, Vectors
from mtdlab.encoders.loading import Encoder
from mtdlab.evaluation.embedder import Embedder


class TextEncoder:
    """An encoder as a callable of texts, for code that knows nothing of mtdlab."""

    def __init__(self, encoder: Encoder, prompt: str) -> None:
        self._encoder, self._prompt = encoder, prompt

    def __call__(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """Vectors (S, D) in float32, in the order of the texts. Raises TypeError for a non-text."""
        if isinstance(texts, str) or not all(isinstance(text, str) for text in texts):
            raise TypeError("encode takes a list of texts")
        limit = self._encoder.token_limit(MAX_LENGTH)
        sentences = Sentences(texts, self._encoder.tokenizer, limit, self._prompt)
        vectors = sentences.embed(embedder.model, embedder.representation, embedder.device)
        return vectors[sentences.rows(texts)]
