"""Python files and modules of the user, named on the command line: found, imported, hashed.

Nothing that a study file names is imported, so that opening a study file executes no code.
"""

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from mtdlab.errors import MtdlabError, one_line


@dataclass(frozen=True)
class UserModule:
    """An imported module, as needed to import it in another process.

    Attributes:
        option: of the command line, which names it.
        spec: an absolute file path, or an importable module name.
        sha256: of the file, or of all of a package's Python files.
    """

    option: ClassVar[str] = "--import"
    name: str
    spec: str
    sha256: str


def locate(name: str, folders: Iterable[Path], option: str) -> str:
    """The path of a file in one of the folders (with or without .py), else the name of a module.

    Raises MtdlabError for a missing file; `option` begins it, such as "--import toy.py".
    """
    file = name if name.endswith(".py") else f"{name}.py"
    for folder in folders:
        if (folder / file).is_file():
            return str((folder / file).resolve())
    if name.endswith(".py"):
        raise MtdlabError(f"{option}: no such file")
    return name


@lru_cache
def execute(spec: str, option: str) -> ModuleType:
    """The module of a `UserModule.spec`, imported once. Raises MtdlabError where it fails."""
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
        raise MtdlabError(f"{option}: {one_line(error)}") from error


def digest(module: ModuleType) -> str:
    """SHA-256 of a module's file, or of all Python files of a package."""
    file = Path(str(module.__file__))
    package = file.name == "__init__.py"
    files = sorted(file.parent.rglob("*.py")) if package else [file]
    found = hashlib.sha256()
    for path in files:
        found.update(path.relative_to(file.parent).as_posix().encode() + b"\0")
        found.update(path.read_bytes())
    return found.hexdigest()
