"""The inference against numbers computed with R (multcomp, mvtnorm, mgcv): `reference/`."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.inference.blocks import Blocks, ContrastEstimates
from mtdlab.analysis.inference.pairing import natural_spline, place_knots
from mtdlab.analysis.inference.shapes import shape_tests, slope_contrasts
from mtdlab.analysis.inference.simultaneous import null_of

FOLDER = Path(__file__).parents[1] / "reference"
BLOCKS = json.loads((FOLDER / "blocks.json").read_text())
# 10,000 simulated tables place a 95 % quantile to about 0.02
SIMULATED = 0.06


def read_table(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores (S, L) and MTD (L,) of one of the tables in the reference."""
    runs = pd.read_csv(FOLDER / f"{name.removesuffix('_with_holes')}.csv")
    scores = runs.pivot_table(index="seed", columns="mtd", values="score")
    if name.endswith("_with_holes"):
        for lost in BLOCKS["removed"]:
            scores.loc[lost["seed"], lost["mtd"]] = np.nan
    return scores.to_numpy(), scores.columns.to_numpy(dtype=float)


def compare(name: str, rows: np.ndarray) -> tuple[Blocks, ContrastEstimates, np.ndarray]:
    """Contrasts of a table, with their standard errors from the variance of all residuals."""
    scores, _ = read_table(name)
    blocks = Blocks(np.isfinite(scores))
    fit, contrasts = blocks.fit(scores), blocks.weigh(rows)
    pooled = fit.variances @ blocks.level_freedom / blocks.freedom
    errors = np.sqrt(pooled * contrasts.squares.sum(axis=1))
    return blocks, blocks.compare(fit, contrasts), errors


TABLES = ["default", "default_with_holes", "equation3"]


@pytest.mark.parametrize("name", TABLES)
def test_variances_are_those_of_lm(name: str) -> None:
    scores, _ = read_table(name)
    blocks = Blocks(np.isfinite(scores))
    fit, expected = blocks.fit(scores), BLOCKS[name]
    assert blocks.freedom == expected["df"]
    np.testing.assert_allclose(blocks.level_freedom, expected["level_df"])
    np.testing.assert_allclose(fit.variances, expected["level_variances"])
    pooled = fit.variances @ blocks.level_freedom / blocks.freedom
    assert pooled == pytest.approx(expected["residual_variance"])


@pytest.mark.parametrize("name", TABLES)
def test_offsets_are_those_of_multcomp(name: str) -> None:
    expected = BLOCKS[name]["offsets"]
    levels = len(expected["estimate"])
    _, found, pooled = compare(name, np.eye(levels) - 1 / levels)
    np.testing.assert_allclose(found.estimate, expected["estimate"])
    np.testing.assert_allclose(pooled, expected["se"])
    np.testing.assert_allclose(found.errors[0, 0], expected["se_by_level"])
    np.testing.assert_allclose(found.freedoms[0, 0], expected["df_by_level"])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("family", ["up", "down"])
def test_slopes_are_those_of_multcomp(name: str, family: str) -> None:
    expected = BLOCKS[name][family]
    up, down = slope_contrasts(read_table(name)[1])
    rows = up if family == "up" else -down
    _, found, pooled = compare(name, rows)
    np.testing.assert_allclose(found.estimate, expected["estimate"])
    np.testing.assert_allclose(found.estimate / pooled, expected["t"])
    np.testing.assert_allclose(found.freedoms[0, 0], expected["df_by_level"])


def simulate_largest(blocks: Blocks, rows: np.ndarray, *, two_sided: bool = False) -> float:
    """95 % quantile of the largest t with the variance of all residuals, by simulation."""
    fit, contrasts = null_of(blocks).fits[0], blocks.weigh(rows)
    pooled = fit.variances @ blocks.level_freedom / blocks.freedom
    errors = np.sqrt(pooled[:, None] * contrasts.squares.sum(axis=1))
    t = fit.effects @ rows.T / errors
    return float(np.quantile((np.abs(t) if two_sided else t).max(axis=1), 0.95))


@pytest.mark.parametrize("name", TABLES)
def test_simulated_critical_values_are_those_of_multcomp(name: str) -> None:
    scores, distance = read_table(name)
    blocks = Blocks(np.isfinite(scores))
    up, down = slope_contrasts(distance)
    expected = BLOCKS[name]
    offsets = np.eye(len(distance)) - 1 / len(distance)
    found = simulate_largest(blocks, offsets, two_sided=True)
    assert found == pytest.approx(expected["simultaneous"]["critical"], abs=SIMULATED)
    for rows, family in ((up, "up"), (down, "down")):
        found = simulate_largest(blocks, rows)
        assert found == pytest.approx(expected[family]["critical"], abs=SIMULATED)


@pytest.mark.parametrize("design", BLOCKS["balanced"], ids=lambda one: f"{one['seeds']} seeds")
def test_critical_values_of_balanced_designs(design: dict[str, Any]) -> None:
    blocks = Blocks(np.ones((design["seeds"], design["levels"]), dtype=bool))
    up, down = slope_contrasts(np.exp(np.arange(design["levels"], dtype=float)))
    for rows in (up, down):
        found = simulate_largest(blocks, rows)
        assert found == pytest.approx(design["critical"], abs=SIMULATED)


@pytest.mark.parametrize("name", ["default", "default_with_holes"])
def test_comparisons_with_the_best_are_those_of_multcomp(name: str) -> None:
    for level, expected in enumerate(json.loads((FOLDER / "mcb.json").read_text())[name]):
        rows = np.delete(np.eye(7), level, axis=0)
        rows[:, level] = -1
        blocks, found, pooled = compare(name, rows)
        np.testing.assert_allclose(found.estimate, expected["estimate"])
        np.testing.assert_allclose(pooled, expected["se"])
        np.testing.assert_allclose(found.errors[0, 0], expected["se_by_level"])
        critical = simulate_largest(blocks, rows)
        assert critical == pytest.approx(expected["critical"], abs=SIMULATED)


@pytest.mark.parametrize("which", [0, 1], ids=["4 knots", "5 knots"])
def test_the_spline_is_that_of_mgcv(which: int) -> None:
    expected = json.loads((FOLDER / "smooth.json").read_text())["default"][which]
    scores, distance = read_table("default")
    places, points = np.log(distance), np.array(expected["log_mtd"])
    knots = place_knots(places, most=expected["k"])
    np.testing.assert_allclose(knots, expected["knots"])
    basis = natural_spline(knots, places)
    rows = (natural_spline(knots, points) - basis.mean(axis=0)) @ np.linalg.pinv(basis)
    effects = shape_tests(scores, distance).fit(scores).effects
    np.testing.assert_allclose(rows @ effects, expected["centred_over_levels"]["fit"])
    errors = np.sqrt(expected["residual_variance"] * (rows**2).sum(axis=1) / len(scores))
    np.testing.assert_allclose(errors, expected["centred_over_levels"]["se"])
