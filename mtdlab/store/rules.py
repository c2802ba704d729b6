"""This module says what a value may be, in one rule for each kind of column.

`tables` states the rule of a column beside its type. The type checks the kind of what is read, such
as text, a whole number or an object. The whole rule is checked of what is exported, imported, or
trusted by the analysis (`records.check_row`), and where `doctor` asks for it.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np

from mtdlab.analysis.data.defaults import BeyondRun
from mtdlab.analysis.data.environment import Environment
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.analysis.data.questions import Declared, QuestionError
from mtdlab.settings.limits import FURTHEST, LATEST, STEPS
from mtdlab.settings.messages import is_study_name

LARGEST = 2**31 - 1
"""The largest of PostgreSQL's integers, as which whole numbers are stored."""
LONGEST = 10_000_000
"""The most characters of a text."""
DEEPEST = 40
"""The most levels of a JSON value."""
VERSIONS = "versions"
"""What of a study's inputs may differ between machines, at the price of equal bits."""
REFERENCES = "references"
"""Scores of a study's inputs: of each untrained encoder, by reading."""
_STEP = re.compile("[1-9][0-9]{0,7}")
_ARRAY_NAME = re.compile(
    r"(curve|spectrum|history)/\w+|probe/(step|cosine_different|cosine/\d{1,9})|items/.{1,200}",
    re.DOTALL,
)


@dataclass(frozen=True)
class Rule:
    """A rule says what a value may be, in words for a message, and whether a value is it."""

    what: str
    holds: Callable[[Any], bool]

    def narrowed(self, what: str, holds: Callable[[Any], bool]) -> "Rule":
        """Return the rule of those values of this one for which also `holds` is true."""
        return Rule(what, lambda value: self.holds(value) and holds(value))


def one_of(*values: str) -> Rule:
    """Return the rule of some texts."""
    return Rule(f"one of {', '.join(filter(None, values))}", lambda value: value in values)


def listed(rule: Rule) -> Rule:
    """Return the rule of lists whose values obey a rule."""
    return IS_LIST.narrowed(f"a list, each {rule.what}", lambda value: all(map(rule.holds, value)))


def named(rule: Rule, **required: Rule) -> Rule:
    """Return the rule of objects whose values obey a rule; those `required` are there, by others.

    The message names the required ones.
    """

    def holds(value: dict[str, Any]) -> bool:
        return required.keys() <= value.keys() and all(
            required.get(name, rule).holds(part) for name, part in value.items()
        )

    names = f" with {', '.join(required)}" if required else ""
    return IS_OBJECT.narrowed(f"an object{names}, each {rule.what}", holds)


def _is_json(value: Any, depth: int = 0) -> bool:
    if depth > DEEPEST:
        return False
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return all(_is_json(part, depth + 1) for part in parts)
    return value is None or isinstance(value, str | bool) or NUMBER.holds(value)


def _is_distribution(value: Any) -> bool:
    # imported here: store works without it, and its import takes a second
    from optuna.distributions import json_to_distribution

    try:
        json_to_distribution(value)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return False
    return True


def _is_question(value: Any) -> bool:
    try:
        Declared.read(value)
    except QuestionError:
        return False
    return True


def _have_numbers(value: dict[str, Any]) -> bool:
    """Return whether columns of numbers hold one, or nothing, as the MTD of a method without."""
    # imported here: it imports pandas, which starting a worker does without
    from mtdlab.analysis.data.frames import TRIAL_COLUMNS

    return all(
        TRIAL_COLUMNS.get(name, "str") == "str" or setting is None or NUMBER.holds(setting)
        for name, setting in value.items()
    )


# the kinds of values, which the types of columns check
IS_TEXT = Rule("text", lambda value: isinstance(value, str))
IS_WHOLE = Rule(
    "whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)
)
IS_FINITE = Rule(
    "finite number",
    lambda value: (
        isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < float("inf")
    ),
)
IS_LIST = Rule("JSON list", lambda value: isinstance(value, list))
IS_OBJECT = Rule("JSON object", lambda value: isinstance(value, dict))
ARE_TEXTS = Rule("JSON object of texts", named(IS_TEXT).holds)

# what columns hold, which their kinds are narrowed to
WHOLE = IS_WHOLE.narrowed(
    f"a whole number from 0 to {LARGEST}", lambda value: 0 <= value <= LARGEST
)
NUMBER = IS_FINITE.narrowed(
    f"a number within {FURTHEST:g} of 0",
    lambda value: abs(value) <= (FURTHEST if isinstance(value, float) else 2**63 - 1),
)
FRACTION = NUMBER.narrowed("a number from 0 to 1", lambda value: 0 <= value <= 1)
LEVEL = NUMBER.narrowed("a number between 0 and 1", lambda value: 0 < value < 1)
TIME = NUMBER.narrowed("a time in seconds, from 1970 to 2099", lambda value: 0 <= value <= LATEST)
FLAG = Rule("true or false", lambda value: isinstance(value, bool))
TEXT = IS_TEXT.narrowed("text", lambda value: len(value) <= LONGEST)
NAME = IS_TEXT.narrowed("a name of a study", is_study_name)
# what is read of them was read field by field (`tables._read_fields`)
ENVIRONMENT = Rule("an environment", lambda value: isinstance(value, Environment))
INVOCATION = Rule("a command", lambda value: isinstance(value, Invocation))
SHA256 = IS_TEXT.narrowed(
    "a SHA-256", lambda value: re.fullmatch("[0-9a-f]{64}", value) is not None
)
ARRAY_NAME = IS_TEXT.narrowed(
    "a name of an array", lambda value: _ARRAY_NAME.fullmatch(value) is not None
)
ARRAY = Rule(
    f"a vector of numbers within {FURTHEST:g} of 0, or NaN",
    lambda value: isinstance(value, np.ndarray) and not (np.abs(value) > FURTHEST).any(),
)
DISTRIBUTION = Rule("a distribution of Optuna's", _is_distribution)
JSON = Rule("JSON with finite numbers", _is_json)
SCALAR = JSON.narrowed(
    "text, a finite number, true, false or null", lambda value: not isinstance(value, dict | list)
)
PLANNED = IS_LIST.narrowed(
    "a configuration and a seed",
    lambda value: len(value) == 2 and TEXT.holds(value[0]) and WHOLE.holds(value[1]),
)
SETTINGS = named(SCALAR).narrowed("settings, with numbers where they are", _have_numbers)
REPORTS = named(NUMBER).narrowed(
    f"numbers within {FURTHEST:g} of 0 by step",
    lambda value: all(_STEP.fullmatch(step) and int(step) <= STEPS for step in value),
)
MODEL = named(TEXT, trial=WHOLE, host=TEXT, folder=TEXT)
RUN = IS_OBJECT.narrowed(
    "the run of a trial, with its scores",
    lambda run: WHOLE.holds(run.get("trial")) and named(NUMBER).holds(run.get("scores")),
)
DEFINITION = named(JSON).narrowed(
    "the values of a study file, whose names are points",
    lambda value: named(named(JSON)).holds(value.get("names", {})),
)
IDENTITY = named(JSON, sampler=TEXT, trainer=named(JSON), search=named(TEXT))
METHOD = named(
    TEXT,
    title=TEXT,
    settings=named(named(TEXT, symbol=TEXT, unit=TEXT, description=TEXT, default=SCALAR)),
)
_OF_INPUTS = {VERSIONS: named(TEXT), REFERENCES: named(named(NUMBER))}
INPUTS = IS_OBJECT.narrowed(
    "digests, versions by package, and scores by encoder and reading",
    lambda value: all(_OF_INPUTS.get(name, TEXT).holds(part) for name, part in value.items()),
)
QUESTION = Rule("a question", _is_question)
PLAN = named(
    JSON,
    study=TEXT,
    metric=TEXT,
    margin=NUMBER,
    alpha=LEVEL,
    beyond_run=one_of(*get_args(BeyondRun)),
    looks=listed(WHOLE),
).narrowed(
    "a plan whose questions can be read",
    lambda plan: (
        listed(QUESTION).holds(plan.get("questions", []))
        and named(named(JSON)).holds(plan.get("named", {}))
    ),
)
