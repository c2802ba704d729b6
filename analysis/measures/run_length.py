"""Whether a run is long enough for its maximum traceable distance (MTD).

An MTD is the age that weights and keys have when the target branch has lost its initial weights and
the queue is full. In a run that ends before, they never have this age.

Letters: eta EMA decay, K queue size, N batch size, S steps of a run.
"""

import math
from dataclasses import dataclass

from analysis.measures.trace import EmaDecay

NOTABLE = 0.25
"""The share of the steps above which a part of the MTD, 1/(1 - eta) or K/N, is reported."""
MOST_REMAINING = 0.1
"""The share of the initial weights above which a run is too short for its decay."""
MOST_FILLING = 0.5
"""The share of the steps above which K/N is too large for the run."""


@dataclass(frozen=True)
class RunLength:
    """The parts of an MTD beside the length of the run. NaN: not known.

    Attributes:
        steps: S.
        trace: 1/(1 - eta) in steps, of a schedule its mean.
        batches: K/N, the steps until a queue holds K keys of the run; 0 without a queue.
        remaining: share of the initial weights in the target branch after S steps, eta^S, of a
            schedule the product of the decays.
    """

    steps: int
    trace: float
    batches: float
    remaining: float

    @property
    def filling(self) -> float:
        """The share of the steps during which the queue does not hold K keys of the run."""
        return min(self.batches / self.steps, 1.0)

    @property
    def is_slow(self) -> bool:
        """Whether 1/(1 - eta) exceeds a quarter of the steps, or too much of the start remains."""
        return self.trace > NOTABLE * self.steps or self.remaining > MOST_REMAINING

    @property
    def is_filling(self) -> bool:
        """Whether K/N exceeds a quarter of the steps."""
        return self.batches > NOTABLE * self.steps

    @property
    def is_beyond(self) -> bool:
        """Whether eta^S is above 0.1 or K/N above half of the steps: the MTD is not reached."""
        return self.remaining > MOST_REMAINING or self.batches > MOST_FILLING * self.steps


def assess_run(
    ema_decay: EmaDecay | float, queue_size: float, batch_size: float, steps: int
) -> RunLength:
    """The parts of a run's MTD beside its steps.

    Args:
        ema_decay: its schedule, or a constant; NaN where it is not known.
        queue_size, batch_size: NaN where they are not known; the batch size includes gradient
            accumulation.

    Raises:
        ValueError: for fewer than 1 step, and a decay outside [0, 1).
    """
    if steps < 1:
        raise ValueError(f"steps is {steps}; it must be at least 1")
    decay = ema_decay if isinstance(ema_decay, EmaDecay) else EmaDecay(ema_decay)
    trace = remaining = math.nan
    if not math.isnan(decay.start):
        trace, remaining = decay.trace(steps), decay.remaining(steps)
    return RunLength(steps, trace, queue_size / batch_size, remaining)
