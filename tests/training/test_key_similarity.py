"""Similarity of keys in use to the online encoder: values, and that it changes no run."""

import copy
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from mtdlab.corpus.tokens import TokenStore
from mtdlab.methods.base import Method
from mtdlab.methods.mocose_settings import parse_slices
from mtdlab.methods.queue import KeyQueue, PublishedQueue, find_ages
from mtdlab.testing import _assert_equal, _assert_same_run, _stop_at
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train
from mtdlab.training.probe import KeySimilarity
from tests.conftest import Settings
from tests.training.conftest import run

STEPS = 12


class Rows:
    """A stub of a method with keys and vectors by step; at a step, ages as by `ages`."""

    device = SimpleNamespace(device=torch.device("cpu"))
    settings = SimpleNamespace(steps=STEPS)

    def __init__(self, ages: dict[int, tuple[int, int]], count: int) -> None:
        random = np.random.default_rng(0)
        self.made, self.online = (
            normalize(torch.from_numpy(random.standard_normal((STEPS, count, 4))), dim=2)
            for _ in range(2)
        )
        self.ages, self.at = ages, 0

    def ages_in_use(self, step: int) -> tuple[int, int] | None:
        return self.ages.get(step)

    def keys(self, _ids: Tensor, _mask: Tensor) -> Tensor:
        return self.made[self.at]

    def online_keys(self, _ids: Tensor, _mask: Tensor) -> Tensor:
        return self.online[self.at]


def compare(ages: dict[int, tuple[int, int]], count: int = 5) -> tuple[Rows, KeySimilarity]:
    method: Any = Rows(ages, count)
    tokens = TokenStore(np.ones((count, 3), np.uint16), np.full(count, 3, np.int32), "fingerprint")
    measured = KeySimilarity(tokens, method)
    for step in range(STEPS):
        method.at = step
        measured.record(step, method)
    return method, measured


def test_cosines_are_those_of_a_slow_transcription() -> None:
    """At the middle of each third of a run; ages of several steps overlap."""
    ages = {2: (0, 2), 6: (3, 5), 10: (4, 9)}
    method, measured = compare(ages)
    columns = measured.columns()
    assert columns["step"].tolist() == [*ages]
    assert [*zip(columns["age"], columns["oldest_age"], strict=True)] == [*ages.values()]
    for place, (step, (mean, oldest)) in enumerate(ages.items()):
        now, keys = method.online[step], method.made[step - mean]
        same = [float(now[row] @ keys[row]) for row in range(5)]
        oldest_same = [float(now[row] @ method.made[step - oldest][row]) for row in range(5)]
        others = [float(now[i] @ keys[j]) for i in range(5) for j in range(5) if i != j]
        assert columns["similarity"][place] == pytest.approx(np.mean(same), abs=1e-6)
        assert columns["oldest_similarity"][place] == pytest.approx(np.mean(oldest_same), abs=1e-6)
        assert columns["different"][place] == pytest.approx(np.mean(others), abs=1e-6)
    assert measured.state_dict()["keys"] == {}


def test_one_sentence_has_no_others_and_unknown_ages_have_no_measurement() -> None:
    assert np.isnan(compare({6: (1, 2)}, count=1)[1].columns()["different"]).all()
    assert compare({})[1].columns() == {}


@pytest.mark.parametrize("queue", [KeyQueue, PublishedQueue])
@pytest.mark.parametrize(("size", "initial"), [(0, 0), (20, 5), (7, 7), (64, 0), (24, 8)])
@pytest.mark.parametrize("slices", ["all", "0-4,6-7"])
def test_ages_are_those_of_the_keys_in_a_queue(
    queue: type[KeyQueue], size: int, initial: int, slices: str, settings_of: Settings
) -> None:
    """Keys hold the step that made them; random ones have length 1, and steps begin at 10."""
    if size == 0 and slices != "all":
        return
    settings = settings_of(
        queue_size=size,
        initial_queue_size=initial,
        queue_slice=slices,
        queue_fill="published" if queue is PublishedQueue else "exact",
        steps=30,
    )
    method: Any = start(settings, load_inputs(settings)).method
    held = queue(size, 1, initial=initial, slices=parse_slices(slices))
    for step in range(12):
        made = held.negatives().flatten()
        ages = (10 + step - made[made.abs() > 1.5]).numpy()
        expected = (round(ages.mean()), ages.max()) if len(ages) else (0, 0)
        assert method.ages_in_use(step) == expected, step
        held.enqueue(torch.full((settings.batch_size, 1), 10.0 + step))


def test_ages_of_a_queue_that_is_filling_and_of_random_keys() -> None:
    assert find_ages(64, 8, 2) == (2, 2)
    assert find_ages(64, 8, 100) == (4, 8)
    assert find_ages(64, 8, 4, [(40, 64)]) == (0, 0)
    assert find_ages(64, 8, 0) == (0, 0)


METHODS: list[dict[str, Any]] = [
    {"fgsm_epsilon": 1e-3, "dropout": 0.3},
    {"preset": "published-code", "ema_decay_end": None},
    {"method": "xbm", "queue_size": 20, "queue_warmup_steps": 2},
    {"method": "esimcse", "queue_size": 20},
    {"method": "contriever", "queue_size": 20, "initial_queue_size": 5, "warmup_steps": 0},
    {"method": "hicl", "backbone": "mocose", "queue_size": 20, "segment_length": 4},
]


@pytest.mark.parametrize("changed", METHODS, ids=str)
def test_measuring_does_not_change_a_run(
    settings_of: Settings, changed: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(**changed)
    measured = run(settings)
    monkeypatch.setattr(KeySimilarity, "record", lambda *_: None)
    plain = run(settings)
    assert plain.history == {}
    assert measured.history["step"].tolist() == [1, 5, 8]
    assert np.isfinite(measured.history["oldest_similarity"]).all()
    _assert_same_run(plain, measured, "measured")


@pytest.mark.parametrize("method", ["simcse", "mixcse", "sncse", "consert"])
def test_a_method_without_a_queue_measures_nothing(settings_of: Settings, method: str) -> None:
    settings = settings_of(method=method)
    made = start(settings, load_inputs(settings))
    assert made.method.ages_in_use(5) is None
    assert made.similarity.columns() == {}


def test_a_resumed_run_continues_and_one_without_this_state_measures_what_is_left(
    settings_of: Settings,
) -> None:
    settings = settings_of()
    inputs = load_inputs(settings)
    whole = train(settings, inputs)
    saved = _stop_at(settings, inputs, 6).state_dict()
    lacking = {name: part for name, part in saved.items() if name != "similarity"}
    for state, steps in ((saved, [1, 5, 8]), (lacking, [])):
        resumed = start(settings, inputs)
        resumed.load_state_dict(copy.deepcopy(state))
        again = train(settings, inputs, state=resumed)
        _assert_same_run(whole, again, "resumed")
        assert again.history.get("step", np.empty(0)).tolist() == steps
        if steps:
            _assert_equal(whole.history, again.history, "a comparison")


def test_what_history_does_to_the_similarity(settings_of: Settings) -> None:
    """Without average and queue a key is the online vector; a slow average is less similar."""
    none, fast, slow, frozen = (
        run(settings_of(queue_size=size, initial_queue_size=0, **changed)).history["similarity"]
        for size, changed in (
            (0, {"ema_decay": 0.0}),
            (8, {"ema_decay": 0.0}),
            (64, {"ema_decay": 0.95}),
            (64, {"ema_decay": 0.95, "learning_rate": 1e-7}),
        )
    )
    assert none == pytest.approx(1, abs=1e-6)
    assert (fast[1:] > slow[1:] + 0.02).all()
    assert frozen == pytest.approx(1, abs=1e-4)


def test_the_online_vectors_have_no_dropout_and_leave_the_mode(settings_of: Settings) -> None:
    for changed in METHODS:
        settings = settings_of(**changed)
        inputs = load_inputs(settings)
        method: Method[Any] = start(settings, inputs).method
        texts = inputs.tokens.batch(np.arange(4))
        first, second = method.online_keys(*texts), method.online_keys(*texts)
        assert torch.equal(first, second)
        assert all(part.training for part in method.modules())
        assert not first.requires_grad
