"""The tokenizer that these tests share."""

from pathlib import Path

import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase


@pytest.fixture(scope="session")
def tokenizer(tiny_encoder: Path) -> PreTrainedTokenizerBase:
    """The small encoder's, loaded once: a test that changes it takes a copy."""
    loaded: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(tiny_encoder)
    return loaded
