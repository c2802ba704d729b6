"""What these tests share: a tokenizer, and a corpus of a text."""

from collections.abc import Callable
from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

Write = Callable[..., str]


@pytest.fixture(scope="session")
def tokenizer(tiny_encoder: Path) -> PreTrainedTokenizerBase:
    """The small encoder's, loaded once: a test that changes it takes a copy."""
    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(tiny_encoder)
    return loaded


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a text to a file; returns its name."""

    def written(text: str | bytes, name: str = "corpus.txt") -> str:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return str(path)

    return written
