"""Settings that separate what MTD mixes: the branch of the positive, and a frozen target."""

import copy
import math
from typing import Any

import pytest
import torch
from pydantic import ValidationError
from torch import Tensor, nn

from mtdlab.encoders.dropout import NO_DROPOUT
from mtdlab.methods.mocose import MoCoSE
from mtdlab.settings import TrainerSettings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from tests.branches import CPU
from tests.conftest import Settings
from tests.methods.oracles import info_nce


def method_of(settings: TrainerSettings) -> tuple[MoCoSE, list[Any]]:
    """A method, and the views of a first batch."""
    inputs = load_inputs(settings)
    torch.manual_seed(settings.seed)
    method = MoCoSE(copy.deepcopy(inputs.encoder.model), settings, CPU)
    return method, list(next(inputs.batches(settings.batch_size, settings.seed)))


def age(method: MoCoSE) -> None:
    """Give the target branch weights that differ from those of the online branch."""
    with torch.no_grad():
        for averaged in method.target.projection.parameters():
            averaged.add_(torch.randn_like(averaged), alpha=0.5)


def projections(branch: nn.Module, method: MoCoSE, ids: Tensor, mask: Tensor) -> Tensor:
    """A branch's vectors of token ids without the prediction head and without dropout."""
    words: Tensor = method.online.encoder.get_input_embeddings()(ids)
    vectors: Tensor = branch(words, mask, NO_DROPOUT)
    return vectors


@pytest.mark.parametrize("in_batch", [True, False])
@pytest.mark.parametrize("branch", ["target", "online"])
def test_the_positive_is_of_its_branch(settings_of: Settings, branch: str, in_batch: bool) -> None:
    chosen = {"positive_branch": branch, "in_batch_negatives": in_batch}
    method, views = method_of(settings_of(dropout=0.0, fgsm_epsilon=0, **chosen))
    age(method)
    [(ids, mask)] = views
    queue = method.queue.negatives().double().numpy()
    result = method(0, views)
    with torch.no_grad():
        online = projections(method.online, method, ids, mask)
        queries = method.predictor(online).double().numpy()
        of = {"online": online, "target": projections(method.target, method, ids, mask)}
    expected = info_nce(queries, of[branch].double().numpy(), queue, 0.05, in_batch=in_batch)
    assert float(result.loss.detach()) == pytest.approx(expected, rel=1e-4)
    # the queue is filled with keys of the target branch in both cases
    assert result.keys is not None
    assert torch.allclose(result.keys, nn.functional.normalize(of["target"], dim=1), atol=1e-5)


def test_an_online_positive_takes_a_gradient_and_ignores_the_target(settings_of: Settings) -> None:
    """The loss is that of an aged target to the bit, and the second view is trained through."""
    chosen = {"positive_branch": "online", "dropout": 0.0, "fgsm_epsilon": 0}
    method, views = method_of(settings_of(**chosen, augmentation="repetition:0.3"))
    before = method(0, views).loss
    age(method)
    assert torch.allclose(before, method(0, views).loss)
    words = method.look_up([ids for ids, _ in views])
    second = words[1].detach().requires_grad_()
    queries, positives, _ = method.encode([words[0].detach(), second], [mask for _, mask in views])
    method.loss(queries, positives).backward()
    assert second.grad is not None
    assert float(second.grad.abs().sum()) > 0


@pytest.mark.parametrize("gradient", ["previous", "current"])
def test_fgsm_uses_the_gradient_of_the_queries_alone(settings_of: Settings, gradient: str) -> None:
    """Of an online positive that reads the same view too."""
    chosen = {"positive_branch": "online", "fgsm_epsilon": 1e-3, "fgsm_gradient": gradient}
    method, views = method_of(settings_of(dropout=0.0, **chosen))
    clean = method.look_up([ids for ids, _ in views])
    assert len(clean) == 2
    [(_, mask)] = views
    first = clean[0].detach().requires_grad_()
    queries, positives, _ = method.encode([first, clean[1].detach()], [mask])
    (expected,) = torch.autograd.grad(method.loss(queries, positives), first)
    if gradient == "current":
        found: Tensor | None = method.gradient(clean, [mask])
    else:
        result = method(0, views)
        result.loss.backward()
        method.update(0, result)
        found = method.fgsm.gradient
    assert found is not None
    assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("branch", ["target", "online"])
def test_a_frozen_target_makes_the_same_keys_after_training(
    settings_of: Settings, branch: str
) -> None:
    settings: Any = settings_of(target="frozen", positive_branch=branch, ema_decay=0.0)
    method, views = method_of(settings)
    [(ids, mask)] = views
    before = method.keys(ids, mask)
    optimizer = torch.optim.SGD(method.trained(), lr=0.1)
    for step in range(3):
        result = method(step, views)
        result.loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        method.update(step, result)
        assert result.measures["ema_decay"] == 1
    assert torch.equal(method.keys(ids, mask), before)
    words = "embeddings.word_embeddings.weight"
    online, frozen = (
        dict(branch.encoder.named_parameters()) for branch in (method.online, method.target)
    )
    assert not torch.equal(online[words], frozen[words])
    trained = {id(parameter) for parameter in method.trained()}
    assert trained.isdisjoint(map(id, method.target.parameters()))


def test_a_frozen_target_has_no_mtd(settings_of: Settings) -> None:
    settings: Any = settings_of(target="frozen")
    assert settings.mtd is None
    assert "is not updated" in MoCoSE.describe(settings)
    assert "distance" not in MoCoSE.describe(settings)
    outcome = train(settings, load_inputs(settings))
    assert math.isfinite(outcome.score_of("sts_dev")[0])
    with pytest.raises(ValidationError, match="choose detach_keys true, or target ema"):
        settings_of(target="frozen", detach_keys=False)
