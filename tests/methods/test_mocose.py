"""MoCoSE: gradients, modes, views, and the gradient that FGSM uses."""

import copy

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from mtdlab.encoders.embed import Embedder
from mtdlab.methods.base import View
from mtdlab.methods.losses import info_nce
from mtdlab.methods.mocose import MoCoSE
from mtdlab.methods.queue import centroids
from mtdlab.settings import TrainerSettings
from mtdlab.training.batches import BatchOrder
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from tests.branches import CPU
from tests.conftest import Settings


def model_of(settings: TrainerSettings) -> tuple[MoCoSE, Tensor, Tensor]:
    """A model, and the ids and mask of a first batch."""
    inputs = load_inputs(settings)
    torch.manual_seed(settings.seed)
    model = MoCoSE(copy.deepcopy(inputs.encoder.model), settings, CPU)
    ids, mask = next(inputs.batches(settings.batch_size, settings.seed))[0]
    return model, ids, mask


def names_with_gradient(module: nn.Module) -> set[str]:
    found = [name for name, one in module.named_parameters() if one.grad is not None]
    return {name.removeprefix("encoder.").partition(".")[0] for name in found}


def test_detached_keys_give_no_gradient(settings_of: Settings) -> None:
    model, ids, mask = model_of(settings_of())
    *_, keys = model.encode(model.look_up([ids]), [mask])
    assert not keys.requires_grad
    assert {id(one) for one in model.trained()} == {
        id(one) for module in (model.online, model.predictor) for one in module.parameters()
    }


def test_keys_with_gradient_train_embeddings_and_projection_alone(settings_of: Settings) -> None:
    model, ids, mask = model_of(settings_of(detach_keys=False))
    *_, keys = model.encode(model.look_up([ids]), [mask])
    keys.square().sum().backward()
    assert names_with_gradient(model.target) == {"embeddings", "projection"}
    assert names_with_gradient(model.online) == {"embeddings"}
    trained = {id(one) for one in model.trained()}
    for name, part in model.target.named_children():
        own = [one for one in part.parameters() if one.requires_grad]
        assert all(id(one) in trained for one in own), name
    assert all(id(one) in trained for one in model.target.projection.parameters())
    assert not any(id(one) in trained for one in model.target.pooler.parameters())


@pytest.mark.parametrize("pooling", ["cls", "first-last"])
def test_a_target_without_dropout_gives_the_same_keys_and_queries_still_drop(
    settings_of: Settings, pooling: str
) -> None:
    """In the fast forward pass and that of transformers, where the shared block has a mode."""
    model, ids, mask = model_of(settings_of(target_dropout=False, dropout=0.3, pooling=pooling))
    words = model.look_up([ids])
    (first, _, keys), (second, _, again) = (model.encode(words, [mask]) for _ in range(2))
    assert torch.equal(keys, again)
    assert not torch.equal(first, second)
    assert model.online.training
    assert model.online.encoder.embeddings.training
    model.target.eval()
    plain, _, _ = model_of(settings_of(dropout=0.0, pooling=pooling))
    assert torch.allclose(keys, plain.encode(words, [mask])[2], atol=1e-6)
    dropping, _, _ = model_of(settings_of(dropout=0.3, pooling=pooling))
    (*_, keys), (*_, again) = (dropping.encode(words, [mask]) for _ in range(2))
    assert not torch.equal(keys, again)


def test_both_branches_read_one_tensor_unless_keys_take_gradients(settings_of: Settings) -> None:
    for changed in ({}, {"detach_keys": False, "fgsm_epsilon": 0}):
        model, ids, _ = model_of(settings_of(**changed))
        assert len(model.look_up([ids])) == 1
    model, ids, _ = model_of(settings_of(detach_keys=False))
    first, second = model.look_up([ids])
    assert first is not second
    assert torch.equal(first, second)


@pytest.mark.parametrize(
    ("branch", "expected"),
    [("online", (View("typos:0.3"), View())), ("target", (View(), View("typos:0.3")))],
)
def test_one_branch_reads_the_augmented_text(
    settings_of: Settings, branch: str, expected: tuple[View, ...]
) -> None:
    settings = settings_of(augmented_branch=branch, augmentation="typos:0.3")
    assert MoCoSE.views(settings) == expected
    assert MoCoSE.views(settings_of(augmented_branch=branch)) == (View(),)


@pytest.mark.parametrize("branch", ["online", "target"])
@pytest.mark.parametrize("augmentation", ["typos:0.5", "repetition:0.5"])
def test_the_first_view_is_of_the_online_branch(
    settings_of: Settings, branch: str, augmentation: str
) -> None:
    """The keys of the first step are those of the target's view, by the first weights."""
    changed = {"augmented_branch": branch, "augmentation": augmentation}
    settings = settings_of(**changed, dropout=0.0, fgsm_epsilon=0.0)
    inputs = load_inputs(settings)
    model, *_ = model_of(settings)
    batch = next(inputs.batches(settings.batch_size, settings.seed))
    read = {"online": batch[0], "target": batch[-1]}
    original = next(BatchOrder([inputs.tokens], settings.batch_size, settings.seed))[0]
    assert not torch.equal(read[branch][0], original[0])
    result = model(0, batch)
    assert torch.allclose(result.keys, model.keys(*read["target"]), atol=1e-6)
    assert not torch.allclose(result.keys, model.keys(*read["online"]), atol=1e-5)


def test_views_have_different_augmentations(settings_of: Settings) -> None:
    """Without dropout and predictor, queries and keys differ only by the feature cut-off."""
    bare = {"dropout": 0.0, "projection_layers": 0, "prediction_layers": 0}
    for augmentation, equal in (("none", True), ("feature-cutoff:0.3", False)):
        model, ids, mask = model_of(settings_of(augmentation=augmentation, **bare))
        queries, _, keys = model.encode(model.look_up([ids]), [mask])
        assert torch.allclose(queries, keys, atol=1e-6) == equal


def test_the_gradient_of_this_batch_by_differences(settings_of: Settings) -> None:
    """Along its sign the loss rises by ε times its L1 norm, and no weight has changed."""
    model, ids, mask = model_of(settings_of(dropout=0.0, fgsm_gradient="current"))
    words = model.look_up([ids])
    gradient = model.gradient(words, [mask])
    assert all(one.grad is None for one in model.trained())
    step = gradient.sign() * 1e-4
    with torch.no_grad():
        up, down = (
            float(model.loss(*model.encode([moved, words[0]], [mask, mask])[:2]))
            for moved in (words[0] + step, words[0] - step)
        )
    assert (up - down) / 2e-4 == pytest.approx(float(gradient.abs().sum()), rel=0.02)


@pytest.mark.parametrize("count", [1, 4])
def test_centroids_replace_the_queue_in_the_loss(settings_of: Settings, count: int) -> None:
    model, ids, mask = model_of(settings_of(queue_clusters=count, dropout=0.0))
    encoded = model.encode(model.look_up([ids]), [mask])[:2]
    expected = info_nce(*encoded, centroids(model.queue.negatives(), count), 0.05)
    assert torch.equal(model.loss(*encoded), expected)
    assert model.queue.fill == 5


@pytest.mark.parametrize(
    "augmentation", ["position-shuffle", "token-cutoff:0.3", "feature-cutoff:0.3"]
)
def test_augmentations_are_on_in_training_only(settings_of: Settings, augmentation: str) -> None:
    settings = settings_of(augmentation=augmentation, steps=4, fgsm_epsilon=0.0)
    inputs = load_inputs(settings)
    outcome, plain = (
        train(run, inputs)
        for run in (settings, settings.model_copy(update={"augmentation": "none"}))
    )
    assert not np.array_equal(outcome.curve["loss"], plain.curve["loss"])
    assert not outcome.curve["fgsm_changed"].any()
    encoder = copy.deepcopy(inputs.encoder.model)
    encoder.load_state_dict(outcome.weights)
    vectors = inputs.test.embed(Embedder(encoder, settings.representation, CPU))
    assert inputs.test.evaluate(vectors) == outcome.after.test
    assert plain.before == outcome.before


def test_every_key_has_the_prediction_dimension(settings_of: Settings) -> None:
    model, ids, mask = model_of(settings_of(prediction_dim=6, predictor_hidden_dim=9))
    queries, _, keys = model.encode(model.look_up([ids]), [mask])
    assert queries.shape == keys.shape == model.keys(ids, mask).shape == (len(ids), 6)
    assert model.queue.negatives().shape[1] == 6
    sizes = {one.out_features for one in model.predictor.modules() if isinstance(one, nn.Linear)}
    assert sizes == {9, 6}
