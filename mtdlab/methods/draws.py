"""Random draws of a method, with a generator that is part of the state dict."""

import torch
from torch import Tensor, nn


class RandomDraws(nn.Module):
    """A module with a random generator of its own, so that a resumed run draws the same numbers.

    The draws of other modules do not depend on how many it makes.
    """

    def __init__(self, seed: int, device: torch.device) -> None:
        super().__init__()
        self._generator = torch.Generator(device).manual_seed(seed)

    def uniform(self, like: Tensor) -> Tensor:
        """Uniform draws in [0, 1) in float64, of the shape and device of `like`."""
        return torch.rand(
            like.shape, generator=self._generator, device=like.device, dtype=torch.float64
        )

    def get_extra_state(self) -> Tensor:
        """The generator's state, for the state dict."""
        return self._generator.get_state()

    def set_extra_state(self, state: Tensor) -> None:
        """Restore the generator's state."""
        self._generator.set_state(state.cpu())
