"""Contriever compared with its formula and with a slow transcription; crops and deletions."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from mtdlab.device import choose_device
from mtdlab.encoders.loading import load_encoder
from mtdlab.methods.contriever import Contriever, ContrieverSettings, Crops, queue_loss
from mtdlab.methods.registry import make_settings
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start
from tests.conftest import Settings
from tests.methods.oracles import draw, info_nce

CPU = torch.device("cpu")


@pytest.mark.parametrize(("count", "queued", "temperature"), [(1, 3, 1.0), (4, 7, 0.5), (3, 0, 1)])
def test_the_loss_is_its_formula(count: int, queued: int, temperature: float) -> None:
    queries, keys, queue = draw(count, 5), draw(count, 5, seed=1), draw(queued, 5, seed=2)
    rows = (part.numpy() for part in (queries, keys, queue))
    slow = info_nce(*rows, temperature, in_batch=False, similarity=np.dot)
    assert float(queue_loss(queries, keys, queue, temperature)) == pytest.approx(slow, abs=1e-12)


def test_vectors_are_compared_as_they_are() -> None:
    """By dot product: q.k 6, q.l 2 at τ 2 give log(1 + exp(1 − 3))."""
    loss = queue_loss(
        torch.tensor([[2.0, 0.0]]), torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 9.0]]), 2.0
    )
    assert float(loss) == pytest.approx(math.log(1 + math.exp(-2)))


def crops_of(least: float, most: float, deletion: float) -> Crops:
    settings: Any = make_settings(
        method="contriever", crop_min=least, crop_max=most, deletion_rate=deletion
    )
    return Crops(settings, CPU)


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
    cropped, kept = crops_of(0.05, 0.5, 0.0)(ids, mask)
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
    whole = crops_of(1.0, 1.0, 0.1)
    cropped, kept = whole(ids, mask)
    rate = 1 - float((kept.sum(dim=1) - 2).sum()) / (400 * 500)
    assert rate == pytest.approx(0.1, abs=0.003)
    row = cropped[0, 1 : int(kept[0].sum()) - 1]
    assert (row.diff() > 0).all(), "the order of tokens is kept"
    assert torch.equal(crops_of(1.0, 1.0, 0.0)(ids, mask)[0], ids)


@pytest.mark.parametrize("lengths", [[3, 2, 4, 30], [2], [3, 3]], ids=str)
def test_short_documents_keep_a_token(lengths: list[int]) -> None:
    ids, mask = rows_of(lengths)
    crops = crops_of(0.05, 0.5, 0.99)
    for _ in range(30):
        cropped, kept = crops(ids, mask)
        sizes = kept.sum(dim=1).tolist()
        assert all(size >= min(3, length) for size, length in zip(sizes, lengths, strict=True))
        assert [row[size - 1] for row, size in zip(cropped.tolist(), sizes, strict=True)] == [
            3
        ] * len(lengths)


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
