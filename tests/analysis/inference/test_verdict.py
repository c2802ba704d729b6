"""The verdict on frames of runs: shape, fields and sentences."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.questions.shape import compute_verdict
from tests.analysis.conftest import SETTINGS, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def test_an_inverted_u_is_found_despite_seed_effects() -> None:
    verdicts = [compute_verdict(make_trials(noise=0.3, draw=draw), SETTINGS) for draw in range(12)]
    assert sum(verdict.verdict == "peaked" for verdict in verdicts) >= 11
    verdict = verdicts[0]
    low, high = verdict.peak_interval
    assert low <= 8.667 <= high
    assert (low, high) == (verdict.optimal_range[0], verdict.optimal_range[-1])
    assert verdict.peak_mtd in verdict.optimal_range
    assert verdict.p_value <= 0.05
    assert not verdict.peak_excluded
    assert "The score peaks between MTD " in verdict.sentence


@pytest.mark.parametrize(("sign", "shape"), [(1, "rising"), (-1, "falling")])
def test_a_monotone_score_is_rising_or_falling(sign: int, shape: str) -> None:
    trials = make_trials(shape=lambda mtd: 40 + 12 * sign * np.log(mtd), noise=0.2)
    verdict = compute_verdict(trials, SETTINGS)
    assert verdict.verdict == shape
    assert verdict.peak_mtd == (14.667 if sign > 0 else 5)
    assert verdict.p_trend < 0.05 < verdict.p_value
    assert verdict.peak_interval is None
    assert verdict.peak_excluded
    # both ends are of known size: 12 times the log of their ratio
    assert verdict.bounds.above <= 12 * np.log(14.667 / 5) <= verdict.bounds.above + 3
    assert verdict.bounds.below < 0.5


def test_within_the_margin_requires_equivalence_of_all_levels() -> None:
    """A table of runs does not tell whether history differed: it is not called flat."""
    level = make_trials(seeds=range(6), shape=lambda _: 40.0, noise=0.1)
    assert compute_verdict(level, SETTINGS).verdict == "within margin"
    noisy = make_trials(seeds=range(6), shape=lambda _: 40.0, draw=1, noise=1.0)
    verdict = compute_verdict(noisy, SETTINGS)
    assert verdict.verdict == "inconclusive"
    text = f"Statistically indistinguishable from the best of {verdict.levels} levels (95 %"
    assert text in verdict.sentence
    assert len(verdict.optimal_range) == verdict.levels


def test_one_seed_of_two_levels_states_the_conditions_and_no_scope() -> None:
    trials = make_trials(seeds=(7,), decays=(0.75,), times=(1, 2))
    verdict = compute_verdict(trials, SETTINGS)
    assert verdict.levels == 2
    assert verdict.sentence.endswith(" This holds at EMA decay 0.75 and batch size 64.")


def test_one_seed_is_inconclusive() -> None:
    verdict = compute_verdict(make_trials(seeds=(7,), noise=0), SETTINGS)
    assert (verdict.verdict, verdict.seeds, verdict.levels) == ("inconclusive", 1, 8)
    assert verdict.peak_mtd == 8.667
    assert verdict.optimal_range == ()
    assert verdict.leads == ()
    assert np.isnan(verdict.p_value)
    assert verdict.sentence.startswith(
        "Inconclusive: one seed cannot separate MTD from chance; the"
    )


def test_runs_without_comparable_levels_are_explained() -> None:
    trials = make_trials()
    none = compute_verdict(trials.assign(state="FAIL"), SETTINGS)
    assert (none.verdict, none.seeds, none.levels) == ("inconclusive", 0, 0)
    assert none.sentence == "Inconclusive: no completed trial with an MTD has a score yet."
    assert compute_verdict(trials.assign(score=np.nan), SETTINGS) == none
    one = compute_verdict(trials[trials["mtd"] == 5], SETTINGS)
    assert one.sentence.startswith("Inconclusive: all scored trials have the same MTD")
    apart = trials[(trials["seed"] == 0) & (trials["mtd"] < 7)]
    other = trials[(trials["seed"] == 1) & (trials["mtd"] > 7)]
    split = compute_verdict(pd.concat([apart, other]), SETTINGS)
    assert split.sentence.startswith("Inconclusive: no two seeds were run")


def test_the_fields_of_a_verdict_by_hand() -> None:
    trials = make_trials(seeds=(0, 1, 2), decays=(0.75,), times=(1, 4, 8), noise=0.3)
    table = trials.pivot_table(index="seed", columns="mtd", values="score")
    assert table.columns.tolist() == [5, 8, 12]
    verdict = compute_verdict(trials, SETTINGS)
    assert (verdict.first, verdict.last, verdict.peak_mtd) == (5, 12, 8)
    assert (verdict.seeds, verdict.levels, verdict.levels_run) == (3, 3, 3)
    differences = {mtd: (table[8] - table[mtd]).mean() for mtd in (5, 12)}
    assert [lead.mtd for lead in verdict.leads] == sorted(differences, key=differences.__getitem__)
    for lead in verdict.leads:
        assert lead.size.mean == pytest.approx(differences[lead.mtd])


def test_the_difference_of_two_levels_has_the_paired_t_interval() -> None:
    trials = make_trials(seeds=range(8), decays=(0.75,), times=(1, 4), noise=0.5)
    table = trials.pivot_table(index="seed", columns="mtd", values="score")
    found = stats.ttest_rel(table[8], table[5])
    low, high = found.confidence_interval(0.95)
    [lead] = compute_verdict(trials, SETTINGS).leads
    # critical values are simulated: each is the upper end of its 99 % interval
    assert lead.size.mean == pytest.approx((low + high) / 2)
    assert low - 0.15 * (high - low) <= lead.size.low <= low


def test_the_interval_of_the_lowest_level_is_no_narrower_than_that_of_tukey() -> None:
    trials = make_trials(seeds=range(12), decays=(0.75,), noise=0.5)
    table = trials.pivot_table(index="seed", columns="mtd", values="score").to_numpy()
    lowest = compute_verdict(trials, SETTINGS).leads[-1].size
    seeds, levels = table.shape
    residuals = table - table.mean(axis=0) - table.mean(axis=1, keepdims=True) + table.mean()
    freedom = (seeds - 1) * (levels - 1)
    error = np.sqrt((residuals**2).sum() / freedom / seeds)
    width = stats.studentized_range.ppf(0.95, levels, freedom) * error
    means = table.mean(axis=0)
    assert lowest.mean == pytest.approx(np.ptp(means))
    assert 0.9 * width <= lowest.mean - lowest.low <= 2 * width
    assert lowest.high - lowest.mean == pytest.approx(lowest.mean - lowest.low)


def test_a_verdict_needs_only_four_columns() -> None:
    trials = make_trials(noise=0.3)
    bare = trials[["mtd", "score", "seed", "ema_decay"]]
    assert compute_verdict(bare).verdict == "peaked"
    with pytest.raises(KeyError, match="seed"):
        compute_verdict(bare.drop(columns="seed"))


def test_relabelled_seeds_and_seed_effects_change_nothing() -> None:
    trials = make_trials(noise=0.5)
    moved = trials.assign(seed=100 - trials["seed"], score=trials["score"] + trials["seed"])
    found, again = compute_verdict(trials, SETTINGS), compute_verdict(moved, SETTINGS)
    assert (found.verdict, found.optimal_range) == (again.verdict, again.optimal_range)
    for one, other in zip(found.leads, again.leads, strict=True):
        assert one.size.low == pytest.approx(other.size.low)


def test_many_distinct_levels_are_merged() -> None:
    rng = np.random.default_rng(0)
    mtd = np.repeat(np.geomspace(5, 500, 200), 3)
    trials = pd.DataFrame({"mtd": mtd, "seed": np.tile([0, 1, 2], 200)})
    trials["score"] = 40 - np.log(mtd / 50) ** 2 + rng.normal(size=600)
    verdict = compute_verdict(trials.assign(ema_decay=mtd))
    assert (verdict.levels, verdict.levels_run, verdict.verdict) == (30, 30, "peaked")


def test_a_level_beyond_the_run_is_left_out_of_the_verdict_unless_it_is_kept() -> None:
    # highest at MTD 28 of 10 to 74.7; 0.995^160 = 0.448, 0.985^160 = 0.089
    decays = (0.5, 0.75, 0.9, 0.95, 0.97, 0.985, 0.995)
    shape = lambda mtd: 40 - 3 * float(np.log(mtd / 28)) ** 2  # noqa: E731
    trials = make_trials(decays=decays, times=(8,), seeds=range(6), shape=shape)
    trials.loc[trials["ema_decay"] == 0.995, "score"] += 100.0
    within = compute_verdict(trials[trials["ema_decay"] < 0.99], SETTINGS)
    found = compute_verdict(trials.assign(steps=160), SETTINGS)
    assert list(found.left_out) == [208]
    assert (found.levels, found.levels_run, found.peak_mtd) == (6, 7, 28)
    assert found.verdict == "peaked"
    assert found.p_value == pytest.approx(within.p_value)
    assert [lead.mtd for lead in found.leads] == [lead.mtd for lead in within.leads]
    for lead, other in zip(found.leads, within.leads, strict=True):
        assert vars(lead.size) == pytest.approx(vars(other.size))
    assert "Left out, being beyond the run: MTD 208 (more than 10 % of" in found.sentence
    for kept in (
        compute_verdict(trials.assign(steps=160), SETTINGS, beyond_run="keep"),
        # of a table that does not state the steps nothing is known
        compute_verdict(trials, SETTINGS),
    ):
        assert (kept.left_out, kept.levels, kept.peak_mtd) == ((), 7, 208)
        assert "beyond the run" not in kept.sentence


def test_fewer_than_two_levels_within_the_run_are_not_compared() -> None:
    trials = make_trials(decays=(0.5, 0.995), times=(8,)).assign(steps=160)
    found = compute_verdict(trials, SETTINGS)
    assert (found.verdict, found.levels_run) == ("inconclusive", 2)
    assert found.sentence.startswith("Inconclusive: fewer than two levels of MTD are within the")


def test_arguments_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match="margin is 0"):
        compute_verdict(make_trials(), SETTINGS, margin=0)
    for level in (0.3, 1.0, 2.0):
        with pytest.raises(ValueError, match=rf"level is {level:g}; a verdict needs at least 0\.5"):
            compute_verdict(make_trials(), SETTINGS, level=level)
