"""The wording of a verdict for each shape, from its fields alone."""

import math
from dataclasses import replace

import pytest

from analysis.intervals import Estimate
from analysis.report.shape import answer_shape, describe_certainty
from analysis.verdict import Verdict, format_p, write_sentence

BASE = Verdict(
    "inconclusive",
    p_value=0.2,
    p_trend=0.34,
    peak_mtd=28,
    optimal_range=(18, 28, 41),
    seeds=8,
    levels=7,
    levels_run=7,
    first=10,
    last=208,
    rise=Estimate(5.98, 3.5, 8.4),
    fall=Estimate(4.512, 2.5, 6.5),
)


def test_a_peak_has_its_distance_from_both_ends_and_its_optimal_range() -> None:
    assert write_sentence(replace(BASE, verdict="peaked", p_value=0.0001)) == (
        "The score peaks at MTD 28, inside the tested range: 5.98 points (simultaneous 95 % CI "
        "3.50 to 8.40) above the lowest MTD, 10, and 4.51 points (simultaneous 95 % CI 2.50 to "
        "6.50) above the highest, 208. Its rise up to an inner level and its fall from that level "
        "are both statistically significant (p < 0.001). 3 of 7 levels, from MTD 18 to 41, are "
        "statistically indistinguishable from the best level (95 % confidence)."
    )


def test_the_confidence_at_a_look_is_rounded() -> None:
    at_look = replace(BASE, verdict="peaked", level=0.980061)
    assert "(simultaneous 98 % CI 3.50 to 8.40)" in write_sentence(at_look)


def test_a_trend_states_its_gain_and_what_was_not_tested() -> None:
    rising = replace(BASE, verdict="rising", p_trend=0.012, peak_mtd=208, optimal_range=(208,))
    assert write_sentence(replace(rising, peak_excluded=True)) == (
        "The score rises with MTD from 10 to 208 (p = 0.012 for the slope on log MTD). The best "
        "level, MTD 208, is 5.98 points (simultaneous 95 % CI 3.50 to 8.40) above MTD 10. Every "
        "other level is significantly worse than MTD 208. A peak of at least 0.5 points inside the "
        "range is excluded; MTDs above 208 were not tested."
    )
    falling = write_sentence(replace(rising, verdict="falling", peak_mtd=10, optimal_range=(10,)))
    assert "is 4.51 points (simultaneous 95 % CI 2.50 to 6.50) above MTD 208" in falling
    assert falling.endswith("is not excluded; MTDs below 10 were not tested.")


def test_a_trend_whose_best_level_is_inside_the_range_says_so() -> None:
    """The slope of a curve that rises steeply at its low end is significant beyond its peak."""
    rising = replace(BASE, verdict="rising", p_trend=0.012, optimal_range=(18, 28, 208))
    assert write_sentence(rising).startswith(
        "The score rises with MTD from 10 to 208 (p = 0.012 for the slope on log MTD). The best "
        "level, MTD 28, is inside the range: 5.98 points (simultaneous 95 % CI 3.50 to 8.40) above "
        "MTD 10, 4.51 points (simultaneous 95 % CI 2.50 to 6.50) above MTD 208. 3 of 7 levels"
    )
    assert answer_shape(rising) == (
        "The score rises with MTD on average, but its highest mean is at 28"
    )
    assert "5.98 points (95 % CI 3.50 to 8.40) above the lowest and 4.51 points (95 % CI 2.50 " in (
        describe_certainty(rising)
    )
    falling = replace(rising, verdict="falling")
    assert "5.98 points (simultaneous 95 % CI 3.50 to 8.40) above MTD 10." in write_sentence(
        falling
    )
    assert answer_shape(falling).startswith("The score falls with MTD on average, but")
    assert answer_shape(replace(rising, peak_mtd=208)) == (
        "The score rises with MTD, up to 208, the highest tested"
    )


def test_a_flat_score_states_its_margin_and_significance_level() -> None:
    assert write_sentence(replace(BASE, verdict="flat")) == (
        "The score is flat from MTD 10 to 208: every level is equivalent to the mean over levels "
        "within ±0.5 points (8 seeds, two one-sided tests at α = 0.05)."
    )


@pytest.mark.parametrize(
    ("seeds", "outlook"),
    [
        (12, "about 12 seeds give a verdict with 80 % power"),
        (8, "a few more seeds are likely to give a verdict"),
        (None, "a verdict would need more than 1,000 seeds"),
    ],
)
def test_an_inconclusive_verdict_states_the_seeds_needed(seeds: int | None, outlook: str) -> None:
    every = (10.0, 18.0, 28.0, 41.0, 75.0, 120.0, 208.0)
    assert write_sentence(replace(BASE, optimal_range=every, seeds_for_power=seeds)) == (
        "With 8 seeds the shape of the curve is inconclusive (p = 0.2 for a peak, p = 0.34 for a "
        "trend). The highest mean is at MTD 28. All levels are statistically indistinguishable "
        "from the best (95 % confidence). If the true means and variances are as estimated, "
        f"{outlook}."
    )


def test_a_p_value_has_a_sign() -> None:
    assert [format_p(value) for value in (0.0123, 0.0004, math.nan)] == [
        "p = 0.012",
        "p < 0.001",
        "no test",
    ]
