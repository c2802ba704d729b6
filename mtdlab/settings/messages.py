"""Messages on what a setting's rule requires, in the words of a study file."""

import re
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

STUDY_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}"
PATTERNS = {
    "study": "a name has letters, digits, '.', '_' and '-', at most 100, and begins with a letter "
    "or a digit",
    "device": "choose from auto, cpu, cuda, cuda:0, cuda:1, ...",
}
"""The values that the fields with a pattern accept, in words."""

_RULES = {
    "greater_than": "must be above {gt:g}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be below {lt:g}",
    "less_than_equal": "must be {le} or less",
    "finite_number": "must be finite",
    "float_type": "must be a number",
    "bool_type": "must be true or false",
    "string_type": "must be text; write it in quotes",
    "list_type": "must be a list, written in brackets",
    **dict.fromkeys(("dict_type", "model_type"), "must be a section of keys and values"),
    "too_short": "needs {min_length} or more values",
    "string_too_short": "needs {min_length} or more characters",
    "string_too_long": "has more than {max_length} characters",
}
_LONGEST = 60
"""The most characters of a value that a message shows."""


def is_study_name(name: str) -> bool:
    """Whether a text can name a study: letters, digits, dots and dashes, at most 100."""
    return re.fullmatch(STUDY_NAME, name) is not None


def describe_rule(broken: ErrorDetails) -> str:
    """The rule that a value breaks, with the value: `0: must be 1 or more`."""
    kind, value, bounds = broken["type"], broken["input"], broken.get("ctx", {})
    name = next((str(part) for part in reversed(broken["loc"]) if isinstance(part, str)), "value")
    if kind == "value_error":
        return str(bounds["error"])
    if kind == "literal_error":
        # pydantic's list, such as `'cls' or 'mean'`
        if known := re.findall(r"'([^']*)'", bounds["expected"]):
            return f"unknown {name} {quote_value(value)}; choose from {', '.join(known)}"
        return f"{quote_value(value)}: must be {bounds['expected'].lower()}"
    if kind.startswith("int_"):
        quoted = isinstance(value, str) and re.fullmatch(r"[-+]?[0-9]+", value)
        rule = "must be a whole number" + (", without quotes" if quoted else "")
    elif kind == "string_pattern_mismatch":
        rule = PATTERNS.get(name, f"must match {bounds['pattern']}")
    else:
        rule = _RULES.get(kind, "is not allowed here").format(**bounds)
    return f"{quote_value(value)}: {rule}"


def first_error(error: ValidationError) -> str:
    """The sentence of the first rule that settings break, with the name of the setting."""
    broken = error.errors()[0]
    name = ".".join(map(str, broken["loc"]))
    return f"{name}: {describe_rule(broken)}" if name else describe_rule(broken)


def quote_value(value: Any) -> str:
    """A value as a study file has it, cut to one short line."""
    named = {None: "null", True: "true", False: "false"}
    text = named[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."
