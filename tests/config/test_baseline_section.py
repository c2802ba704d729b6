"""The section `baseline`: one configuration outside the search, with the same seeds."""

from pathlib import Path

import pytest

from mtdlab.config.reader import read_study
from mtdlab.config.source import SpecError
from mtdlab.config.study import StudySpec
from mtdlab.programs import find_program
from mtdlab.settings.roles import BASELINE
from tests.config.conftest import Read

STUDY = """
study: a
trainer: {batch_size: 32, steps: 40, evaluate_every: 10}
search: {ema_decay: [0.75, 0.9]}
seeds: [3, 4]
"""
SIMCSE = STUDY + "baseline: {method: simcse, learning_rate: 0.002}\n"


def order_of(spec: StudySpec) -> list[tuple[str, int]]:
    return [(unit.role, unit.seed) for unit in spec.planned_trials()]


def test_it_begins_from_the_trainer_section_and_drops_what_its_method_lacks(read: Read) -> None:
    text = SIMCSE.replace("batch_size: 32", "batch_size: 32, queue_size: 64, pooling: mean")
    found = read(text).baseline_settings()
    assert found is not None
    values = found.model_dump()
    assert (values["method"], values["batch_size"], values["steps"]) == ("simcse", 32, 40)
    assert (values["learning_rate"], values["pooling"], values["seed"]) == (0.002, "mean", 3)
    assert "queue_size" not in values


def test_it_runs_after_the_search_in_each_seed_and_is_none_of_its_trials(read: Read) -> None:
    spec = read(SIMCSE)
    of_seed = [("search", 3), ("search", 3), (BASELINE, 3)]
    assert order_of(spec) == of_seed + [(role, 4) for role, _ in of_seed]
    assert {unit.role for unit in spec.search_trials()} == {"search"}
    assert spec.search_trials() == read(STUDY).search_trials()


def test_in_a_sampled_study_it_runs_last(read: Read) -> None:
    sampled = SIMCSE + "sampler: random\ntrials: 2\n"
    assert order_of(read(sampled))[-3:] == [("search", 4), (BASELINE, 3), (BASELINE, 4)]


def test_it_is_part_of_the_identity_and_its_method_of_what_is_recorded(read: Read) -> None:
    without, spec = read(STUDY), read(SIMCSE)
    recorded = spec.identity()
    assert recorded.pop(BASELINE)["learning_rate"] == 0.002
    assert recorded == without.identity()
    assert [*spec.described_methods()] == ["mocose", "simcse"]


def test_an_encoder_of_its_own_brings_its_own_pooling(read: Read, path: Path) -> None:
    """That of the search declares mean, the other one nothing."""
    declared = path.parent / "with" / "1_Pooling"
    declared.mkdir(parents=True)
    (declared / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    (path.parent / "without").mkdir()
    text = STUDY.replace("batch_size: 32", "batch_size: 32, encoder: with")
    spec = read(text + "baseline: {encoder: without}\n")
    found = spec.baseline_settings()
    assert found is not None
    assert spec.fixed().pooling == "mean"
    assert found.model_dump()["pooling"] == "cls"


@pytest.mark.parametrize(
    ("baseline", "column", "sentence"),
    [
        ("{}", 1, "write what differs from trainer, as in {method: simcse}"),
        ("[simcse]", 1, "must be a section of keys and values"),
        ("{method: [simcse]}", 12, "['simcse']: write the name of a method, such as mocose"),
        ("{method: simces}", 12, "method 'simces' is not known"),
        ("{queue_sise: 4}", 12, "unknown key; did you mean queue_size?"),
        ("{method: simcse, queue_size: 4}", 28, "the method has no such setting; it belongs to"),
        ("{ema_decay: 2}", 12, "2: must be below 1"),
        ("{ema_decay: [0.1, 0.2]}", 12, "baseline.ema_decay: [0.1, 0.2]: must be a number"),
        ("{seed: 1}", 12, "it runs with the seeds of the search; take it out"),
        ("{evaluation: builtin}", 12, "is that of the search; write it under trainer"),
        ("{ema_decay: 0.9}", 1, "is a configuration of the search; give it another method"),
        ("{steps: 5, probe_every: 5}", 1, "probe_every 5 gives fewer than two probes"),
    ],
)
def test_a_mistake_is_refused_in_its_line_and_column(
    read: Read, path: Path, baseline: str, column: int, sentence: str
) -> None:
    with pytest.raises(SpecError) as refused:
        read(STUDY + f"baseline: {baseline}\n")
    assert f"{path}:6:{column}: baseline" in str(refused.value)
    assert sentence in str(refused.value)
    assert len(refused.value.mistakes) == 1


def test_where_the_search_varies_the_method_it_names_its_own(read: Read) -> None:
    varied = STUDY.replace("{ema_decay: [0.75, 0.9]}", "{method: [mocose, simcse]}")
    with pytest.raises(SpecError, match="name its method, which the search varies"):
        read(varied + "baseline: {steps: 20}\n")
    with pytest.raises(SpecError, match="is a configuration of the search"):
        read(varied + "baseline: {method: simcse}\n")
    spec = read(varied + "baseline: {method: simcse, steps: 20, evaluate_every: 10}\n")
    assert spec.possible_values("steps") == (40, 20)


def test_a_profile_replaces_it_whole(read: Read) -> None:
    text = SIMCSE + "profiles:\n  none: {baseline: null}\n  other: {baseline: {method: mixcse}}\n"
    assert read(text, profile="none").baseline is None
    assert read(text, profile="other").baseline == {"method": "mixcse"}


PROGRAM = """
study: a
metric: accuracy
trainer: {epochs: 3, method_name: ours}
search: {rate: [0.1, 0.2]}
"""


@pytest.fixture
def program(path: Path) -> str:
    (path.parent / "own.py").write_text("def train(settings, *, seed, checkpoints, report): ...\n")
    return str(path.parent / "own.py") + ":train"


def test_a_program_has_one_too(program: str, path: Path) -> None:
    path.write_text(PROGRAM + "baseline: {method_name: theirs, rate: 1}\n")
    found = read_study(path, program=find_program(program)).baseline_settings()
    assert found is not None
    assert found.model_dump() == {
        "method": "own:train",
        "epochs": 3,
        "method_name": "theirs",
        "rate": 1,
        "seed": 0,
    }


@pytest.mark.parametrize(
    ("baseline", "sentence"),
    [
        ("{method_name: theirs}", "give it a value of rate, which the search varies"),
        ("{rate: fast}", "'fast': write a number, as elsewhere in the file"),
        ("{rate: [0.3]}", "a baseline is one configuration; write a single value"),
        ("{rate: 0.3, epoch: 4}", "unknown key; did you mean epochs?"),
        ("{rate: 0.2}", "is a configuration of the search"),
    ],
)
def test_a_mistake_in_that_of_a_program_is_refused(
    program: str, path: Path, baseline: str, sentence: str
) -> None:
    path.write_text(PROGRAM + f"baseline: {baseline}\n")
    with pytest.raises(SpecError) as refused:
        read_study(path, program=find_program(program))
    assert sentence in str(refused.value)
