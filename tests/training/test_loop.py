"""Complete training runs of a tiny encoder."""

import copy
import dataclasses
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import normalize

from mtdlab.device import Device
from mtdlab.encoders.embed import Embedder
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.evaluation.suite import Evaluation
from mtdlab.methods.heads import embedding_block, predictor
from mtdlab.methods.losses import info_nce
from mtdlab.methods.mocose import MoCoSE
from mtdlab.methods.momentum import averaged_pairs, ema_update, make_target
from mtdlab.methods.queue import KeyQueue
from mtdlab.settings import Representation
from mtdlab.testing import _assert_same_run
from mtdlab.training.inputs import RunInputs, check_inputs, load_inputs
from mtdlab.training.loop import start, train
from tests.branches import CPU, branch_of
from tests.conftest import Settings
from tests.training.conftest import run


def test_runs_with_the_same_seed_are_bit_identical(settings_of: Settings) -> None:
    first, other = run(settings_of(seed=3)), run(settings_of(seed=4))
    _assert_same_run(first, run(settings_of(seed=3)), "again")
    assert not np.array_equal(first.curve["loss"], other.curve["loss"])
    assert any(not torch.equal(first.weights[name], other.weights[name]) for name in first.weights)


def projected(branch: Any, words: Tensor, mask: Tensor) -> Tensor:
    """A branch with the forward pass of transformers."""
    hidden = branch.encoder(inputs_embeds=words, attention_mask=mask).last_hidden_state[:, 0]
    return branch.projection(branch.pooler(hidden))


@pytest.mark.parametrize("in_batch", [True, False])
def test_steps_are_those_of_a_slow_transcription(settings_of: Settings, in_batch: bool) -> None:
    """Three steps by hand: no dropout, plain calls, the queue as a list."""
    settings = settings_of(
        dropout=0.0,
        steps=3,
        evaluate_every=3,
        ema_decay=0.5,
        ema_decay_end=0.9,
        fgsm_epsilon=1e-3,
        weight_decay=0.01,
        in_batch_negatives=in_batch,
    )
    inputs = load_inputs(settings)
    outcome = train(settings, inputs)

    torch.manual_seed(settings.seed)
    online = branch_of(copy.deepcopy(inputs.encoder.model), settings)
    target = make_target(online, embedding_block(online.encoder))
    head = predictor(16, 16, settings.prediction_layers, 0.0)
    queue = list(KeyQueue(20, 16, initial=5).ordered())
    table = online.encoder.get_input_embeddings()
    parameters = [*online.parameters(), *head.parameters()]
    optimizer = torch.optim.AdamW(parameters, weight_decay=0.01)
    batches = inputs.batches(8, settings.seed)
    gradient, losses = None, []
    for step in range(3):
        ((ids, mask),) = next(batches)
        words = table(ids).detach()
        if gradient is not None:
            length = min(gradient.shape[1], words.shape[1])
            words[:, :length] += 1e-3 * gradient[:, :length].sign()
        shift = torch.zeros_like(words, requires_grad=True)
        moved = table(ids) + (words - table(ids)).detach() + shift
        keys = normalize(projected(target, moved, mask), dim=1).detach()
        queries, negatives = head(projected(online, moved, mask)), torch.stack(queue)
        loss = info_nce(queries, keys, negatives, 0.05, in_batch_negatives=in_batch)
        optimizer.zero_grad()
        loss.backward()
        gradient = shift.grad
        for group in optimizer.param_groups:
            group["lr"] = 1e-3 * (1 - step / 3)
        optimizer.step()
        decay = 0.9 - 0.4 * (1 + math.cos(math.pi * step / 3)) / 2
        ema_update(*averaged_pairs(target, online), decay)
        queue = [*keys, *queue][:20]
        losses.append(float(loss.detach()))
    assert outcome.curve["loss"].tolist() == pytest.approx(losses, rel=1e-4)
    assert max(losses) > math.log(13) / 2
    state = online.encoder.state_dict()
    assert all(torch.allclose(outcome.weights[name], state[name], atol=1e-4) for name in state)


@pytest.mark.parametrize("resets", [True, False])
def test_the_peak_memory_is_known_where_it_began_with_the_run(
    settings_of: Settings, monkeypatch: pytest.MonkeyPatch, resets: bool
) -> None:
    monkeypatch.setattr(Device, "reset_peak_memory", lambda _device: resets)
    monkeypatch.setattr(Device, "peak_memory", lambda _device: 123)
    peak = run(settings_of(steps=1)).peak_memory
    assert peak == 123 if resets else math.isnan(peak)


def test_the_queue_fills_as_planned(settings_of: Settings) -> None:
    outcome = run(settings_of(steps=5))
    assert outcome.curve["queue_fill"].tolist() == [5, 13, 20, 20, 20]
    outcome = run(settings_of(steps=3, queue_size=0, initial_queue_size=0))
    assert outcome.curve["queue_fill"].tolist() == [0, 0, 0]


def test_the_curve_has_a_loss_per_step_and_scores_at_evaluations(settings_of: Settings) -> None:
    curve = run(settings_of(ema_decay=0.75, ema_decay_end=0.95)).curve
    assert {len(column) for column in curve.values()} == {10}
    for name in ("loss", "ema_decay", "queue_fill", "fgsm_changed"):
        assert np.isfinite(curve[name]).all(), name
    for name in ("score", "alignment", "uniformity", "mean_cosine"):
        assert np.flatnonzero(np.isfinite(curve[name])).tolist() == [3, 7, 9], name
    assert curve["ema_decay"][[0, 5]] == pytest.approx([0.75, 0.85])
    assert curve["fgsm_changed"][0] == 0
    assert curve["fgsm_changed"][1:].min() > 0


@pytest.mark.parametrize(
    "changed",
    [
        {"fgsm_epsilon": 0},
        {"ema_decay": 0, "prediction_layers": 0, "projection_layers": 0},
        {"queue_slice": "0-3,10-12"},
        {"pooling": "mean"},
        pytest.param({"prediction_dim": 24}, marks=pytest.mark.slow),
        pytest.param({"predictor_hidden_dim": 24}, marks=pytest.mark.slow),
        {"prediction_dim": 6, "predictor_hidden_dim": 24, "queue_clusters": 4},
        {"batch_size": 1, "steps": 3},
        {"queue_size": 3, "initial_queue_size": 3},
        pytest.param({"preset": "paper"}, marks=pytest.mark.slow),
        {"preset": "published-code", "queue_slice": "0-3,10-12"},
        pytest.param({"preset": "paper", "detach_keys": False}, marks=pytest.mark.slow),
        pytest.param({"queue_clusters": 4}, marks=pytest.mark.slow),
        pytest.param({"queue_clusters": 1}, marks=pytest.mark.slow),
        {"augmentation": "repetition:0.5", "fgsm_epsilon": 1e-3},
        {"method": "simcse", "augmentation": "feature-cutoff:0.2"},
        {"target_dropout": False, "augmentation": "token-cutoff:0.2+position-shuffle"},
        {"pooling": "first-last", "target_dropout": False, "detach_keys": False},
    ],
    ids=str,
)
def test_variants_train(settings_of: Settings, changed: dict[str, Any]) -> None:
    curve = run(settings_of(**changed)).curve
    assert np.isfinite(curve["loss"]).all()
    if changed.get("fgsm_epsilon") == 0:
        assert not curve["fgsm_changed"].any()


def test_bfloat16_trains_in_finite_numbers(settings_of: Settings) -> None:
    outcome = run(settings_of(steps=3, precision="bfloat16"))
    assert np.isfinite(outcome.curve["loss"]).all()
    assert all(one.dtype != torch.bfloat16 for one in outcome.weights.values())


@pytest.mark.parametrize("step", [1, 5, 10])
@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["loss", "gradient"])
def test_a_number_that_is_not_finite_ends_the_run(
    settings_of: Settings, monkeypatch: pytest.MonkeyPatch, where: str, value: float, step: int
) -> None:
    """A gradient is noticed by the next loss, that of the last step by the evaluation."""
    forward = MoCoSE.forward

    def spoiled(method: MoCoSE, at: int, views: Any) -> Any:
        result = forward(method, at, views)
        if at + 1 != step:
            return result
        factor = torch.tensor(value)
        if where == "gradient":
            # the loss keeps its value
            result.loss.register_hook(lambda gradient: gradient * factor)
            return result
        return dataclasses.replace(result, loss=result.loss * factor)

    monkeypatch.setattr(MoCoSE, "forward", spoiled)
    reason = rf"the loss is (nan|inf) at step {step + (where == 'gradient')}"
    if where == "gradient" and step == 10:
        reason = "sentence vectors are not finite"
    with pytest.raises(TrialError, match=f"^{reason}$") as caught:
        run(settings_of())
    assert caught.value.code == "nan_loss"


@pytest.mark.parametrize("split", ["dev", "test"])
def test_the_best_checkpoint_has_the_best_score_of_its_pairs(
    settings_of: Settings, split: str
) -> None:
    settings = settings_of(steps=24, evaluate_every=2, learning_rate=5e-3, select_on=split)
    seen, inputs = {}, load_inputs(settings)

    def on_step(step: int, evaluation: Evaluation | None) -> None:
        if evaluation is not None:
            seen[step] = evaluation

    outcome = train(settings, inputs, on_step)
    assert list(seen) == list(range(2, 25, 2))
    assert outcome.best_step == max(seen, key=lambda step: seen[step].score)
    assert getattr(outcome.after, split) == seen[outcome.best_step]
    model = copy.deepcopy(inputs.encoder.model)
    model.load_state_dict(outcome.weights)
    again = inputs.test.evaluate(inputs.test.embed(Embedder(model, Representation("cls"), CPU)))
    assert again == outcome.after.test


def test_the_last_checkpoint_is_scored_where_none_is_selected(settings_of: Settings) -> None:
    """The same run, whose best score on dev is an earlier one; resumed before its end."""
    given = {"steps": 24, "evaluate_every": 2, "learning_rate": 5e-3}
    settings = settings_of(**given, select_on="last")
    inputs = load_inputs(settings)
    dev, last = (train(run, inputs) for run in (settings_of(**given), settings))
    assert dev.best_step < last.best_step == 24
    np.testing.assert_array_equal(dev.curve["score"], last.curve["score"])
    assert last.after.dev.score == pytest.approx(float(last.curve["score"][-1]), abs=1e-4)
    assert last.after.dev.score < dev.after.dev.score

    def stop(step: int, _evaluation: Evaluation | None) -> None:
        if step == 13:
            raise InterruptedError("after step 13")

    state = start(settings, inputs)
    with pytest.raises(InterruptedError, match="after step 13"):
        train(settings, inputs, stop, state)
    saved = copy.deepcopy(state.state_dict())
    resumed = start(settings, inputs)
    resumed.load_state_dict(saved)
    again = train(settings, inputs, state=resumed)
    assert again.best_step == 24
    assert all(torch.equal(again.weights[name], value) for name, value in last.weights.items())


def test_the_test_pairs_are_scored_once_and_do_not_affect_training(settings_of: Settings) -> None:
    settings = settings_of(steps=12, evaluate_every=2)
    inputs = load_inputs(settings)
    looks = []

    class Watched:
        """The test task with reversed gold scores."""

        def __init__(self, inputs: RunInputs) -> None:
            self.task = copy.copy(inputs.test)
            self.task.gold = -self.task.gold

        def embed(self, *arguments: Any) -> Any:
            looks.append(arguments)
            return self.task.embed(*arguments)

        def evaluate(self, vectors: Any) -> Evaluation:
            return self.task.evaluate(vectors)

    plain = train(settings, inputs)
    turned = train(settings, dataclasses.replace(inputs, test=Watched(inputs)))  # type: ignore[arg-type]
    assert len(looks) == 1
    assert turned.best_step == plain.best_step
    assert all(torch.equal(plain.weights[name], turned.weights[name]) for name in plain.weights)
    assert turned.after.test.score == pytest.approx(-plain.after.test.score)


@pytest.fixture
def senteval(tiny_pairs: Path, tmp_path: Path) -> Path:
    shutil.copytree(tiny_pairs, tmp_path / "STS" / "STSBenchmark")
    return tmp_path


def test_a_run_is_scored_on_its_tasks_before_and_after(
    settings_of: Settings, senteval: Path
) -> None:
    outcome = run(settings_of(evaluation=str(senteval), tasks="STSB", learning_rate=5e-3))
    assert outcome.score_of("STSB") == pytest.approx(outcome.score_of("sts_test"))
    assert outcome.score_of("sts_test") == (outcome.after.test.score, outcome.before.test.score)
    assert outcome.after.by_name() == {
        "sts_dev": outcome.after.dev.score,
        "sts_test": outcome.after.test.score,
        "STSB": outcome.after.tasks[0].score,
    }
    assert all(math.isnan(score) for score in outcome.score_of("sts_average"))


def test_tasks_without_data_are_named_before_anything_is_trained(
    settings_of: Settings, senteval: Path
) -> None:
    settings = settings_of(evaluation=str(senteval), tasks="STS12,STSB,MR")
    for act in (load_inputs, check_inputs):
        with pytest.raises(
            MtdlabError, match=r"data of trainer.tasks are missing \(STS12: .*; MR: "
        ):
            act(settings)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"batch_size": 61}, "batch_size is 61, but the corpus has 60"),
        ({"device": "cuda:99"}, r"device cuda:99: this machine has \d+ CUDA devices"),
    ],
)
def test_what_cannot_be_trained_is_refused(
    settings_of: Settings, changed: dict[str, Any], message: str
) -> None:
    for act in (run, check_inputs):
        with pytest.raises(MtdlabError, match=message):
            act(settings_of(**changed))


def test_inputs_are_loaded_once(settings_of: Settings) -> None:
    first = load_inputs(settings_of(seed=1))
    again = load_inputs(settings_of(seed=2, queue_size=7, steps=3))
    assert (again.encoder, again.tokens) == (first.encoder, first.tokens)
    assert load_inputs(settings_of(dropout=0.2)).encoder is not first.encoder


def test_the_scores_before_training_are_those_of_the_loaded_encoder(settings_of: Settings) -> None:
    inputs = load_inputs(settings_of())
    vectors = inputs.dev.embed(Embedder(inputs.encoder.model, Representation("cls"), CPU))
    assert inputs.before.dev == inputs.dev.evaluate(vectors)
    assert inputs.before.spectrum.shape == (16,)
