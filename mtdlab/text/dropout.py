"""Dropout from a fast stream of random bits.

On a processor torch draws dropout's numbers one after another, which takes a seventh of a small
encoder's step. NumPy's SFC64 gives four 16-bit draws at a time.
"""

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import dropout as torch_dropout

LEVELS = 1 << 16


class Dropout:
    """Inverted dropout: an element is 0 with probability `rate`, else divided by 1 − rate.

    16 bits decide an element, which alone would round the rate to 1/65,536; the threshold of a
    mask is itself drawn between the two neighbours, so that the rate is exact. On a GPU, torch's
    own, which is fast there.
    """

    def __init__(self, rate: float, seed: int) -> None:
        self.rate = rate
        self._bits = np.random.SFC64(seed)
        self._whole, self._part = divmod(rate * LEVELS, 1)

    def __call__(self, values: Tensor) -> Tensor:
        """`values` after dropout, of any shape."""
        if not self.rate:
            return values
        if values.device.type != "cpu":
            return torch_dropout(values, self.rate)
        return values * self._mask(values)

    def add(self, values: Tensor, residual: Tensor) -> Tensor:
        """residual + dropout(values), of one shape."""
        if not self.rate or values.device.type != "cpu":
            return residual + self(values)
        return torch.addcmul(residual, values, self._mask(values))

    def _mask(self, like: Tensor) -> Tensor:
        """0 or 1 / (1 − rate) at every element of `like`."""
        count = like.numel()
        chance = float(self._bits.random_raw()) / 2**64
        threshold = int(self._whole) + (chance < self._part)
        draws = self._bits.random_raw(math.ceil(count / 4)).view(np.int16)[:count]
        # int16 because torch has no ordered uint16: half of the levels lie below zero
        kept = torch.from_numpy(draws) >= threshold - LEVELS // 2
        return kept.to(like.dtype).mul_(1 / (1 - self.rate)).view(like.shape)


NO_DROPOUT = Dropout(0.0, 0)
