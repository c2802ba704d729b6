"""What a sweep needs of a trial's settings, whatever trains it."""

from typing import Any, Protocol


class RunSettings(Protocol):
    """The settings of one trial: `TrainerSettings`, or those of a program of the user."""

    @property
    def mtd(self) -> float | None:
        """Maximum traceable distance in steps; None where there is none."""

    def model_dump(self) -> dict[str, Any]:
        """Every setting by name, with the method and the seed."""
