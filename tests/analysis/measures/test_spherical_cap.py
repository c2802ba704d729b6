"""Cosines on a spherical cap: closed form, quadrature, simulation, single points."""

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy.integrate import quad

from mtdlab.analysis import figures
from mtdlab.analysis.measures.spherical_cap import (
    cap_cosine_moments,
    compute_spherical_cap,
    simulate_cap_cosines,
)

DEGREES = [5, 30, 60, 84, 89.99, 90, 90.01, 120, 180]


def slow_moments(dimension: int, angle: float) -> tuple[float, float]:
    """Both moments by quadrature over the densities, scaled by their maximum."""
    highest = math.sin(min(angle, math.pi / 2))
    start = max(0.0, min(angle, math.pi / 2) - 40 / math.sqrt(dimension))

    def integral(weight: Callable[[float], float]) -> float:
        value, _ = quad(
            lambda phi: weight(phi) * (math.sin(phi) / highest) ** (dimension - 2),
            start,
            angle,
            epsabs=1e-13,
            limit=200,
        )
        return float(value)

    whole = integral(lambda _: 1.0)
    height = integral(math.cos) / whole
    square = integral(lambda phi: math.cos(phi) ** 2) / whole
    turned, _ = quad(lambda b: math.cos(b) ** 2 * math.sin(b) ** (dimension - 3), 0, math.pi)
    turn, _ = quad(lambda b: math.sin(b) ** (dimension - 3), 0, math.pi)
    return height**2, square**2 + (1 - square) ** 2 * turned / turn - height**4


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("dimension", [3, 4, 7, 32, 100])
def test_the_closed_form_is_the_quadrature(dimension: int, degrees: float) -> None:
    mean, variance = cap_cosine_moments(dimension, math.radians(degrees))
    slow_mean, slow_variance = slow_moments(dimension, math.radians(degrees))
    assert float(mean) == pytest.approx(slow_mean, abs=1e-8)
    assert float(variance) == pytest.approx(slow_variance, abs=1e-8)


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("dimension", [3, 4, 32, 768, 4096])
def test_the_simulation_agrees_with_the_closed_form(dimension: int, degrees: float) -> None:
    angle, pairs = math.radians(degrees), 20_000
    mean, variance = map(float, cap_cosine_moments(dimension, angle))
    drawn = simulate_cap_cosines(dimension, angle, pairs, np.random.default_rng(0))
    assert drawn.shape == (pairs,)
    assert abs(drawn.mean() - mean) < 4.5 * math.sqrt(variance / pairs)
    assert drawn.var() == pytest.approx(variance, rel=0.1)
    assert np.abs(drawn).max() <= 1 + 1e-12


@pytest.mark.parametrize(("dimension", "degrees"), [(3, 40), (4, 70), (5, 110)])
def test_points_drawn_one_by_one_agree(dimension: int, degrees: float) -> None:
    """Uniform points of the sphere that lie on the cap; inner products of pairs."""
    points = np.random.default_rng(1).standard_normal((600_000, dimension))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    kept = points[points[:, 0] >= math.cos(math.radians(degrees))]
    half = len(kept) // 2
    cosines = (kept[:half] * kept[half : 2 * half]).sum(axis=1)
    mean, variance = map(float, cap_cosine_moments(dimension, math.radians(degrees)))
    assert half > 10_000
    assert abs(cosines.mean() - mean) < 4.5 * math.sqrt(variance / half)
    assert cosines.var() == pytest.approx(variance, rel=0.05)


def test_values_known_without_integrals() -> None:
    """The whole sphere: 0 and 1/d. Half of an ordinary sphere: heights are uniform, so 1/4 and
    1/9 + (2/3)²/2 − 1/16.
    """
    mean, variance = cap_cosine_moments([3, 10, 768], math.pi)
    assert mean.tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    assert variance.tolist() == pytest.approx([1 / 3, 1 / 10, 1 / 768])
    mean, variance = cap_cosine_moments(3, math.pi / 2)
    assert float(mean) == pytest.approx(1 / 4)
    assert float(variance) == pytest.approx(1 / 9 + 2 / 9 - 1 / 16)


def test_cosines_concentrate_at_the_rims_as_dimensions_grow() -> None:
    """All points lie near the rim, where the mean is cos² ω and the variance sin⁴ ω / d."""
    angle = math.radians(60)
    mean, variance = cap_cosine_moments([64, 256, 4096, 16384], angle)
    assert (np.diff(mean) < 0).all()
    assert (np.diff(variance) < 0).all()
    assert mean[-1] == pytest.approx(math.cos(angle) ** 2, abs=1e-3)
    assert variance[-1] == pytest.approx(math.sin(angle) ** 4 / 16384, rel=0.01)


def test_a_mixed_negative_by_hand() -> None:
    """The mean cosine is 0 on the whole sphere, and (3/4)² on 60° of an ordinary one."""
    mixed = compute_spherical_cap((3,), (180, 60), pairs=1)["mixed"]
    assert mixed.tolist() == pytest.approx([0.2 / math.sqrt(0.68), 0.65 / math.sqrt(0.86)])
    assert mixed[0] == pytest.approx(0.243, abs=5e-4)


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: cap_cosine_moments(2, 1.0), "dimension is 2; it must be at least 3"),
        (lambda: cap_cosine_moments([8, math.nan], 1.0), "dimension is nan; it must be at least 3"),
        (lambda: cap_cosine_moments(8, 0.0), "angle is 0; it must be above 0 and at most pi"),
        (lambda: cap_cosine_moments(8, 3.2), r"angle is 3\.2; it must be above 0"),
        (lambda: simulate_cap_cosines(8, 1.0, 0, np.random.default_rng(0)), "pairs is 0; it must"),
    ],
)
def test_invalid_arguments_are_refused(call: Callable[[], object], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        call()


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return compute_spherical_cap((4, 64, 768), (60, 90), pairs=5000)


def test_the_table_holds_both_sides(frame: pd.DataFrame) -> None:
    assert frame["angle"].tolist() == [60] * 3 + [90] * 3
    assert frame["dimension"].tolist() == [4, 64, 768] * 2
    mean, variance = cap_cosine_moments(frame["dimension"], np.radians(frame["angle"]))
    assert frame["mean"].tolist() == pytest.approx(mean.tolist())
    assert frame["std"].tolist() == pytest.approx(np.sqrt(variance).tolist())
    assert frame["simulated_std"].tolist() == pytest.approx(frame["std"].tolist(), rel=0.05)
    assert (frame["mixed"] > frame["mean"]).all()
    pd.testing.assert_frame_equal(frame, compute_spherical_cap((4, 64, 768), (60, 90), pairs=5000))


def test_the_figure_draws_the_table(frame: pd.DataFrame) -> None:
    ax = Figure().subplots()
    figures.draw_spherical_cap(frame, ax)
    lines = {line.get_label(): np.asarray(line.get_ydata()) for line in ax.get_lines()}
    for angle, rows in frame.groupby("angle"):
        assert lines[f"ω = {angle}°"].tolist() == pytest.approx(rows["mean"].tolist())
    legend = ax.get_legend()
    drawn = [text.get_text() for text in legend.get_texts()]
    assert drawn == ["ω = 60°", "ω = 90°", "simulation", "mixed negative"]
    assert [label.get_text() for label in ax.get_xticklabels()] == ["4", "64", "768"]
    assert ax.get_xscale() == "log"


def test_a_table_without_rows_has_the_columns(frame: pd.DataFrame) -> None:
    assert list(compute_spherical_cap((), ())) == list(frame)
