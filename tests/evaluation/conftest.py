"""The small encoder that these tests share, and how its vectors are read."""

from pathlib import Path

import pytest
import torch

from mtdlab.device import Device
from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.loading import Encoder, load_encoder
from mtdlab.settings import Pooling, Representation

SHARED = Path(__file__).parents[3] / "shared/data/senteval"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"


@pytest.fixture
def encoder(tiny_encoder: Path) -> Encoder:
    return load_encoder(str(tiny_encoder), 0.1)


def embedder_of(encoder: Encoder, pooling: Pooling = "cls") -> Embedder:
    """Its vectors by a pooling, on the CPU in float32."""
    cpu = Device(torch.device("cpu"), torch.float32)
    return Embedder(encoder.model, Representation(pooling), cpu)
