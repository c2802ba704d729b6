"""Write the generated reference pages: `python -m mtdlab.reference docs/reference`.

`settings.md` is generated as a whole. In the other pages, and those of methods, the text between
`<!-- generated: NAME -->` and `<!-- end -->` is replaced; the rest is written by hand.
"""

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from typer.models import ArgumentInfo, ParameterInfo, ParamMeta
from typer.utils import get_params_from_function

from mtdlab.analysis.report.reference import columns_markdown, files_markdown, frames_markdown
from mtdlab.cli import app
from mtdlab.config.reference import (
    preset_markdown,
    presets_markdown,
    settings_markdown,
    study_keys_markdown,
)
from mtdlab.methods.presets import PRESETS
from mtdlab.settings.limits import limits_markdown

_REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands_markdown() -> str:
    """Every command with its help text, arguments and options."""
    entry = app.registered_callback
    parts = ["## mtdlab\n", *_describe(entry.callback)] if entry and entry.callback else []
    for command in app.registered_commands:
        if command.callback and not command.hidden:
            name = command.name or command.callback.__name__
            parts += [f"## mtdlab {name}\n", *_describe(command.callback)]
    return "\n".join(parts).rstrip("\n")


REGIONS: Mapping[str, Callable[[], str]] = {
    "commands": commands_markdown,
    "study-keys": study_keys_markdown,
    "limits": limits_markdown,
    "presets": presets_markdown,
    **{f"presets-{method}": partial(preset_markdown, method) for method in PRESETS},
    "frames": frames_markdown,
    "files": files_markdown,
    "columns": columns_markdown,
}


def page(text: str) -> str:
    """A page with its generated regions replaced. Raises KeyError for an unknown region."""
    return _REGION.sub(lambda match: f"{match[1]}\n{REGIONS[match[2]]()}\n\n{match[3]}", text)


def write_pages(folder: Path) -> None:
    """Bring the pages of the folder docs/reference, and docs/methods beside it, up to date."""
    (folder / "settings.md").write_text(settings_markdown(), encoding="utf-8")
    for path in sorted([*folder.glob("*.md"), *folder.parent.glob("methods/*.md")]):
        path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")


def _describe(callback: Callable[..., Any]) -> list[str]:
    """A command's help text, and tables of its arguments and options as they are declared."""
    arguments: list[str] = []
    options: list[str] = []
    for parameter in get_params_from_function(callback).values():
        info = parameter.default
        if isinstance(info, ParameterInfo) and not info.hidden:
            is_argument = isinstance(info, ArgumentInfo)
            named = info.metavar or parameter.name.upper()
            name = named if is_argument else _option(parameter, info)
            meaning = " ".join((info.help or "").split()).replace("|", "\\|")
            row = f"| `{name}` | {_default(info.default)} | {meaning} |"
            (arguments if is_argument else options).append(row)
    head = ["| argument or option | default | meaning |", "|---|---|---|"]
    table = [*head, *arguments, *options, ""] if arguments or options else []
    return [inspect.cleandoc(callback.__doc__ or ""), "", *table]


def _option(parameter: ParamMeta, info: ParameterInfo) -> str:
    """An option as it is written: `--json`, `--set KEY=VALUE`, `--jobs INTEGER`."""
    dashed = parameter.name.replace("_", "-")
    is_flag = parameter.annotation is bool
    spelling = f"--{dashed}/--no-{dashed}" if is_flag else f"--{dashed}"
    names = ", ".join(info.param_decls or [spelling])
    return names if is_flag else f"{names} {info.metavar or _metavar(parameter.annotation)}"


def _metavar(kind: Any) -> str:
    """The kind of value that an annotation such as `int | None` stands for."""
    inner = [argument for argument in get_args(kind) if argument is not type(None)]
    if get_origin(kind) is Literal:
        return "\\|".join(map(str, inner))
    if inner:
        return _metavar(inner[0])
    return {int: "INTEGER", float: "FLOAT", Path: "PATH"}.get(kind, "TEXT")


def _default(default: Any) -> str:
    """The default of an option as text; empty where there is no value to name."""
    if default is ...:
        return "required"
    return "" if default in (None, False, True) else f"`{default}`"


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
