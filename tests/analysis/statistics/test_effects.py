"""Effects of settings and their interactions, on scores with known effects."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.data.frames import RecordedSetting, StudyFrames
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.simultaneous import compare_own
from mtdlab.analysis.statistics.configurations import (
    Effects,
    compute_effects,
    effect_contrasts,
    interaction_contrasts,
)


def factorial(interaction: float, *, noise: float = 0.3, seeds: int = 3) -> pd.DataFrame:
    """Three rates, whose best is 3 points above the worst, times three widths without effect."""
    rng = np.random.default_rng(0)
    rows = [
        (seed, rate, width, 40 + 3 * at + interaction * (at == 2) * (width == 8))
        for seed in range(seeds)
        for at, rate in enumerate((0.1, 0.3, 1.0))
        for width in (2, 4, 8)
    ]
    trials = pd.DataFrame(rows, columns=["seed", "rate", "width", "score"])
    shift = rng.normal(scale=5, size=seeds)[trials["seed"]]
    trials["score"] += shift + noise * rng.normal(size=len(trials))
    return trials.assign(number=range(len(trials)), state="COMPLETE")


def effects_of(trials: pd.DataFrame, items: ItemScores | None = None) -> Effects | None:
    settings = {name: RecordedSetting(name) for name in ("rate", "width")}
    return compute_effects(
        StudyFrames("s", "accuracy", 0, trials, settings=settings, load_items=lambda: items)
    )


def test_a_main_effect_is_the_difference_of_means_over_the_others() -> None:
    trials = factorial(0.0)
    found = effects_of(trials)
    row = found.settings.iloc[0]
    assert (row["setting"], row["upper"], row["lower"]) == ("rate", 1.0, 0.1)
    means = trials.groupby("rate")["score"].mean()
    assert row["difference"] == pytest.approx(means[1.0] - means[0.1])
    assert 4 < row["low"] < row["difference"] < row["high"] < 8
    # a row for each pair of values, oriented so that the difference is not negative
    rates = found.settings[found.settings["setting"] == "rate"]
    for pair in rates.to_dict("records"):
        assert pair["difference"] == pytest.approx(means[pair["upper"]] - means[pair["lower"]])
    assert len(rates) == 3
    widths = found.settings[found.settings["setting"] == "width"]
    assert (len(widths), (widths["low"] < 0).all(), (widths["difference"] >= 0).all()) == (3, 1, 1)
    assert (found.interactions["low"] < 0).all()


def test_an_interaction_is_the_difference_of_differences_of_means() -> None:
    trials = factorial(4.0)
    found = effects_of(trials)
    row = found.interactions.iloc[0]
    assert row["low"] > 0
    means = trials.groupby(["rate", "width"])["score"].mean()
    assert len(found.interactions) == 3 * 3
    for effect in found.interactions.to_dict("records"):
        above = [
            means[effect["upper"], width] - means[effect["lower"], width]
            for width in (effect["at"], effect["less_at"])
        ]
        assert effect["difference"] == pytest.approx(above[0] - above[1])
    assert 1.0 in (row["upper"], row["lower"])
    assert 8 in (row["at"], row["less_at"])
    cells = found.cells.set_index(["first", "second"])["mean"]
    grand = trials["score"].mean()
    for cell, mean in cells.items():
        assert mean == pytest.approx(means[cell] - grand)


def test_the_intervals_of_interactions_are_at_least_paired_t_intervals_for_all() -> None:
    """Of two settings with two values there is one interaction: a paired t test over seeds."""
    trials = factorial(1.0, seeds=6)
    trials = trials[(trials["rate"] > 0.1) & (trials["width"] > 2)]
    row = effects_of(trials).interactions.iloc[0]
    by_seed = trials.pivot_table(index="seed", columns=["rate", "width"], values="score")
    difference = (by_seed[1.0, 8] - by_seed[0.3, 8]) - (by_seed[1.0, 4] - by_seed[0.3, 4])
    alone = stats.ttest_1samp(difference, 0).confidence_interval(0.95)
    assert row["difference"] == pytest.approx(abs(difference.mean()))
    assert row["high"] - row["low"] > 0.95 * (alone.high - alone.low)


def test_no_interaction_is_seldom_significant() -> None:
    """1,000 studies of two pairs of settings; seeds differ in what two settings do together."""
    rng = np.random.default_rng(2)
    design = pd.DataFrame(list(np.ndindex(2, 2, 2)))
    tables = rng.normal(size=(1000, 4, 8))
    tables += rng.normal(size=(1000, 4, 4))[..., 2 * design[0] + design[1]]
    pairs = combinations(design, 2)
    rows = np.vstack([interaction_contrasts(design[one], design[two]) for one, two in pairs])
    family, _ = compare_own(tables[0], rows)
    estimates, widths = family.intervals(Blocks(np.ones((4, 8), dtype=bool)).fit(tables), 0.05)
    assert (np.abs(estimates) > widths).any(axis=1).sum() <= 73


def test_designs_that_are_not_factorial_have_no_effects() -> None:
    trials = factorial(0.0)
    assert effects_of(trials[trials["width"] == 2]) is None
    lacking = trials[(trials["rate"] < 1) | (trials["width"] < 8)]
    assert effects_of(lacking) is None
    assert effects_of(trials[trials["seed"] == 0]) is None
    assert effects_of(trials.iloc[:0]) is None


def test_an_effect_is_at_most_as_certain_as_the_paired_t_test_says() -> None:
    """Seeds differ in what the rate does: the effect's own values by seed decide."""
    trials = factorial(0.0, seeds=4)
    own = np.random.default_rng(3).normal(scale=4, size=4)
    trials["score"] += own[trials["seed"]] * (trials["rate"] == 1.0)
    row = effects_of(trials).settings.iloc[0]
    means = trials.pivot_table(index="seed", columns="rate", values="score")
    by_seed = stats.ttest_rel(means[1.0], means[0.1]).confidence_interval(0.95)
    assert row["low"] < by_seed.low
    assert by_seed.high < row["high"]


def with_items(trials: pd.DataFrame, scale: float) -> ItemScores:
    """200 items for each trial, which differ between configurations and not between seeds."""
    rng = np.random.default_rng(0)
    configuration = trials.groupby(["rate", "width"]).ngroup()
    values = scale * rng.normal(size=(configuration.nunique(), 200))[configuration]
    return ItemScores(
        numbers=trials["number"].to_numpy(),
        values=values.astype(np.float32),
        gold=None,
        tasks={"examples": 200},
        digest="",
    )


def test_evaluation_items_widen_the_intervals_of_effects() -> None:
    trials = factorial(0.0, seeds=5)
    widths = []
    for items in (None, with_items(trials, 1.0), with_items(trials, 10.0)):
        row = effects_of(trials, items).settings.iloc[0]
        widths.append(row["high"] - row["low"])
    assert widths[0] < widths[1] < widths[2]


@pytest.mark.parametrize("own", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("values", [(2, 2, 2), (2, 4)])
def test_effects_that_are_not_there_are_seldom_significant(
    own: float, values: tuple[int, ...]
) -> None:
    """Also where seeds differ in the effect of each setting."""
    rng = np.random.default_rng(1)
    design = pd.DataFrame(list(np.ndindex(*values)))
    tables = rng.normal(size=(1000, 4, len(design)))
    for setting, count in enumerate(values):
        tables += own * rng.normal(size=(1000, 4, count))[..., design[setting]]
    rows = np.vstack([effect_contrasts(design[setting]) for setting in design])
    family, _ = compare_own(tables[0], rows)
    blocks = Blocks(np.ones((4, len(design)), dtype=bool))
    estimates, widths = family.intervals(blocks.fit(tables), 0.05)
    # 1,000 tables at a rate of 0.05: more than 73 has a probability below 0.001
    assert (np.abs(estimates) > widths).any(axis=1).sum() <= 73
