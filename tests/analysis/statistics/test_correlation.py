"""Rank correlations of score and MTD, compared with their formulas."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import score
from mtdlab.analysis.statistics.curves import compute_correlations
from tests.analysis.conftest import build_study, make_trials

LEVELS = [5.0, 6.0, 8.0, 12.0, 20.0, 36.0, 68.0]


def trials_of(scores: dict[int, list[float]]) -> pd.DataFrame:
    """A run per seed and level."""
    parts = [
        pd.DataFrame({"seed": seed, "mtd": LEVELS[: len(values)], "score": values})
        for seed, values in scores.items()
    ]
    return pd.concat(parts, ignore_index=True).assign(state="COMPLETE")


def slow_kendall(score: list[float]) -> float:
    """Concordant minus discordant pairs, over all pairs (no ties)."""
    signs = [
        np.sign(score[j] - score[i]) for i in range(len(score)) for j in range(i + 1, len(score))
    ]
    return float(np.mean(signs))


def slow_xi(score: list[float]) -> float:
    """1 - 3 sum |r_(i+1) - r_i| / (n^2 - 1), r the ranks of the scores in order of MTD."""
    ranks = [sorted(score).index(value) + 1 for value in score]
    jumps = sum(abs(b - a) for a, b in itertools.pairwise(ranks))
    return 1 - 3 * jumps / (len(score) ** 2 - 1)


def test_each_measure_is_its_formula_within_a_seed_and_then_averaged() -> None:
    one, two = [3.0, 5, 4, 6, 9, 8, 1], [1.0, 2, 5, 4, 3, 7, 6]
    table = compute_correlations(trials_of({0: one, 1: two})).set_index("measure")
    assert table["seeds"].tolist() == [2, 2, 2]
    assert table["levels"].tolist() == [7, 7, 7]
    for name, formula in (("Kendall", slow_kendall), ("Chatterjee xi", slow_xi)):
        assert table.loc[name, "mean"] == pytest.approx((formula(one) + formula(two)) / 2)
    squares = [
        sum((rank - place - 1) ** 2 for place, rank in enumerate(stats.rankdata(values)))
        for values in (one, two)
    ]
    spearman = [1 - 6 * square / (7 * 48) for square in squares]
    assert table.loc["Spearman", "mean"] == pytest.approx(np.mean(spearman))
    half = stats.t.ppf(0.975, 1) * np.std(spearman, ddof=1) / np.sqrt(2)
    assert table.loc["Spearman", "high"] == pytest.approx(np.mean(spearman) + half)


def test_xi_detects_an_inverted_u_and_spearman_does_not() -> None:
    inverted = {seed: [1.0, 3, 5, 7, 6, 4, 2] for seed in range(3)}
    table = compute_correlations(trials_of(inverted)).set_index("measure")["mean"]
    assert abs(table["Spearman"]) < 0.25
    assert abs(table["Kendall"]) < 0.15
    assert table["Chatterjee xi"] == pytest.approx(slow_xi(inverted[0]))
    assert table["Chatterjee xi"] > 0.3


def test_runs_of_one_level_count_once() -> None:
    trials = trials_of({0: [1.0, 2, 3, 4, 6, 5]})
    twice = pd.concat([trials, trials.assign(score=trials["score"] + 0.1)])
    pd.testing.assert_frame_equal(compute_correlations(trials), compute_correlations(twice))


def test_one_seed_has_no_interval_and_no_seed_no_rows() -> None:
    alone = compute_correlations(trials_of({0: [1.0, 2, 3, 4, 5, 6]}))
    assert alone[["mean", "low"]].isna().to_numpy().tolist() == [[False, True]] * 3
    assert compute_correlations(trials_of({0: [5.0] * 6})).empty


def test_few_levels_have_no_rank_correlation() -> None:
    """Of three, xi is the same number for a peak and a valley."""
    assert slow_xi([1.0, 3, 2]) == slow_xi([2.0, 1, 3]) == -0.125
    assert compute_correlations(trials_of({0: [1.0, 2, 5, 4, 3]})).empty


def test_the_topic_states_n_and_the_limit_of_xi() -> None:
    contents = score.CORRELATION.build(StudyContext(build_study(make_trials())))
    assert "with 8 levels it is at most 0.67" in contents.text[0]
    (table,) = contents.tables
    assert "mean over 3 seeds, with its 95 % t interval" in table.caption
    assert [row[0] for row in table.rows] == ["Spearman", "Kendall", "Chatterjee xi"]
    assert score.CORRELATION.build(StudyContext(build_study(make_trials(times=(1,))))) is None
