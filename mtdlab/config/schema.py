"""The JSON Schema of a study file, and the settings that a method adds to those of all."""

from typing import Any

from mtdlab.analysis.data.questions import KINDS
from mtdlab.config.checks import OF_STUDY
from mtdlab.config.search import STRATA, StrataSection
from mtdlab.config.study_file import StudyFile
from mtdlab.methods.registry import find_method, method_names
from mtdlab.settings import Setting, TrainerSettings, counted_in_steps, settings_of


def method_settings(name: str) -> list[Setting]:
    """The settings that a method adds to those of all methods, or whose default it changes."""
    shared = settings_of(TrainerSettings)
    return [
        setting
        for setting in settings_of(find_method(name).Settings).values()
        if setting.name not in shared or setting.default != shared[setting.name].default
    ]


def study_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a study file with the methods that are known now."""
    schema = StudyFile.model_json_schema()
    known: dict[str, Any] = {}
    shares, presets = set[str](), dict[str, None]()
    for kind in (find_method(name).Settings for name in method_names()):
        shares |= counted_in_steps(kind)
        presets |= dict.fromkeys(kind.presets)
        for name, described in kind.model_json_schema()["properties"].items():
            known.setdefault(name, _without(described, "traits", "title"))
    known["method"] = {"enum": method_names(), "default": known["method"]["default"]}
    known["preset"]["enum"] = [*presets]
    section = {"type": "object", "additionalProperties": False}
    searched: dict[str, Any] = {}
    for name, described in known.items():
        if name not in ("seed", *OF_STUDY):
            # a list of values, or a mapping such as {low: 0.5, high: 0.9} in one of its spellings
            value = _without(described, "default")
            values = {"type": "array", "items": value, "minItems": 1}
            searched[name] = {"anyOf": [values, {"type": "object"}]}
    searched[STRATA] = StrataSection.model_json_schema()
    share = {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}
    given = {
        name: {"anyOf": [described, share]} if name in shares else described
        for name, described in known.items()
    }
    schema["properties"]["trainer"] |= section | {"properties": given}
    schema["properties"]["search"] |= section | {"properties": searched}
    own = _without(given, "seed", *OF_STUDY)
    beside = [section | {"properties": own, "minProperties": 1}, {"type": "null"}]
    schema["properties"]["baseline"] |= {"anyOf": beside}
    about = {"type": ["string", "array", "object"]}
    asked = section | {"properties": dict.fromkeys(KINDS, about)}
    schema["properties"]["questions"]["items"] = asked | {"minProperties": 1, "maxProperties": 1}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "mtdlab study file"
    return schema


def _without(described: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in described.items() if key not in keys}
