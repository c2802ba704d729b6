"""Python files and modules of the user, named on the command line: found, imported, hashed, called.

Nothing that a study file names is imported, so that opening a study file executes no code.
"""

import atexit
import hashlib
import importlib
import importlib.util
import inspect
import logging
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

from mtdlab.errors import MtdlabError, nearest, one_line

THREAD_SECONDS = 5.0
"""How many seconds the process waits at its end for threads that the user's code has left."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class UserModule:
    """An imported module, as needed to import it in another process.

    Attributes:
        spec: an absolute file path, or an importable module name.
        sha256: of the file, or of all of a package's Python files.
    """

    option: ClassVar[str] = "--import"
    name: str
    spec: str
    sha256: str


def locate(name: str, folders: Iterable[Path], option: str) -> str:
    """The path of a file in one of the folders (with or without .py), or a module's name.

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
        module_spec = importlib.util.spec_from_file_location(path.stem, path)
        assert module_spec is not None
        assert module_spec.loader is not None, "a file that ends in .py has a loader"
        module = importlib.util.module_from_spec(module_spec)
        # dataclasses and pydantic look up the module of a class in sys.modules
        sys.modules.setdefault(path.stem, module)
        try:
            module_spec.loader.exec_module(module)
        except BaseException:
            # what failed would be found as if it were whole
            if sys.modules.get(path.stem) is module:
                del sys.modules[path.stem]
            raise
        return module
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name != spec.partition(".")[0]:
            raise MtdlabError(f"{option}: {one_line(error)}") from error
        raise MtdlabError(
            f"{option}: no file {spec}.py in the working folder or beside the study file, and no "
            f"installed module {error.name}"
        ) from error
    except BaseException as error:
        # code of the user can raise any exception, and call sys.exit
        raise MtdlabError(f"{option}: {one_line(error)}") from error


def find_function(module: ModuleType, name: str, option: str) -> Callable[..., Any]:
    """A function of a module. Raises MtdlabError where the module has none of this name."""
    function: Callable[..., Any] | None = getattr(module, name, None)
    if not callable(function):
        names = [other for other, value in vars(module).items() if inspect.isfunction(value)]
        known = nearest(name, names)
        raise MtdlabError(f"{option}: {module.__name__} has no function {name}; {known}")
    return function


def digest(module: ModuleType, option: str) -> str:
    """The SHA-256 of a module's file, or of all Python files of a package.

    Raises MtdlabError, which `option` begins, for a module without a file, such as `builtins`.
    """
    if (name := getattr(module, "__file__", None)) is None:
        raise MtdlabError(
            f"{option}: {module.__name__} is no module of Python files; name one that is"
        )
    file = Path(name)
    package = file.name == "__init__.py"
    files = sorted(file.parent.rglob("*.py")) if package else [file]
    sha256 = hashlib.sha256()
    for path in files:
        sha256.update(path.relative_to(file.parent).as_posix().encode() + b"\0")
        sha256.update(path.read_bytes())
    return sha256.hexdigest()


_named: WeakKeyDictionary[ModuleType, str] = WeakKeyDictionary()


def digest_as_imported(module: ModuleType, option: str) -> str:
    """The `digest` of the code that this process has. Raises MtdlabError if it has changed."""
    found = digest(module, option)
    if _named.setdefault(module, found) != found:
        raise MtdlabError(
            f"{option}: {module.__file__} changed since this process imported it; start a new "
            "process, or the notebook's kernel again"
        )
    return found


@contextmanager
def ended_forks() -> Iterator[None]:
    """End each process that code of the user forks in this block, where it leaves the block.

    Such a process would record a trial that it does not own, and run the next ones. Its exit code
    is that of sys.exit, else 0 where it returns and 1 where it raises.
    """
    process, raised = os.getpid(), None
    try:
        yield
    except BaseException as error:
        if os.getpid() == process:
            raise
        raised = error
    if os.getpid() == process:
        return
    if isinstance(raised, SystemExit):
        os._exit(exit_code_of(raised))
    _LOG.warning(
        "process %d, which code of the user forked from process %d, %s: only the latter records a "
        "result; end the forked one with os._exit",
        os.getpid(),
        process,
        "returned" if raised is None else f"raised {one_line(raised)}",
    )
    os._exit(int(raised is not None))


def exit_code_of(ended: SystemExit) -> int:
    """The exit code with which the interpreter ends."""
    return ended.code if isinstance(ended.code, int) else int(ended.code is not None)


def limit_threads(exit_code: int) -> None:
    """End this process, which ends now, at the latest after `THREAD_SECONDS` with an exit code.

    The interpreter waits for every thread that is no daemon: one that code of the user has left
    would keep the process for as long as it runs.
    """
    if not _left_threads():
        return
    timer = threading.Timer(THREAD_SECONDS, _end_threads, (exit_code,))
    timer.daemon = True
    # the interpreter calls it when it has waited for the threads
    atexit.register(timer.cancel)
    timer.start()


def _left_threads() -> list[str]:
    main = threading.main_thread()
    return [
        thread.name for thread in threading.enumerate() if not (thread.daemon or thread is main)
    ]


def _end_threads(exit_code: int) -> None:
    names = ", ".join(_left_threads())
    _LOG.warning("ended while threads run that code of the user has left: %s", names)
    for stream in (sys.stdout, sys.stderr):
        # a pipe whose reader has ended, or a stream that was closed
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(exit_code)
