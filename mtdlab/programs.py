"""A program that is named on the command line: a function, imported and checked before its call.

docs/how-to/own-program.md has its arguments. Only `--objective` names it, never a study file. It is
imported again in each worker process.
"""

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import ModuleType, UnionType
from typing import Any, get_origin, get_type_hints

from mtdlab.analysis.measures.trace import PARTS, d_trace
from mtdlab.errors import MtdlabError, similar
from mtdlab.methods.registry import method_names
from mtdlab.settings.limits import is_number
from mtdlab.user_code import UserModule, digest, digest_as_imported, execute, find_function, locate


@dataclass(frozen=True)
class ProgramSettings:
    """The settings of one trial.

    Attributes:
        method: the program's reference, recorded where a trial of mtdlab's has its method.
        values: what the program receives, by name; the seed is not among them.
    """

    method: str
    seed: int
    values: Mapping[str, bool | int | float | str] = field(hash=False)

    @property
    def mtd(self) -> float | None:
        """Maximum traceable distance in steps; None unless the settings behind it have one."""
        numbers: list[Any] = [*filter(is_number, map(self.values.get, PARTS))]
        with suppress(ValueError):
            return d_trace(*numbers) if len(numbers) == len(PARTS) else None
        return None

    def model_dump(self) -> dict[str, Any]:
        """Every setting by name, as `TrainerSettings.model_dump`."""
        return {"method": self.method, **self.values, "seed": self.seed}


SIGNATURE = "train(settings, *, seed, checkpoints, report)"
RETURNS = "a mapping of names to scores, such as {'accuracy': 97.3}"


@dataclass(frozen=True)
class Program:
    """A function of an imported module, which may import modules of `folders` too."""

    module: UserModule
    function: str
    folders: tuple[str, ...]

    @property
    def reference(self) -> str:
        """MODULE:FUNCTION, as it is recorded, however it was written."""
        return f"{self.module.name}:{self.function}"

    def load(self) -> Callable[..., Any]:
        """The function. Raises MtdlabError where its file has changed since it was named."""
        function: Callable[..., Any] = getattr(_import(self), self.function)
        return function

    def uses(self) -> list[str]:
        """The packages that the program's module imports from, by their import names."""
        members = list(vars(_import(self)).values())
        names = [member.__name__ for member in members if isinstance(member, ModuleType)]
        names += [member.__module__ for member in members if inspect.isroutine(member)]
        names += [member.__module__ for member in members if inspect.isclass(member)]
        return list(dict.fromkeys(name.partition(".")[0] for name in names if name))


def find_program(reference: str, folders: Iterable[Path] = (Path(),)) -> Program:
    """Import MODULE:FUNCTION, see `locate`, and check the function before anything is trained.

    Raises MtdlabError where it is missing or cannot be called as `SIGNATURE`.
    """
    name, colon, function = reference.rpartition(":")
    option = f"--objective {reference}"
    if not (name and colon and function.isidentifier()):
        methods = "" if (near := similar(reference, method_names())) is None else f", or {near}"
        raise MtdlabError(f"{option}: write MODULE:FUNCTION, such as digits:train{methods}")
    places = tuple(folders)
    paths = tuple(dict.fromkeys(str(place.resolve()) for place in places))
    spec = locate(name, places, option)
    _extend_path(paths)
    module = execute(spec, option)
    sha256 = digest_as_imported(module, option)
    _check(find_function(module, function, option), option)
    return Program(UserModule(module.__name__, spec, sha256), function, paths)


@lru_cache
def _import(program: Program) -> ModuleType:
    """The module of a program, imported and compared once per process."""
    _extend_path(program.folders)
    option = f"--objective {program.reference}"
    module = execute(program.module.spec, option)
    if digest(module, option) != program.module.sha256:
        raise MtdlabError(f"{option}: {module.__file__} changed while the sweep was running")
    return module


def _extend_path(folders: Iterable[str]) -> None:
    """Let a program import modules beside it; at the end, so that they hide no installed ones."""
    sys.path.extend(folder for folder in folders if folder not in sys.path)


def _check(function: Any, option: str) -> None:
    """Raise MtdlabError unless the function can be called and may return scores."""
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise MtdlabError(
            f"{option}: it is asynchronous or a generator; expected a plain function {SIGNATURE}"
        )
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # a function in C may have none
    try:
        signature.bind({}, seed=0, checkpoints=Path(), report=print)
    except TypeError as error:
        raise MtdlabError(
            f"{option}: it cannot be called as expected ({error}); its signature is {signature}, "
            f"expected {SIGNATURE}"
        ) from None
    returned: Any = Any
    # names that only type checkers import
    with suppress(Exception):
        returned = get_type_hints(function).get("return", Any)
    kind = get_origin(returned) or returned
    # both are classes: Any is no statement, a union may contain a mapping
    is_stated = isinstance(kind, type) and kind not in (Any, UnionType)
    if is_stated and not issubclass(kind, Mapping):
        raise MtdlabError(
            f"{option}: it is annotated to return {getattr(kind, '__name__', kind)}; expected "
            f"{RETURNS}"
        )
