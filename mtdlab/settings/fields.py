"""Declaration of a setting: default, description, symbol, unit and further metadata of a field.

The checks of a study file, the cost estimate, the labels of the report, the documentation and the
JSON Schema are all derived from these declarations.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Literal

from pydantic import BaseModel, Field

StepCost = Literal["none", "switch", "kind"]
"""How a setting affects the cost of a training step: not at all; by whether it is above 0; or in
a way that is measured for each value."""


@dataclass(frozen=True)
class Setting:
    """A setting as declared by its field.

    Attributes:
        annotation: the type of its values.
        loaded: whether it determines which encoder, texts or device a run loads.
        step_cost: how it affects the cost of a training step.
        relative_to: the setting of which a study may search it as a multiple, or empty.
    """

    name: str
    annotation: Any
    default: Any
    description: str
    symbol: str = ""
    unit: str = ""
    loaded: bool = False
    step_cost: StepCost = "kind"
    relative_to: str = ""

    @property
    def is_number(self) -> bool:
        """Whether its values are numbers, so that the values of a grid are ordered."""
        return self.annotation in (int, float)

    @property
    def is_integer(self) -> bool:
        """Whether its values are integers."""
        return self.annotation is int

    def describe(self) -> dict[str, Any]:
        """The description of the setting that a study records."""
        return {name: getattr(self, name) for name in ("symbol", "unit", "description", "default")}


def setting(
    default: Any,
    description: str,
    *,
    symbol: str = "",
    unit: str = "",
    loaded: bool = False,
    step_cost: StepCost = "kind",
    relative_to: str = "",
    **bounds: Any,
) -> Any:
    """A field of a settings class. Bounds are pydantic's: ge, gt, le, lt, min_length, pattern."""
    traits: Any = {
        "symbol": symbol,
        "unit": unit,
        "loaded": loaded,
        "step_cost": step_cost,
        "relative_to": relative_to,
    }
    return Field(default, description=description, json_schema_extra={"traits": traits}, **bounds)


costless = partial(setting, step_cost="none")
"""A setting that does not change the cost of a step."""
loaded = partial(setting, loaded=True)
"""A setting that determines which encoder, texts or device a run loads."""


def with_default(
    model: type[BaseModel], name: str, default: Any, description: str | None = None
) -> Any:
    """A field of a parent class for a subclass, with another default and maybe description."""
    field = copy(model.model_fields[name])
    field.default, field.description = default, description or field.description
    return field


@cache
def settings_of(model: type[BaseModel]) -> Mapping[str, Setting]:
    """Every setting of a settings class by name, in the order of declaration."""
    found = {}
    for name, field in model.model_fields.items():
        extra = field.json_schema_extra
        traits: Any = extra.get("traits", {}) if isinstance(extra, dict) else {}
        description = field.description or ""
        found[name] = Setting(name, field.annotation, field.default, description, **traits)
    return found


@cache
def counted_in_steps(model: type[BaseModel]) -> frozenset[str]:
    """The settings that may be given as a share of the run: numbers of steps, but its own."""
    known = settings_of(model).values()
    return frozenset(one.name for one in known if one.unit == "steps" and one.name != "steps")
