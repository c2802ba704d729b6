"""All built-in methods pass the conformance checks; the checks detect violations."""

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch import Tensor

from mtdlab.errors import MtdlabError
from mtdlab.methods.base import Method, Step, Tokens
from mtdlab.methods.mocose import MoCoSE
from mtdlab.methods.registry import BUILTIN, find_method, register
from mtdlab.methods.simcse import SimCSE
from mtdlab.testing import (
    Check,
    check_failed_loss,
    check_keys_follow_the_loss,
    check_probe,
    check_resume,
    check_state_round_trip,
    method_checks,
    run_check,
)
from tests.conftest import SHORT_PROMPTS

VARIANTS: dict[str, dict[str, Any]] = {
    "mocose": {"queue_size": 20, "initial_queue_size": 5, "fgsm_epsilon": 1e-3},
    "mocose-paper": {"preset": "paper", "queue_size": 20, "fgsm_epsilon": 1e-3},
    "mocose-published": {"preset": "published-code", "queue_size": 20, "initial_queue_size": 5},
    "mocose-noise": {"queue_size": 20, "augmentation": "token-cutoff:0.2+position-shuffle"},
    "mocose-parts": {
        "queue_size": 20,
        "positive_branch": "online",
        "target": "frozen",
        "equivalent_negatives": 64,
    },
    "xbm": {"queue_size": 20},
    "sncse": SHORT_PROMPTS,
    "hicl": {"segment_length": 4, "entailment_weight": 0.01},
    "hicl-esimcse": {"backbone": "esimcse", "segment_length": 4, "queue_size": 20},
    "hicl-mocose": {"backbone": "mocose", "segment_length": 4, "fgsm_epsilon": 1e-3},
    "hicl-sncse": {"backbone": "sncse", "segment_length": 8, **SHORT_PROMPTS},
}
CASES = {name: {} for name in BUILTIN if name not in VARIANTS} | VARIANTS
LONG = CASES.keys() - BUILTIN.keys()
"""Cases that combine what other cases hold."""


@pytest.mark.parametrize("check", method_checks(), ids=lambda check: check.__name__)
@pytest.mark.parametrize(
    "case",
    [pytest.param(case, marks=[pytest.mark.slow] if case in LONG else []) for case in CASES],
)
def test_our_methods_conform(check: Check, case: str, tiny_inputs: dict[str, Any]) -> None:
    name = case if case in BUILTIN else case.split("-")[0]
    run_check(check, find_method(name), **tiny_inputs, **CASES[case])


class ForgetfulNoise(SimCSE):
    """Draws from a generator that is not in its state dict."""

    name = "forgetful-noise"

    def __init__(self, encoder: Any, settings: Any, device: Any) -> None:
        super().__init__(encoder, settings, device)
        self.generator = torch.Generator().manual_seed(0)

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        result = super().forward(step, views)
        return Step(result.loss * (1 + torch.rand((), generator=self.generator)))


class EarlyQueue(MoCoSE):
    """Enqueues before the loss."""

    name = "early-queue"

    def loss(self, queries: Any, keys: Any) -> Any:
        self.queue.enqueue(keys.detach())
        return super().loss(queries, keys)


class Undetached(MoCoSE):
    """Returns keys that require a gradient."""

    name = "undetached"

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        result = super().forward(step, views)
        assert result.keys is not None
        return Step(result.loss, result.keys * result.loss, result.measures)


class Hasty(MoCoSE):
    """Enqueues a key before it reads the batch."""

    name = "hasty"

    def forward(self, step: int, views: Sequence[Tokens]) -> Step:
        self.queue.enqueue(torch.ones(1, 16))
        return super().forward(step, views)


class Restless(MoCoSE):
    """Draws a random number for its keys."""

    name = "restless"

    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        return super().keys(ids, mask) * (1 + 0 * torch.rand(()))


class Encoders(MoCoSE):
    """Has a queue, but gives the encoder's vectors as keys."""

    name = "encoders"
    keys = Method.keys


class Long(SimCSE):
    """Keys that are not unit vectors."""

    name = "long"

    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        return 2 * super().keys(ids, mask)


class Unsettled(SimCSE):
    """Leaves its encoder in evaluation mode."""

    name = "unsettled"

    def keys(self, ids: Tensor, mask: Tensor) -> Tensor:
        self.encoder.eval()
        return super().keys(ids, mask)


@pytest.mark.parametrize(
    ("method", "check", "message"),
    [
        (
            ForgetfulNoise,
            check_resume,
            "resumed at step 1, the curve 'loss' differs; is a tensor, .* missing from the state",
        ),
        (EarlyQueue, check_keys_follow_the_loss, "the queue after the forward pass"),
        (Undetached, check_keys_follow_the_loss, "require a gradient"),
        (Hasty, check_failed_loss, "the queue after a loss that raised"),
        (Restless, check_probe, "the state after keys"),
        (Encoders, check_probe, "a method with a queue must override keys"),
        (Long, check_probe, "does not return unit vectors"),
        (Unsettled, check_probe, "probed at every step, the curve 'loss' differs"),
    ],
)
def test_what_breaks_the_contract_is_found(
    method: type[Method[Any]],
    check: Check,
    message: str,
    tiny_inputs: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the fast forward pass ignores the mode
    monkeypatch.setattr("mtdlab.encoders.pooling.is_fast", lambda _: False)
    with pytest.raises(AssertionError, match=message):
        run_check(check, method, **tiny_inputs)


def test_the_encoder_of_a_method_that_is_not_built_is_explained(
    tiny_inputs: dict[str, Any],
) -> None:
    class Hurried(SimCSE):
        """Reads its encoder before the constructor of its parent has run."""

        name = "hurried"

        def __init__(self, encoder: Any, settings: Any, device: Any) -> None:
            self.width = self.encoder.config.hidden_size
            super().__init__(encoder, settings, device)

    message = "method hurried: self.encoder is one of parts.*; in __init__ use the argument encoder"
    with pytest.raises(MtdlabError, match=message):
        run_check(check_resume, Hurried, **tiny_inputs)


def test_a_state_that_is_not_restored_is_found(
    tiny_inputs: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(MoCoSE, "load_state_dict", lambda *_, **__: ((), ()))
    with pytest.raises(AssertionError, match="state"):
        run_check(check_state_round_trip, MoCoSE, **tiny_inputs, **VARIANTS["mocose"])


def test_a_class_that_is_not_a_method_is_refused() -> None:
    class Other:
        """Not a method."""

        name = "other"

    with pytest.raises(MtdlabError, match="is not a subclass of mtdlab"):
        register(Other)  # type: ignore[arg-type]
