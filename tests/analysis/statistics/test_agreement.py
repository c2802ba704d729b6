"""Whether the answer of a small study holds in a large one: known orders, ratios and coverage."""

import dataclasses
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.report.agreement import build, compute, describe_agreement
from mtdlab.analysis.statistics.multi_study import (
    Agreement,
    Levels,
    compare_levels,
    compute_agreements,
    compute_candidates,
    match_levels,
)
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")

DECAYS = (0.5, 0.75, 0.875, 0.9375)
LEVELS = (3, 5, 9, 17)
"""MTD of these decays with one batch in the queue."""
LAGS = (1, 2, 4, 8, 16, 32)


def study(
    name: str, scores: tuple[float, ...], *, decays: tuple[float, ...] = DECAYS, **changed: object
) -> StudyFrames:
    """A study of the four levels, by its name and the scores at them."""
    at = {1 / (1 - decay) + 1: score for decay, score in zip(decays, scores, strict=True)}
    options = {"decays": decays, "times": (1,), "shape": at.__getitem__, "noise": 1e-3}
    return dataclasses.replace(build_study(make_trials(**(options | changed))), name=name)


def with_half_lives(study: StudyFrames, half_lives: Mapping[int, float]) -> StudyFrames:
    """The study with probes whose keys lose half of their similarity at the half-life of an MTD."""
    rows = []
    for _, trial in study.trials.iterrows():
        half = half_lives[trial["mtd"]]
        rows += [(trial["number"], 100, lag, max(0, 1 - lag / (2 * half)), 0.0) for lag in LAGS]
    probes = pd.DataFrame(rows, columns=["number", "step", "lag", "cosine", "cosine_different"])
    return dataclasses.replace(study, probes=probes)


def only(found: tuple[Agreement, ...]) -> Agreement:
    (agreement,) = found
    return agreement


def test_levels_are_interpolated_within_the_range_of_the_other_study() -> None:
    chosen, weights = match_levels(np.array([1.0, 2.0, 4.0, 8.0]), np.array([8.0, np.nan, 2.0]))
    assert list(chosen) == [1, 2, 3]
    # 4 lies half-way between 2 and 8 in the logarithm; the second level is not known
    assert weights.tolist() == [[0, 0, 1], [0.5, 0, 0.5], [1, 0, 0]]
    chosen, weights = match_levels(np.array([1.0]), np.array([2.0, 4.0]))
    assert (list(chosen), weights.shape) == ([], (0, 2))


def test_the_same_scores_agree_in_order_and_best() -> None:
    first, other = study("small", (1, 2, 4, 3)), study("large", (10, 20, 40, 30), draw=1)
    found = only(compute_agreements(first, other))
    assert (found.unit, found.first, found.other, found.levels) == ("steps", "small", "large", 4)
    assert (found.alike, found.opposite, found.pairs) == (6, 0, 6)
    assert (found.order.mean, found.order.low, found.order.high) == pytest.approx((1, 1, 1))
    assert (found.ratio.mean, found.ratio.low, found.ratio.high) == pytest.approx((1, 1, 1))
    assert len(found.best) == 2
    for level in found.best:
        assert (level.mean, level.low, level.high) == pytest.approx((9, 9, 9))
    assert found.same_best


def test_reversed_scores_disagree() -> None:
    found = only(compute_agreements(study("a", (1, 2, 3, 4)), study("b", (4, 3, 2, 1), draw=1)))
    assert (found.order.mean, found.order.low, found.order.high) == pytest.approx((-1, -1, -1))
    assert found.ratio.mean == pytest.approx(3 / 17)
    assert not found.same_best


def test_differences_that_are_not_significant_decide_nothing() -> None:
    noisy = study("noisy", (1, 1, 1, 1), noise=5.0)
    found = only(compute_agreements(noisy, study("large", (1, 2, 4, 3), draw=1)))
    assert (found.order.low, found.order.high) == pytest.approx((-1, 1))
    assert found.ratio.low == pytest.approx(9 / 17)
    assert found.ratio.high == pytest.approx(9 / 3)
    assert found.same_best


def test_other_levels_are_interpolated() -> None:
    """MTD 5 and 9 of the first study lie between 3 and 17 of the other one, which rises."""
    first = study("small", (1, 2, 4, 3))
    other = study("large", (0, 100, 200), decays=(0.5, 0.75, 0.9375), draw=1)
    found = only(compute_agreements(first, other))
    # of six pairs only that of the last two levels is opposite
    assert (found.levels, found.alike, found.opposite) == (4, 5, 1)
    assert found.order.mean == pytest.approx(4 / 6)


def test_half_lives_can_agree_where_steps_do_not() -> None:
    """The other study's keys live three times as long, and so does its best history."""
    first = with_half_lives(study("small", (1, 4, 3, 2)), dict.fromkeys(LEVELS, 2.0))
    other = with_half_lives(study("large", (1, 2, 3, 4), draw=1), dict.fromkeys(LEVELS, 6.8))
    steps, halves = compute_agreements(first, other)
    assert (steps.unit, halves.unit) == ("steps", "half-lives")
    assert steps.ratio.mean == pytest.approx(17 / 5)
    assert not steps.same_best
    assert halves.ratio.mean == pytest.approx(1)
    assert [level.mean for level in halves.best] == [pytest.approx(2.5)] * 2


def test_sentences_can_agree_where_steps_do_not() -> None:
    """The other study's batches are smaller by as much as its best history in steps is longer."""
    first = study("large batch", (1, 4, 3, 2))
    size = float(first.trials["batch_size"].iloc[0])
    small = study("small batch", (1, 2, 3, 4), draw=1)
    other = dataclasses.replace(
        small, trials=small.trials.assign(batch_size=size * 5 / 17, steps=300.0)
    )
    first = dataclasses.replace(first, trials=first.trials.assign(steps=100.0))
    steps, sentences, shares = compute_agreements(first, other)
    assert [agreement.unit for agreement in (sentences, shares)] == [
        "sentences",
        "shares of the run",
    ]
    assert not steps.same_best
    assert sentences.ratio.mean == pytest.approx(1)
    assert sentences.best[0].mean == pytest.approx(5 * size)
    assert shares.best[1].mean == pytest.approx(17 / 300)
    assert shares.ratio.mean == pytest.approx(17 / 5 / 3)
    # a study that varies the batch size has no place in sentences
    varied = other.trials["batch_size"].where(other.trials["seed"] > 0, 2.0)
    mixed = dataclasses.replace(other, trials=other.trials.assign(batch_size=varied))
    assert [agreement.unit for agreement in compute_agreements(first, mixed)] == [
        "steps",
        "shares of the run",
    ]


def test_levels_whose_half_life_is_not_known_are_left_out() -> None:
    known = dict.fromkeys(LEVELS, 2.0)
    first = with_half_lives(study("small", (1, 2, 3, 4)), known)
    beyond = with_half_lives(study("large", (1, 2, 3, 4), draw=1), known | {17: 1e6})
    halves = compute_agreements(first, beyond)[1]
    assert halves.levels == 3
    # the best level of the other study has no place on this scale
    assert np.isnan(halves.ratio.mean)
    assert not halves.same_best
    lost = dataclasses.replace(beyond, probes=beyond.probes.assign(cosine=1.0))
    assert [agreement.unit for agreement in compute_agreements(first, lost)] == ["steps"]


def test_too_little_is_no_comparison() -> None:
    first = study("small", (1, 2, 3, 4))
    assert compute_agreements(first, study("one seed", (1, 2, 3, 4), seeds=(0,))) == ()
    assert compute_agreements(first, study("one level", (1,), decays=(0.5,))) == ()
    two = only(compute_agreements(first, study("two levels", (1, 2), decays=(0.5, 0.75))))
    assert (two.levels, two.pairs) == (2, 1)
    assert np.isnan(two.order.mean)


def test_candidates_are_the_configurations_that_may_be_the_best() -> None:
    first = study("small", (1, 4, 4, 2), noise=0.3, seeds=range(6))
    other = study("large", (1, 5, 2), decays=(0.5, 0.75, 0.9375), draw=1)
    table = compute_candidates(first, other).set_index("mtd").sort_index()
    assert table.index.tolist() == [5, 9]
    assert table["status"].tolist() == ["may be the best", "not run"]
    assert table["other_n"].tolist() == [3, 0]
    assert table.loc[5, "configuration"] == "EMA decay 0.75"
    low = compute_candidates(first, study("falling", (9, 5, 2, 1), draw=1)).set_index("mtd")
    assert set(low["status"]) == {"not the best"}
    assert compute_candidates(study("one", (1, 2, 3, 4), seeds=(0,)), other).empty


def test_the_section_states_order_and_best_in_both_units() -> None:
    first = with_half_lives(study("small", (1, 4, 3, 2)), dict.fromkeys(LEVELS, 2.0))
    other = with_half_lives(study("large", (1, 2, 3, 4), draw=1), dict.fromkeys(LEVELS, 6.8))
    agreements = compute([first, other])
    steps, halves = map(describe_agreement, agreements)
    contents = build([first, other], agreements)
    # in half-lives nothing is shown, and the table alone says so
    assert contents.text == [steps]
    assert steps == (
        "large, MTD in steps: the order of 4 common levels agrees with Kendall's tau 0.00 (95 % CI "
        "0.00 to 0.00): 6 of 6 pairs differ significantly in both studies, 3 of them in the same "
        "direction. The best level is 5 (5 to 5 may be the best) in small and 17 (17 to 17 may be "
        "the best) in large: a ratio of 3.4 (3.4 to 3.4), so they are not the same."
    )
    assert halves.startswith("large, MTD in half-lives: 2 common levels, too few for an order.")
    assert halves.endswith("a ratio of 1 (1 to 1), so they may be the same.")
    assert contents.csv["transfer"]["unit"].tolist() == ["steps", "half-lives"]
    assert contents.csv["transfer_candidates"]["configuration"].tolist() == ["EMA decay 0.75"]
    drawing = contents.figures["transfer"]
    assert drawing.title == "Deviation from each study's mean, by study"


def test_the_section_states_what_is_missing() -> None:
    first, other = study("small", (1, 4, 3, 2)), study("large", (1, 1, 1, 1), noise=9.0, draw=1)
    text = build([first, other], compute([first, other])).text
    assert text[0].startswith("No two studies are shown to differ in their best level")
    assert text[1] == (
        "Half-lives of keys of small, large were not measured; the setting probe_every measures "
        "them."
    )
    pair = [first, study("one", (1,), decays=(0.5,))]
    nothing = "There are no two studies with two levels of MTD and two seeds each."
    contents = build(pair, compute(pair))
    assert contents.text == [nothing]
    assert not contents.figures
    assert not contents.tables
    assert not any(map(len, contents.csv.values()))


@pytest.mark.slow
@pytest.mark.parametrize("noise", [0.3, 1.0, 3.0])
def test_intervals_cover_the_truth(noise: float) -> None:
    """At 95 %, in 400 pairs of studies with 4 seeds; the bounds are conservative."""
    truth = np.array([[1.0, 2.0, 4.0, 3.0], [1.0, 3.0, 2.0, 4.0]])
    # of the six pairs of levels, (5, 9) and (9, 17) are in the opposite order
    tau, ratio, count, rng = 2 / 6, 17 / 9, 400, np.random.default_rng(0)
    distance = np.array(LEVELS, dtype=np.float64)
    errors = rng.normal(scale=noise, size=(count, 2, 4, 4)) + rng.normal(size=(count, 2, 4, 1))
    covered = np.zeros(2)
    for tables in truth[:, None, :] + errors:
        first, other = (
            Levels("", LevelScores(pd.DataFrame(scores, columns=distance)), distance)
            for scores in tables
        )
        found = compare_levels("steps", first, other)
        covered += [
            found.order.low <= tau + 1e-9 and tau - 1e-9 <= found.order.high,
            found.ratio.low <= ratio + 1e-9 and ratio - 1e-9 <= found.ratio.high,
        ]
    # the lower end of the binomial distribution of 95 % in 400, at 0.1 %
    assert (covered >= 366).all()
