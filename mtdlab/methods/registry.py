"""The registry of training methods: built-in, from installed packages, from imported modules.

A package registers its methods under the entry-point group `mtdlab.methods`; a single file is named
by `--import my_method.py` or in MTDLAB_IMPORT, see `mtdlab.methods.user_modules`.
"""

from collections.abc import Mapping
from importlib.metadata import entry_points
from pkgutil import resolve_name
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
    "sncse": "mtdlab.methods.sncse:SNCSE",
    "hicl": "mtdlab.methods.hicl:HiCL",
    "consert": "mtdlab.methods.consert:ConSERT",
    "contriever": "mtdlab.methods.contriever:Contriever",
    "xbm": "mtdlab.methods.xbm:XBM",
    "sentence-transformers": "mtdlab.methods.sentence_transformers:SentenceTransformers",
}
"""Built-in methods, imported at first use because they import torch."""

SETTINGS: Mapping[str, str] = {"mocose": "mtdlab.methods.mocose_settings:MoCoSESettings"}
"""The settings, with the method's title, that are read without torch: those of the default method,
so that a complete study is recognised without the seconds that importing torch takes."""

_imported: "dict[str, type[Method[Any]]]" = {}


def method_names() -> list[str]:
    """The names of all methods: built-in ones first, then the others, sorted."""
    others = {point.name for point in entry_points(group=GROUP)} | set(_imported)
    return [*BUILTIN, *sorted(others - set(BUILTIN))]


def find_method(name: str) -> "type[Method[Any]]":
    """A method by its name. Raises MtdlabError if it is unknown or cannot be imported."""
    if name in BUILTIN:
        method: type[Method[Any]] = resolve_name(BUILTIN[name])
        return method
    if name in _imported:
        return _imported[name]
    for point in entry_points(group=GROUP, name=name):
        try:
            loaded = point.load()
        except Exception as error:
            # code of another package can raise any exception
            raise MtdlabError(
                f"method {name}: {point.value} cannot be imported: {error}"
            ) from error
        return _check_method(name, loaded)
    raise MtdlabError(
        f"method {name!r} is not known; {nearest(name, method_names())} "
        "(import the file of a custom method with --import)"
    )


def _check_method(name: str, loaded: Any) -> "type[Method[Any]]":
    # imported here to start fast: torch takes seconds
    from mtdlab.methods.base import Method
    from mtdlab.settings import TrainerSettings

    if not (isinstance(loaded, type) and issubclass(loaded, Method)):
        raise MtdlabError(
            f"method {name}: {loaded!r} is not a subclass of mtdlab.methods.base.Method"
        )
    settings = getattr(loaded, "Settings", None)
    if not (isinstance(settings, type) and issubclass(settings, TrainerSettings)):
        raise MtdlabError(f"method {name}: its Settings must be a subclass of TrainerSettings")
    return loaded


def register(method: "type[Method[Any]]") -> None:
    """Register a method by its name. Raises MtdlabError for a built-in name, or no method."""
    name = getattr(method, "name", "")
    if name in BUILTIN:
        raise MtdlabError(f"method {name}: the name is taken by a built-in method; choose another")
    _imported[name] = _check_method(name, method)


def settings_class(name: str) -> "type[TrainerSettings]":
    """A method's settings class. Raises MtdlabError for an unknown method."""
    if name in SETTINGS:
        settings: type[TrainerSettings] = resolve_name(SETTINGS[name])
        return settings
    return find_method(name).Settings


def describe_method(name: str) -> dict[str, Any]:
    """The record of a method in a study, title and settings, so that reports do without it."""
    from mtdlab.settings import settings_of

    settings = settings_class(name)
    titled: Any = settings if name in SETTINGS else find_method(name)
    return {
        "title": titled.title,
        "settings": {name: setting.describe() for name, setting in settings_of(settings).items()},
    }


def make_settings(**values: Any) -> "TrainerSettings":
    """Checked settings of `method`, by default MoCoSE.

    Raises pydantic.ValidationError for invalid values, MtdlabError for an unknown method.
    """
    return settings_class(str(values.get("method", DEFAULT)))(**values)
