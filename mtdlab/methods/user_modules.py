"""Import of modules with custom methods that are named on the command line.

Only `--import` and MTDLAB_IMPORT name such modules, never a study file, so that opening a study
file executes no code. The SHA-256 of their content is recorded with the study.
"""

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from mtdlab.errors import MtdlabError, one_line
from mtdlab.methods.registry import register

VARIABLE = "MTDLAB_IMPORT"


@dataclass(frozen=True)
class UserModule:
    """An imported module, as needed to import it in another process.

    spec     an absolute file path, or an importable module name.
    sha256   of the file, or of all of a package's Python files.
    """

    name: str
    spec: str
    sha256: str

    def load(self) -> "UserModule":
        """Import it in this process. Raises MtdlabError where it cannot be imported."""
        return _import_once(self.spec)

    @property
    def option(self) -> str:
        """The option that names it."""
        return "--import"


def named_modules(given: Iterable[str] = ()) -> tuple[str, ...]:
    """Modules and files of --import and MTDLAB_IMPORT (separated by commas), without duplicates."""
    configured = os.environ.get(VARIABLE, "").split(",")
    return tuple(dict.fromkeys(name.strip() for name in (*given, *configured) if name.strip()))


def import_modules(
    names: Iterable[str], folders: Iterable[Path] = (Path(),)
) -> tuple[UserModule, ...]:
    """Import modules and register their methods: every subclass of Method that they define.

    names     of files in one of the folders (with or without .py), or of importable modules.

    Raises MtdlabError if one does not exist, fails to import, or defines no method.
    """
    places = tuple(folders)
    return tuple(_import_once(absolute(name, places)) for name in names)


def ensure_imported(modules: Iterable[UserModule]) -> None:
    """Import modules of another process in this one. Raises MtdlabError if one has changed."""
    for module in modules:
        if module.load().sha256 != module.sha256:
            raise MtdlabError(f"{module.option} {module.spec}: changed while the sweep was running")


def absolute(name: str, folders: Iterable[Path], option: str = "--import") -> str:
    """The path of a file in one of the folders, else the name of a module.

    Raises MtdlabError for a file that is not there; `option` is what named it.
    """
    file = name if name.endswith(".py") else f"{name}.py"
    for folder in folders:
        if (folder / file).is_file():
            return str((folder / file).resolve())
    if name.endswith(".py"):
        raise MtdlabError(f"{option} {name}: no such file")
    return name


@lru_cache
def _import_once(spec: str) -> UserModule:
    module = executed(spec)
    methods = _methods_of(module)
    if not methods:
        raise MtdlabError(
            f"--import {spec}: defines no method; a method is a subclass of "
            "mtdlab.methods.base.Method with a class attribute name"
        )
    for method in methods:
        register(method)
    return UserModule(module.__name__, spec, digest_of(module))


@lru_cache
def executed(spec: str, option: str = "--import") -> ModuleType:
    """The module of a file or name, executed once. Raises MtdlabError where it fails.

    option  what named it.
    """
    try:
        if not spec.endswith(".py"):
            return importlib.import_module(spec)
        path = Path(spec)
        found = importlib.util.spec_from_file_location(path.stem, path)
        assert found is not None
        assert found.loader is not None, "a file that ends in .py has a loader"
        module = importlib.util.module_from_spec(found)
        # dataclasses and pydantic look up the module of a class in sys.modules
        sys.modules.setdefault(path.stem, module)
        found.loader.exec_module(module)
        return module
    except Exception as error:
        # code of the user can raise any exception
        raise MtdlabError(f"{option} {spec}: {one_line(error)}") from error


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


def digest_of(module: ModuleType) -> str:
    """SHA-256 of a module's file, or of all Python files of a package."""
    file = Path(str(module.__file__))
    package = file.name == "__init__.py"
    files = sorted(file.parent.rglob("*.py")) if package else [file]
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(file.parent).as_posix().encode() + b"\0")
        digest.update(path.read_bytes())
    return digest.hexdigest()
