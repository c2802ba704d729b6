"""The generated reference pages are what the declarations say."""

import inspect
import re
from pathlib import Path

import pytest
from markdown_blocks import ROOT

from mtdlab.analysis.report.topics import TOPICS
from mtdlab.cli import app
from mtdlab.methods.registry import BUILTIN, find_method
from mtdlab.settings import settings_of
from tests.docs.reference import commands_markdown, page, write_pages
from tests.docs.reference_tables import COLUMN_MEANINGS, example_columns, files_markdown

FOLDER = ROOT / "docs" / "reference"
PAGES = sorted([*FOLDER.glob("*.md"), *FOLDER.parent.glob("methods/*.md")])


@pytest.mark.usefixtures("few_simulated_tables")
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text == page(text), "run `make docs`"


def test_every_command_and_its_options_are_described() -> None:
    text = commands_markdown()
    for command in app.registered_commands:
        assert command.callback is not None
        name = command.name or command.callback.__name__
        assert f"### `mtdlab {name}`\n\n{inspect.cleandoc(command.callback.__doc__ or '')}" in text
    assert re.search(r"\* `FILE.*`: .*\[required\]", text)
    assert "* `--set KEY=VALUE`: " in text
    assert re.search(r"\* `--models .*`: .*\[default: models\]", text)
    assert "* `--json`: " in text
    assert "fraction|percent" in text


@pytest.mark.usefixtures("few_simulated_tables")
def test_every_table_is_listed_and_every_column_has_a_meaning() -> None:
    text = files_markdown()
    for topic in TOPICS:
        for name in topic.csv:
            assert f"| `{name}.csv` | {topic.title} |" in text
    settings = {name for method in BUILTIN for name in settings_of(find_method(method).Settings)}
    columns = {name for names in example_columns().values() for name in names}
    unknown = {name for name in columns - settings - set(COLUMN_MEANINGS) if not name.isdecimal()}
    assert not unknown, "describe them in tests/docs/reference_tables.py"


def test_what_stands_around_a_region_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "some.md"
    path.write_text("before\n<!-- generated: study-keys -->\nold\n<!-- end -->\nafter\n")
    write_pages(tmp_path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("before\n<!-- generated: study-keys -->\n\n| key |")
    assert text.endswith("|\n\n<!-- end -->\nafter\n")
    assert "old" not in text


def test_an_unknown_region_is_an_error() -> None:
    with pytest.raises(KeyError, match="commandz"):
        page("<!-- generated: commandz -->\n<!-- end -->\n")
