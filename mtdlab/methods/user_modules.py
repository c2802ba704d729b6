"""Import of modules with custom methods that are named on the command line.

Only `--import` and MTDLAB_IMPORT name such modules, never a study file, so that opening a study
file executes no code. The SHA-256 of their content is recorded with the study.
"""

import inspect
import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from mtdlab.errors import MtdlabError
from mtdlab.methods.registry import register
from mtdlab.user_code import UserModule, digest, execute, locate

VARIABLE = "MTDLAB_IMPORT"


@dataclass(frozen=True)
class MethodModule(UserModule):
    """A module of methods, which are registered where it is imported."""

    def load(self) -> "MethodModule":
        """Import it and register its methods. Raises MtdlabError where it cannot be imported."""
        return _import_once(self.spec)


def named_modules(given: Iterable[str] = ()) -> tuple[str, ...]:
    """Modules and files of --import and MTDLAB_IMPORT (separated by commas), without duplicates."""
    configured = os.environ.get(VARIABLE, "").split(",")
    return tuple(dict.fromkeys(name.strip() for name in (*given, *configured) if name.strip()))


def import_modules(
    names: Iterable[str], folders: Iterable[Path] = (Path(),)
) -> tuple[MethodModule, ...]:
    """Import modules and register their methods: every subclass of Method that they define.

    names     of files in one of the folders (with or without .py), or of importable modules.

    Raises MtdlabError if one does not exist, fails to import, or defines no method.
    """
    places = tuple(folders)
    return tuple(_import_once(locate(name, places, f"--import {name}")) for name in names)


def ensure_imported(modules: Iterable[UserModule]) -> None:
    """Import modules of another process in this one. Raises MtdlabError if one has changed."""
    for module in modules:
        if module.load().sha256 != module.sha256:
            raise MtdlabError(f"{module.option} {module.spec}: changed while the sweep was running")


@lru_cache
def _import_once(spec: str) -> MethodModule:
    module = execute(spec, f"--import {spec}")
    methods = _methods_of(module)
    if not methods:
        raise MtdlabError(
            f"--import {spec}: defines no method; a method is a subclass of "
            "mtdlab.methods.base.Method with a class attribute name"
        )
    for method in methods:
        register(method)
    return MethodModule(module.__name__, spec, digest(module))


def _methods_of(module: ModuleType) -> list[type]:
    from mtdlab.methods.base import Method

    return [
        member
        for member in vars(module).values()
        if isinstance(member, type)
        and issubclass(member, Method)
        and not inspect.isabstract(member)
        and member.__module__.split(".")[0] == module.__name__.split(".")[0]
    ]
