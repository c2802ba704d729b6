"""Where the model of a study's best trial was saved, as it is recorded and as it is printed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SavedModel:
    """A saved model: the number of its trial, the name of the machine, and the folder there."""

    trial: int
    host: str
    folder: str

    @classmethod
    def of(cls, recorded: Mapping[str, Any] | None) -> "SavedModel | None":
        """The recorded model; None where none was."""
        return None if recorded is None else cls(**recorded)

    def __str__(self) -> str:
        return f"the model of trial {self.trial} is on host {self.host} in folder {self.folder}"
