"""What preset and method fill in, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mtdlab.config import make_settings, read_settings, read_study
from mtdlab.config.reference import presets_markdown
from mtdlab.config.source import SpecError
from mtdlab.methods.mocose_settings import PRESETS, SOURCES


def changed(**given: Any) -> dict[str, Any]:
    """What differs from the defaults."""
    defaults = make_settings()
    return {
        name: value
        for name, value in make_settings(**given).model_dump().items()
        if value != getattr(defaults, name, None)
    }


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"preset": "intended"}, {}),
        ({"method": "mocose"}, {}),
        (
            {"preset": "paper"},
            {
                "preset": "paper",
                "in_batch_negatives": False,
                "fgsm_gradient": "current",
                "ema_decay": 0.75,
                "ema_decay_end": 0.95,
            },
        ),
        (
            {"preset": "published-code"},
            {
                "preset": "published-code",
                "ema_decay": 0.75,
                "ema_decay_end": 1.0,
                "ema_schedule_steps": 15000,
                "ema_order": "before-target",
                "detach_keys": False,
                "queue_fill": "published",
                "select_on": "sts_average",
                "augmented_branch": "target",
                "max_gradient_norm": 1.0,
                "weight_decay_exceptions": "biases-and-norms",
                "head_norm_eps": 1e-12,
                "head_initialisation": "bert",
                "precision": "float32",
            },
        ),
        (
            {"method": "simcse"},
            {"method": "simcse", "evaluate_every": 125},
        ),
        (
            {"preset": "paper", "ema_decay": 0.85, "ema_decay_end": None},
            {"preset": "paper", "in_batch_negatives": False, "fgsm_gradient": "current"},
        ),
    ],
)
def test_what_is_filled_in(given: dict[str, Any], expected: dict[str, Any]) -> None:
    assert changed(**given) == expected


@pytest.mark.parametrize(
    "given",
    [{"preset": "paper", "ema_decay": 0.3}, {"preset": "published-code"}, {"method": "simcse"}],
)
def test_filled_settings_fill_to_themselves(given: dict[str, Any]) -> None:
    section = make_settings(**given)
    assert make_settings(**section.model_dump()) == section
    assert make_settings(**section.model_dump()).model_dump() == section.model_dump()


@pytest.mark.parametrize(
    "given",
    [
        {"queue_size": 512},
        {"ema_decay": 0.85},
        {"detach_keys": True},
        {"in_batch_negatives": False},
        {"prediction_layers": 2},
        {"preset": "paper"},
    ],
)
def test_what_simcse_does_not_have_is_refused(given: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match="not permitted"):
        make_settings(method="simcse", **given)
    name = next(iter(given))
    path = tmp_path / "study.yaml"
    path.write_text(f"study: a\ntrainer: {json.dumps({'method': 'simcse', **given})}\n")
    with pytest.raises(SpecError, match=f"trainer.{name}: the study's method has no such setting"):
        read_study(path)


def test_simcse_needs_two_sentences_in_a_batch() -> None:
    with pytest.raises(ValidationError, match="leaves no negatives"):
        make_settings(method="simcse", batch_size=1)


def test_a_preset_in_a_file_and_in_an_override(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(
        "study: a\ntrainer:\n  preset: published-code\nsearch:\n  ema_decay: [0.85, 0.95]\n"
    )
    spec = read_study(path)
    for unit, start in zip(spec.units(), (0.85, 0.95), strict=True):
        assert unit.parameters is not None
        settings = spec.settings(unit.parameters, unit.seed)
        assert (settings.ema_decay, settings.ema_decay_end) == (start, 1.0)
    assert not read_settings(None, ["trainer.preset=paper"]).in_batch_negatives


def test_a_preset_is_not_searched(tmp_path: Path) -> None:
    path = tmp_path / "study.yaml"
    path.write_text("study: a\nsearch:\n  preset: [intended, paper]\n")
    with pytest.raises(SpecError, match=r"search\.preset: is not searched, since it only gives"):
        read_study(path)


def test_the_reference_states_every_value_of_every_preset() -> None:
    table = presets_markdown()
    for preset, values in PRESETS.items():
        assert f"`{preset}`" in table.splitlines()[0]
        assert values.keys() <= SOURCES.keys()
    assert "| `ema_decay_end` | none | 0.95 | 1.0 |" in table
    assert "| `in_batch_negatives` | true | false | true |" in table
    assert "| `max_gradient_norm` | 0.0 | 0.0 | 1.0 |" in table
