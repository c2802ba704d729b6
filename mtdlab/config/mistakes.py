"""The mistakes of a study file: collected over all checks, then reported together."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from mtdlab.config.source import KeyPath, Source, SpecError
from mtdlab.settings.limits import MISTAKES

Value = TypeVar("Value")


class Mistakes:
    """Mistakes so far. A check that reads a key with a mistake is left out by its caller: what it
    would find may follow from that mistake.
    """

    def __init__(self, source: Source) -> None:
        self._name = source.name
        self._found: list[SpecError] = list(source.mistakes)

    def collect(self, errors: Iterable[SpecError]) -> None:
        """Add what a check yields; one that is known at the same place is left out.

        Raises SpecError once there are `MISTAKES`, since each of them takes time to describe.
        """
        known = {(each.place, each.sentence) for each in self._found}
        for error in errors:
            if (error.place, error.sentence) not in known:
                known.add((error.place, error.sentence))
                self._found.append(error)
                if len(self._found) >= MISTAKES:
                    self.raise_all()

    def attempt(self, read: Callable[[], Value]) -> Value | None:
        """What `read` returns; None, with its mistakes added, where it raises SpecError."""
        try:
            return read()
        except SpecError as error:
            self.collect(error.mistakes)
            return None

    def sound(self, *paths: KeyPath) -> bool:
        """Whether there is no mistake at, above or below any of these keys."""
        return not any(
            path[: len(found.path)] == found.path or found.path[: len(path)] == path
            for found in self._found
            for path in paths
        )

    def readable(self, *sections: KeyPath) -> bool:
        """Whether none of these sections is itself a mistake, whatever is in it."""
        return not any(found.path == section for found in self._found for section in sections)

    def raise_all(self) -> None:
        """Raise SpecError with every mistake, in the order of the file, where there is one."""
        if len(self._found) == 1:
            raise self._found[0]
        if self._found:
            ordered = sorted(self._found, key=lambda each: each.place or (0, 0))
            full = len(ordered) >= MISTAKES
            head = f"{f'{MISTAKES} or more' if full else len(ordered)} mistakes in {self._name}"
            message = "\n".join([head, *map(str, ordered)])
            raise SpecError(message, sentence=head, mistakes=tuple(ordered))
