"""Profiles of a study file: partial studies, each laid over the file under a name of its own."""

import copy
from typing import Any

from mtdlab.config.source import KeyPath, Source
from mtdlab.errors import nearest
from mtdlab.settings.limits import PROFILES

SECTIONS = ("trainer", "search")
"""What a profile changes setting by setting; anything else it replaces whole."""


def profile_names(source: Source) -> list[str]:
    """The names under `profiles:`. Raises SpecError where one is no partial study."""
    profiles = source.values.get("profiles", {})
    if not isinstance(profiles, dict):
        raise source.error(("profiles",), f"{profiles!r}: write NAME: and what it changes")
    if len(profiles) > PROFILES:
        raise source.error(("profiles",), f"{len(profiles)} profiles; at most {PROFILES}")
    for name, partial in profiles.items():
        if not isinstance(partial, dict) or not partial:
            raise source.error(("profiles", name), "write what it changes, such as seeds: [0]")
        for key in ("study", "profiles"):
            if key in partial:
                raise source.error(("profiles", name, key), "is not for a profile to change")
    return list(profiles)


def laid_over(source: Source, name: str | None) -> Source:
    """A copy of the file with one of its profiles laid over it; None: as it stands, without any.

    A setting under `search` is replaced whole, and taken away by null. The study is then called
    STUDY-NAME, and what the profile gives keeps its place in the file. Raises SpecError for a
    profile that is not there.
    """
    places = {at: place for at, place in source.places.items() if at[:1] != ("profiles",)}
    values, mistakes = copy.deepcopy(source.values), list(source.mistakes)
    merged = Source(source.name, source.text, values, places, mistakes=mistakes)
    profiles = merged.values.pop("profiles", {})
    if name is None:
        return merged
    if name not in profiles:
        raise source.error(("profiles",), f"no profile {name!r}; {nearest(name, profiles)}")
    merged.profile = name
    if isinstance(merged.values.get("study"), str):
        merged.values["study"] += f"-{name}"
        places["study",] = source.places["profiles", name]
    for key, value in profiles[name].items():
        if key in SECTIONS and isinstance(value, dict):
            _merge(source, merged, key, value)
        else:
            merged.values[key] = value
            _move(source, merged, (key,))
    return merged


def _merge(source: Source, merged: Source, section: str, given: dict[str, Any]) -> None:
    target = merged.values.setdefault(section, {})
    if not isinstance(target, dict):
        return  # the file itself is refused for it
    for setting, value in given.items():
        _move(source, merged, (section, setting))
        if section == "search" and value is None:
            if setting not in target:
                raise merged.error(("search", setting), "null takes away what the file searches")
            del target[setting]
        else:
            target[setting] = value


def _move(source: Source, merged: Source, path: KeyPath) -> None:
    """What stands at `path` now stands where the profile says it."""
    said = ("profiles", merged.profile, *path)
    kept = {at: place for at, place in merged.places.items() if at[: len(path)] != path}
    moved = {at[2:]: place for at, place in source.places.items() if at[: len(said)] == said}
    merged.places = kept | moved
