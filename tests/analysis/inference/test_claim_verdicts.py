"""Verdicts on claims of papers, by hand and by simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from mtdlab.analysis.inference.claims import (
    AS_CLAIMED,
    SMALL,
    SMALLER,
    ClaimJudgement,
    ClaimVerdict,
    find_need,
    judge_by_holm,
    judge_claim,
)
from mtdlab.analysis.inference.intervals import estimate, find_p_above
from mtdlab.analysis.inference.pairing import Paired


def paired(*values: float) -> Paired:
    return Paired(np.array(values))


def judge(*differences: Paired, **options: object) -> ClaimJudgement:
    return judge_claim(differences, **options)  # type: ignore[arg-type]


ABOVE, AROUND, BELOW = paired(2.0, 2.2, 1.9), paired(0.4, -0.5, 0.2), paired(-2.0, -2.2, -1.9)


def test_a_claim_of_a_difference() -> None:
    assert judge(ABOVE).verdict == "replicated"
    assert judge(ABOVE).p_value == pytest.approx(
        stats.ttest_1samp(ABOVE.values, 0, alternative="greater").pvalue * 2
    )
    assert judge(BELOW).verdict == "contradicted"
    assert judge(AROUND).verdict == "undecided"
    # every named difference has to be there
    both = judge(ABOVE, AROUND)
    assert (both.verdict, both.place) == ("undecided", 1)
    assert judge(ABOVE, ABOVE).verdict == "replicated"
    one_below = judge(ABOVE, BELOW)
    assert (one_below.verdict, one_below.place) == ("contradicted", 1)
    # what is held against one of two is corrected, and so is the interval that is stated of it
    assert (one_below.size, one_below.level) == (BELOW.estimate(0.975), 0.975)
    assert (both.size, both.level) == (AROUND.estimate(0.975), 0.975)
    assert judge(ABOVE, ABOVE).size == ABOVE.estimate()
    assert judge(ABOVE, ABOVE).level == judge(BELOW).level == 0.95


def test_a_printed_size_is_refuted_by_less_than_half_of_it_and_its_direction_left_open() -> None:
    # its interval is within 1.2 of 0
    assert abs(AROUND.estimate().low) < 1.3
    assert judge(AROUND, small=[4.0]).verdict == SMALL
    assert judge(AROUND, small=[4.0]).by_equivalence
    # what lies below 0 is contradicted, however small
    assert judge(BELOW, small=[10.0]).verdict == "contradicted"
    assert judge(AROUND, small=[0.5]).verdict == "undecided"
    # a size below 1 point is within the paper's own scatter
    assert judge(AROUND, small=[0.0]).verdict == "undecided"
    assert not judge(BELOW, small=[10.0]).by_equivalence


def test_a_claim_of_no_gain_holds_of_a_loss_and_of_a_small_gain() -> None:
    """Each difference is said to be above -1."""
    near, gains, loses = (Paired(np.array([at, at + 0.2, at - 0.2])) for at in (-0.3, -2.0, 3.0))
    assert judge(near, loses, least=-1.0).verdict == "replicated"
    assert judge(near, gains, least=-1.0).verdict == "contradicted"
    assert judge(near).verdict == "undecided"


def test_a_claim_that_holds_is_told_from_one_that_holds_in_its_size() -> None:
    # its interval is 1.7 to 2.4
    assert judge(ABOVE, small=[10.0]).verdict == SMALLER
    assert judge(ABOVE, small=[1.0]).verdict == "replicated"
    assert judge(ABOVE, small=[0.0]).verdict == "replicated"
    assert judge(ABOVE, small=[10.0]).p_value == pytest.approx(judge(ABOVE).p_value)
    assert not judge(ABOVE, small=[10.0]).by_equivalence
    # the difference that is too small is the one that is stated
    steep = paired(20.0, 20.4, 19.9)
    both = judge(ABOVE, steep, small=[1.0, 24.0])
    assert (both.verdict, both.place, both.size) == (SMALLER, 1, steep.estimate(0.975))
    # 2.5 is beyond the interval, but not beyond that of one of two differences
    assert judge(ABOVE, small=[2.5]).verdict == SMALLER
    assert judge(ABOVE, ABOVE, small=[2.5, 2.5]).verdict == "replicated"
    assert {"replicated", SMALLER} == {*AS_CLAIMED}


def test_a_claim_of_no_difference() -> None:
    assert judge(AROUND, alike=2.0).verdict == "replicated"
    assert judge(AROUND, alike=2.0).by_equivalence
    assert judge(AROUND, alike=0.5).verdict == "undecided"
    assert judge(ABOVE, alike=0.5).verdict == "contradicted"
    assert judge(BELOW, alike=0.5).verdict == "contradicted"
    assert judge(AROUND, ABOVE, alike=5.0).verdict == "replicated"
    assert judge(AROUND, ABOVE, alike=0.5).place == 1


def test_p_values_are_those_of_the_intervals() -> None:
    rng = np.random.default_rng(0)
    for of_items in (0.0, 0.3):
        values = rng.normal(1.0, 1.0, 5)
        shared = {"of_items": of_items, "freedom": 200.0}
        p_value = find_p_above(values, 0.0, **shared)
        assert estimate(values, 1 - 2 * p_value, **shared).low == pytest.approx(0, abs=1e-6)
    assert math.isnan(find_p_above(np.array([1.0]), 0.0))
    same = np.array([1.0, 1.0])
    assert (find_p_above(same, 0.5), find_p_above(same, 1.0)) == (0.0, 1.0)


def test_seeds_or_items_that_would_decide() -> None:
    scatter = paired(1.0, -0.6, 0.9, 0.3)
    seeds = find_need(scatter).seeds
    assert seeds is not None
    deviation, mean = scatter.values.std(ddof=1), scatter.values.mean()
    quantiles = [stats.t.ppf(0.975, n - 1) + stats.norm.ppf(0.8) for n in (seeds - 1, seeds)]
    reached = [
        q * deviation / np.sqrt(n) for q, n in zip(quantiles, (seeds - 1, seeds), strict=True)
    ]
    assert reached[0] > mean >= reached[1]
    # half of a printed size is farther from the estimate than 0 is
    assert find_need(scatter, small=4.0).seeds < seeds  # type: ignore[operator]
    held = find_need(Paired(scatter.values, of_items=1.0, items=100))
    assert held.seeds is None
    assert held.items == math.ceil(100 * (2.8016 / mean) ** 2)
    assert find_need(paired(0.0, 0.0)).seeds is None
    assert find_need(scatter, alike=1.0).seeds is not None


def of_p(verdict: ClaimVerdict, claimed: float, against: float = 1.0) -> ClaimJudgement:
    return ClaimJudgement(verdict=verdict, p_value=claimed, p_against=against)


def test_holm_takes_the_tested_claims_from_the_clearest_on() -> None:
    first, second = of_p("replicated", 0.02), of_p("replicated", 0.04)
    assert judge_by_holm([first, second]) == [True, True]
    assert judge_by_holm([first, ClaimJudgement(), second])[::2] == [True, True]
    assert judge_by_holm([of_p("replicated", 0.03), second]) == [False, False]
    assert judge_by_holm([]) == []


def test_what_is_held_against_claims_is_held_to_holms_rule_too() -> None:
    clear, open_ = of_p("contradicted", 1.0, 0.02), of_p("undecided", 0.5, 0.5)
    assert judge_by_holm([clear, open_])[0]
    assert not judge_by_holm([of_p("contradicted", 1.0, 0.03), open_])[0]
    # support is a family of its own
    assert judge_by_holm([of_p("replicated", 0.02, 0.9), clear]) == [True, True]
    assert judge_by_holm([of_p(SMALL, 1.0, 0.02), open_])[0]
    # it takes both that it is as claimed and that it is smaller
    for p_values, holds in (((0.02, 0.02), True), ((0.03, 0.02), False), ((0.02, 0.03), False)):
        assert judge_by_holm([of_p(SMALLER, *p_values), open_])[0] is holds


def test_the_p_value_against_a_claim_is_for_all_of_its_differences() -> None:
    alone = stats.ttest_1samp(BELOW.values, 0).pvalue
    assert judge(BELOW).p_against == pytest.approx(alone)
    assert judge(ABOVE, BELOW).p_against == pytest.approx(2 * alone)
    assert judge(AROUND).p_against == 1
    half = 2 * max(stats.ttest_1samp(sign * AROUND.values, -2).pvalue / 2 for sign in (1, -1))
    assert judge(AROUND, small=[2.0]).p_against == pytest.approx(half)
    assert math.isnan(ClaimJudgement().p_against)


@pytest.mark.parametrize("seeds", [2, 3, 8])
def test_what_is_not_so_is_replicated_in_at_most_a_fortieth(seeds: int) -> None:
    """`make evidence` in small; docs/explanation/evidence/README.md has the rates."""
    rng, studies = np.random.default_rng(seeds), 400
    drawn = rng.normal(size=(studies, seeds))
    wrong = sum(judge(Paired(values)).verdict == "replicated" for values in drawn)
    margin = sum(judge(Paired(1 + one), alike=1.0).verdict == "replicated" for one in drawn)
    # 10 of 400 are expected at most
    most = stats.binom.isf(1e-4, studies, 0.025)
    assert wrong <= most
    assert margin <= most
