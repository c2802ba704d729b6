"""Frozen dataclasses from the JSON values that `dataclasses.asdict` gives of them."""

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import lru_cache
from types import UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")
_LARGEST = 2**63


def read_fields(kind: type[T], value: object) -> T:
    """A dataclass of texts, numbers, tuples, mappings by name, and dataclasses of these.

    Names that are no field are ignored. Raises ValueError for a value of another type, a number
    that is not finite or above 2^63, and a missing field that has no default.
    """
    result: T = _read(kind, value)
    return result


@lru_cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(hint: Any, value: Any) -> Any:
    parts, outer = get_args(hint), get_origin(hint)
    if outer is UnionType:
        return None if value is None else _read(parts[0], value)
    if outer is tuple and isinstance(value, list):
        return tuple(_read(parts[0], each) for each in value)
    if outer is Mapping and isinstance(value, dict):
        return {name: _read(parts[1], each) for name, each in value.items()}
    if is_dataclass(hint) and isinstance(value, dict):
        return _read_dataclass(hint, value)
    is_number = type(value) in ((int,) if hint is int else (int, float))
    if (hint is str and isinstance(value, str)) or (
        hint in (int, float) and is_number and abs(value) < _LARGEST
    ):
        return value
    raise ValueError(f"{value!r:.60} is no {getattr(hint, '__name__', hint)}")


def _read_dataclass(kind: Any, value: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    given = {name: _read(hints[name], each) for name, each in value.items() if name in hints}
    try:
        return kind(**given)
    except TypeError as error:
        raise ValueError(str(error)) from None
