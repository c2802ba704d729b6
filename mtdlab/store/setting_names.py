"""Settings that earlier versions recorded, by their present names and values.

Earlier versions called the dimension inside MoCoSE's predictor `prediction_dim`. It is now
`predictor_hidden_dim`, and `prediction_dim` is the dimension of queries, keys and queue. A record
of MoCoSE without `predictor_hidden_dim` is of an earlier version.
"""

import re
from collections.abc import Mapping
from typing import Any

REPLACED: dict[str, str | None] = {}
"""Renamed settings with their present name; removed settings with None."""
RENAMED_DIM = {"prediction_dim": "predictor_hidden_dim"}
"""What earlier versions recorded of MoCoSE. Apart from `REPLACED`, since the old name has a new
meaning."""
EARLIER_MOCOSE: Mapping[str, Any] = {
    "max_gradient_norm": 0.0,
    "weight_decay_exceptions": "none",
    "head_norm_eps": 1e-5,
    "head_initialisation": "torch",
    "augmented_branch": "online",
}
"""Settings that earlier versions did not have, with what they did. A preset gives other values."""


def is_of_program(settings: Mapping[str, Any]) -> bool:
    """Whether the settings of a trial are those of a program of the user, MODULE:FUNCTION."""
    return ":" in str(settings.get("method", ""))


def is_earlier(settings: Mapping[str, Any]) -> bool:
    """Whether settings of MoCoSE were recorded before `predictor_hidden_dim` existed.

    settings  all settings of a trial, or the fixed and the searched ones of a study together.
    """
    is_mocose = settings.get("method", "mocose") == "mocose"
    return is_mocose and "predictor_hidden_dim" not in settings


def present_settings(recorded: Mapping[str, Any]) -> dict[str, Any]:
    """All settings of a trial by their present names, without removed ones; none for none."""
    if not recorded or not is_earlier(recorded):
        return _renamed(recorded, REPLACED)
    return {**EARLIER_MOCOSE, **_renamed(recorded, REPLACED | RENAMED_DIM)}


def present_parameters(
    parameters: Mapping[str, Any], settings: Mapping[str, Any]
) -> dict[str, Any]:
    """The searched settings of a trial by their present names.

    settings  all settings of the trial as recorded; empty before it began.
    """
    names = REPLACED | (RENAMED_DIM if settings and is_earlier(settings) else {})
    return _renamed(parameters, names)


def present_identity(identity: Mapping[str, Any]) -> dict[str, Any]:
    """The identity of a study with present names in its sections `trainer` and `search`."""
    names = REPLACED | (RENAMED_DIM if is_earlier_study(identity) else {})
    sections = {name: _renamed(identity[name], names) for name in ("trainer", "search")}
    return {**identity, **sections}


def is_earlier_study(identity: Mapping[str, Any]) -> bool:
    """Whether a study was begun before `predictor_hidden_dim` existed."""
    if "objective" in identity:
        return False  # its settings are those of a program of the user
    trainer, search = identity.get("trainer", {}), identity.get("search", {})
    # a study that searches the method has a section for each
    own = trainer.get("mocose", {}) if "method" in search else trainer
    return bool(own) and is_earlier({**search, **own, "method": own.get("method", "mocose")})


def present_text(text: str, identity: Mapping[str, Any]) -> str:
    """A study file with the present name of `prediction_dim`, for a study of that identity."""
    [(before, now)] = RENAMED_DIM.items()
    return re.sub(rf"\b{before}\b", now, text) if is_earlier_study(identity) else text


def present_methods(methods: Mapping[str, Any]) -> dict[str, Any]:
    """The recorded description of a study's methods, by present names of settings."""
    found = dict(methods)
    described = found.get("mocose", {}).get("settings", {})
    if described and "predictor_hidden_dim" not in described:
        settings = _renamed(described, RENAMED_DIM)
        found["mocose"] = {**found["mocose"], "settings": settings}
    return found


def _renamed(recorded: Mapping[str, Any], names: Mapping[str, str | None]) -> dict[str, Any]:
    if not names:
        return dict(recorded)
    present = {name: names.get(name, name) for name in recorded}
    return {new: recorded[old] for old, new in present.items() if new is not None}
