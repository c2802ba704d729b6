"""Settings of the methods beside MoCoSE: published defaults, relations, and what is refused."""

from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from mtdlab.methods.base import View
from mtdlab.methods.registry import find_method, make_settings

DEFAULTS: dict[str, dict[str, Any]] = yaml.safe_load("""
consert:
  {first_perturbation: feature-cutoff:0.2, second_perturbation: position-shuffle, pooling: last2,
  temperature: 0.1, batch_size: 96, max_length: 64, learning_rate: 5.0e-7, dropout: 0.0,
  evaluate_every: 200, mtd: null}
contriever:
  {ema_decay: 0.9995, queue_size: 131072, initial_queue_size: 131072, batch_size: 2048, mtd: 2064,
  warmup_steps: 20000, steps: 500000, learning_rate: 5.0e-5, temperature: 0.05, max_length: 256,
  deletion_rate: 0.1, pooling: mean, crop_min: 0.05, crop_max: 0.5, normalise: false}
esimcse:
  {ema_decay: 0.995, queue_size: 160, batch_size: 64, mtd: 202.5, temperature: 0.05,
  repetition_rate: 0.32, repetition_draw: paper, evaluate_every: 125}
mixcse:
  {mixing: paper, mixing_weight: 0.2, temperature: 0.05, evaluate_every: 125, batch_size: 64,
  mtd: null}
sncse:
  {batch_size: 256, learning_rate: 1.0e-5, pooling: mask, mtd: null, margin_low: 0.1,
  margin_high: 0.3, margin_weight: 1.0e-3, prompt: 'This sentence : " {sentence} " means {mask} .',
  second_prompt: 'This sentence of " {sentence} " means {mask} .'}
""")
TOLD = {
    "consert": "made by feature-cutoff:0.2 and position-shuffle of the embeddings.",
    "contriever": "a maximum traceable distance of 2064.00 steps.",
    "esimcse": "a maximum traceable distance of 202.50 steps.",
    "mixcse": "mixtures of them with the sentence itself, of weight 0.2.",
    "sncse": "its soft negatives the negations of the sentences.",
}


@pytest.mark.parametrize("method", DEFAULTS)
def test_the_defaults_are_the_published_ones(method: str) -> None:
    settings, values = make_settings(method=method), DEFAULTS[method]
    found = {name: getattr(settings, name) for name in values}
    assert found.pop("mtd") == pytest.approx(values["mtd"])
    assert found | {"mtd": values["mtd"]} == values
    assert find_method(method).describe(settings).endswith(TOLD[method])


def test_contriever_reads_documents() -> None:
    settings = make_settings(method="contriever")
    assert find_method("contriever").views(settings) == (View(document=True),)


RELATED = yaml.safe_load("""
- [esimcse, {batch_size: 64}, {queue_size: 160}]
- [esimcse, {batch_size: 32}, {queue_size: 80}]
- [esimcse, {batch_size: 7}, {queue_size: 17}]
- [esimcse, {batch_size: 256}, {queue_size: 640}]
- [esimcse, {batch_size: 32, queue_size: 3}, {queue_size: 3}]
- [contriever, {ema_decay: 0.999, queue_size: 32768, batch_size: 4096}, {mtd: 1008}]
- [contriever, {batch_size: 32, steps: 500}, {queue_size: 2048, warmup_steps: 20, mtd: 2064}]
- [contriever, {batch_size: 32}, {initial_queue_size: 2048}]
- [contriever, {queue_size: 100, warmup_steps: 3}, {initial_queue_size: 100, warmup_steps: 3}]
""")


@pytest.mark.parametrize(("method", "given", "values"), RELATED, ids=str)
def test_defaults_follow_other_settings(
    method: str, given: dict[str, Any], values: dict[str, float]
) -> None:
    settings = make_settings(method=method, **given)
    assert {name: getattr(settings, name) for name in values} == pytest.approx(values)


REFUSED: dict[str, list[tuple[dict[str, Any], str]]] = {
    "mocose": [({"prediction_dim": 6, "projection_layers": 0}, "needs projection_layers of 1 or")],
    "consert": [
        ({"batch_size": 1}, "batch_size 1 leaves no negatives"),
        ({"first_perturbation": "typos:0.1"}, "choose from none, position-shuffle"),
        ({"second_perturbation": "dropout:1.5"}, "as in feature-cutoff:0.2"),
        ({"second_perturbation": "position-shuffle:0.2"}, "choose from none, position-shuffle"),
        ({"first_perturbation": "none", "second_perturbation": "none"}, "make equal views"),
    ],
    "contriever": [
        ({"queue_size": 0}, "greater than or equal to 1"),
        ({"queue_size": 8, "initial_queue_size": 9}, "initial_queue_size 9 exceeds queue_size 8"),
        ({"crop_min": 0.6}, "crop_min 0.6 exceeds crop_max 0.5"),
        ({"crop_max": 1.5}, "less than or equal to 1"),
        ({"deletion_rate": 1.0}, "less than 1"),
        ({"prompt": "a {sentence}"}, "documents, which have no prompt"),
        ({"warmup_steps": 10, "steps": 10}, "warmup_steps 10 leaves no step"),
    ],
    "esimcse": [
        ({"batch_size": 1}, "batch_size 1 leaves no negatives"),
        ({"batch_size": "64"}, "valid integer"),
        ({"ema_decay": 1.0}, "less than 1"),
        ({"queue_size": -1}, "greater than or equal to 0"),
        ({"repetition_rate": 1.5}, "less than or equal to 1"),
        ({"repetition_draw": "words"}, "'paper' or 'published-code'"),
        ({"initial_queue_size": 5}, "Extra inputs are not permitted"),
    ],
    "mixcse": [
        ({"batch_size": 1}, "batch_size 1 leaves no negatives"),
        ({"mixing_weight": 1.0}, "less than 1"),
        ({"mixing_weight": -0.1}, "greater than or equal to 0"),
        ({"mixing": "mixup"}, "'paper' or 'published-code'"),
        ({"queue_size": 64}, "Extra inputs are not permitted"),
    ],
    "sncse": [
        ({"batch_size": 1}, "batch_size 1 leaves no negatives"),
        ({"margin_low": 0.4}, "margin_low 0.4 is above margin_high 0.3"),
        ({"second_prompt": "{sentence}"}, "pooling mask needs a prompt"),
        ({"second_prompt": "a {sentence} {mask}"}, "must have as many words as prompt"),
    ],
    "hicl": [
        ({"queue_size": 64}, "queue_size is not a setting of the backbone simcse"),
        ({"preset": "paper"}, "preset paper: the backbone simcse has intended, published-code"),
        ({"backbone": "mixcse"}, "Input should be 'simcse', 'esimcse', 'mocose' or 'sncse'"),
        ({"backbone": "mocose", "preset": "paper"}, "fgsm_gradient current: its extra pass"),
        ({"backbone": "esimcse", "batch_size": 1}, "batch_size 1 leaves no negatives"),
        ({"segment_length": 0}, "greater than or equal to 1"),
        ({"backbone": "sncse", "segment_length": 10}, "leaves no tokens for the sentence"),
    ],
}


@pytest.mark.parametrize(
    ("method", "changed", "reason"),
    [(method, *case) for method, every in REFUSED.items() for case in every],
    ids=str,
)
def test_settings_that_cannot_be_trained_are_refused(
    method: str, changed: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValidationError, match=reason):
        make_settings(method=method, **changed)
