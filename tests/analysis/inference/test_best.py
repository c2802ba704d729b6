"""Which configuration is the best: the decision, and what it compares."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.data.frames import RecordedSetting
from mtdlab.analysis.inference.best import BestVerdict, best_scores, judge_best
from mtdlab.analysis.inference.simultaneous import compare_own
from mtdlab.analysis.measures import Floats

SETTINGS = {name: RecordedSetting(name) for name in ("method", "learning_rate")}


def trials_of(scores: Floats) -> pd.DataFrame:
    """A table (S, C) as trials of C learning rates, which have no MTD; NaN: a trial that failed."""
    seed, column = np.indices(scores.shape)
    return pd.DataFrame(
        {
            "number": range(scores.size),
            "state": np.where(np.isfinite(scores.ravel()), "COMPLETE", "FAIL"),
            "seed": seed.ravel(),
            "mtd": np.nan,
            "learning_rate": column.ravel() / 10,
            "score": scores.ravel(),
        }
    )


def table_of(effects: list[float], seeds: int, sd: float) -> Floats:
    random = np.random.default_rng(3)
    own = 5 * random.standard_normal((seeds, 1))
    return np.array(effects) + own + sd * random.standard_normal((seeds, len(effects)))


def judge(scores: Floats, level: float = 0.95, margin: float = 0.5) -> BestVerdict:
    return judge_best(best_scores(trials_of(scores), SETTINGS), level=level, margin=margin)


@pytest.mark.parametrize(
    ("effects", "sd", "kind", "best"),
    [
        ([0.0, 3, 0], 0.3, "separated", 1),
        ([0.0, 3], 0.3, "separated", 1),
        ([0.0, 0, 0], 0.05, "equivalent", None),
        ([0.0, 0], 0.05, "equivalent", None),
        # the third is far below, and the two that may be the best are alike
        ([0.0, 0, -5], 0.05, "equivalent", None),
        ([0.0, 1, 0], 2.0, "inconclusive", None),
    ],
)
def test_the_decision(effects: list[float], sd: float, kind: str, best: int | None) -> None:
    found = judge(table_of(effects, 6, sd))
    assert (found.verdict, found.seeds, len(found.ranked)) == (kind, 6, len(effects))
    assert (found.p_value <= 0.05) == (kind == "separated")
    if best is not None:
        assert found.ranked[0] == best
        assert found.may_be_best == (best,)


@pytest.mark.parametrize("lead", [0.4, 0.8, 1.2, 1.6, 2.4])
def test_two_configurations_are_separated_as_by_the_paired_t_test(lead: float) -> None:
    """The critical value of two columns that share all variances is that of the paired t test."""
    scores = table_of([0.0, lead], 8, 1.0)
    paired = stats.ttest_rel(scores[:, 0], scores[:, 1]).pvalue
    # the upper end of the 99 % interval of a share of 10,000 simulated tables
    deviation = np.sqrt(paired / 10_000)
    assert judge(scores).p_value == pytest.approx(paired + 2.33 * deviation, abs=4 * deviation)


def test_equivalence_is_two_one_sided_tests_at_the_level_of_the_look() -> None:
    scores = table_of([0.0, 0.1], 10, 0.3)
    difference = scores[:, 1] - scores[:, 0]
    error = difference.std(ddof=1) / np.sqrt(len(difference))
    bound = abs(difference.mean()) + stats.t.ppf(0.95, len(difference) - 1) * error
    assert judge(scores, margin=1.1 * bound).verdict == "equivalent"
    assert judge(scores, margin=0.9 * bound).verdict == "inconclusive"


def test_two_seeds_show_no_equivalence_and_one_is_not_compared() -> None:
    assert judge(table_of([0.0, 0], 2, 1e-6), margin=1.0).verdict == "inconclusive"
    alone = judge(table_of([0.0, 0], 1, 0.1))
    assert (alone.verdict, alone.ranked, np.isnan(alone.p_value)) == ("inconclusive", (), True)


def test_the_order_is_by_effects_within_seeds_not_by_means_over_other_seeds() -> None:
    """The best has two more seeds, in which every score is 20 points lower."""
    scores = np.array(
        [[50.0, 52, 47], [51, 53.1, 48], [50, 52.2, 47.1], [30, 32.1, 0], [31, 33, 0]]
    )
    scores[3:, 2] = np.nan
    assert np.nanmean(scores, axis=0).argmax() == 2
    found = judge(scores)
    assert (found.ranked, found.verdict) == ((1, 0, 2), "separated")


def test_methods_are_compared_at_their_levels_of_mtd() -> None:
    """Configurations of a method at one level are apart, as batch sizes without an MTD are."""
    scores = table_of([0.0, 1, 2, 4], 3, 0.1)
    trials = trials_of(scores)
    column = trials["number"] % 4
    trials["method"] = np.where(column > 1, "simcse", "mocose")
    trials["mtd"] = np.where(column > 1, np.nan, 10.0 + column)
    found = best_scores(trials, SETTINGS)
    assert found.table.columns.tolist() == [0, 1, 2, 3]
    assert found.table.to_numpy() == pytest.approx(scores)
    same = best_scores(trials.assign(learning_rate=0.1), SETTINGS)
    assert same.table.columns.tolist() == [0, 1, 2]
    assert same.table[2].to_numpy() == pytest.approx(scores[:, 2:].mean(axis=1))


def test_a_nuisance_value_that_was_chosen_for_each_makes_no_further_configurations() -> None:
    trials = trials_of(table_of([0.0, 1, 2], 3, 0.1))
    chosen = trials.assign(temperature=trials["learning_rate"] * 2)
    settings = SETTINGS | {"temperature": RecordedSetting("temperature")}
    assert best_scores(chosen, settings).table.shape == (3, 3)


def test_separated_means_that_all_intervals_of_the_best_are_above_0() -> None:
    """Held against the intervals that the page's table states."""
    random = np.random.default_rng(0)
    seen = set()
    for lead in random.uniform(0, 3, 20):
        scores = best_scores(trials_of(table_of([lead, 0, 0.5], 5, 0.6)), SETTINGS)
        verdict = judge_best(scores, level=0.95, margin=0.5)
        best = int(scores.fit.effects.argmax())
        rows = scores.tests.compare_with(scores.fit, best, 0.05)
        above = bool((np.delete(rows[:, 2], best) < 0).all())
        assert (verdict.verdict == "separated") == above
        seen.add(above)
    assert seen == {True, False}


def test_a_pair_outside_of_those_asked_about_does_not_count() -> None:
    scores = best_scores(trials_of(table_of([0.0, 0, -5], 6, 0.05)), SETTINGS)
    fit = scores.fit.part(None)
    for asked in combinations(range(3), 2):
        among = np.isin(range(3), asked)[None]
        assert scores.tests.are_flat(fit, 0.05, 0.5, among)[0] == (2 not in asked)
    assert not scores.tests.are_flat(fit, 0.05, 0.5)[0]


@pytest.mark.parametrize("unit", [1e-12, 1e6])
def test_intervals_follow_the_unit_of_the_scores(unit: float) -> None:
    """A least variance for scores of 70 points would be that of scores of 1e-12."""
    scores = np.array([[70.0, 71.0], [70.3, 71.5], [70.6, 71.4], [70.9, 72.1]])
    rows = np.array([[-1.0, 1.0]])
    widths = []
    for factor in (1.0, unit):
        family, fit = compare_own(factor * scores, rows, None)
        widths.append(family.intervals(fit, 0.05)[1] / factor)
    np.testing.assert_allclose(widths[1], widths[0], rtol=1e-3)


def test_the_bound_of_equivalence_is_the_farthest_end_of_the_intervals_that_are_tested() -> None:
    scores = best_scores(trials_of(table_of([0.0, 0, -5], 6, 0.05)), SETTINGS)
    verdict = judge_best(scores, level=0.95, margin=0.5)
    assert verdict.verdict == "equivalent"
    assert 0 < verdict.within < 0.5
    # a margin beyond it is held, and one within is not
    for margin, verdict_at in ((verdict.within + 1e-6, "equivalent"), (verdict.within, "incon")):
        assert judge_best(scores, level=0.95, margin=margin).verdict.startswith(verdict_at)
    assert np.isnan(judge_best(scores, level=0.95, margin=verdict.within).within)
