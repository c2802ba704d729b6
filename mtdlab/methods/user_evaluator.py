"""Import of a function that scores encoders, named on the command line by --evaluator.

As methods of --import, it is never named in a study file, so that opening one executes no code. The
SHA-256 of its module is recorded with each study that uses it.
"""

import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from mtdlab.errors import MtdlabError
from mtdlab.user_code import UserModule, digest, execute, locate

VARIABLE = "MTDLAB_EVALUATOR"
SPELLED = "MODULE:FUNCTION, such as my_metric.py:score"

Function = Callable[..., Mapping[str, float]]
"""`function(encode)` or `function(encode, split)`, of a callable that maps a list of S texts to an
array (S, D), and "dev" or "test"; it returns scores by name."""


@dataclass(frozen=True)
class UserEvaluator(UserModule):
    """An imported evaluator; `name` is `evaluator FUNCTION`, `spec` MODULE:FUNCTION.

    has_dev  whether the function takes a split, so that its dev scores can select.
    """

    has_dev: bool = False

    def load(self) -> "UserEvaluator":
        """Import it in this process, where it becomes the evaluator."""
        return _imported(self.spec)

    @property
    def option(self) -> str:
        """The option that names it."""
        return "--evaluator"

    @property
    def function(self) -> Function:
        """The function itself."""
        function: Function = _function(self.spec)
        return function


_present: list[UserEvaluator] = []


def import_evaluator(
    named: str | None, folders: Iterable[Path] = (Path(),)
) -> UserEvaluator | None:
    """Import the function of --evaluator or MTDLAB_EVALUATOR; None where neither names one.

    Raises MtdlabError where the module or function is missing, the module fails to import, or the
    function cannot be called with `encode`, or `encode` and `split`.
    """
    named = named or os.environ.get(VARIABLE, "").strip()
    _present.clear()
    if not named:
        return None
    module, _, function = named.rpartition(":")
    if not module or not function.isidentifier():
        raise MtdlabError(f"--evaluator {named}: it is spelled {SPELLED}")
    place = locate(module, tuple(folders), f"--evaluator {module}")
    return _imported(f"{place}:{function}")


def present_evaluator() -> UserEvaluator | None:
    """The evaluator that this process has imported last; None without one."""
    return _present[0] if _present else None


def find_evaluator() -> UserEvaluator:
    """The evaluator. Raises MtdlabError where none is named."""
    if (found := present_evaluator()) is None:
        raise MtdlabError(
            f"the task evaluator needs a function; name it with --evaluator {SPELLED}"
        )
    return found


def _imported(spec: str) -> UserEvaluator:
    place, _, name = spec.rpartition(":")
    sha256 = digest(execute(place, f"--evaluator {place}"))
    found = UserEvaluator(f"evaluator {name}", spec, sha256, _takes_split(spec))
    _present[:] = [found]
    return found


@lru_cache
def _function(spec: str) -> Any:
    """The function. Raises MtdlabError where the module has none of this name."""
    place, _, name = spec.rpartition(":")
    module = execute(place, f"--evaluator {place}")
    function = getattr(module, name, None)
    if not callable(function):
        defined = [each for each, value in vars(module).items() if inspect.isfunction(value)]
        what = "is no function" if hasattr(module, name) else "is not there"
        raise MtdlabError(
            f"--evaluator {spec}: {name} {what}; the module has the functions "
            f"{', '.join(defined) or 'none'}"
        )
    return function


def _takes_split(spec: str) -> bool:
    """Whether the function takes a split too. Raises MtdlabError for other parameters."""
    signature = inspect.signature(_function(spec))
    for arguments in (("encode", "split"), ("encode",)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return len(arguments) > 1
    raise MtdlabError(
        f"--evaluator {spec}: takes {signature}; it must take (encode), or (encode, split) with "
        'split "dev" or "test"'
    )
