"""Durations, and amounts of things, as text."""

from collections.abc import Sequence


def format_count(amount: int, noun: str) -> str:
    """An amount with its noun in the right number: 1 trial, 2 trials."""
    return f"{amount:,} {noun if amount == 1 else write_plural(noun)}"


def write_plural(noun: str) -> str:
    """The plural of a noun: trials, families."""
    return f"{noun[:-1]}ies" if noun[-1:] == "y" and noun[-2:-1] not in "aeiou" else f"{noun}s"


def list_first(words: Sequence[object], most: int, between: str = ", ") -> str:
    """The first of some words, and how many more there are: 3, 5 and 2 more."""
    more = len(words) - most
    return between.join(map(str, words[:most])) + (f" and {more:,} more" if more > 0 else "")


def format_seconds(seconds: float) -> str:
    """A duration: 1.5 s, 12 s, 12 min, 3 h 20 min."""
    if seconds < 90:
        return f"{round(seconds, 1 if seconds < 10 else None):g} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"
