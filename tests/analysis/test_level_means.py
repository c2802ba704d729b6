"""Level means: the numbers of the paper's figure 2, and the tests on curves of known shape."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from analysis.level_means import (
    LevelMeans,
    compare_two_lines,
    draw_normal,
    equality_p,
    find_best_levels,
    largest_z,
    load_published_means,
    slope_contrast,
)
from analysis.means_verdict import judge_means
from analysis.report import write_level_means

LEVELS = np.array([5.0, 6, 8, 12, 20, 36, 68])
SENTENCES = {
    "peaked": "The means peak between MTD 5 and 68: ",
    "rising": "The means rise with MTD from 5 to 68 ",
    "falling": "The means fall with MTD from 5 to 68 ",
    "flat": "The means are flat from MTD 5 to 68: ",
    "inconclusive": "The means show no significant peak between MTD 5 and 68: ",
}


def means_of(
    values: np.ndarray, error: float | np.ndarray, levels: np.ndarray = LEVELS
) -> LevelMeans:
    half = 1.959964 * np.broadcast_to(error, values.shape)
    band = {"mean": values, "low": values - half, "high": values + half}
    return LevelMeans("test", "Made up.", pd.DataFrame({"mtd": levels} | band))


def test_figure_2_of_the_paper_does_not_show_a_peak() -> None:
    verdict = judge_means(load_published_means("figure2"))
    lines = verdict.two_lines
    assert verdict.verdict == "inconclusive"
    assert (lines.mtd, round(lines.rise, 2), round(lines.fall, 2)) == (6, 1.14, 1.35)
    assert lines.critical_rise == pytest.approx(2.27, abs=0.01)
    assert lines.critical_fall == pytest.approx(2.29, abs=0.01)
    assert (verdict.left_out, round(verdict.p_left_out, 2)) == (21, 0.15)
    assert verdict.p_equal == pytest.approx(0.0072, abs=0.0002)
    assert verdict.peak_mtd == 14.667
    assert verdict.peak_interval is None
    assert verdict.seeds_for_power is None
    assert verdict.peak_excluded is None


def test_its_page_states_the_numbers_and_the_assumption(tmp_path: Path) -> None:
    report = write_level_means(
        load_published_means("figure2"), tmp_path, generated="now", version="0"
    )
    page = report.page.read_text(encoding="utf-8")
    for part in (
        "<bdi>MoCoSE, figure 2</bdi>",
        "<h1>Inconclusive: no shape is significant</h1>",
        "has z = 1.14 (critical value 2.27), the fall from it z = 1.35 (critical value 2.29)",
        "A flat curve is rejected (p = 0.0072), but without MTD 21 it is not (p = 0.15)",
        "Assumption: each band is a 95 % interval of its mean.",
        "Nothing is compared seed by seed",
    ):
        assert part in page
    table = pd.read_csv(tmp_path / "tables" / "means.csv")
    assert table["error"].tolist()[0] == pytest.approx(0.34 / 2 / 1.96, abs=1e-4)
    assert table["optimal"].tolist() == ["yes"] * 3 + ["no"] + ["yes"] * 4 + ["no"]
    figures = {"means.png", "means.svg"}
    tables = {"means.csv", "means.md", "means.tex"}
    assert {path.name for path in tmp_path.rglob("*.*")} == {"index.html"} | figures | tables


def test_an_unknown_figure_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown published means 'figure9'; choose from figure2"):
        load_published_means("figure9")


def test_a_slope_is_that_of_weighted_least_squares() -> None:
    rng = np.random.default_rng(0)
    values, errors = rng.normal(size=7), rng.uniform(0.5, 2, size=7)
    weights = slope_contrast(LEVELS, errors, 1, 5)
    expected = np.polyfit(np.log(LEVELS[1:6]), values[1:6], 1, w=1 / errors[1:6])[0]
    assert weights @ values == pytest.approx(expected)
    assert weights[[0, 6]].tolist() == [0, 0]


def test_a_critical_value_of_independent_contrasts_is_known() -> None:
    # the largest of L independent normal values: quantile of 0.95^(1/L)
    critical = np.quantile(largest_z(np.eye(7), np.ones(7), draw_normal(7)), 0.95)
    assert critical == pytest.approx(stats.norm.ppf(0.95 ** (1 / 7)), abs=0.01)


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
        (lambda x: 0 * x, 2.0, "inconclusive", None),
        (lambda x: x, 0.6, "rising", None),
    ],
)
def test_known_shapes_have_their_verdict(
    shape: object, error: float, verdict: str, excluded: bool | None
) -> None:
    assert callable(shape)
    judged = judge_means(means_of(shape(np.log(LEVELS)) + 40, error))
    assert (judged.verdict, judged.peak_excluded) == (verdict, excluded)
    assert judged.sentence.startswith(SENTENCES[verdict])


def test_flat_curves_rarely_have_a_peak_or_a_best_level_left_out() -> None:
    rng = np.random.default_rng(3)
    errors = rng.uniform(0.5, 2, size=7)
    normal = draw_normal(7)[:4096]
    peaks = missed = 0
    for _ in range(300):
        data = means_of(rng.normal(size=7) * errors, errors)
        peaks += compare_two_lines(data, normal).p < 0.05
        missed += 5.0 not in find_best_levels(data, normal)
    assert peaks <= 3
    # all levels are best here: a given one is left out in at most 5 % (15) plus sampling error
    assert missed <= 25


def test_few_levels_and_no_margin_are_refused() -> None:
    with pytest.raises(ValueError, match="2 levels; a shape needs at least 3"):
        judge_means(means_of(np.array([1.0, 2]), 1.0, LEVELS[:2]))
    with pytest.raises(ValueError, match="margin is 0; it must be above 0"):
        judge_means(means_of(np.ones(7), 1.0), margin=0)
