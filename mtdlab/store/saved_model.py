"""Where the model of a study's best trial was saved, as it is recorded and as it is printed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SavedModel:
    """A saved model: the number of its trial, the name of the machine, and the folder there.

    A folder that all machines share is a URL.
    """

    trial: int
    host: str
    folder: str

    @classmethod
    def of(cls, recorded: Mapping[str, Any] | None) -> "SavedModel | None":
        """The recorded model; None where none was."""
        return None if recorded is None else cls(**recorded)

    @property
    def is_shared(self) -> bool:
        """Whether other machines have it too."""
        return "://" in self.folder

    @property
    def path(self) -> str:
        """The folder; a shared one as a path where it has one, else as its URL."""
        return self.folder.removeprefix("file://")

    def __str__(self) -> str:
        if self.is_shared:
            return f"the model of trial {self.trial} is in {self.path}"
        return f"the model of trial {self.trial} is on host {self.host} in folder {self.folder}"
