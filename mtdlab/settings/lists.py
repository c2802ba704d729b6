"""Settings that are several names: a list in a study file, joined by commas in a record."""

import re
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from mtdlab.settings.tasks import parse_tasks


def _joined(names: Any) -> Any:
    """A list of names joined by commas; other values unchanged."""
    return ",".join(map(str, names)) if isinstance(names, list) else names


def _checked_tasks(text: str) -> str:
    return ",".join(parse_tasks(text))


def _checked_fields(text: str) -> str:
    names = sorted({name.strip() for name in text.split(",")} - {""})
    if wrong := [name for name in names if not re.fullmatch(r"[A-Za-z_]\w*", name)]:
        raise ValueError(
            f"dropout_fields {wrong[0]!r}: is no field of a configuration; write a list of names, "
            "such as [attention_dropout], or none"
        )
    return ",".join(names)


_SCHEMA = WithJsonSchema({"type": ["string", "array"], "items": {"type": "string"}})
Names = Annotated[str, BeforeValidator(_joined), _SCHEMA]
TaskNames = Annotated[Names, AfterValidator(_checked_tasks)]
FieldNames = Annotated[Names, AfterValidator(_checked_fields)]
