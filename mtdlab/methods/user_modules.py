"""Import of modules with custom methods, and of a function that scores encoders.

Only `--import`, `--evaluator`, MTDLAB_IMPORT and MTDLAB_EVALUATOR name them. The SHA-256 of their
content is recorded with each study that uses them.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar

from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import register
from mtdlab.user_code import UserModule, digest_as_imported, execute, find_function, locate

IMPORT_VARIABLE = "MTDLAB_IMPORT"


def list_modules(given: Iterable[str] = ()) -> tuple[str, ...]:
    """Modules and files of --import and MTDLAB_IMPORT (separated by commas), without duplicates."""
    configured = os.environ.get(IMPORT_VARIABLE, "").split(",")
    return tuple(dict.fromkeys(name.strip() for name in (*given, *configured) if name.strip()))


def import_modules(
    names: Iterable[str], folders: Iterable[Path] = (Path(),)
) -> tuple[UserModule, ...]:
    """Import modules, by `locate`, and register every subclass of Method that they define.

    Raises MtdlabError if one does not exist, fails to import, or defines no method.
    """
    places = tuple(folders)
    modules = tuple(_import_once(locate(name, places, f"--import {name}")) for name in names)
    for spec in (module.spec for module in modules):
        digest_as_imported(execute(spec, f"--import {spec}"), f"--import {spec}")
    return modules


def ensure_imported(modules: Iterable[UserModule]) -> None:
    """Import modules of another process in this one. Raises MtdlabError if one has changed."""
    for module in modules:
        again = _import_function if isinstance(module, UserEvaluator) else _import_once
        if again(module.spec).sha256 != module.sha256:
            raise MtdlabError(f"{module.option} {module.spec}: changed while the sweep was running")


@lru_cache
def _import_once(spec: str) -> UserModule:
    module = execute(spec, f"--import {spec}")
    # imported here to start fast: torch takes seconds
    from mtdlab.methods.base import Method

    methods = [
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, Method)
        and not inspect.isabstract(member)
        and member.__module__.split(".")[0] == module.__name__.split(".")[0]
    ]
    if not methods:
        raise MtdlabError(
            f"--import {spec}: defines no method; a method is a subclass of "
            "mtdlab.methods.base.Method with a class attribute name"
        )
    for method in methods:
        register(method)
    return UserModule(module.__name__, spec, digest_as_imported(module, f"--import {spec}"))


EVALUATOR_VARIABLE = "MTDLAB_EVALUATOR"
SPELLED = "MODULE:FUNCTION, such as my_metric.py:score"

Function = Callable[..., Mapping[str, float]]
"""`function(encode)` or `function(encode, split)`, of a callable that maps a list of S texts to an
array (S, D), and "dev" or "test"; it returns scores by name."""


@dataclass(frozen=True)
class UserEvaluator(UserModule):
    """An imported evaluator; `name` is `evaluator FUNCTION`, `spec` MODULE:FUNCTION.

    With `has_dev` the function takes a split, so that its dev scores can select.
    """

    option: ClassVar[str] = "--evaluator"
    has_dev: bool = False

    @property
    def function(self) -> Function:
        """The function. Raises MtdlabError where its module has none of this name."""
        place, _, name = self.spec.rpartition(":")
        module = execute(place, f"--evaluator {place}")
        return find_function(module, name, f"--evaluator {self.spec}")


_present: list[UserEvaluator] = []


def import_evaluator(
    named: str | None, folders: Iterable[Path] = (Path(),)
) -> UserEvaluator | None:
    """Import the function of --evaluator or MTDLAB_EVALUATOR; None where neither names one.

    Raises MtdlabError where the module or function is missing, fails to import, or cannot be called
    with `encode`, or `encode` and `split`.
    """
    named = named or os.environ.get(EVALUATOR_VARIABLE, "").strip()
    _present.clear()
    if not named:
        return None
    module, _, function = named.rpartition(":")
    if not module or not function.isidentifier():
        raise MtdlabError(f"--evaluator {named}: it is spelled {SPELLED}")
    place = locate(module, tuple(folders), f"--evaluator {module}")
    return _import_function(f"{place}:{function}")


def present_evaluator() -> UserEvaluator | None:
    """The evaluator that this process has imported last; None without one."""
    return _present[0] if _present else None


def _import_function(spec: str) -> UserEvaluator:
    place, _, name = spec.rpartition(":")
    option = f"--evaluator {place}"
    sha256 = digest_as_imported(execute(place, option), option)
    evaluator = UserEvaluator(f"evaluator {name}", spec, sha256)
    signature = inspect.signature(evaluator.function)
    for arguments in (("encode", "split"), ("encode",)):
        with suppress(TypeError):
            signature.bind(*arguments)
            _present[:] = [replace(evaluator, has_dev=len(arguments) > 1)]
            return _present[0]
    raise MtdlabError(
        f"--evaluator {spec}: takes {signature}; it must take (encode), or (encode, split) with "
        'split "dev" or "test"'
    )
