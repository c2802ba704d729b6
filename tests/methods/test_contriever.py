"""Contriever compared with its formula and with a slow transcription; crops and deletions."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from torch import Tensor

from mtdlab.config import TrainerSettings, make_settings
from mtdlab.device import choose_device
from mtdlab.encoders.loading import load_encoder
from mtdlab.methods.base import View
from mtdlab.methods.contriever import (
    Contriever,
    ContrieverSettings,
    Crops,
    keep_tokens,
    queue_loss,
)
from mtdlab.settings import Representation
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start

Settings = Callable[..., TrainerSettings]
Array = NDArray[np.float64]
CPU = torch.device("cpu")


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def slow_loss(queries: Array, keys: Array, queue: Array, temperature: float) -> float:
    """-log [exp(q.k/t) / (exp(q.k/t) + sum over the queue of exp(q.l/t))], a mean over rows."""
    total = 0.0
    for query, key in zip(queries, keys, strict=True):
        positive = math.exp(float(query @ key) / temperature)
        negatives = [math.exp(float(query @ each) / temperature) for each in queue]
        total -= math.log(positive / (positive + math.fsum(negatives)))
    return total / len(queries)


@pytest.mark.parametrize(("count", "queued", "temperature"), [(1, 3, 1.0), (4, 7, 0.5), (3, 0, 1)])
def test_the_loss_is_its_formula(count: int, queued: int, temperature: float) -> None:
    queries, keys, queue = draw(count, 5), draw(count, 5, seed=1), draw(queued, 5, seed=2)
    slow = slow_loss(queries.numpy(), keys.numpy(), queue.numpy(), temperature)
    assert float(queue_loss(queries, keys, queue, temperature)) == pytest.approx(slow, abs=1e-12)


def test_vectors_are_compared_as_they_are() -> None:
    """By dot product: q.k 6, q.l 2 at τ 2 give log(1 + exp(1 − 3))."""
    loss = queue_loss(
        torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 9.0]]), 2.0
    )
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-2)))


def rows_of(lengths: list[int]) -> tuple[Tensor, Tensor]:
    """Documents [CLS] 100, 101, ... [SEP]; a token's id states its place."""
    longest = max(lengths)
    ids = torch.zeros(len(lengths), longest, dtype=torch.long)
    for row, length in enumerate(lengths):
        ids[row, :length] = torch.arange(length) + 99
        ids[row, 0], ids[row, length - 1] = 2, 3
    return ids, (ids > 0).long()


def test_crops_are_consecutive_and_of_5_to_50_percent() -> None:
    ids, mask = rows_of([202] * 4000)
    cropped, kept = Crops((0.05, 0.5), 0.0, 0, CPU)(ids, mask)
    sizes = (kept.sum(dim=1) - 2).numpy()
    for row, size in zip(cropped.tolist()[:200], sizes[:200], strict=True):
        tokens = row[1 : size + 1]
        assert (row[0], row[size + 1]) == (2, 3)
        assert tokens == list(range(tokens[0], tokens[0] + size))
    # ⌊200 u⌋, u uniform in 0.05 to 0.5
    assert (sizes.min(), sizes.max()) == (10, 99)
    assert sizes.mean() == pytest.approx(54.5, abs=1.5)
    starts = cropped[:, 1].numpy() - 100
    assert starts.min() == 0
    assert (starts + sizes).max() == 200
    assert (starts / (200 - sizes)).mean() == pytest.approx(0.5, abs=0.02)


def test_one_token_in_ten_is_deleted() -> None:
    ids, mask = rows_of([402] * 500)
    whole = Crops((1.0, 1.0), 0.1, 0, CPU)
    cropped, kept = whole(ids, mask)
    rate = 1 - float((kept.sum(dim=1) - 2).sum()) / (400 * 500)
    assert rate == pytest.approx(0.1, abs=0.003)
    row = cropped[0, 1 : int(kept[0].sum()) - 1]
    assert (row.diff() > 0).all(), "the order of tokens is kept"
    assert torch.equal(Crops((1.0, 1.0), 0.0, 0, CPU)(ids, mask)[0], ids)


@pytest.mark.parametrize("lengths", [[3, 2, 4, 30], [2], [3, 3]], ids=str)
def test_short_documents_keep_a_token(lengths: list[int]) -> None:
    ids, mask = rows_of(lengths)
    crops = Crops((0.05, 0.5), 0.99, 0, CPU)
    for _ in range(30):
        cropped, kept = crops(ids, mask)
        sizes = kept.sum(dim=1).tolist()
        assert all(size >= min(3, length) for size, length in zip(sizes, lengths, strict=True))
        assert [row[size - 1] for row, size in zip(cropped.tolist(), sizes, strict=True)] == [
            3
        ] * len(lengths)


def test_tokens_are_kept_in_their_order() -> None:
    kept = torch.tensor([[True, False, True], [True, True, True]])
    ids, mask = keep_tokens(torch.tensor([[5, 6, 7], [8, 9, 4]]), kept)
    assert ids.tolist() == [[5, 7, 0], [8, 9, 4]]
    assert mask.tolist() == [[1, 1, 0], [1, 1, 1]]


def contriever(settings_of: Settings, **changed: Any) -> ContrieverSettings:
    settings = settings_of(
        **{"method": "contriever", "batch_size": 4, "max_length": 24, "steps": 6} | changed
    )
    assert isinstance(settings, ContrieverSettings)
    return settings


def test_the_momentum_encoder_is_updated_before_the_keys(settings_of: Settings) -> None:
    settings = contriever(settings_of, ema_decay=0.0)
    method = Contriever(
        load_encoder(settings.encoder, settings.dropout).model, settings, choose_device(settings)
    )
    with torch.no_grad():
        for parameter in method.encoder.parameters():
            parameter.add_(1e-3)
    ((ids, mask),) = next(load_inputs(settings).batches(4, 0))
    method(0, [(ids, mask)])
    pairs = zip(method.target.parameters(), method.encoder.parameters(), strict=True)
    assert all(torch.equal(one, other) for one, other in pairs)
    assert not any(one.requires_grad for one in method.target.parameters())


def test_keys_with_dropout_differ_from_step_to_step(settings_of: Settings) -> None:
    found = []
    for dropout in (False, True):
        settings = contriever(
            settings_of, crop_min=1.0, crop_max=1.0, deletion_rate=0.0, target_dropout=dropout
        )
        state = start(settings, load_inputs(settings))
        views = next(state.batches)
        one, other = (state.method(0, views).keys for _ in range(2))
        assert one is not None
        assert other is not None
        found.append(torch.equal(one, other))
    assert found == [True, False]


def test_the_defaults_are_the_published_ones() -> None:
    settings = make_settings(method="contriever")
    assert isinstance(settings, ContrieverSettings)
    assert settings.mtd == pytest.approx(2064)
    assert settings.representation == Representation("mean")
    assert (settings.ema_decay, settings.queue_size, settings.batch_size) == (0.9995, 131072, 2048)
    assert (settings.warmup_steps, settings.steps, settings.learning_rate) == (20000, 500000, 5e-5)
    assert (settings.temperature, settings.max_length, settings.deletion_rate) == (0.05, 256, 0.1)
    assert (settings.crop_min, settings.crop_max, settings.normalise) == (0.05, 0.5, False)
    assert settings.initial_queue_size == settings.queue_size
    assert Contriever.views(settings) == (View(document=True),)
    assert "2064.00 steps" in Contriever.describe(settings)


def test_the_multilingual_one_has_an_mtd_of_1008() -> None:
    settings = make_settings(
        method="contriever", ema_decay=0.999, queue_size=32768, batch_size=4096
    )
    assert settings.mtd == pytest.approx(1008)


def test_a_smaller_batch_keeps_the_queue_at_64_batches() -> None:
    settings = make_settings(method="contriever", batch_size=32, steps=500)
    assert isinstance(settings, ContrieverSettings)
    assert (settings.queue_size, settings.initial_queue_size) == (2048, 2048)
    assert settings.warmup_steps == 20
    assert settings.mtd == pytest.approx(2064)
    given = make_settings(method="contriever", batch_size=32, queue_size=100, warmup_steps=3)
    assert isinstance(given, ContrieverSettings)
    assert (given.queue_size, given.initial_queue_size, given.warmup_steps) == (100, 100, 3)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"queue_size": 0}, "greater than or equal to 1"),
        ({"queue_size": 8, "initial_queue_size": 9}, "initial_queue_size 9 exceeds queue_size 8"),
        ({"crop_min": 0.6}, "crop_min 0.6 exceeds crop_max 0.5"),
        ({"crop_max": 1.5}, "less than or equal to 1"),
        ({"deletion_rate": 1.0}, "less than 1"),
        ({"prompt": "a {sentence}"}, "documents, which have no prompt"),
        ({"warmup_steps": 10, "steps": 10}, "warmup_steps 10 leaves no step"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_trained_are_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValidationError, match=reason):
        make_settings(method="contriever", **changed)
