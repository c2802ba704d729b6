"""Nuisance settings in a study file: what is read, which trials there are, what is refused."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from mtdlab.config.source import SpecError
from mtdlab.config.study import StudySpec
from tests.config.conftest import Read

STUDY = """\
study: a
trainer: {steps: 10}
search: {ema_decay: [0.5, 0.9], batch_size: [32, 64]}
seeds: [0, 1, 2]
nuisance: {learning_rate: [0.0003, 0.001, 0.003]}
"""
BASELINE = "baseline: {method: simcse}\n"


def groups_of(spec: StudySpec) -> dict[str, str]:
    """The group of each configuration that is tuned."""
    return {
        configuration: group
        for group, configuration, _ in (
            trial.configuration.split(".") for trial in spec.nuisance_trials()
        )
    }


def test_every_configuration_tries_every_value_with_seeds_of_its_own(read: Read) -> None:
    spec = read(STUDY + BASELINE)
    tuning = spec.nuisance_trials()
    assert Counter(trial.role for trial in tuning) == {"tuning": 24, "baseline-tuning": 6}
    assert {trial.seed for trial in tuning} == {1000, 1001}
    tried: Counter[Any] = Counter()
    for trial in tuning:
        settings: Any = spec.settings(trial.parameters or {}, trial.seed, trial.role)
        eta = getattr(settings, "ema_decay", None)
        tried[settings.method, eta, settings.batch_size, settings.learning_rate] += 1
    rates = (0.0003, 0.001, 0.003)
    # a searched setting that the baseline does not give has its default
    beside = {("simcse", None, 64, rate): 2 for rate in rates}
    of_search = {
        ("mocose", eta, size, rate): 2 for eta in (0.5, 0.9) for size in (32, 64) for rate in rates
    }
    assert tried == of_search | beside
    assert len(set(groups_of(spec).values())) == 5
    planned = spec.planned_trials()
    assert len(planned) == 30 + 12 + 3
    assert len({trial.key for trial in planned}) == len(planned)
    assert planned[:30] == tuning


def test_what_is_compared_begins_when_the_values_are_chosen_and_has_them(read: Read) -> None:
    spec = read(STUDY + BASELINE)
    assert spec.unchosen_groups
    assert {trial.role for trial in spec.planned_trials() if spec.begins_with(trial)} == {
        "tuning",
        "baseline-tuning",
    }
    rates = dict(zip(groups_of(spec), [0.0003, 0.001, 0.001, 0.003, 0.003], strict=True))
    chosen = replace(
        spec, nuisance_choice={key: {"learning_rate": rate} for key, rate in rates.items()}
    )
    assert not chosen.unchosen_groups
    for trial in chosen.search_trials():
        settings: Any = chosen.settings(trial.parameters or {}, trial.seed, trial.role)
        assert settings.learning_rate == rates[trial.configuration]
    beside = [trial for trial in chosen.planned_trials() if trial.role == "baseline"]
    assert [trial.parameters for trial in beside] == [
        {"method": "simcse", "learning_rate": rates["baseline"]}
    ] * 3
    # neither the choice nor the values change which trial is which
    assert [trial.key for trial in chosen.planned_trials()] == [
        trial.key for trial in spec.planned_trials()
    ]
    assert chosen.identity() == spec.identity()


def test_values_of_another_setting_share_a_choice(read: Read) -> None:
    per = STUDY.replace("0.003]", "0.003], seeds: [7], per: batch_size")
    spec = read(per + BASELINE)
    assert len(spec.nuisance_trials()) == 12 + 3
    sizes: dict[str, set[int]] = {}
    for trial in spec.nuisance_trials():
        settings: Any = spec.settings(trial.parameters or {}, trial.seed, trial.role)
        sizes.setdefault(trial.configuration.split(".")[0], set()).add(settings.batch_size)
    # the baseline has the default batch size, 64, and its choice with it
    assert sorted(map(sorted, sizes.values())) == [[32], [64]]


def test_it_is_part_of_what_identifies_the_study(read: Read) -> None:
    before = read(STUDY).identity()
    assert before["nuisance"]["learning_rate"] == [0.0003, 0.001, 0.003]
    assert "learning_rate" not in before["trainer"]
    assert read(STUDY.replace("0.003]", "0.003, 0.01]")).identity() != before
    assert read(STUDY.replace("0.003]", "0.003], seeds: [9]")).identity() != before


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ("{learning_rate: []}", r"\[\]: write a list of two values or more"),
        ("{learning_rate: 0.001}", "0.001: write a list of two values or more"),
        ("{learning_rate: [0.001, 0.001]}", "write a list of two values or more"),
        ("{learning_rate: [0.001, [1]]}", r"\[1\] is not a single value"),
        ("{learning_rate: [0.001, -1]}", "learning_rate: -1: must be above 0"),
        ("{learning_rat: [0.001, 0.01]}", "learning_rate"),
        ("{evaluation: [builtin, other]}", "evaluation: is not chosen .* decides what is scored"),
        ("{tasks: [STS12, SICKR]}", "tasks: is not chosen for each configuration"),
        ("{select_on: [dev, last]}", "select_on: is not chosen for each configuration"),
        ("{evaluate_every: [1, 5]}", "evaluate_every: is not chosen for each configuration"),
        ("{encoder: [builtin, other]}", "encoder: is not chosen .* search it"),
        ("{encoder_layers: [1, 2]}", "encoder_layers: is not chosen .* search it"),
        ("{corpus: [builtin, other]}", "corpus: is not chosen .* search it"),
        ("{method: [simcse, xbm]}", "method: is not chosen .* search it"),
        ("{sentences: [640, 1280]}", "sentences: is not chosen .* length of training"),
        ("{device: [cpu, cuda]}", "device: is not chosen .* how a trial is computed"),
        ("{precision: [auto, float32]}", "precision: is not chosen for each configuration"),
        ("{seed: [1, 2]}", "seed: is not chosen .* varies chance alone"),
        ("{probe_every: [1, 2]}", "probe_every: is not chosen .* changes no score"),
        ("{preset: [intended, published-code]}", "preset: is not chosen for each configuration"),
        ("{seeds: [9]}", "name a setting and its values"),
        ("{learning_rate: [0.001, 0.01], seeds: [5, 2]}", "2 is a seed of the study too"),
        ("{learning_rate: [0.001, 0.01], seeds: []}", r"\[\]: write a list of seeds"),
        ("{learning_rate: [0.001, 0.01], seeds: [-1]}", "-1: a seed is 0 or more"),
        ("{learning_rate: [0.001, 0.01], per: steps}", "'steps' is not searched; search has ema"),
        ("{ema_decay: [0.5, 0.9]}", "is given under search too; take it out of one"),
        ("{steps: [5, 9]}", "is given under trainer too; take it out of one"),
        ("{warmup_steps: [0, 10]}", "warmup_steps 10 leaves no step at the full learning rate"),
        ("[0.001]", "must be a section of keys and values"),
    ],
)
def test_a_mistake_is_refused_at_its_place(read: Read, section: str, message: str) -> None:
    text = STUDY.replace("{learning_rate: [0.0003, 0.001, 0.003]}", section)
    with pytest.raises(SpecError, match=message) as refused:
        read(text)
    assert "study.yaml:5:" in str(refused.value)


def test_only_a_grid_that_is_ranked_by_dev_data_has_a_choice(read: Read) -> None:
    with pytest.raises(SpecError, match="chosen by sts_test, which is no score on dev data"):
        read(STUDY + "select_by: sts_test\n")
    with pytest.raises(SpecError, match="needs sampler: grid; random has no configurations"):
        read(STUDY + "sampler: random\ntrials: 4\n")


def test_the_length_of_training_is_refused_where_it_is_not_fixed(read: Read) -> None:
    text = STUDY.replace("{learning_rate: [0.0003, 0.001, 0.003]}", "{steps: [5, 9]}")
    with pytest.raises(SpecError, match=r"steps: is not chosen .* length of training"):
        read(text.replace("trainer: {steps: 10}\n", ""))
