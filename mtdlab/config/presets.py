"""Values for the settings that a file does not give, by preset and by method.

`intended` has none of its own: it is the defaults. What a file gives always stands; to be rid of
a preset's schedule, for one, give `ema_decay_end: null`.
"""

from collections.abc import Mapping
from typing import Any, Literal

Preset = Literal["intended", "paper", "published-code"]
Method = Literal["mocose", "simcse"]

PAPER: dict[str, Any] = {
    # equation 3 sums over the queue alone, equation 1 takes the gradient of this very batch
    "in_batch_negatives": False,
    "fgsm_gradient": "current",
    # its one schedule; the constant 0.85 of `intended` is the best of its grid instead
    "ema_decay": 0.75,
    "ema_decay_end": 0.95,
}
"""What MoCoSE's text says. Its similarity is a dot product without a temperature, with which
nothing trains as published: cosine and 0.05 stay."""

PUBLISHED_CODE: dict[str, Any] = {
    "in_batch_negatives": True,
    "detach_keys": False,
    # its example starts at 0.75; the end and the number of calls stand in the program itself
    "ema_decay": 0.75,
    "ema_decay_end": 1.0,
    "ema_schedule_steps": 15_000,
    "ema_order": "before-target",
    "target_dropout": True,
    "fgsm_gradient": "previous",
    "queue_fill": "published",
    "select_on": "test",
}
"""What the program published with MoCoSE does in training. Its augmentations stay on in
evaluation and its transfer scores are cross-validated on training data: here neither."""

SIMCSE: dict[str, Any] = {
    "queue_size": 0,
    "initial_queue_size": 0,
    "queue_clusters": 0,
    "ema_decay": 0.0,
    "ema_decay_end": None,
    "detach_keys": False,
    "target_dropout": True,
    "in_batch_negatives": True,
    "projection_layers": 0,
    "prediction_layers": 0,
}
"""What SimCSE is: one encoder twice, and nothing that remembers. These cannot be otherwise."""

_PRESETS: dict[str, dict[str, Any]] = {"paper": PAPER, "published-code": PUBLISHED_CODE}
_METHODS = {"simcse": SIMCSE | {"fgsm_epsilon": 0.0, "evaluate_every": 125}}

DECIDE_OTHERS = ("preset", "method")
"""Settings that a search cannot vary: they only speak where others are not given yet."""


def filled(values: Mapping[str, Any]) -> dict[str, Any]:
    """Settings with those that preset and method have values for, where they are not given."""
    preset, method = (str(values.get(name)) for name in DECIDE_OTHERS)
    return {**_PRESETS.get(preset, {}), **_METHODS.get(method, {}), **values}
