"""The settings of a program's trial: free names with plain values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from analysis.trace import d_trace

Scalar = bool | int | float | str


@dataclass(frozen=True)
class ProgramSettings:
    """The settings of one trial.

    method  the program's reference, recorded where a trial of mtdlab's has its method.
    values  what the program receives, by name; the seed is not among them.
    """

    method: str
    seed: int
    values: Mapping[str, Scalar] = field(hash=False)

    @property
    def mtd(self) -> float | None:
        """Maximum traceable distance in steps; None unless the three settings behind it are there.

        None too where one of them is no number or out of its range, such as an EMA decay of 1.
        """
        found = [self.values.get(name) for name in ("ema_decay", "queue_size", "batch_size")]
        numbers = [
            each for each in found if isinstance(each, int | float) and not isinstance(each, bool)
        ]
        if len(numbers) < len(found):
            return None
        try:
            return d_trace(*numbers)
        except ValueError:
            return None

    def model_dump(self) -> dict[str, Any]:
        """Every setting by name, as `TrainerSettings.model_dump`."""
        return {"method": self.method, **self.values, "seed": self.seed}
