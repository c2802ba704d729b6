"""The search section of a study file: plain lists, and the spellings of W&B and Optuna."""

from typing import Any, TypeGuard

from mtdlab.config.search import Choices, Dimension, Range
from mtdlab.config.source import KeyPath, Source
from mtdlab.settings import Setting


def read_dimension(source: Source, setting: Setting, value: Any) -> Dimension:
    """One entry of the search section. Raises SpecError at its place."""
    path = ("search", setting.name)
    if isinstance(value, list):
        return Choices(_listed(source, path, value))
    if not isinstance(value, dict):
        raise source.error(path, f"{value!r}: write a list, or values:, or low: and high:")
    if "times" in value or "share_of" in value:
        return _relative(source, path, setting, value)
    if "distribution" in value:
        value = _wandb(source, path, value, value["distribution"])
    return _choices_or_range(source, path, setting, value)


def _listed(source: Source, path: KeyPath, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list) or not values:
        raise source.error(path, "needs at least one value, as in [0.75, 0.85]")
    for value in values:
        if not isinstance(value, str | int | float | None):
            raise source.error(path, f"{value!r} is not a single value")
    return tuple(dict.fromkeys(values))


def _relative(source: Source, path: KeyPath, setting: Setting, value: dict[str, Any]) -> Choices:
    keyword = "times" if "times" in value else "share_of"
    base = setting.relative_to
    if value[keyword] != base:
        allowed = f"{keyword}: {base}" if base else "plain values, since it is no multiple"
        raise source.error((*path, keyword), f"{value[keyword]!r}; allowed is {allowed}")
    for key in value.keys() - {keyword, "values"}:
        raise source.unknown((*path, key), [keyword, "values"])
    factors = _listed(source, (*path, "values"), value.get("values"))
    for factor in factors:
        if not _numeric(factor) or factor < 0 or (keyword == "share_of" and factor > 1):
            rule = "a share lies in 0 to 1" if keyword == "share_of" else "a multiple is 0 or more"
            raise source.error((*path, "values"), f"{factor!r}: {rule}")
    return Choices(factors, relative_to=base)


_WANDB = {
    "uniform": {"log": False},
    "q_uniform": {"log": False},
    "int_uniform": {"log": False},
    "log_uniform_values": {"log": True},
    "categorical": {},
    "constant": {},
}


def _wandb(source: Source, path: KeyPath, value: dict[str, Any], name: Any) -> dict[str, Any]:
    if name == "log_uniform":
        raise source.error(
            (*path, "distribution"),
            "log_uniform takes exponents; use log_uniform_values, whose bounds are values",
        )
    if not isinstance(name, str) or name not in _WANDB:
        raise source.error((*path, "distribution"), f"{name!r}; choose from {', '.join(_WANDB)}")
    return {key: item for key, item in value.items() if key != "distribution"} | _WANDB[name]


_SPELLINGS = {"min": "low", "max": "high", "q": "step", "choices": "values"}
_KEYS = [
    "values",
    "value",
    "low",
    "high",
    "log",
    "step",
    "distribution",
    "times",
    "share_of",
    *_SPELLINGS,
]


def _numeric(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _choices_or_range(
    source: Source, path: KeyPath, setting: Setting, value: dict[str, Any]
) -> Dimension:
    plain = {_SPELLINGS.get(key, key): item for key, item in value.items()}
    for key in plain.keys() - set(_KEYS):
        raise source.unknown((*path, key), _KEYS)
    for only in ("value", "values"):
        if only in plain:
            for key in plain.keys() - {only}:
                raise source.error((*path, key), f"does not go with {only}; keep one of the two")
            listed = [plain[only]] if only == "value" else plain[only]
            return Choices(_listed(source, path, listed))
    return _range(source, path, setting, plain)


def _range(source: Source, path: KeyPath, setting: Setting, plain: dict[str, Any]) -> Range:
    low, high = plain.get("low"), plain.get("high")
    step, log = plain.get("step"), plain.get("log", False)
    if not _numeric(low) or not _numeric(high) or low > high:
        raise source.error(path, f"needs low and high with low <= high, got {low} and {high}")
    if step is not None and (not _numeric(step) or step <= 0):
        raise source.error((*path, "step"), f"{step!r}: a step is above 0")
    if step is not None and setting.is_integer and step != int(step):
        raise source.error((*path, "step"), f"{step!r}: {setting.name} takes whole numbers")
    if not isinstance(log, bool):
        raise source.error((*path, "log"), f"{log!r}: write true or false")
    if log and (low <= 0 or step is not None):
        raise source.error(path, "a log range begins above 0 and has no step")
    return Range(low, high, log, step, setting.is_integer)
