"""Probes: recorded values, and that probing does not change a run."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from mtdlab.corpus.tokens import TokenStore
from mtdlab.methods.base import Method
from mtdlab.testing import _assert_equal, _assert_same_run, _stop_at
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train
from mtdlab.training.probe import LAGS, Probe, mean_cosine_of_others, probed_rows
from tests.conftest import Settings
from tests.training.conftest import run


class Rows:
    """A stub of a method: key i of probe p is row i of `vectors[p]`."""

    def __init__(self, vectors: NDArray[np.float64]) -> None:
        self.left = [torch.from_numpy(keys) for keys in vectors]

    def keys(self, _ids: Tensor, _mask: Tensor) -> Tensor:
        return normalize(self.left.pop(0), dim=1)


def made_probe(every: int, count: int = 5) -> Probe:
    ids = np.ones((count, 3), dtype=np.uint16)
    tokens = TokenStore(ids, np.full(count, 3, dtype=np.int32), "fingerprint")
    return Probe(tokens, every, torch.device("cpu"))


def record(probe: Probe, method: Any, steps: int) -> None:
    for step in range(steps):
        probe.record(step, method)


@pytest.mark.parametrize("every", [1, 3])
def test_cosines_are_those_of_a_slow_transcription(every: int) -> None:
    vectors = np.random.default_rng(0).standard_normal((20, 5, 4))
    probe = made_probe(every)
    record(probe, Rows(vectors), 20 * every)
    columns = probe.columns()
    assert columns["step"].tolist() == [every * place for place in range(20)]
    lags = {f"cosine/{lag * every}" for lag in (1, 2, 4, 8, 16)}
    assert set(columns) == {"step", "cosine_different"} | lags
    unit = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    for lag in (1, 2, 4, 8, 16):
        found = columns[f"cosine/{lag * every}"]
        assert np.isnan(found[:lag]).all()
        expected = [np.mean(np.sum(unit[at] * unit[at - lag], axis=1)) for at in range(lag, 20)]
        assert found[lag:] == pytest.approx(expected, abs=1e-6)
    pairs = [(i, j) for i in range(5) for j in range(5) if i != j]
    expected = [np.mean([keys[i] @ keys[j] for i, j in pairs]) for keys in unit]
    assert columns["cosine_different"] == pytest.approx(expected, abs=1e-6)


def test_the_buffer_is_bounded_and_the_longest_lag_is_measured() -> None:
    vectors = np.random.default_rng(0).standard_normal((140, 2, 3))
    probe = made_probe(1, 2)
    record(probe, Rows(vectors), 140)
    assert len(probe.state_dict()["keys"]) == max(LAGS) == 128
    unit = vectors / np.linalg.norm(vectors, axis=2, keepdims=True)
    expected = np.mean(np.sum(unit[139] * unit[11], axis=1))
    assert probe.columns()["cosine/128"][139] == pytest.approx(expected, abs=1e-6)


def test_equal_keys_have_a_cosine_of_one_and_one_sentence_has_none_of_others() -> None:
    probe = made_probe(1, 1)
    record(probe, Rows(np.ones((3, 1, 4))), 3)
    assert probe.columns()["cosine/2"][2] == pytest.approx(1)
    assert np.isnan(probe.columns()["cosine_different"]).all()
    assert float(mean_cosine_of_others(torch.eye(3))) == 0


def test_probed_sentences_are_evenly_spaced_for_every_corpus_size() -> None:
    assert probed_rows(5).tolist() == [0, 1, 2, 3, 4]
    rows = probed_rows(24_000)
    assert (len(np.unique(rows)), rows[0], rows[-1]) == (64, 0, 23_999)
    assert set(np.diff(rows)) <= {380, 381}


def test_all_seeds_probe_the_same_sentences(settings_of: Settings) -> None:
    sentences = []
    for seed in (0, 1):
        settings = settings_of(seed=seed, probe_every=2)
        probe = start(settings, load_inputs(settings)).probe
        assert probe is not None
        sentences.append(probe._sentences)
    assert all(torch.equal(one, other) for one, other in zip(*sentences, strict=True))


@pytest.mark.parametrize(
    "changed",
    [
        {"fgsm_epsilon": 1e-3, "target_dropout": False},
        {"preset": "published-code", "pooling": "first-last"},
        {"augmentation": "token-cutoff:0.2+position-shuffle+typos:0.2"},
        pytest.param({"precision": "bfloat16"}, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_probing_does_not_change_a_run(settings_of: Settings, changed: dict[str, Any]) -> None:
    plain, probed = run(settings_of(**changed)), run(settings_of(**changed, probe_every=1))
    assert plain.probes == {}
    assert np.isfinite(probed.probes["cosine/8"][8:]).all()
    _assert_same_run(plain, probed, "probed")


def test_a_resumed_run_continues_its_measurements(settings_of: Settings) -> None:
    settings = settings_of(probe_every=2)
    inputs = load_inputs(settings)
    whole = train(settings, inputs)

    saved = copy.deepcopy(_stop_at(settings, inputs, 5).state_dict())
    resumed = start(settings, inputs)
    resumed.load_state_dict(saved)
    again = train(settings, inputs, state=resumed)
    assert whole.probes["step"].tolist() == [0, 2, 4, 6, 8]
    _assert_equal(whole.probes, again.probes, "a probe")


def test_a_slower_average_has_keys_that_change_less(settings_of: Settings) -> None:
    fast, slow = (
        run(settings_of(probe_every=1, ema_decay=decay)).probes["cosine/8"][8:].mean()
        for decay in (0.0, 0.99)
    )
    assert fast < slow < 1


def test_the_target_branch_is_probed_without_dropout(settings_of: Settings) -> None:
    """Its keys are those of a plain forward pass, and its mode is restored."""
    settings = settings_of(dropout=0.3, pooling="first-last")
    inputs = load_inputs(settings)
    method: Method[Any] = start(settings, inputs).method
    ids, mask = inputs.tokens.batch(np.arange(4))
    keys = method.keys(ids, mask)
    assert torch.equal(keys, method.keys(ids, mask))
    assert all(part.training for part in method.modules())
    target: Any = method.parts()["target"]
    words = target.encoder.get_input_embeddings()
    method.eval()
    with torch.no_grad():
        hidden = target.encoder(
            inputs_embeds=words(ids), attention_mask=mask, output_hidden_states=True
        ).hidden_states
        weights = mask.unsqueeze(2) / mask.sum(dim=1).view(-1, 1, 1)
        sentence = ((hidden[1] + hidden[-1]) / 2 * weights).sum(dim=1)
        expected = normalize(target.projection(target.pooler(sentence)), dim=1)
    assert torch.allclose(keys, expected, atol=1e-6)


def test_a_method_without_a_target_branch_probes_its_encoder(settings_of: Settings) -> None:
    settings = settings_of(method="simcse", dropout=0.3)
    inputs = load_inputs(settings)
    state = start(settings, inputs)
    texts = inputs.tokens.batch(np.arange(4))
    keys = state.method.keys(*texts)
    with torch.no_grad():
        state.method.eval()
        hidden = state.method.encoder(input_ids=texts[0], attention_mask=texts[1])
    expected = normalize(hidden.last_hidden_state[:, 0], dim=1)
    assert torch.allclose(keys, expected, atol=1e-6)
