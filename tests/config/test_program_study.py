"""The study file of a program: free names, whose values tell what each setting is."""

from pathlib import Path
from typing import Any

import pytest

from mtdlab.config.method_study import MethodSpec
from mtdlab.config.program_study import ProgramSpec
from mtdlab.config.reader import parse_study, read_study
from mtdlab.config.source import SpecError
from mtdlab.programs import Program
from mtdlab.user_code import UserModule

PROGRAM = Program(UserModule("own", "/own.py", "0" * 64), "train", ())
HEAD = "study: own\nmetric: accuracy\n"


def read(text: str) -> ProgramSpec:
    spec = parse_study("own.yaml", HEAD + text, program=PROGRAM)
    assert isinstance(spec, ProgramSpec)
    return spec


def points(spec: ProgramSpec) -> list[dict[str, Any]]:
    first = [unit for unit in spec.search_trials() if unit.seed == spec.seeds[0]]
    return [dict(spec.settings(unit.parameters or {}, 0).values) for unit in first]


def test_settings_are_those_that_the_file_names() -> None:
    spec = read("trainer: {width: 3, norm: batch, bias: true}\nsearch: {rate: [1, 0.5]}\n")
    kinds = {name: setting.annotation for name, setting in spec.known.items()}
    assert kinds == {"width": int, "norm": str, "bias": bool, "rate": float}
    fixed = {"width": 3, "norm": "batch", "bias": True}
    assert points(spec) == [fixed | {"rate": 1}, fixed | {"rate": 0.5}]
    assert spec.settings({"rate": 1}, 7).model_dump() == {
        "method": "own:train",
        **fixed,
        "rate": 1,
        "seed": 7,
    }
    assert spec.select_by == "accuracy"
    assert spec.identity()["objective"] == "own:train"
    assert spec.imports == {"own": "0" * 64}


def test_a_queue_is_searched_in_multiples_of_the_batch() -> None:
    spec = read(
        "trainer: {ema_decay: 0.9, batch_size: 64}\n"
        "search: {queue_size: {times: batch_size, values: [1, 8]}}\n"
    )
    assert [point["queue_size"] for point in points(spec)] == [64, 512]
    mtds = [spec.settings(unit.parameters or {}, 0).mtd for unit in spec.search_trials()]
    assert mtds == [pytest.approx(11), pytest.approx(18)]
    assert spec.known["queue_size"].symbol == "K"


def test_strata_of_mtd_give_the_ema_decay_and_the_queue() -> None:
    text = "trainer: {batch_size: 64}\nsearch: {mtd: {strata: [10, 20], per_stratum: 2}}\n"
    spec = read(text)
    mtds = [spec.settings(unit.parameters or {}, 0).mtd or 0 for unit in spec.search_trials()]
    assert sorted(round(mtd) for mtd in mtds) == [10, 10, 20, 20]
    with pytest.raises(SpecError, match="strata need a batch_size, under trainer or search"):
        read(text.replace("trainer: {batch_size: 64}\n", ""))


@pytest.mark.parametrize(
    ("entry", "kind"),
    [
        ("{low: 1, high: 5}", int),
        ("{low: 0.1, high: 5}", float),
        ("{min: 1, max: 5, distribution: uniform}", float),
        ("{value: text}", str),
        ("{choices: [true, false]}", bool),
    ],
)
def test_the_type_of_a_searched_setting_follows_from_its_values(entry: str, kind: type) -> None:
    spec = read(f"search: {{some: {entry}}}\nsampler: random\ntrials: 2\n")
    assert spec.known["some"].annotation is kind


REFUSED = {
    "trainer: {9lives: 1}": "trainer.9lives: a setting's name has letters, digits and _",
    "trainer: {seed: 1}": "trainer.seed: a study takes its seeds from seeds",
    "trainer: {score: 1}": "trainer.score: mtdlab records something else under this name",
    "search: {method: [a, b]}": "search.method: mtdlab records something else",
    "trainer: {mtd: 3}": "trainer.mtd: mtdlab records something else",
    "search: {n: [1, 2]}": "search.n: mtdlab records something else",
    "search: {configuration: [1, 2]}": "search.configuration: mtdlab records something else",
    "trainer: {sizes: [1, 2]}": r"sizes: \[1, 2\] is no single value; write a number, a text",
    "trainer: {size: null}": "size: None is no single value",
    "search: {size: [1, big]}": "search.size: values of several kinds; write numbers, or texts",
    "search: {size: [1, null]}": "search.size: values of several kinds",
    "search: {size: []}": "search.size: needs at least one value",
    "search: {size: {low: 2, high: 1}}": "needs low and high with low <= high",
    "trainer: {queue_size: long}": "trainer.queue_size: mtdlab reads it as a number",
    "search: {ema_decay: [slow, fast]}": "search.ema_decay: mtdlab reads it as a number",
    "trainer: {a: 1}\nsearch: {a: [1, 2]}": "search.a: also fixed under trainer",
    "trainer: {b: 0.5}\nsearch: {a: {times: b, values: [1]}}": "'b'; allowed is a setting of whole",
    "trainer: {b: 2}\nsearch: {a: {times: c, values: [1]}}": "'c'; allowed is a setting of whole "
    "numbers: b",
    "select_by: dev\nnuisance: {b: [1, 2]}\nsearch: {a: {times: b, values: [1]}}": "'b'; allowed",
    "sampler: tpe": "sampler: tpe needs trials",
    "tracking: tensorboard": "tracking: only mtdlab's own trainer writes these files",
    "select_by: 'a b'": "select_by: 'a b': a score's name has letters",
    "until: {decided: true, max_seeds: 8}": "until: needs two configurations or more",
}


@pytest.mark.parametrize(("text", "message"), REFUSED.items(), ids=list(REFUSED))
def test_a_mistake_is_pointed_at(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(f"{text}\n")


def test_the_metric_has_to_be_named() -> None:
    with pytest.raises(SpecError, match="metric: name the score of the program to maximise"):
        parse_study("own.yaml", "study: own\n", program=PROGRAM)


def test_the_page_s_columns_are_what_it_reads_as_numbers() -> None:
    """A text in a column of numbers would break the page."""
    with pytest.raises(SpecError, match="4 mistakes"):
        read("trainer: {ema_decay: a, queue_size: b, batch_size: c, initial_queue_size: d}\n")


def test_free_settings_need_the_option(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(HEAD + "trainer: {zzz: 3}\n")
    with pytest.raises(SpecError, match=r"metric: 'accuracy' is not known.*need --objective"):
        read_study(path)


def test_profiles_and_overrides_may_have_free_settings(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text(
        HEAD + "trainer: {width: 3}\nprofiles: {wide: {trainer: {width: 9, deep: true}}}\n"
    )
    spec = read_study(path, ["trainer.rate=0.5"], "wide", program=PROGRAM)
    assert spec.name == "own-wide"
    assert spec.trainer == {"width": 9, "deep": True, "rate": 0.5}


def test_a_study_has_the_part_of_its_kind_alone() -> None:
    spec = read("search: {rate: [1, 2]}\n")
    assert ProgramSpec.of(spec) is spec
    with pytest.raises(TypeError, match="study own is a ProgramSpec, not a MethodSpec"):
        MethodSpec.of(spec)


NUISANCE = """select_by: dev
trainer: {width: 3}
search: {depth: [1, 2]}
baseline: {depth: 3}
nuisance: {rate: [0.1, 0.5], seeds: [9]}
"""


def test_a_nuisance_setting_of_a_program_is_a_setting() -> None:
    spec = read(NUISANCE)
    assert spec.known["rate"].annotation is float
    values = [
        dict(spec.settings(trial.parameters or {}, trial.seed, trial.role).values)
        for trial in spec.nuisance_trials()
    ]
    assert values == [
        {"width": 3, "depth": depth, "rate": rate} for depth in (1, 2, 3) for rate in (0.1, 0.5)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (NUISANCE.replace("select_by: dev\n", ""), "by accuracy, which is no score on dev data"),
        (NUISANCE.replace("[0.1, 0.5]", "0.1"), "write a list of two values or more"),
        (NUISANCE.replace("rate", "width"), "width: is given under trainer too"),
        (NUISANCE.replace("rate", "0rate"), "0rate"),
        (NUISANCE.replace("rate", "epochs"), "epochs: is not chosen .* length of training"),
    ],
)
def test_a_wrong_nuisance_setting_of_a_program_is_refused(text: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(text)
