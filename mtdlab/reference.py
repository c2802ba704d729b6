"""Write the generated reference pages: `python -m mtdlab.reference docs/reference`.

`settings.md` is generated as a whole. In the other pages, and those of methods, the text between
`<!-- generated: NAME -->` and `<!-- end -->` is replaced; the rest is written by hand.
"""

import re
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from mtdlab.analysis.report.reference import columns_markdown, files_markdown, frames_markdown
from mtdlab.cli import app
from mtdlab.config.reference import (
    limits_markdown,
    preset_markdown,
    presets_markdown,
    settings_markdown,
    study_keys_markdown,
)
from mtdlab.methods.presets import PRESETS

_REGION = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def commands_markdown() -> str:
    """Every command with its help text, arguments and options."""
    command = get_command(app)
    text = get_docs_for_click(obj=command, ctx=Context(command), indent=1, name="mtdlab")
    # a usage is no command to copy
    return text.replace("```console\n$ ", "```\n").rstrip()


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
