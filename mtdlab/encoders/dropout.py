"""Dropout with a fast random generator for CPUs.

On CPUs torch draws the numbers of dropout sequentially, which takes a seventh of the training step
of a small encoder. NumPy's SFC64 generates four 16-bit numbers at a time.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.functional import dropout as torch_dropout

LEVELS = 1 << 16


class Dropout(nn.Module):
    """Inverted dropout: an element is 0 with probability `rate`, else divided by 1 − rate.

    Each element uses 16 bits, which would round the rate to a multiple of 1/65,536. Therefore the
    threshold of a mask is drawn from the two adjacent integers, so that the rate is exact in
    expectation. On GPUs, and everywhere if it is `replayed`, torch's dropout is used: losses that
    encode a batch twice repeat its draws. The generator's state is part of the state dict.
    """

    def __init__(self, rate: float, seed: int, *, replayed: bool = False) -> None:
        super().__init__()
        self.rate, self.replayed = rate, replayed
        self._bits = np.random.SFC64(seed)
        self._whole, self._part = divmod(rate * LEVELS, 1)

    def forward(self, values: Tensor) -> Tensor:
        """`values` after dropout, of any shape."""
        if not self.rate:
            return values
        if self.replayed or values.device.type != "cpu":
            return torch_dropout(values, self.rate)
        return values * self._mask(values)

    def add(self, values: Tensor, residual: Tensor) -> Tensor:
        """The sum residual + dropout(values), of equal shapes."""
        if not self.rate or self.replayed or values.device.type != "cpu":
            return residual + self.forward(values)
        return torch.addcmul(residual, values, self._mask(values))

    def _mask(self, like: Tensor) -> Tensor:
        """0 or 1 / (1 − rate) at every element of `like`."""
        count = like.numel()
        chance = float(self._bits.random_raw()) / 2**64
        threshold = int(self._whole) + (chance < self._part)
        draws = self._bits.random_raw(math.ceil(count / 4)).view(np.int16)[:count]
        # NumPy's comparison and conversion take a third of torch's time. The draws are signed,
        # hence the shift by half of the levels
        kept = draws >= threshold - LEVELS // 2
        mask = np.multiply(kept, 1 / (1 - self.rate), dtype=np.float32)
        return torch.from_numpy(mask).to(like.dtype).view(like.shape)

    def get_extra_state(self) -> Tensor:
        """The generator's state, four words as int64."""
        words: NDArray[np.uint64] = self._bits.state["state"]["state"]
        return torch.from_numpy(words.view(np.int64).copy())

    def set_extra_state(self, state: Tensor) -> None:
        words = state.numpy().view(np.uint64)
        self._bits.state = {**self._bits.state, "state": {"state": words}}


NO_DROPOUT = Dropout(0.0, 0)


@contextmanager
def evaluation_mode(module: nn.Module, *, wanted: bool = True) -> Iterator[None]:
    """Evaluation mode (no dropout) if `wanted`; then the mode of each submodule is restored."""
    training = [part for part in module.modules() if part.training and wanted]
    for part in training:
        part.training = False
    try:
        yield
    finally:
        for part in training:
            part.training = True
