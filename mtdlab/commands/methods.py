"""The commands methods and schema: which methods and settings there are."""

from typing import Any

from mtdlab.api.given import import_named
from mtdlab.commands import options as opt
from mtdlab.commands.printing import print_json, print_table
from mtdlab.terminal import print_text


def methods(import_: opt.Imports = None, as_json: opt.AsJson = False) -> None:
    """List the training methods with their settings and defaults."""
    from mtdlab.config.reference import method_settings
    from mtdlab.methods.registry import find_method, method_names

    import_named(import_)
    found = {name: find_method(name) for name in method_names()}
    if as_json:
        print_json({"methods": {name: _method_fields(method) for name, method in found.items()}})
        return
    for name, method in found.items():
        print_text(f"{name}: {method.title} ({method.source})")
        rows = [
            {"setting": setting.name, "default": _format_default(setting.default)}
            for setting in method_settings(name)
        ]
        if rows:
            print_table(rows)
        print_text()
    print_text("Settings of all methods, and what each setting means: docs/reference/settings.md.")


def schema(import_: opt.Imports = None) -> None:
    """Print the JSON Schema of a study file, for completion and checks in an editor."""
    from mtdlab.config.reference import study_schema

    import_named(import_)
    print_json(study_schema())


def _method_fields(method: Any) -> dict[str, Any]:
    from mtdlab.settings import settings_of

    return {
        "title": method.title,
        "source": method.source,
        "settings": {
            setting.name: {"default": setting.default, "description": setting.description}
            for setting in settings_of(method.Settings).values()
        },
    }


def _format_default(default: Any) -> str:
    return "none" if default in (None, "") else str(default)
