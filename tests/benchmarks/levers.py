"""What each lever of the fast training step gains by itself: the step without it, beside the step.

    python tests/benchmarks/levers.py [--rounds N] [--steps N] [--corpus FILE]

Processor time of one thread, which other work on the machine disturbs less than the clock; every
round measures all, and what is printed is the median of its ratios. Not for GPUs.
"""

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from statistics import median
from unittest.mock import patch

import torch
import training_speed
from torch import Tensor
from torch.nn.functional import dropout, scaled_dot_product_attention
from training_speed import SIZES, seconds_per_step

from mtdlab.device import choose_device
from mtdlab.encoders import fast, pooling
from mtdlab.encoders.dropout import Dropout
from mtdlab.methods import mocose as model


def _first_of_all(*arguments: object) -> Tensor:
    return fast.all_tokens(*arguments)[0][:, 0]  # type: ignore[arg-type]


def _torch_dropout(self: Dropout, values: Tensor) -> Tensor:
    return dropout(values, self.rate)


def _added(self: Dropout, values: Tensor, residual: Tensor) -> Tensor:
    return residual + dropout(values, self.rate)


def _fused_attention(
    queries: Tensor, keys: Tensor, values: Tensor, *, bias: Tensor, dropout: Dropout
) -> Tensor:
    mask = bias.expand(-1, queries.shape[1], -1).to(queries.dtype)
    return scaled_dot_product_attention(queries, keys, values, mask, dropout.rate)


def _averaged(target: list[Tensor], online: list[Tensor], decay: float) -> None:
    for mine, theirs in zip(target, online, strict=True):
        mine.lerp_(theirs, 1 - decay)


@contextmanager
def _slow_dropout() -> Iterator[None]:
    with patch.object(Dropout, "forward", _torch_dropout), patch.object(Dropout, "add", _added):
        yield


_adamw = torch.optim.AdamW


def _unfused(*arguments: object, **named: object) -> torch.optim.AdamW:
    return _adamw(*arguments, **named | {"fused": False})  # type: ignore[arg-type]


WITHOUT: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "nothing (noise)": nullcontext,
    "packing of real tokens": lambda: patch.object(fast, "ROWS", 1 << 40),
    "[CLS] alone in the last layer": lambda: patch.object(pooling, "first_tokens", _first_of_all),
    "dropout from SFC64": _slow_dropout,
    "attention as plain products": lambda: patch.object(fast, "_attend", _fused_attention),
    "fused AdamW": lambda: patch.object(torch.optim, "AdamW", _unfused),
    "one lerp for the average": lambda: patch.object(model, "ema_update", _averaged),
    "all of it (BertModel)": training_speed.plainly,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="how often (default 5)")
    parser.add_argument("--steps", type=int, default=3, help="steps at the largest size")
    parser.add_argument("--corpus", metavar="FILE", help="a text to train on")
    given = parser.parse_args()
    torch.set_num_threads(1)
    device = choose_device(training_speed.settings_for(1))
    tokens = training_speed.sentences(given.corpus)
    for size in SIZES:
        inputs = training_speed.inputs_of(size, tokens, device)
        steps = given.steps * size.repeat
        measure = partial(seconds_per_step, inputs, steps, time.process_time)
        ratios = defaultdict(list)
        for _ in range(given.rounds):
            whole = measure()
            for name, without in WITHOUT.items():
                with without():
                    ratios[name].append(measure() / whole)
        print(f"{size}, {given.rounds} rounds, {device}: a step without it takes")
        for name, values in ratios.items():
            spread = f"({min(values):.2f} to {max(values):.2f})"
            print(f"  {name:31}{median(values):5.2f} x {spread}", flush=True)


if __name__ == "__main__":
    main()
