"""One run's settings: bounds, combinations, MTD."""

import math
from typing import Any

import pytest
from pydantic import ValidationError

from mtdlab.errors import MtdlabError
from mtdlab.methods.mocose import MoCoSESettings
from mtdlab.methods.mocose_settings import parse_slices
from mtdlab.methods.registry import make_settings

EMPTY = {"queue_size": 0, "initial_queue_size": 0}
TRANSFORMERS = {"adam_formula": "transformers"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"ema_decay": 1}, "less than 1"),
        ({"ema_decay": -0.1}, "greater than or equal to 0"),
        ({"ema_decay_end": 1.1}, "less than or equal to 1"),
        ({"ema_schedule_steps": 0}, "greater than or equal to 1"),
        ({"ema_order": "first"}, "'after-step' or 'before-target'"),
        ({"queue_fill": "full"}, "'exact' or 'published'"),
        ({"fgsm_gradient": "next"}, "'previous' or 'current'"),
        ({"preset": "published"}, "has intended, paper, published-code"),
        ({"preset": ["paper"]}, "has intended, paper, published-code"),
        ({"augmentation": "token-cutoff"}, "needs a share above 0"),
        ({"queue_clusters": -1}, "greater than or equal to 0"),
        ({"queue_clusters": 513}, "queue_clusters 513 exceeds the 512 positions in use"),
        ({"temperature": 0}, "greater than 0"),
        ({"temperature": -0.05}, "greater than 0"),
        ({"temperature": math.nan}, "finite"),
        ({"learning_rate": math.inf}, "finite"),
        ({"learning_rate": 0}, "greater than 0"),
        ({"dropout": 1}, "less than 1"),
        ({"max_length": 2}, "greater than or equal to 3"),
        ({"batch_size": 0}, "greater than or equal to 1"),
        ({"queue_size": -1}, "greater than or equal to 0"),
        ({"steps": 0}, "greater than or equal to 1"),
        ({"steps": True}, "valid integer"),
        ({"steps": "50"}, "valid integer"),
        ({"batch_size": 2.5}, "valid integer"),
        ({"device": "tpu"}, "pattern"),
        ({"precision": "float16"}, "'auto', 'float32' or 'bfloat16'"),
        ({"queue_slice": "5-5"}, "is no range"),
        ({"queue_slice": "newest"}, "is no range"),
        ({"encoder": ""}, "at least 1 character"),
        ({"stepz": 5}, "not permitted"),
        ({"batch_size": 1} | EMPTY, "leaves no negatives"),
        ({"in_batch_negatives": False} | EMPTY, "with batch_size 1 or without in_batch_negatives"),
        ({"queue_size": 64, "initial_queue_size": 128}, "initial_queue_size 128 exceeds queue_siz"),
        ({"queue_slice": "0-513"}, "0-513 lies outside queue_size 512"),
        ({"steps": 40, "probe_every": 40}, "probe_every 40 gives fewer than two probes in 40 step"),
        ({"method": "simcse", "preset": "paper"}, "has intended, published-code"),
        ({"method": "contriever", "preset": "best"}, "preset 'best': the method has"),
        ({"method": "esimcse", "target_initialisation": "random", "lora_rank": 4}, "share the"),
        ({"method": "simcse", "batch_size": 1}, "leaves no negatives"),
        ({"training_pooling": "mask"}, "pooling mask needs a prompt"),
        ({"adam_beta2": 1.0}, "less than 1"),
        ({"loss_weight": 0.0}, "greater than 0"),
        ({"augmentation_draw": "published-code", "segment_length": 16}, "needs segment_length 0"),
        ({"learning_rate": 1.0, "weight_decay": 1.0} | TRANSFORMERS, "takes of each weight"),
        ({"sentences": 63}, "sentences 63 are less than one batch of batch_size 64"),
        ({"sentences": 6400, "steps": 99}, "are 100 steps of batch_size 64, but steps is 99; give"),
        ({"sentences": 6336}, "are 99 steps of batch_size 64, fewer than evaluate_every 100"),
        ({"sentences": 0}, "greater than or equal to 1"),
        ({"evaluate_every": 0.0}, "valid integer"),
        ({"warmup_steps": 1.5}, "valid integer"),
        ({"steps": 0.5}, "valid integer"),
        ({"steps": 10, "warmup_steps": 0.95}, "warmup_steps 10 leaves no step at the full"),
        ({"queue_slice": "0-64", "steps": 6}, "6 steps of batch_size 64 do not fill queue_size 51"),
    ],
)
def test_what_cannot_be_trained_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_settings(**values)


@pytest.mark.parametrize(
    "values",
    [
        {"batch_size": 1, "queue_size": 1, "initial_queue_size": 1},
        {"batch_size": 2, "queue_size": 0, "initial_queue_size": 0},
        {"queue_size": 100, "initial_queue_size": 100, "batch_size": 64},
        {"ema_decay": 0, "dropout": 0, "fgsm_epsilon": 0, "max_length": 3, "weight_decay": 0},
    ],
    ids=str,
)
def test_values_at_their_bounds_are_accepted(values: dict[str, Any]) -> None:
    assert make_settings(**values).model_dump(include=set(values)) == values


@pytest.mark.parametrize(("batch", "steps", "every"), [(64, 320, 40), (96, 213, 27), (512, 40, 5)])
def test_sentences_and_shares_are_steps_of_the_batch_size(
    batch: int, steps: int, every: int
) -> None:
    """20,480 / 96 is 213.3, and an eighth of it 26.6."""
    given = {"sentences": 20480, "batch_size": batch, "evaluate_every": 0.125, "warmup_steps": 0.1}
    settings = make_settings(**given)
    assert (settings.steps, settings.evaluate_every) == (steps, every)
    assert settings.warmup_steps == math.ceil(steps / 10)
    # as they are recorded, and read again
    assert make_settings(**settings.model_dump()) == settings
    assert make_settings(**given, steps=None) == settings


def test_a_preset_follows_the_steps_that_sentences_make() -> None:
    settings: Any = make_settings(
        method="contriever", batch_size=64, sentences=64000, evaluate_every=0.5
    )
    assert (settings.steps, settings.warmup_steps) == (1000, 40)
    published = make_settings(preset="published-code", sentences=256 * 700)
    assert (published.batch_size, published.steps) == (256, 700)


def test_settings_are_frozen() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        make_settings().steps = 3  # type: ignore[misc]


def test_a_section_lets_pass_what_only_fails_beside_another_setting() -> None:
    section = MoCoSESettings.partial({"queue_size": 64, "initial_queue_size": 128})
    assert (section.queue_size, section.initial_queue_size) == (64, 128)
    with pytest.raises(ValidationError, match="less than 1"):
        MoCoSESettings.partial({"dropout": 1})


@pytest.mark.parametrize(("size", "initial"), [(0, 0), (1, 1), (64, 64), (128, 128), (4096, 128)])
def test_a_queue_starts_with_128_random_keys_or_full(size: int, initial: int) -> None:
    assert make_settings(queue_size=size).model_dump()["initial_queue_size"] == initial
    given = make_settings(queue_size=size, initial_queue_size=0).model_dump()
    assert given["initial_queue_size"] == 0


def test_a_method_that_is_not_known_is_refused_with_the_nearest() -> None:
    with pytest.raises(MtdlabError, match="method 'moco' is not known; did you mean mocose"):
        make_settings(method="moco")


def test_slices() -> None:
    assert parse_slices("all") == []
    assert parse_slices("0-256, 768-1024") == [(0, 256), (768, 1024)]


def test_mtd_of_the_papers_optimum() -> None:
    settings = make_settings(ema_decay=0.85, queue_size=512, batch_size=64)
    assert settings.mtd == pytest.approx(1 / 0.15 + 8)


def test_mtd_of_a_schedule_that_reaches_1_is_that_of_its_start() -> None:
    settings = make_settings(preset="published-code", steps=20_000)
    assert settings.mtd == pytest.approx(1 / 0.25 + 256 / 256)


def test_simcse_has_no_mtd() -> None:
    assert make_settings(method="simcse").mtd is None
