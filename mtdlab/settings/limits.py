"""Limits of what is read from study files and command lines, and of recorded numbers.

They lie far above sensible studies. What exceeds one is refused in a sentence before anything of
that size is built in memory.
"""

import math
import numbers
from decimal import Decimal
from typing import Any, TypeGuard

FILE_BYTES = 50_000
NESTED = 20
MISTAKES = 50
PROFILES = 20
POINTS = 10_000
TRIALS = 100_000
STEPS = 10_000_000
COUNT = 100_000_000
LAYERS = 100
FURTHEST = 1e30
"""The largest absolute value of a result: float32 holds it, float64 its fourth power."""
LATEST = 4_102_444_800
"""The latest time that is recorded, in seconds since 1970: the end of 2099."""


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value is a number of Python or NumPy; true and false are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool)


def too_far(what: str, number: Any) -> str:
    """A sentence on `what` if its finite number is too far from 0 to be recorded; else empty."""
    if not FURTHEST < abs(number) < math.inf:
        return ""
    # of any length: Python's whole numbers are no floats, and their digits are limited
    shown = f"{Decimal(int(number)):.3e}"
    return f"{what} is {shown}; numbers within {FURTHEST:g} of 0 are recorded"
