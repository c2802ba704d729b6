"""The wording of a verdict for each shape, from its fields alone."""

import math
import re
from dataclasses import replace

from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.verdict import Lead, TrendBounds, Verdict
from mtdlab.analysis.questions.shape_wording import answer_shape, describe_certainty, write_sentence

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
    leads=(
        Lead(41, Estimate(0.5, -0.75, 1.754)),
        Lead(208, Estimate(4.512, 2.5, 6.524)),
        Lead(10, Estimate(5.98, 3.5, 8.46)),
    ),
)
_RUNNER_UP = "Above the runner-up, MTD 41: 0.50 points (95 % CI -0.75 to 1.75). "
_LOWEST = "5.98 points (95 % CI 3.50 to 8.46)."
_LARGEST = f"MTD 28, the highest mean, minus MTD 10, the lowest mean: +{_LOWEST} {_RUNNER_UP}"
_RISE = f"MTD 28, the highest mean, minus MTD 10, the first level: +{_LOWEST} {_RUNNER_UP}"
_COUNTS = "8 seeds, 7 levels, MTD 10 to 208."


def test_a_peak_states_how_far_it_is_above_the_higher_end() -> None:
    peaked = replace(BASE, verdict="peaked", p_value=0.0001)
    above = f"{_RUNNER_UP}Above the lowest, MTD 10: {_LOWEST}"
    assert write_sentence(peaked) == (
        "The score peaks between MTD 18 and 41. MTD 28, the highest mean, minus MTD 208, the last "
        f"level: +4.51 points (95 % CI 2.50 to 6.52). {above} p < 0.001 for a peak "
        f"(multiplicity-adjusted); {_COUNTS} Statistically indistinguishable from the best of 7 "
        "levels (95 % confidence): MTD 18, 28, 41."
    )
    assert describe_certainty(peaked) == (
        f"{above} p < 0.001 for a peak (multiplicity-adjusted); {_COUNTS}"
    )
    assert answer_shape(peaked, "η 0.9 to 0.97") == (
        "The score peaks between MTD 18 and 41 (η 0.9 to 0.97)"
    )
    assert answer_shape(replace(peaked, optimal_range=(28,))) == "The score peaks at MTD 28"


def test_an_end_that_may_be_as_good_as_a_peak_is_named() -> None:
    first = replace(BASE, verdict="peaked", optimal_range=(10, 28, 41))
    answer = "The score rises and falls inside the range; it is best between MTD 10 and 41"
    assert answer_shape(first) == answer
    sentence = write_sentence(first)
    assert sentence.startswith(f"{answer}. MTD 28, the highest mean, minus MTD 208")
    assert sentence.endswith("from the best of 7 levels (95 % confidence): MTD 10, 28, 41.")
    last = answer_shape(replace(first, optimal_range=(28, 208)))
    assert last.endswith("inside the range; it is best between MTD 28 and 208")


def test_the_confidence_at_a_look_is_rounded() -> None:
    assert "(98 % confidence)" in write_sentence(replace(BASE, verdict="peaked", level=0.980061))


def test_a_trend_states_the_differences_and_what_was_not_tested() -> None:
    rising = replace(BASE, verdict="rising", p_trend=0.012, peak_mtd=208, optimal_range=(208,))
    rising = replace(rising, bounds=TrendBounds(3.5, 0.0, 0.0))
    assert write_sentence(rising) == (
        "The score rises with MTD, up to 208, the highest tested. "
        f"{_RISE.replace('MTD 28', 'MTD 208')}MTD 208 is the best level (95 % confidence). p = "
        f"0.012 for a trend; {_COUNTS} Statistically indistinguishable from the best of 7 levels "
        "(95 % confidence): MTD 208. MTDs above 208 were not tested."
    )
    falling = write_sentence(replace(rising, verdict="falling", peak_mtd=10, optimal_range=(10,)))
    assert falling.startswith("The score falls with MTD, from 10, the lowest tested. MTD 10, the ")
    assert "minus MTD 208, the last level: +4.51 points" in write_sentence(
        replace(BASE, verdict="falling", peak_mtd=10, leads=BASE.leads[:2])
    )
    assert falling.endswith(": MTD 10. MTDs below 10 were not tested.")


def test_a_trend_whose_best_level_is_inside_the_range_says_so() -> None:
    """The slope of a curve that rises steeply at its low end is significant beyond its peak."""
    rising = replace(BASE, verdict="rising", p_trend=0.012, optimal_range=(18, 28, 208))
    assert answer_shape(rising) == "The score rises with MTD; it is best between MTD 18 and 208"
    assert f"18 and 208. {_RISE}p = 0.012 for a trend; {_COUNTS} Sta" in write_sentence(rising)
    assert answer_shape(replace(rising, verdict="rising, lower at the end")) == (
        "The score rises overall with MTD; it is best between MTD 18 and 208, and lower at the end"
    )
    assert answer_shape(replace(rising, peak_mtd=208, optimal_range=(208,))) == (
        "The score rises with MTD, up to 208, the highest tested"
    )
    falling = replace(rising, verdict="falling, lower at the start", optimal_range=(28, 41))
    assert answer_shape(falling) == (
        "The score falls overall with MTD; it is best between MTD 28 and 41, and lower at the start"
    )
    cut = replace(rising, peak_mtd=208, optimal_range=(208,), left_out=(308,))
    assert answer_shape(cut) == "The score rises with MTD, up to 208, the highest within the run"
    assert "MTDs above 208 were not compared." in write_sentence(cut)


def test_an_open_end_states_what_is_open() -> None:
    bounds = TrendBounds(3.5, 1.75, 2.25)
    rising = replace(BASE, verdict="rising, end open", bounds=bounds, optimal_range=(18, 28, 208))
    assert answer_shape(rising) == (
        "The score rises with MTD; it is best between MTD 18 and 208, where it may rise on, level "
        "off or fall"
    )
    assert (
        "MTD 208 is at least 3.50 points above MTD 10, at most 1.75 points below the best "
        "(95 % confidence); any two levels from MTD 18 to 208 differ by at most 2.25 points; "
        "whether the score rises on from MTD 18, levels off or falls is open. p = 0.34 for a trend"
    ) in write_sentence(rising)
    falling = replace(rising, verdict="falling, start open", optimal_range=(10, 18))
    assert answer_shape(falling).endswith(
        "it is best between MTD 10 and 18, where it may rise, be level or fall"
    )
    text = write_sentence(replace(falling, bounds=replace(bounds, above=-1)))
    assert "MTD 10 is at most 1.75 points below the best (95 % confidence); any two levels" in text
    assert "MTD 10 to 18 differ" in text
    assert "whether the score rises up to MTD 18, is level or falls is open. p" in text
    decided = write_sentence(replace(rising, verdict="rising"))
    assert "is open" not in decided


def test_a_flat_score_states_its_margin_and_significance_level() -> None:
    assert write_sentence(replace(BASE, verdict="flat", within=0.311)) == (
        "MTD makes no difference between 10 and 208. MTD 28, the highest mean, minus MTD 10, the "
        "lowest mean: +5.98 points. Above the runner-up, MTD 41: 0.50 points. Any two levels "
        "differ by less than 0.5 points (two one-sided tests at 5 % each: every 90 % CI is within "
        f"±0.32 points); {_COUNTS}"
    )


def test_bounds_are_rounded_outward() -> None:
    bounds = TrendBounds(3.509, 1.751, 2.2501)
    text = write_sentence(replace(BASE, verdict="rising, end open", bounds=bounds))
    assert "at least 3.50 points above" in text
    assert "at most 1.76 points below" in text
    assert "differ by at most 2.26 points" in text
    # what has two decimals is its own bound, whatever its last bit
    exact = replace(bounds, above=0.57, below=0.1 + 0.2, within=0.57)
    text = write_sentence(replace(BASE, verdict="rising, end open", bounds=exact))
    assert "at least 0.57 points" in text
    assert "at most 0.30 points below" in text
    assert "at most 0.57 points" in text


def test_an_inconclusive_verdict_has_both_p_values() -> None:
    every = (10.0, 18.0, 28.0, 41.0, 75.0, 120.0, 208.0)
    text = (
        "Inconclusive: levels of MTD differ, but neither a peak nor a trend is significant. "
        f"{_LARGEST}p = 0.2 for a peak, p = 0.34 for a trend; {_COUNTS} Statistically "
        "indistinguishable from the best of 7 levels (95 % confidence): 7 levels of MTD from 10 to "
        "208."
    )
    seeds = replace(BASE, optimal_range=every)
    assert write_sentence(seeds) == text
    means = replace(seeds, seeds=0, known_errors=True)
    given = "7 levels, MTD 10 to 208, standard errors as given."
    assert write_sentence(means) == text.replace(_COUNTS, given)
    # whose differences may be 0
    alike = tuple(Lead(lead.mtd, Estimate(lead.size.mean, -1.0, 9.0)) for lead in BASE.leads)
    none = "Inconclusive: no effect of MTD between 10 and 208 is significant"
    assert answer_shape(replace(seeds, leads=alike)) == none


def test_what_is_not_tested_begins_a_sentence() -> None:
    untested = replace(BASE, p_value=math.nan, p_trend=math.nan)
    text = f"No test for a peak, no test for a trend; {_COUNTS}"
    assert describe_certainty(replace(untested, leads=())) == text
    assert describe_certainty(untested).endswith(f"). {text}")
    rising = replace(untested, verdict="rising", bounds=TrendBounds(3.5, 0.0, 0.0), leads=())
    assert "confidence). No test for a trend; " in describe_certainty(rising)


def test_a_level_that_is_the_default_is_compared_too() -> None:
    other, runner_up = (describe_certainty(BASE, level) for level in (208, 41))
    assert re.match(r"Above the runner-up, MTD 41: .* Above the default, MTD 208: 4\.51", other)
    assert runner_up.startswith("Above the runner-up and the default, MTD 41: 0.50 points (95 % ")
