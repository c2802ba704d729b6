"""The baseline beside the configurations of the search: many-to-one, with seeds as blocks."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.data.frames import Baseline, StudyFrames
from mtdlab.analysis.statistics.baseline import compare_with_baseline, name_baseline
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def beside(trials: pd.DataFrame, scores: dict[int, float], **values: object) -> StudyFrames:
    """A study of these trials with a SimCSE baseline whose seeds have these scores."""
    own = trials.head(1).drop(columns="number").merge(pd.DataFrame({"seed": list(scores)}), "cross")
    own = own.drop(columns="seed_x").rename(columns={"seed_y": "seed"})
    own = own.assign(score=list(scores.values()), queue_size=np.nan, ema_decay=np.nan, mtd=np.nan)
    own.insert(0, "number", range(len(trials), len(trials) + len(own)))
    baseline = Baseline({"method": "simcse"} | values, len(own), own.assign(method="simcse"))
    return replace(build_study(trials), baseline=baseline)


def flat(seeds: int, configurations: int, rng: np.random.Generator) -> pd.DataFrame:
    trials = make_trials(
        seeds=range(seeds), decays=[0.8], times=range(1, configurations + 1), shape=lambda _: 40.0
    )
    return trials.assign(score=trials["seed"] + rng.normal(size=len(trials)))


def test_differences_are_means_over_common_seeds_of_the_baseline_less_the_configuration() -> None:
    trials = make_trials(seeds=range(4))
    study = beside(trials, {seed: 50.0 + seed for seed in (1, 2, 3, 9)})
    found = compare_with_baseline(study)
    assert found is not None
    seeds = found.mean.seeds
    assert seeds == 4
    assert found.mean.estimate.mean == pytest.approx(53.75)
    assert (found.compared, len(found.table)) == (8, 8)
    for row in found.table.to_dict("records"):
        same = trials[
            (trials["ema_decay"] == row["ema_decay"]) & (trials["queue_size"] == row["queue_size"])
        ].set_index("seed")["score"]
        assert (row["number"] == same.index.size and False) or row["n"] == 4
        assert row["seeds"] == 3
        expected = np.mean([50.0 + seed - same[seed] for seed in (1, 2, 3)])
        assert row["difference"] == pytest.approx(expected, abs=0.5)
        assert row["difference_low"] < row["difference"] < row["difference_high"]


def test_with_equal_variances_and_many_seeds_the_intervals_are_nearly_dunnetts() -> None:
    """Not narrower: a test takes the least significant of several variances."""
    rng, seeds, levels = np.random.default_rng(1), 60, 4
    trials = flat(seeds, levels, rng)
    study = beside(trials, {seed: seed + rng.normal() for seed in range(seeds)})
    found = compare_with_baseline(study)
    assert found is not None
    assert study.baseline is not None
    table = trials.pivot_table(index="seed", columns="queue_size", values="score")
    own = study.baseline.trials.set_index("seed")["score"]
    centre = pd.concat([table, own], axis=1).mean(axis=1)
    groups = [table[name] - centre for name in table]
    expected = stats.dunnett(*groups, control=own - centre).confidence_interval(0.95)
    width = (found.table["difference_high"] - found.table["difference_low"]).mean() / 2
    assert 0.99 < width / float(np.mean(expected.high - expected.low) / 2) < 1.3


def test_of_a_trial_the_row_of_its_configuration_is_found() -> None:
    study = beside(make_trials(seeds=range(3)), dict.fromkeys(range(3), 40.0))
    found = compare_with_baseline(study)
    assert found is not None
    trial = study.trials.iloc[-1]
    row = found.find(study, int(trial["number"]))
    assert row is not None
    assert (row["ema_decay"], row["queue_size"]) == (trial["ema_decay"], trial["queue_size"])


@pytest.mark.parametrize(
    ("scores", "differences"),
    [({0: 45.0}, True), ({7: 45.0, 8: 46.0}, False)],
    ids=["one common seed", "no common seed"],
)
def test_without_two_common_seeds_there_is_no_interval(
    scores: dict[int, float], differences: bool
) -> None:
    found = compare_with_baseline(beside(make_trials(seeds=range(3)), scores))
    assert found is not None
    assert found.compared == 0
    assert found.table["difference"].notna().all() == differences
    assert found.table[["difference_low", "difference_high"]].isna().all(axis=None)


def test_without_a_complete_trial_there_is_nothing_to_compare() -> None:
    study = beside(make_trials(), {0: 40.0})
    assert study.baseline is not None
    failed = study.baseline.trials.assign(state="FAIL", score=np.nan)
    assert (
        compare_with_baseline(replace(study, baseline=replace(study.baseline, trials=failed)))
        is None
    )
    assert compare_with_baseline(build_study(make_trials())) is None
    # the search may have no score yet
    early = replace(study, trials=study.trials.assign(score=np.nan))
    found = compare_with_baseline(early)
    assert found is not None
    assert len(found.table) == 0


def test_it_is_named_by_what_the_file_gives_it() -> None:
    trials = make_trials()
    assert name_baseline(beside(trials, {0: 40.0})) == "SimCSE without a queue"
    other = beside(trials, {0: 40.0}, learning_rate=0.001)
    assert name_baseline(other) == "SimCSE, learning rate 0.001 without a queue"
    assert other.baseline is not None
    own = replace(other.baseline, values={"ema_decay": 0.0})
    assert name_baseline(replace(other, baseline=own)) == "EMA decay 0"
    assert name_baseline(build_study(trials)) == ""
