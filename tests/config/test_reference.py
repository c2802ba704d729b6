"""The generated reference is what the declarations say, and the schema accepts what we accept."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from mtdlab.config.schema import method_settings, study_schema
from mtdlab.config.source import read
from mtdlab.methods.registry import BUILTIN, find_method
from mtdlab.settings import settings_of
from tests.docs.reference import settings_markdown

ROOT = Path(__file__).parents[2]


def test_the_settings_page_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")
    assert committed == settings_markdown(), "run `make docs`"


@pytest.mark.parametrize("name", BUILTIN)
def test_every_setting_is_described(name: str) -> None:
    for setting in settings_of(find_method(name).Settings).values():
        assert setting.description, setting.name
        assert setting.description[0] not in " .", setting.name


def test_a_methods_own_settings_are_those_it_adds_or_changes() -> None:
    assert [setting.name for setting in method_settings("simcse")] == [
        "evaluate_every",
        "head_initialisation",
        "select_with_head",
    ]
    assert "queue_size" in {setting.name for setting in method_settings("mocose")}
    assert "corpus" not in {setting.name for setting in method_settings("mocose")}


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = study_schema()
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


@pytest.mark.parametrize("path", sorted(ROOT.glob("studies/**/*.yaml")), ids=lambda p: p.stem)
def test_the_schema_accepts_our_studies(path: Path, validator: Any) -> None:
    assert [error.message for error in validator.iter_errors(read(path).values)] == []


def test_the_schema_accepts_a_share_of_the_run_where_steps_are_counted() -> None:
    shares = {"evaluate_every": 0.125, "warmup_steps": 0.1, "queue_warmup_steps": 0.5}
    given = {"sentences": 20480, "steps": 0.5} | shares
    validator = jsonschema.Draft202012Validator(study_schema())
    refused = validator.iter_errors({"study": "a", "trainer": given, "baseline": shares})
    assert {error.json_path for error in refused} == {"$.trainer.steps"}


@pytest.mark.parametrize(
    "values",
    [
        {"study": "a", "trainer": {"stepz": 1}},
        {"study": "a", "trainer": {"steps": "many"}},
        {"study": "a", "trainer": {"method": "moco"}},
        {"study": "a", "search": {"ema_decay": 0.5}},
        {"trainer": {}},
    ],
    ids=str,
)
def test_the_schema_refuses_what_the_reader_refuses(values: dict[str, Any], validator: Any) -> None:
    with pytest.raises(
        jsonschema.ValidationError, match=r"not (valid|of type|one of|permit)|unexpected|required"
    ):
        validator.validate(values)
