"""The command that resumes a study, adapted to its new name or database."""

import shlex

from mtdlab.store.urls import shown, storage_url


def adapt_command(command: str, new_name: str = "", storage: str = "") -> str:
    """The command that resumes a study; empty for one that cannot do it.

    new_name  the study's, if it was renamed: only `mtdlab sweep` takes another one.
    storage   the URL of its database, if it was copied to another one.
    """
    words = shlex.split(command)
    if new_name:
        if words[:2] != ["mtdlab", "sweep"]:
            return ""
        words = [*_without(words, "--set", "study="), "--set", f"study={new_name}"]
    if storage and words:
        words = _without(words, "--storage")
        words += [] if storage == storage_url(None) else ["--storage", shown(storage)]
    return shlex.join(words)


def _without(words: list[str], option: str, value: str = "") -> list[str]:
    """The words of a command without an option whose value begins with `value`."""
    kept, index = [], 0
    while index < len(words):
        following = words[index + 1] if index + 1 < len(words) else ""
        if words[index] == option and following.startswith(value):
            index += 2
            continue
        if not words[index].startswith(f"{option}={value}"):
            kept.append(words[index])
        index += 1
    return kept
