"""Level means: the numbers of the paper's figure 2, and the tests on curves of known shape."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.inference.level_means import (
    LevelMeans,
    equality_p,
    judge_means,
    load_published_means,
    null_means,
)
from mtdlab.analysis.inference.shapes import ShapeTests, shape_tests
from mtdlab.analysis.questions.shape_wording import write_sentence
from mtdlab.analysis.report import write_level_means

LEVELS = np.array([5.0, 6, 8, 12, 20, 36, 68])
LOWER_AT_THE_END = np.array([0, 5, 4.6, 4.7, 4.7, 4.6, 4.4])
SENTENCES = {
    "peaked": "The score peaks ",
    "rising": "The score rises ",
    "falling": "The score falls ",
    "flat": "MTD makes no difference between 5 and 68. ",
    "inconclusive": "Inconclusive: no effect of MTD between 5 and 68 is significant. ",
}


def means_of(
    values: np.ndarray, error: float | np.ndarray, levels: np.ndarray = LEVELS
) -> LevelMeans:
    half = 1.959964 * np.broadcast_to(error, values.shape)
    band = {"mean": values, "low": values - half, "high": values + half}
    return LevelMeans("test", "Made up.", pd.DataFrame({"mtd": levels} | band))


def test_figure_2_of_the_paper_does_not_show_a_peak() -> None:
    judged = judge_means(load_published_means("figure2"))
    verdict = judged.verdict
    assert verdict.verdict == "falling, start open"
    assert verdict.p_value > 0.1
    assert verdict.first < verdict.peak_mtd < verdict.last
    assert (judged.left_out, round(judged.p_left_out, 2)) == (21, 0.15)
    assert judged.p_equal == pytest.approx(0.0072, abs=0.0002)
    assert verdict.peak_mtd == 14.667
    assert verdict.peak_interval is None


def test_its_page_states_the_numbers_and_the_assumption(tmp_path: Path) -> None:
    report = write_level_means(
        load_published_means("figure2"), tmp_path, generated="now", version="0"
    )
    page = report.page.read_text(encoding="utf-8")
    for part in (
        "<bdi>MoCoSE, figure 2</bdi>",
        "<h1>The score falls with MTD; it is best between MTD 5 and 14.7, where it may rise, be "
        "level or fall</h1>",
        "9 levels, MTD 5 to ",
        ", standard errors as given. ",
        "where it may rise, be level or fall. MTD 14.7, the ",
        "mtdlab report --published figure2",
        "A test that all levels are equal has p = 0.0072; without MTD 21, on which this rests "
        "most, it has p = 0.15.",
        "Assumption: each band is a 95 % interval of its mean.",
        "Nothing is compared seed by seed",
    ):
        assert part in page
    table = pd.read_csv(tmp_path / "tables" / "means.csv")
    assert table["error"].tolist()[0] == pytest.approx(0.34 / 2 / 1.96, abs=1e-4)
    assert table["optimal"].tolist() == ["yes"] * 8 + ["no"]
    figures = {"means.png", "means.svg"}
    tables = {"means.csv", "means.md", "means.tex"}
    assert {path.name for path in tmp_path.rglob("*.*")} == {"index.html"} | figures | tables


def test_a_critical_value_of_independent_contrasts_is_known() -> None:
    # the largest of L independent normal values: quantile of 0.95^(1/L)
    tests = ShapeTests(null_means(np.ones(7)), LEVELS)
    pairs = np.kron(np.eye(3), [1.0, -1])
    found = tests.simultaneous(np.hstack([pairs, np.zeros((3, 1))])).critical(0.05)
    assert found == pytest.approx(stats.norm.ppf((1 + 0.95 ** (1 / 3)) / 2), abs=0.03)


@pytest.mark.parametrize("last", [42.0, 45.0])
def test_a_trend_has_the_larger_p_value_of_two_z_tests(last: float) -> None:
    values, errors = np.array([40.0, 41, 41.5, 41, 42, 43, last]), np.full(7, 0.9)
    found = judge_means(means_of(values, errors)).verdict
    place = np.log(LEVELS) - np.log(LEVELS).mean()
    slope = place @ values / (0.9 * np.linalg.norm(place))
    ends = (last - 40) / (0.9 * np.sqrt(2))
    expected = 2 * stats.norm.sf(min(slope, ends))
    assert found.p_trend == pytest.approx(expected, abs=0.002)


def test_equal_means_give_the_chi_square_test() -> None:
    values, errors = np.array([1.0, 2, 4]), np.array([1.0, 1, 2])
    mean = (1 + 2 + 4 / 4) / 2.25
    square = (1 - mean) ** 2 + (2 - mean) ** 2 + ((4 - mean) / 2) ** 2
    assert equality_p(values, errors) == pytest.approx(stats.chi2.sf(square, 2))


@pytest.mark.parametrize(
    ("shape", "error", "verdict", "excluded"),
    [
        (lambda x: -np.abs(x - 2.5), 0.05, "peaked", False),
        (lambda x: x, 0.05, "rising", True),
        (lambda x: -x, 0.05, "falling", True),
        (lambda x: 0 * x, 0.05, "flat", True),
        (lambda x: 0 * x, 2.0, "inconclusive", False),
        (lambda x: x, 0.6, "rising, end open", False),
        (lambda _: LOWER_AT_THE_END, 0.16, "rising, lower at the end", False),
        (lambda _: LOWER_AT_THE_END[::-1], 0.16, "falling, lower at the start", False),
        (lambda x: -x, 0.6, "falling, start open", False),
    ],
)
def test_known_shapes_have_their_verdict(
    shape: object, error: float, verdict: str, excluded: bool
) -> None:
    judged = judge_means(means_of(shape(np.log(LEVELS)) + 40, error)).verdict
    assert (judged.verdict, judged.peak_excluded) == (verdict, excluded)
    assert write_sentence(judged).startswith(SENTENCES[verdict.split(",")[0]])


def test_flat_curves_rarely_have_a_peak_or_a_best_level_left_out() -> None:
    rng = np.random.default_rng(3)
    errors = rng.uniform(0.5, 2, size=7)
    tests = ShapeTests(null_means(errors), LEVELS)
    found = tests.classify(tests.fit(rng.normal(size=(1000, 7)) * errors), 0.05, 0.5)
    # at a rate of 0.05, more than 73 of 1,000 has a probability below 0.001
    assert (~np.isin(found.shape.astype(str), ("flat", "inconclusive"))).sum() <= 73
    assert (~found.optimal[:, 0]).sum() <= 73


@pytest.mark.parametrize(
    ("last", "error", "verdict"),
    [
        (4.3, 0.4, "rising, end open"),
        (4.95, 0.05, "rising"),
        (6.0, 0.1, "rising"),
        (4.3, 0.1, "peaked"),
    ],
)
def test_the_rule_is_that_of_runs(last: float, error: float, verdict: str) -> None:
    """What is shown of the end of a trend, for means as for runs."""
    means = np.array([0.0, 1, 2, 3, 4, 5, last])
    scores = means + error * np.sqrt(5) * np.random.default_rng(1).normal(size=(5, 7))
    scores += means - scores.mean(axis=0)
    runs = shape_tests(scores, LEVELS)
    found = judge_means(means_of(means, error)).verdict
    assert found.verdict == runs.classify(runs.fit(scores[None]), 0.05, 0.5).shape == verdict


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown published means 'figure9'; choose from figure2"):
        load_published_means("figure9")
