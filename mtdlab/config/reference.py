"""Generated reference: docs/reference/settings.md and the JSON Schema of a study file."""

import csv
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import Any

from mtdlab.analysis.data.markdown import markdown_table
from mtdlab.analysis.data.questions import KINDS
from mtdlab.config.checks import OF_STUDY
from mtdlab.config.search import STRATA, StrataSection
from mtdlab.config.study_file import StudyFile
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.registry import BUILTIN, find_method, method_names
from mtdlab.settings import Setting, TrainerSettings, counted_in_steps, settings_of
from mtdlab.settings.limits import LIMITS
from mtdlab.settings.trainer import INTENDED

_HEAD = """\
# Settings

Generated from the declarations in `mtdlab/settings/` and `mtdlab/methods/` by `make docs`; do not
edit. They stand under `trainer:` (fixed) or `search:` (varied) in a study file, or after
`--set trainer.`; [study-file.md](study-file.md) has the keys at the top level of a study file.
`mtdlab schema` prints the JSON Schema of a study file.

Under `trainer:` a setting whose unit is steps, but `steps` itself, may be a share of the run, above
0 and below 1, rounded up to whole steps: `evaluate_every: 0.125` evaluates eight times in any run.
"""

_FILE = files("mtdlab.methods") / "paper_and_program.csv"
_ROWS = list(csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines()))
SAID: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    method: {row["point"]: row for row in _ROWS if row["method"] == method} for method in PRESETS
}
"""What paper and program say on every setting that a preset changes, and each known difference.

`here` is what mtdlab does at a point that is no setting. `effect` is that of the program's value in
place of the default, where it was measured: on the built-in data, score in points with its standard
error over 3 to 4 seeds.
"""


def method_settings(name: str) -> list[Setting]:
    """The settings that a method adds to those of all methods, or whose default it changes."""
    shared = settings_of(TrainerSettings)
    return [
        setting
        for setting in settings_of(find_method(name).Settings).values()
        if setting.name not in shared or setting.default != shared[setting.name].default
    ]


def settings_markdown() -> str:
    """docs/reference/settings.md: the shared settings, and each built-in method's own."""
    parts = [_HEAD, "## All methods\n", _table(settings_of(TrainerSettings).values())]
    for name in BUILTIN:
        method = find_method(name)
        parts += ["", f"## {method.title}: `method: {name}`\n", f"{method.source}.\n"]
        own = method_settings(name)
        parts.append(_table(own) if own else "No settings of its own.")
    return "\n".join(parts) + "\n"


def presets_markdown() -> str:
    """The values of every preset that differ from the method's defaults, a column a preset."""
    columns = {
        f"{find_method(method).title} `{preset}`": changed_settings(method, preset)
        for method, presets in PRESETS.items()
        for preset in presets
        if changed_settings(method, preset)
    }
    names = {name: None for values in columns.values() for name in values}
    rows = [
        [
            f"`{name}`",
            *(_default(values[name]) if name in values else "" for values in columns.values()),
        ]
        for name in names
    ]
    return markdown_table(["setting", *columns], rows)


def changed_settings(method: str, preset: str) -> dict[str, Any]:
    """The values of a preset that differ from the defaults of the method."""
    kind = find_method(method).Settings
    defaults, values = kind().model_dump(), kind(method=method, preset=preset).model_dump()
    return {
        name: PRESETS[method][preset].get(name, value)
        for name, value in values.items()
        if value != defaults[name] and name not in ("preset", "method")
    }


def preset_markdown(method: str) -> str:
    """What paper and program of a method say, its defaults, and the values of its presets."""
    kind, presets = find_method(method).Settings, PRESETS[method]
    columns = [
        {**kind(method=method, preset=name).model_dump(), **presets[INTENDED], **presets[name]}
        for name in presets
    ]
    rows = []
    for name, said in SAID[method].items():
        known = name in kind.model_fields
        shown = [said["here"] or _default(values[name]) for values in columns]
        unknown = "not measured" if len(set(shown)) > 1 else ""
        label = f"`{name}`" if known else name
        rows.append([label, said["paper"], said["program"], *shown, said["effect"] or unknown])
    heads = ["default" if name == INTENDED else f"`{name}`" for name in presets]
    return markdown_table(["setting", "paper", "program", *heads, "effect of the program's"], rows)


def study_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a study file with the methods that are known now."""
    schema = StudyFile.model_json_schema()
    known: dict[str, Any] = {}
    shares: dict[str, None] = {}
    for name in method_names():
        kind = find_method(name).Settings
        shares |= dict.fromkeys(counted_in_steps(kind))
        properties = kind.model_json_schema()["properties"]
        for setting, described in properties.items():
            kept = {
                key: value for key, value in described.items() if key not in ("traits", "title")
            }
            known.setdefault(setting, kept)
    known["method"] = {"enum": method_names(), "default": known["method"]["default"]}
    presets = {
        name: None for method in method_names() for name in find_method(method).Settings.presets
    }
    known["preset"]["enum"] = [*presets]
    section = {"type": "object", "additionalProperties": False}
    searched: dict[str, Any] = {}
    for name, described in known.items():
        if name != "seed":
            # a list of values, or a mapping such as {low: 0.5, high: 0.9} in one of its spellings
            value = {key: part for key, part in described.items() if key != "default"}
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
    own = {name: described for name, described in given.items() if name not in ("seed", *OF_STUDY)}
    beside = [section | {"properties": own, "minProperties": 1}, {"type": "null"}]
    schema["properties"]["baseline"] |= {"anyOf": beside}
    about = {"type": ["string", "array", "object"]}
    asked = section | {"properties": dict.fromkeys(KINDS, about)}
    schema["properties"]["questions"]["items"] = asked | {"minProperties": 1, "maxProperties": 1}
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "mtdlab study file"
    return schema


def study_keys_markdown() -> str:
    """The keys at the top level of a study file, with default and meaning."""
    rows = [
        [f"`{name}`", _default(key.get_default(call_default_factory=True)), key.description or ""]
        for name, key in StudyFile.model_fields.items()
    ]
    return markdown_table(["key", "default", "meaning"], rows)


def limits_markdown() -> str:
    """The limits of what is read and recorded."""
    return markdown_table(["what", "at most"], LIMITS.items())


def _table(settings: Iterable[Setting]) -> str:
    rows = [
        [f"`{one.name}`", one.symbol, _default(one.default), one.unit, one.description]
        for one in settings
    ]
    return markdown_table(["setting", "symbol", "default", "unit", "meaning"], rows)


def _default(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if value in (None, "", [], {}) or "Undefined" in repr(value):
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
