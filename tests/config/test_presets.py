"""What preset and method fill in, and what they refuse."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from mtdlab.config import make_settings, read_settings, read_study
from mtdlab.config.source import SpecError


def changed(**given: Any) -> dict[str, Any]:
    """What differs from the defaults."""
    defaults = make_settings()
    return {
        name: value
        for name, value in make_settings(**given).model_dump().items()
        if value != getattr(defaults, name)
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
                "select_on": "test",
            },
        ),
        (
            {"method": "simcse"},
            {
                "method": "simcse",
                "queue_size": 0,
                "initial_queue_size": 0,
                "ema_decay": 0.0,
                "detach_keys": False,
                "projection_layers": 0,
                "prediction_layers": 0,
                "fgsm_epsilon": 0.0,
                "evaluate_every": 125,
            },
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
    ("given", "message"),
    [
        ({"queue_size": 512}, "queue_size 512 does not go with method simcse, which has one"),
        ({"ema_decay": 0.85}, "ema_decay 0.85 does not go with method simcse"),
        ({"ema_decay_end": 0.9}, "ema_decay_end 0.9 does not go"),
        ({"detach_keys": True}, "detach_keys True does not go"),
        ({"in_batch_negatives": False}, "leave in_batch_negatives out"),
        ({"prediction_layers": 2}, "prediction_layers 2 does not go"),
        ({"preset": "paper"}, "preset paper is of the method mocose; leave it out"),
        ({"batch_size": 1}, "leaves no negatives"),
    ],
)
def test_what_simcse_does_not_have_is_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        make_settings(method="simcse", **given)


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


@pytest.mark.parametrize("name", ["preset", "method"])
def test_what_decides_other_settings_is_not_searched(tmp_path: Path, name: str) -> None:
    path = tmp_path / "study.yaml"
    path.write_text(f"study: a\nsearch:\n  {name}: [intended, mocose]\n")
    with pytest.raises(SpecError, match=f"search.{name}.* is not searched, since it only fills in"):
        read_study(path)
