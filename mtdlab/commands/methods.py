"""The commands methods and schema, which list methods and settings."""

from collections.abc import Mapping
from typing import Any

from mtdlab.api.given import Given
from mtdlab.commands import options as opt
from mtdlab.commands.printing import format_value, in_list, print_json, print_table, wrap_text
from mtdlab.methods.registry import find_method, method_names
from mtdlab.terminal import print_text


def methods(import_: opt.Imports = None, as_json: opt.AsJson = False) -> None:
    """List the training methods with their settings, defaults and presets."""
    from mtdlab.config.schema import method_settings
    from mtdlab.settings.trainer import INTENDED

    Given(import_=import_).code()
    by_name = {name: find_method(name) for name in method_names()}
    if as_json:
        print_json({"methods": {name: _method_fields(method) for name, method in by_name.items()}})
        return
    for name, method in by_name.items():
        print_text(f"{name}: {method.title} ({method.source})")
        rows = [
            {"setting": setting.name, "default": format_value(setting.default)}
            for setting in method_settings(name)
        ]
        if rows:
            print_table(rows)
        presets = _presets(method)
        if not presets:
            print_text("presets: those of the backbone")
        for preset, values in presets.items():
            if values and preset != INTENDED:
                print_text(wrap_text(in_list(values), f"preset {preset}: "))
        print_text()
    print_text("Settings of all methods, and what each setting means: docs/reference/settings.md.")


def schema(import_: opt.Imports = None) -> None:
    """Print the JSON Schema of a study file, for completion and checks in an editor."""
    from mtdlab.config.schema import study_schema

    Given(import_=import_).code()
    print_json(study_schema())


def _presets(method: Any) -> Mapping[str, Mapping[str, Any]]:
    """The presets of a method by name; none for a method that has those of its backbone."""
    settings = method.Settings
    return {} if "backbone" in settings.model_fields else settings.presets


def _method_fields(method: Any) -> dict[str, Any]:
    from mtdlab.settings import settings_of
    from mtdlab.settings.trainer import Multiple

    return {
        "title": method.title,
        "source": method.source,
        "presets": {
            preset: {
                name: str(value) if isinstance(value, Multiple) else value
                for name, value in values.items()
            }
            for preset, values in _presets(method).items()
        },
        "settings": {
            setting.name: {"default": setting.default, "description": setting.description}
            for setting in settings_of(method.Settings).values()
        },
    }
