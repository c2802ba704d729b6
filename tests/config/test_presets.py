"""What preset and method fill in, and what they refuse."""

import json
import re
from typing import Any

import pytest
from pydantic import ValidationError

from mtdlab.config.reader import read_settings
from mtdlab.config.source import SpecError
from mtdlab.methods.presets import PRESETS
from mtdlab.methods.registry import BUILTIN, make_settings, settings_class
from tests.config.conftest import Read, settings_of
from tests.docs.reference import SAID, changed_settings, preset_markdown, presets_markdown


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
                **{"preset": "published-code", "batch_size": 256, "queue_size": 256},
                **{"evaluate_every": 175, "ema_decay": 0.75, "ema_decay_end": 1.0},
                **{"ema_schedule_steps": 15000, "ema_order": "before-target", "detach_keys": False},
                **{"queue_fill": "published", "select_on": "sts_average"},
                **{"augmented_branch": "target", "augmentation_draw": "published-code"},
                **{"adam_formula": "transformers", "max_gradient_norm": 1.0},
                **{"weight_decay_exceptions": "biases-and-norms", "head_norm_eps": 1e-12},
                "head_initialisation": "bert",
            },
        ),
        (
            {"method": "simcse"},
            {"method": "simcse", "evaluate_every": 125, "select_with_head": False},
        ),
        (
            {"method": "consert", "preset": "published-code", "steps": 45, "batch_size": 64}
            | {"weight_decay": 0.5},
            {
                **{"method": "consert", "preset": "published-code", "steps": 45},
                **{"pooling": "last2", "training_pooling": "mean", "temperature": 0.1},
                **{"learning_rate": 5e-7, "dropout": 0.0, "max_length": 67},
                **{"evaluate_every": 200, "warmup_steps": 5, "weight_decay": 0.5},
                **{"weight_decay_exceptions": "biases-and-norms", "max_gradient_norm": 1.0},
                **{"adam_epsilon": 1e-6, "adam_bias_correction": False, "loss_weight": 0.3},
                **{"adam_formula": "transformers", "rescaled_dropout": False},
                "first_perturbation": "feature-cutoff:0.2",
                "second_perturbation": "position-shuffle",
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
    [
        {"preset": "paper", "ema_decay": 0.3},
        {"preset": "published-code"},
        {"method": "simcse"},
        *({"method": name, "preset": "published-code"} for name in PRESETS),
    ],
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
    ],
)
def test_what_simcse_does_not_have_is_refused(given: dict[str, Any], read: Read) -> None:
    with pytest.raises(ValidationError, match="not permitted"):
        make_settings(method="simcse", **given)
    name = next(iter(given))
    with pytest.raises(SpecError, match=f"trainer.{name}: the method has no such setting"):
        read(f"study: a\ntrainer: {json.dumps({'method': 'simcse', **given})}\n")


def test_a_preset_in_a_file_and_in_an_override(read: Read) -> None:
    spec = read("study: a\ntrainer: {preset: published-code}\nsearch: {ema_decay: [0.85, 0.95]}\n")
    found = [(settings.ema_decay, settings.ema_decay_end) for settings in settings_of(spec)]
    assert found == [(0.85, 1.0), (0.95, 1.0)]
    assert not read_settings(None, ["trainer.preset=paper"]).in_batch_negatives


def test_a_preset_is_not_searched(read: Read) -> None:
    with pytest.raises(SpecError, match=r"search\.preset: is not searched, since it only fills"):
        read("study: a\nsearch:\n  preset: [intended, paper]\n")


@pytest.mark.parametrize("method", PRESETS)
def test_the_text_of_a_method_states_every_value_of_every_preset(method: str) -> None:
    text, known = preset_markdown(method), settings_class(method).model_fields
    head, *rows = (line for line in text.splitlines() if line.startswith("|"))
    said = {name for name in SAID[method] if name in known}
    for preset, values in PRESETS[method].items():
        assert (f"| `{preset}` |" in head) == bool(changed_settings(method, preset))
        assert values.keys() <= said | {"queue_size", "initial_queue_size", "warmup_steps"}
    text = re.sub(r"^Effects .*$", "", text, flags=re.MULTILINE)
    for point in SAID[method]:
        label = f"`{point}`" if point in known else point
        assert (
            len(
                re.findall(rf"(?:^\| |^- |: |, |default of ){re.escape(label)}", text, re.MULTILINE)
            )
            == 1
        )
    assert {row.count("|") for row in rows} == {head.count("|")}


def test_the_tables_state_the_values_and_the_measured_effects() -> None:
    text = preset_markdown("mocose")
    assert "| a cosine to 1 | none | 0.95 | 1.0 |" in text
    assert "| also the batch's other keys | true | false |  |" in text
    assert "- augmentation during evaluation: off (program: on)\n" in text
    text = preset_markdown("consert")
    assert "scores are of the last two | same | mean |\n" in text
    assert "in points ± standard error: `training_pooling` −2.6 ± 0.3; " in text
    assert "`evaluate_every` (program: 200, and the end of each epoch)." in text
    head, _, *rows = presets_markdown().splitlines()
    assert "MoCoSE `paper` | MoCoSE `published-code` | SimCSE `published-code`" in head
    assert any(row.startswith("| `adam_beta2` |") and "| 0.98 |" in row for row in rows)


def test_every_method_with_a_program_has_its_preset() -> None:
    # hicl has those of its backbone, the program of xbm trains on images
    assert {*BUILTIN} - {*PRESETS} == {"hicl", "xbm", "sentence-transformers"}
    for method, presets in PRESETS.items():
        assert {"intended", "published-code"} <= presets.keys()
        assert changed_settings(method, "published-code")
        assert not changed_settings(method, "intended")
        assert settings_class(method).presets == presets


def test_hicl_has_the_presets_of_its_backbone() -> None:
    settings = make_settings(method="hicl", backbone="esimcse", preset="published-code")
    values = settings.model_dump()
    assert (values["target_initialisation"], values["queue_size"]) == ("random", 160)
    assert values["weight_decay"] == 0


def test_the_warm_up_of_consert_is_rounded_up_as_in_its_program() -> None:
    found = [
        make_settings(method="consert", preset="published-code", steps=steps).warmup_steps
        for steps in (30, 45, 100)
    ]
    assert found == [3, 5, 10]


def test_the_queue_of_mocoses_program_is_a_batch() -> None:
    assert make_settings(preset="published-code", batch_size=64).queue_size == 64
