"""The keys until and verdict: what is read, and where a mistake is pointed at."""

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.inference.best import best_scores
from mtdlab.config.source import SpecError
from mtdlab.config.study import StudySpec, default_looks, plan_of, sha256_of
from tests.config.conftest import Read

STUDY = """\
study: a
search: {ema_decay: [0.75, 0.85, 0.95]}
"""


def first_seeds(spec: StudySpec) -> list[int]:
    """The seeds of the trials that a sweep begins with."""
    return [trial.seed for trial in spec.planned_trials() if spec.begins_with(trial)]


def test_looks_and_seeds_follow_from_max_seeds(read: Read) -> None:
    spec = read(STUDY + "until: {decided: true, max_seeds: 10}\n")
    assert spec.looks == (3, 5, 7, 10)
    assert spec.seeds == tuple(range(10))
    assert len(spec.search_trials()) == 30
    assert first_seeds(spec) == [0] * 3 + [1] * 3 + [2] * 3


def test_listed_seeds_come_first(read: Read) -> None:
    spec = read(STUDY + "seeds: [7, 3]\nuntil: {decided: true, max_seeds: 4, looks: [2, 4]}\n")
    assert spec.seeds == (7, 3, 8, 9)
    assert {*first_seeds(spec)} == {7, 3}


def test_a_study_without_until_has_one_look_at_all_seeds(read: Read) -> None:
    spec = read(STUDY + "seeds: [0, 1, 2]\n")
    assert (spec.until, spec.looks, spec.margin, spec.alpha) == (None, (3,), 0.5, 0.05)
    assert all(map(spec.begins_with, spec.search_trials()))
    assert "until" not in spec.identity()


@pytest.mark.parametrize(
    ("max_seeds", "looks"),
    [(2, (2,)), (3, (3,)), (4, (3, 4)), (5, (3, 4, 5)), (12, (4, 6, 9, 12)), (20, (6, 10, 14, 20))],
)
def test_default_looks(max_seeds: int, looks: tuple[int, ...]) -> None:
    assert default_looks(max_seeds) == looks


def test_margin_and_alpha_of_the_verdict(read: Read) -> None:
    spec = read(STUDY + "verdict: {margin: 1, alpha: 0.1}\n", "verdict.alpha=0.01")
    assert (spec.margin, spec.alpha) == (1.0, 0.01)


DECIDED = "until: {decided: true, "


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("until: {max_seeds: 5}", r"3:1: until.decided: this key is missing"),
        (DECIDED + "max_seeds: 1}", r"3:24: until.max_seeds: 1: must be 2 or more"),
        ("until: {decided: false, max_seeds: 5}", r"3:9: until.decided: false: must be true"),
        (DECIDED + "max_sed: 5}", r"3:24: until.max_sed: unknown key; did you mean max_seeds?"),
        (
            DECIDED + "max_seeds: 5, looks: [3, 3, 5]}",
            r"until.looks: .* looks are numbers of",
        ),
        (DECIDED + "max_seeds: 5, looks: [1, 5]}", r"until.looks.0: 1: must be 2 or more"),
        (DECIDED + "max_seeds: 5, looks: [3, 4]}", r"until.looks: .* that rise to max_seeds, 5"),
        (DECIDED + "max_seeds: 5, looks: []}", r"until.looks: \[\]: needs 1 or more values"),
        ("until: 5", r"until: 5: must be a section of keys and values"),
        (DECIDED + "max_seeds: 2}\nseeds: [0, 1, 2]", r"until.max_seeds: 2: the file lists 3"),
        (DECIDED + "max_seeds: 5}\npruner: median", r"until: needs every trial; take pruner"),
        (DECIDED + "max_seeds: 5}\nsampler: random\ntrials: 3", r"until: needs sampler: grid"),
        ("verdict: {margin: 0}", r"3:11: verdict.margin: 0: must be above 0"),
        ("verdict: {alpha: 0.6}", r"verdict.alpha: 0.6: must be 0.5 or less"),
        ("verdict: {alfa: 0.1}", r"verdict.alfa: unknown key; did you mean alpha?"),
    ],
)
def test_a_mistake_is_pointed_at(read: Read, more: str, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        read(STUDY + more + "\n")


METHODS = "search: {method: [mocose, simcse]}"


@pytest.mark.parametrize(
    ("search", "compared"),
    [
        (METHODS, 2),
        ("search: {batch_size: [8, 16, 32]}\ntrainer: {method: simcse}", 3),
        # methods at their levels of MTD
        ("search: {method: [mocose, simcse], ema_decay: [0.5, 0.9]}", 3),
        ("search: {method: [mocose, simcse], ema_decay: [0.5, 0.9], queue_size: [16, 32]}", 5),
        # a level of more than one configuration: all configurations
        ("search: {method: [mocose, simcse], ema_decay: [0.5, 0.9], learning_rate: [0.1, 0.2]}", 6),
        ("search: {method: [xbm, simcse], batch_size: [16, 32]}\ntrainer: {queue_size: 32}", 4),
        ("search: {ema_decay: [0.5, 0.9], learning_rate: [0.1, 0.2]}", 0),
        # equal MTD
        ("search: {learning_rate: [0.1, 0.2]}", 2),
        # a nuisance setting makes no configurations
        (METHODS + "\nnuisance: {learning_rate: [0.1, 0.2]}", 2),
    ],
)
def test_until_compares_what_has_no_levels_of_mtd(read: Read, search: str, compared: int) -> None:
    spec = read(f"study: a\n{search}\n{DECIDED}max_seeds: 5}}\n")
    assert (spec.planned_question().count_compared(), spec.looks) == (compared, (3, 4, 5))
    if compared:
        assert count_on_the_page(spec) == compared


def count_on_the_page(spec: StudySpec) -> int:
    """How many the analysis compares in a study with random scores."""
    draws, rows = np.random.default_rng(0), list(spec.configurations().values())
    runs = [row | {"seed": seed, "score": draws.normal()} for seed in (0, 1, 2) for row in rows]
    trials = pd.DataFrame(runs).assign(number=range(len(runs)), state="COMPLETE")
    varied = [name for name in trials if trials[name].astype(str).nunique() > 1]
    columns = list(dict.fromkeys((*varied, "method", "mtd", "state")))
    searched = {name: spec.known[name] for name in spec.search}
    return len(best_scores(trials[columns], searched).distance)


def test_until_needs_configurations_to_compare(read: Read) -> None:
    with pytest.raises(SpecError, match=r"2:1: until: needs two configurations or more to comp"):
        read(f"study: a\n{DECIDED}max_seeds: 5}}\n")
    rates = [0.001 * rate for rate in range(1, 102)]
    with pytest.raises(SpecError, match="until: compares at most 100 configurations, not 101; va"):
        read(f"study: a\nsearch: {{learning_rate: {rates}}}\n{DECIDED}max_seeds: 5}}\n")


def test_the_hash_of_a_plan_changes_with_each_of_its_values(read: Read) -> None:
    plan = plan_of(read(STUDY))
    stated = {"study": "a", "metric": "sts_test", "margin": 0.5, "alpha": 0.05, "looks": [1]}
    stated["beyond_run"] = "leave-out"
    assert plan == stated
    assert sha256_of(plan) == sha256_of(dict(reversed(plan.items())))
    changed = [plan | {name: "x"} for name in plan]
    assert len({sha256_of(given) for given in (plan, *changed)}) == 1 + len(stated)
