"""The study of a program of the user: its settings are those that its file names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from mtdlab.config.search import resolve
from mtdlab.config.study import StudySpec
from mtdlab.programs import Program, ProgramSettings
from mtdlab.settings import Setting


@dataclass(frozen=True, kw_only=True)
class ProgramSpec(StudySpec):
    """A checked study whose trials a program trains.

    named  every setting that the sections trainer and search name.
    """

    program: Program
    named: Mapping[str, Setting] = field(hash=False)

    @property
    def methods(self) -> tuple[str, ...]:
        """The program stands for a method in what is recorded."""
        return (self.program.reference,)

    @property
    def known(self) -> Mapping[str, Setting]:
        """Every setting of the study, by name."""
        return self.named

    def selections(self) -> set[str]:
        """None: which data a program selects on is not known."""
        return set()

    def settings(self, parameters: dict[str, Any], seed: int) -> ProgramSettings:
        """The settings of one trial."""
        # a multiple is one of a setting that the file names
        values = resolve(self.search, parameters, self.trainer, lambda name, _: self.trainer[name])
        return ProgramSettings(self.program.reference, seed, values)

    def parameters_of(self, point: Mapping[str, Any]) -> dict[str, Any]:
        """The point as it is: a program has all settings."""
        return dict(point)

    def identity(self) -> dict[str, Any]:
        """That of every study, with the program."""
        return super().identity() | {"objective": self.program.reference}

    @property
    def imports(self) -> dict[str, str]:
        """SHA-256 of the program's module, by its name."""
        return {self.program.module.name: self.program.module.sha256}

    def ensure_imported(self) -> None:
        """Import the program. Raises MtdlabError where it has changed."""
        self.program.ensure_imported()

    def described_methods(self) -> dict[str, Any]:
        """The program and its settings, as a study records methods."""
        settings = {
            name: {
                "symbol": setting.symbol,
                "unit": setting.unit,
                "description": setting.description,
                "default": None,
            }
            for name, setting in self.named.items()
        }
        reference = self.program.reference
        return {reference: {"title": reference, "settings": settings}}

    def _dumped(self, method: str) -> dict[str, Any]:
        del method
        return {name: value for name, value in self.trainer.items() if name not in self.search}
