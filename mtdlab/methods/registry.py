"""Which methods there are: ours, those of installed packages, those of imported modules.

A package registers its methods under the entry-point group `mtdlab.methods`:

    [project.entry-points."mtdlab.methods"]
    my-method = "my_package.my_module:MyMethod"

A single file is named on the command line, `--import my_method.py`, or in MTDLAB_IMPORT; see
`mtdlab.methods.user_modules`.
"""

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any

from mtdlab.errors import MtdlabError, nearest

if TYPE_CHECKING:
    from mtdlab.methods.base import Method
    from mtdlab.settings import TrainerSettings

GROUP = "mtdlab.methods"
DEFAULT = "mocose"
BUILTIN: Mapping[str, str] = {
    "mocose": "mtdlab.methods.mocose:MoCoSE",
    "simcse": "mtdlab.methods.simcse:SimCSE",
    "esimcse": "mtdlab.methods.esimcse:ESimCSE",
    "mixcse": "mtdlab.methods.mixcse:MixCSE",
}
"""Our methods, imported when they are first used: they import torch."""

_imported: "dict[str, type[Method[Any]]]" = {}


def method_names() -> list[str]:
    """Every method's name: ours first, then others', sorted."""
    others = {point.name for point in entry_points(group=GROUP)} | set(_imported)
    return [*BUILTIN, *sorted(others - set(BUILTIN))]


def is_builtin(name: str) -> bool:
    """Whether a method comes with this package."""
    return name in BUILTIN


def find_method(name: str) -> "type[Method[Any]]":
    """A method by its name. Raises MtdlabError where there is none, or its package is damaged."""
    if name in BUILTIN:
        module, _, attribute = BUILTIN[name].partition(":")
        found: type[Method[Any]] = getattr(importlib.import_module(module), attribute)
        return found
    if name in _imported:
        return _imported[name]
    for point in entry_points(group=GROUP):
        if point.name == name:
            return _loaded(name, point)
    raise MtdlabError(
        f"method {name!r} is not known; {nearest(name, method_names())} "
        "(a method of your own is named with --import)"
    )


def _loaded(name: str, point: Any) -> "type[Method[Any]]":
    try:
        found = point.load()
    except Exception as error:
        # a package's own code: anything may be raised
        raise MtdlabError(f"method {name}: {point.value} cannot be imported: {error}") from error
    return _checked(name, found)


def _checked(name: str, found: Any) -> "type[Method[Any]]":
    from mtdlab.methods.base import Method
    from mtdlab.settings import TrainerSettings

    if not (isinstance(found, type) and issubclass(found, Method)):
        raise MtdlabError(f"method {name}: {found!r} is no subclass of mtdlab.methods.base.Method")
    settings = getattr(found, "Settings", None)
    if not (isinstance(settings, type) and issubclass(settings, TrainerSettings)):
        raise MtdlabError(f"method {name}: its Settings must be a subclass of TrainerSettings")
    return found


def register(method: "type[Method[Any]]") -> None:
    """Make a method of an imported module known under its name.

    Raises MtdlabError where the name is taken by one of ours, or the class is no method.
    """
    name = getattr(method, "name", "")
    if name in BUILTIN:
        raise MtdlabError(f"method {name}: the name is taken by a built-in method; choose another")
    _imported[name] = _checked(name, method)


def settings_class(name: str) -> "type[TrainerSettings]":
    """A method's settings. Raises MtdlabError for a method that is not known."""
    return find_method(name).Settings


def describe_method(name: str) -> dict[str, Any]:
    """A method as it is recorded with a study: its title, and what is declared of its settings.

    A report is made from that, also where the method is not installed.
    """
    from mtdlab.settings import settings_of

    method = find_method(name)
    return {
        "title": method.title,
        "settings": {
            setting.name: {
                "symbol": setting.symbol,
                "unit": setting.unit,
                "description": setting.description,
                "default": setting.default,
            }
            for setting in settings_of(method.Settings).values()
        },
    }


def make_settings(**values: Any) -> "TrainerSettings":
    """Checked settings of the method that `method` names, by default MoCoSE.

    Raises pydantic.ValidationError for values that are wrong or do not go together, MtdlabError
    for a method that is not known.
    """
    return settings_class(str(values.get("method", DEFAULT)))(**values)
