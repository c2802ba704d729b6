"""A command of mtdlab with what it was given, as a study records the one that ran it."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from mtdlab.analysis.data.defaults import COMES_AGAIN


@dataclass(frozen=True)
class Invocation:
    """A command; the empty one is none.

    Attributes:
        command: its name, such as sweep.
        arguments: a study file, or names.
        options: the values of each option by its name without dashes; a flag has none.
    """

    command: str = ""
    arguments: tuple[str, ...] = ()
    options: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.command)

    @property
    def words(self) -> list[str]:
        """The program and what it is given."""
        words = ["mtdlab", self.command, *self.arguments]
        for name, values in self.options.items():
            words += [word for value in values for word in (f"--{name}", value)] or [f"--{name}"]
        return words

    def __str__(self) -> str:
        """The command for a shell; empty for none."""
        return shlex.join(self.words) if self else ""

    def value(self, option: str) -> str:
        """The last value of an option; empty for one that was not given."""
        values = self.options.get(option, ())
        return values[-1] if values else ""

    def adding(self, option: str, *values: str) -> "Invocation":
        """The command with more values of an option, or with a flag."""
        return self.giving(option, *self.options.get(option, ()), *values)

    def giving(self, option: str, *values: str) -> "Invocation":
        """The command with these values of an option alone, or with a flag, at its end."""
        options = {**self.without(option).options, option: values}
        return Invocation(self.command, self.arguments, options)

    def without(self, option: str) -> "Invocation":
        """The command without an option."""
        kept = {name: values for name, values in self.options.items() if name != option}
        return Invocation(self.command, self.arguments, kept)

    @property
    def has_own_code(self) -> bool:
        """Whether it runs a module of the user, whose mistakes may be mended."""
        named = [*self.options.get("import", ()), *self.options.get("evaluator", ())]
        return bool(named) or any(":" in value for value in self.options.get("objective", ()))

    def may_mend(self, codes: Iterable[str]) -> bool:
        """Whether trials that failed with these codes may end otherwise where they run again.

        In code of the user a loss that is not finite, or a collapse, may be a mistake that was
        mended.
        """
        return any(self.has_own_code or code not in COMES_AGAIN for code in codes)

    def retrying(self, *, changed_code: bool = False) -> "Invocation":
        """The command that runs failed trials again, with the user's code as it is then."""
        retry = self.adding("retry-failed")
        return retry.adding("changed-code") if self.has_own_code or changed_code else retry

    def changed(self, change: Callable[[str], str]) -> "Invocation":
        """The command with each argument and value changed."""
        options = {name: tuple(map(change, values)) for name, values in self.options.items()}
        return Invocation(self.command, tuple(map(change, self.arguments)), options)


NO_INVOCATION = Invocation()
ANY_SWEEP = Invocation("sweep", ("FILE",))
"""Stands for the command of a study that recorded none."""
