"""Seeds as blocks compared with least squares on dummy variables, also with missing runs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import special, stats

from mtdlab.analysis.inference.blocks import (
    Blocks,
    connected_table,
    from_normal,
    levels_kept,
    to_normal,
)
from mtdlab.analysis.inference.simultaneous import compare_own

Floats = np.ndarray


def draw_table(holes: int = 0, shape: tuple[int, int] = (5, 6)) -> Floats:
    rng = np.random.default_rng(holes)
    scores = rng.normal(size=shape) * np.linspace(1, 3, shape[1]) + rng.normal(size=(shape[0], 1))
    scores.ravel()[rng.choice(scores.size, holes, replace=False)] = np.nan
    return scores


class LeastSquares:
    """The same model with dummy variables for seeds and levels, solved by a pseudo-inverse."""

    def __init__(self, scores: Floats) -> None:
        seeds, levels = scores.shape
        self.cells = [cell for cell in np.ndindex(*scores.shape) if np.isfinite(scores[cell])]
        design = np.zeros((len(self.cells), seeds + levels))
        for row, (seed, level) in enumerate(self.cells):
            design[row, [seed, seeds + level]] = 1
        self.inverse = np.linalg.pinv(design.T @ design)
        self.design, self.seeds, self.levels = design, seeds, levels
        values = np.array([scores[cell] for cell in self.cells])
        effects = (self.inverse @ design.T @ values)[seeds:]
        self.effects = effects - effects.mean()
        hat = design @ self.inverse @ design.T
        self.left = 1 - np.diag(hat)
        self.residuals = values - hat @ values

    def variance_of(self, level: int) -> tuple[float, float]:
        """Sum of a level's squared residuals over its degrees of freedom, and those."""
        here = [row for row, (_, column) in enumerate(self.cells) if column == level]
        freedom = self.left[here].sum()
        return (self.residuals[here] ** 2).sum() / freedom, freedom

    def run_weights(self, contrast: Floats) -> Floats:
        """Weight of each run in a contrast of levels."""
        row = np.concatenate([np.zeros(self.seeds), contrast])
        return row @ self.inverse @ self.design.T


@pytest.mark.parametrize("shape", [(3, 12), (12, 12), (25, 30), (56, 20)])
def test_effects_of_seeds_do_not_change_those_of_levels(shape: tuple[int, int]) -> None:
    scores = draw_table(shape=shape)
    shifted = scores + 10 * np.random.default_rng(1).normal(size=(shape[0], 1))
    blocks = Blocks(np.isfinite(scores))
    assert blocks.fit(shifted).effects == pytest.approx(blocks.fit(scores).effects, abs=1e-9)
    assert blocks.fit(shifted).typical == pytest.approx(blocks.fit(scores).typical)


@pytest.mark.parametrize("holes", [0, 4, 8])
def test_effects_variances_and_degrees_of_freedom_are_those_of_least_squares(holes: int) -> None:
    scores = draw_table(holes)
    blocks, slow = Blocks(np.isfinite(scores)), LeastSquares(scores)
    fit = blocks.fit(scores)
    np.testing.assert_allclose(fit.effects, slow.effects, atol=1e-10)
    for level in range(slow.levels):
        variance, freedom = slow.variance_of(level)
        assert fit.variances[level] == pytest.approx(variance)
        assert blocks.level_freedom[level] == pytest.approx(freedom)
    assert blocks.freedom == len(slow.cells) - slow.seeds - slow.levels + 1
    assert blocks.level_freedom.sum() == pytest.approx(blocks.freedom)


@pytest.mark.parametrize("holes", [0, 4, 8])
def test_standard_errors_are_the_runs_weights_times_their_variances(holes: int) -> None:
    scores = draw_table(holes)
    blocks, slow = Blocks(np.isfinite(scores)), LeastSquares(scores)
    fit = blocks.fit(scores)
    contrast = np.array([1.0, 0, -0.5, 0, -0.5, 0])
    found = blocks.compare(fit, blocks.weigh(contrast[None]))
    squares = slow.run_weights(contrast) ** 2
    own = np.array([fit.variances[level] for _, level in slow.cells])
    assert found.estimate[0] == pytest.approx(contrast @ slow.effects)
    assert found.errors[0, 0, 0] == pytest.approx(np.sqrt(squares @ own))
    assert found.errors[0, 1, 0] == pytest.approx(np.sqrt(squares.sum() * fit.typical))
    parts = np.array([squares[own == variance].sum() * variance for variance in fit.variances])
    satterthwaite = parts.sum() ** 2 / (parts**2 / blocks.level_freedom).sum()
    assert found.freedoms[0, 0, 0] == pytest.approx(satterthwaite)


def quadratic_curves(scores: Floats, places: Floats) -> Floats:
    """Coefficients (S, 2) of each seed's residuals on orthonormal polynomials of the places."""
    basis = np.linalg.qr(np.vander(places, 3, increasing=True))[0][:, 1:]
    residuals = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    return np.asarray(residuals @ basis)


def test_the_variance_by_seed_is_that_of_the_seeds_slopes_and_curvatures() -> None:
    scores, places = draw_table(), np.log([3.0, 4, 8, 20, 30, 90])
    blocks = Blocks(np.ones((5, 6), dtype=bool), places)
    rows = np.array([places - places.mean(), [1.0, 0, -0.5, 0, -0.5, 0]])
    found = blocks.compare(blocks.fit(scores), blocks.weigh(rows))
    curves = quadratic_curves(scores, places)
    basis = np.linalg.qr(np.vander(places, 3, increasing=True))[0][:, 1:]
    inside = rows @ basis
    # the slope over all levels lies in the span: a t test of the seeds' slopes
    by_seed = scores @ rows[0]
    assert found.errors[0, 2, 0] == pytest.approx(by_seed.std(ddof=1) / np.sqrt(5))
    assert found.freedoms[0, 2, 0] == pytest.approx(4)
    residuals = scores - scores.mean(axis=1, keepdims=True) - scores.mean(axis=0) + scores.mean()
    rest = ((residuals**2).sum() - (curves**2).sum()) / (4 * 3)
    left = (rows**2).sum(axis=1) - (inside**2).sum(axis=1)
    expected = (curves @ inside.T).var(axis=0, ddof=1) + rest * left
    np.testing.assert_allclose(found.errors[0, 2], np.sqrt(expected / 5))


@pytest.mark.parametrize("levels", [2, 3])
def test_with_few_levels_it_is_the_paired_t_test(levels: int) -> None:
    scores = draw_table()[:, :levels]
    blocks = Blocks(np.ones((5, levels), dtype=bool), np.arange(float(levels)))
    row = np.zeros((1, levels))
    row[0, [0, -1]] = -1, 1
    found = blocks.compare(blocks.fit(scores), blocks.weigh(row))
    t = stats.ttest_rel(scores[:, -1], scores[:, 0]).statistic
    assert found.estimate[0] / found.errors[0, 2, 0] == pytest.approx(t)
    assert found.freedoms[0, 2, 0] == pytest.approx(4)


def test_without_an_order_it_is_the_paired_t_test_of_every_contrast() -> None:
    scores = draw_table()
    blocks = Blocks(np.ones((5, 6), dtype=bool))
    rows = np.array([[1.0, 0, 0, -1, 0, 0], [1, 1, 1, -1, -1, -1]])
    found = blocks.compare(blocks.fit(scores), blocks.weigh(rows))
    expected = stats.ttest_1samp(scores @ rows.T, 0)
    np.testing.assert_allclose(found.estimate / found.errors[0, 2], expected.statistic)
    np.testing.assert_allclose(found.freedoms[0, 2], 4)


def test_without_an_order_it_is_unbiased_with_missing_runs() -> None:
    present = np.isfinite(draw_table(8))
    blocks = Blocks(present)
    contrasts = blocks.weigh(np.array([[1.0, 0, 0, -1, 0, 0], [1, 1, 1, -1, -1, -1]]))
    tables = np.random.default_rng(3).normal(size=(20_000, *present.shape))
    found = blocks.compare(blocks.fit(tables), contrasts)
    variances = (found.errors[0, 2] ** 2).mean(axis=0)
    np.testing.assert_allclose(variances, found.estimate.var(axis=0), rtol=0.04)
    # degrees of freedom of the variance by its first two moments
    moments = 2 * variances**2 / (found.errors[0, 2] ** 2).var(axis=0)
    np.testing.assert_allclose(found.freedoms[0, 2, 0], moments, rtol=0.05)


def test_the_variance_by_seed_is_not_too_small_with_missing_runs() -> None:
    rng = np.random.default_rng(2)
    present = np.ones((6, 7), dtype=bool)
    present[[0, 1, 4], [2, 6, 0]] = False
    places = np.linspace(-1.0, 1, 7)
    blocks = Blocks(present, places)
    own = rng.normal(size=(3000, 6, 1)) * places * 2
    for curves, most in ((0 * own, 1.1), (own, 1.4)):
        tables = rng.normal(size=(3000, 6, 7)) + curves
        found = blocks.compare(blocks.fit(tables), blocks.weigh(np.eye(7) - 1 / 7))
        ratio = (found.errors[0, 2] ** 2).mean(axis=0) / found.estimate.var(axis=0)
        # what a missing run removes of a seed's curve is allowed for, at most too much
        assert (ratio > 0.9).all()
        assert (ratio < most).all()


def test_what_the_items_add_is_counted_once() -> None:
    """The common influence of items adds to the variance; that on single seeds is in it already."""
    rng = np.random.default_rng(3)
    common = 4 * rng.normal(size=(400, 1, 3))
    single = 20 * rng.normal(size=(400, 5, 3))
    blocks = Blocks(np.ones((5, 3), dtype=bool))
    found = blocks.item_covariance(common - common.mean(axis=0) + single - single.mean(axis=0))
    centring = np.eye(3) - 1 / 3
    assert found == pytest.approx(16 / 400 * centring, abs=0.02)
    fit = blocks.fit(rng.normal(size=(5, 3)), found)
    contrasts = blocks.weigh(np.array([[1.0, -1, 0]]))
    without = blocks.compare(replace(fit, items=None), contrasts)
    with_items = blocks.compare(fit, contrasts)
    added = found[0, 0] + found[1, 1] - 2 * found[0, 1]
    np.testing.assert_allclose(with_items.errors[0] ** 2, without.errors[0] ** 2 + added)
    assert (with_items.freedoms[0] > without.freedoms[0]).all()


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_items_never_decide_what_seeds_alone_leave_open(seeds: int) -> None:
    """Their part raises the degrees of freedom, which with few seeds outweighs it."""
    rng = np.random.default_rng(seeds)
    rows = np.array([[1.0, -1, 0], [0, 1, -1], [1, 0, -1]])
    for share in (0.01, 0.1, 1.0):
        scores = rng.normal(size=(seeds, 3))
        widths = []
        for items in (None, share * np.eye(3)):
            family, fit = compare_own(scores, rows, items)
            comparison = family.compare(fit)
            halves = [family.intervals(fit, 0.05)[1], comparison.pointwise(0.95)]
            widths.append(np.array([*halves, -np.abs(comparison.scores())]))
        assert (widths[1] >= widths[0]).all()


def test_many_tables_at_once_are_the_same_as_one_by_one() -> None:
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(4, 3, 5))
    blocks = Blocks(np.ones((3, 5), dtype=bool))
    contrasts = blocks.weigh(np.eye(5) - 0.2)
    together = blocks.compare(blocks.fit(tables), contrasts).scores()
    for table, scores in zip(tables, together, strict=True):
        np.testing.assert_allclose(blocks.compare(blocks.fit(table), contrasts).scores(), scores)


def test_the_typical_variance_is_unbiased_and_leaves_out_a_noisy_level() -> None:
    rng = np.random.default_rng(0)
    blocks = Blocks(np.ones((4, 8), dtype=bool))
    noise = rng.normal(size=(4000, 4, 8))
    assert blocks.fit(noise).typical.mean() == pytest.approx(1, abs=0.06)
    noise[:, :, 3] *= 10
    # without trimming, it would be about (7 + 100) / 8
    assert blocks.fit(noise).typical.mean() < 5
    assert [levels_kept(levels) for levels in (2, 5, 6, 20)] == [1, 4, 4, 16]


def test_only_connected_seeds_and_levels_are_compared() -> None:
    table = np.full((5, 6), np.nan)
    table[:2, :2] = table[2:, 2:5] = 1.0
    table[4, 5] = 1.0  # a level of one seed
    seeds, levels = connected_table(table)
    assert seeds.tolist() == [False, False, True, True, True]
    assert levels.tolist() == [False, False, True, True, True, False]
    seeds, levels = connected_table(np.full((3, 3), np.nan))
    assert not seeds.any()
    assert not levels.any()


def test_the_normal_scale_keeps_the_tail_and_has_an_inverse() -> None:
    for freedom in (2.0, 4.0, 16.0, 100.0):
        for score in (1.0, 1.645, 2.326, 3.0):
            exact = -special.stdtrit(freedom, special.ndtr(-score))
            assert to_normal(np.array(exact), np.array(freedom)) == pytest.approx(score, abs=0.11)
            back = from_normal(score, np.array(freedom))
            assert to_normal(back, np.array(freedom)) == pytest.approx(score)
            assert from_normal(-score, np.array(freedom)) == pytest.approx(-back)


def test_pointwise_intervals_hold_their_level_on_average() -> None:
    rng = np.random.default_rng(1)
    blocks = Blocks(np.ones((3, 9), dtype=bool))
    contrasts = blocks.weigh(np.eye(9) - 1 / 9)
    for noisy in (1.0, 4.0):
        noise = rng.normal(size=(2000, 3, 9))
        noise[:, :, 0] *= noisy
        found = blocks.compare(blocks.fit(noise), contrasts)
        covered = (np.abs(found.estimate) < found.pointwise(0.95)).mean()
        assert covered == pytest.approx(0.95, abs=0.02)


def test_a_level_that_only_connects_two_parts_has_no_degrees_of_freedom() -> None:
    table = np.full((4, 5), np.nan)
    table[:2, :2] = [[1.0, 2.0], [1.5, 2.1]]
    table[2:, 2:4] = [[3.0, 3.5], [2.0, 2.9]]
    table[1:3, 4] = [5.0, 6.0]
    assert connected_table(table)[1].all()
    blocks = Blocks(np.isfinite(table))
    assert blocks.freedom == 2
    found = blocks.compare(blocks.fit(table), blocks.weigh(np.eye(5) - 0.2))
    assert np.isfinite([found.estimate, found.half_width(2.0), found.pointwise(0.95)]).all()
    assert (np.abs(found.scores()) < 3).all()


def test_a_part_that_cannot_be_compared_is_dropped_even_if_larger() -> None:
    table = np.full((6, 7), np.nan)
    for cell in ((0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4)):
        table[cell] = 50.0
    table[4, 5:], table[5, 5:] = [50, 51], [50.1, 51.2]
    seeds, levels = connected_table(table)
    assert seeds.nonzero()[0].tolist() == [4, 5]
    assert levels.nonzero()[0].tolist() == [5, 6]


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2, 3), (3, 3), (5, 9)])
def test_the_typical_variance_is_unbiased_in_small_tables(shape: tuple[int, int]) -> None:
    blocks = Blocks(np.ones(shape, dtype=bool))
    noise = np.random.default_rng(1).normal(size=(5000, *shape))
    assert blocks.fit(noise).typical.mean() == pytest.approx(1, abs=0.07)


def test_the_pointwise_interval_of_two_levels_is_that_of_the_paired_t_test() -> None:
    scores = np.array([[70.0, 71.0], [70.2, 71.6]])
    blocks = Blocks(np.ones((2, 2), dtype=bool))
    found = blocks.compare(blocks.fit(scores), blocks.weigh(np.array([[-1.0, 1.0]])))
    width = found.pointwise(0.95)
    paired = stats.ttest_rel(scores[:, 1], scores[:, 0]).confidence_interval()
    assert width[0] == pytest.approx((paired.high - paired.low) / 2, rel=0.2)
