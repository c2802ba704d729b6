"""Saved models of methods whose vectors SentenceTransformer cannot express: SNCSE and HiCL."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtdlab
from mtdlab.device import choose_device
from mtdlab.encoders.embed import MAX_LENGTH, Embedder, Sentences
from mtdlab.training.export import save_model
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train
from tests.conftest import SHORT_PROMPTS, Settings

CASES: dict[str, dict[str, Any]] = {
    "sncse": {"method": "sncse", **SHORT_PROMPTS},
    "hicl": {"method": "hicl", "segment_length": 4, "pooling": "mean"},
    "hicl-sncse": {"method": "hicl", "backbone": "sncse", "segment_length": 8, **SHORT_PROMPTS},
}


@pytest.mark.parametrize(
    ("case", "precision"), [("sncse", "bfloat16"), ("hicl", "float32"), ("hicl-sncse", "float32")]
)
def test_a_saved_model_gives_the_vectors_that_were_evaluated(
    case: str, precision: str, settings_of: Settings, tmp_path: Path
) -> None:
    settings = settings_of(**CASES[case], steps=2, precision=precision)
    inputs = load_inputs(settings)
    state = start(settings, inputs)
    outcome = train(settings, inputs, state=state)
    folder = tmp_path / "model"
    save_model(folder, settings, inputs, outcome, {})

    device = choose_device(settings)
    sentences = ["the dog runs", "a cat sleeps in the garden again today", "the"]
    own = Sentences(sentences, inputs.encoder.tokenizer, MAX_LENGTH, settings.prompt)
    evaluated = own.embed(Embedder(state.method.encoder, settings.representation, device))
    vectors = mtdlab.load_encoder(str(folder), device="cpu").encode(sentences)
    assert np.allclose(vectors, evaluated[own.rows(sentences)], atol=1e-6)

    card = (folder / "README.md").read_text(encoding="utf-8")
    assert 'mtdlab.load_encoder("this folder")' in card
    assert "SentenceTransformer opens this folder too, but its vectors are others" in card

    library = pytest.importorskip("sentence_transformers", reason="sentence-transformers is absent")
    theirs = library.SentenceTransformer(str(folder), device="cpu").encode(sentences)
    assert theirs.shape == vectors.shape
    assert not np.allclose(theirs, vectors, atol=1e-3)
