"""`make docs`: the generated pages, by `python -m tests.docs.reference docs/reference`.

`settings.md` is generated as a whole. In the other pages, and those of methods, the text between
`<!-- generated: NAME -->` and `<!-- end -->` is replaced; the rest is written by hand.
"""

import csv
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from mtdlab.analysis.data.markdown import markdown_table
from mtdlab.cli import app
from mtdlab.config.schema import method_settings
from mtdlab.config.study_file import StudyFile
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.registry import BUILTIN, find_method
from mtdlab.settings import Setting, TrainerSettings, limits, settings_of
from mtdlab.settings.trainer import INTENDED
from tests.docs.reference_tables import columns_markdown, files_markdown, frames_markdown

_HEAD = """\
# Settings

Generated from the declarations in `mtdlab/settings/` and `mtdlab/methods/` by `make docs`; do not
edit. They stand under `trainer:` (fixed) or `search:` (varied) in a study file, or after
`--set trainer.`; [study-file.md](study-file.md) has the keys at the top level of a study file.
`mtdlab schema` prints the JSON Schema of a study file.

Under `trainer:` a setting whose unit is steps, but `steps` itself, may be a share of the run, above
0 and below 1, rounded up to whole steps: `evaluate_every: 0.125` evaluates eight times in any run.
"""
_FILE = Path(__file__).with_name("paper_and_program.csv")
_ROWS = list(csv.DictReader(_FILE.read_text(encoding="utf-8").splitlines()))
SAID: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    method: {row["point"]: row for row in _ROWS if row["method"] == method} for method in PRESETS
}
"""What paper and program say on every setting that a preset changes, and each known difference.

`here` is what mtdlab does at a point that is no setting. `effect` is that of the program's value in
place of the default, where it was measured: on the built-in data, score in points with its standard
error over 3 to 4 seeds.
"""
_REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands_markdown() -> str:
    """Every command with its help text, arguments and options."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=Context(command), indent=1, name="mtdlab")
    # a usage is no command to copy
    return text.replace("```console\n$ ", "```\n").rstrip()


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
    """Where paper, program and presets of a method differ, with effects, and where they agree."""
    head, *body = preset_rows(method)
    of_simcse = [row for row in preset_rows("simcse") if row in body and method != "simcse"]
    text = markdown_table(head, [row for row in body if row not in of_simcse]) + "\n"
    if of_simcse:
        text += f"\nAs with [SimCSE](simcse.md): {', '.join(row[0] for row in of_simcse)}.\n"
    said_of = {_label(method, point): said for point, said in SAID[method].items()}
    fixed = {label: said for label, said in said_of.items() if said["here"]}
    effects = [
        f"{label} {said['effect']}"
        for label, said in said_of.items()
        if said["effect"] and label not in fixed
    ]
    if effects:
        known = "; ".join(effects)
        text += f"\nEffects of the program's values, in points ± standard error: {known}.\n"
    if fixed:
        lines = [f"- {label}: {_unchanged(said)}\n" for label, said in fixed.items()]
        text += f"\nNo preset changes:\n\n{''.join(lines)}"
    known_alike = said_of.keys() - fixed.keys() - {row[0] for row in body}
    alike = [f"{label}{_agreed(said_of[label])}" for label in said_of if label in known_alike]
    if alike:
        text += f"\nPaper and program agree with the default of {', '.join(alike)}.\n"
    return text.rstrip()


def preset_rows(method: str) -> list[list[str]]:
    """The settings that a preset of a method changes, after a row of column names.

    A cell of a preset is empty where it has the default; a preset of defaults has no column.
    """
    kind, presets = find_method(method).Settings, PRESETS[method]
    values = [
        {**kind(method=method, preset=name).model_dump(), **presets[INTENDED], **presets[name]}
        for name in presets
    ]
    heads = ["default" if name == INTENDED else f"`{name}`" for name in presets]
    rows = [["setting", "paper", "program", *heads]]
    for point, said in SAID[method].items():
        if not said["here"]:
            default, *others = (_default(each[point]) for each in values)
            cells = ["" if other == default else other for other in others]
            if any(cells):
                label = _label(method, point)
                rows.append([label, said["paper"], said["program"], default, *cells])
    kept = [at for at in range(len(rows[0])) if any(row[at] for row in rows[1:])]
    return [[row[at] for at in kept] for row in rows]


def _label(method: str, point: str) -> str:
    """A setting as code, another point as it is."""
    return f"`{point}`" if point in find_method(method).Settings.model_fields else point


def _unchanged(said: Mapping[str, str]) -> str:
    """What mtdlab does at a point that is no setting of a preset, and what paper and program do."""
    known = [f"{name}: {said[name]}" for name in ("paper", "program") if said[name] != "–"]
    if said["paper"] == said["program"]:
        known = [f"paper and program: {said['paper']}"]
    return "; ".join(filter(None, [f"{said['here']} ({'; '.join(known)})", said["effect"]]))


def _agreed(said: Mapping[str, str]) -> str:
    """What only one of paper and program says on a setting that no preset changes."""
    if said["paper"] == "–":
        return " (not in the paper)"
    same = said["program"] in (said["paper"], "the same")
    return "" if same else f" (program: {said['program']})"


def study_keys_markdown() -> str:
    """The keys at the top level of a study file, with default and meaning."""
    rows = [
        [f"`{name}`", _default(key.get_default(call_default_factory=True)), key.description or ""]
        for name, key in StudyFile.model_fields.items()
    ]
    return markdown_table(["key", "default", "meaning"], rows)


LIMITS = {
    "size of a study file": f"{limits.FILE_BYTES:,} bytes",
    "lists and mappings in each other": f"{limits.NESTED} levels",
    "mistakes that are reported at once": f"{limits.MISTAKES}",
    "profiles of a study file": f"{limits.PROFILES}",
    "points of a grid, and values of one setting in it": f"{limits.POINTS:,}",
    "trials of a study: configurations × seeds": f"{limits.TRIALS:,}",
    "`steps`": f"{limits.STEPS:,}",
    "sizes in sentences, keys, tokens or dimensions": f"{limits.COUNT:,}",
    "layers of a head": f"{limits.LAYERS}",
    "numbers of a result, in magnitude": f"{limits.FURTHEST:,}",
    "times, in seconds since 1970": f"{limits.LATEST:,}",
}


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


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
