"""Half-lives of keys, from synthetic probes with known half-life, and their section."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import PROBE_COLUMNS, Plan, StudyFrames, empty
from mtdlab.analysis.report.topics import history
from mtdlab.analysis.statistics.history import (
    compute_half_lives,
    compute_history_runs,
    compute_retained,
    compute_retained_curves,
    correlate_history,
    half_life,
    summarise_half_lives,
)
from tests.analysis.conftest import SETTINGS, build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "png_not_drawn")

LAGS = (2, 4, 8, 16, 32, 64)


def probes_of(
    half_lives: dict[int, float], *, different: float = 0.25, steps: int = 100
) -> pd.DataFrame:
    """Probes every second step of trials whose keys decay exponentially with these half-lives."""
    rows = [
        (number, step, lag, different + (1 - different) * 0.5 ** (lag / half), different)
        for number, half in half_lives.items()
        for step in range(0, steps, 2)
        for lag in LAGS
        if lag <= step
    ]
    return pd.DataFrame(rows, columns=list(PROBE_COLUMNS))


def test_retained_is_centred_by_the_cosine_of_different_sentences() -> None:
    """As a loop over rows; that of different sentences at a lag is of the same probes."""
    probes = probes_of({3: 8.0})
    probes["cosine_different"] = 0.5 - 0.001 * probes["step"]
    table = compute_retained(probes).set_index("lag")
    for lag in LAGS:
        rows = probes[probes["lag"] == lag]
        cosine, different = rows["cosine"].mean(), rows["cosine_different"].mean()
        expected = [len(rows), cosine, different, (cosine - different) / (1 - different)]
        assert table.loc[lag].tolist() == pytest.approx([3, *expected])
    assert table["probes"].tolist() == [49, 48, 46, 42, 34, 18]


@pytest.mark.parametrize("half", [4.0, 16.0, 32.0])
@pytest.mark.parametrize("different", [0.0, 0.6])
def test_the_half_life_at_a_lag_is_exact(half: float, different: float) -> None:
    found = compute_half_lives(compute_retained(probes_of({0: half}, different=different)))
    assert found["half_life"].tolist() == pytest.approx([half])
    assert found["longest_lag"].tolist() == [64]


@pytest.mark.parametrize(
    ("lags", "retained", "expected"),
    [
        ([1, 2, 4], [0.9, 0.7, 0.3], 3.0),
        # before the first lag, from 1 at lag 0
        ([2, 4], [0.25, 0.1], 4 / 3),
        # the first crossing, and a value that lies on one half
        ([1, 2, 4, 8], [0.9, 0.5, 0.8, 0.1], 2.0),
        ([1, 2], [0.9, 0.51], np.inf),
        ([4], [-0.5], 4 / 3),
    ],
)
def test_half_life_is_interpolated_linearly(
    lags: list[int], retained: list[float], expected: float
) -> None:
    assert half_life(lags, retained) == pytest.approx(expected)


def test_without_lags_or_with_collapsed_keys_there_is_no_half_life() -> None:
    assert np.isnan(half_life([], []))
    collapsed = probes_of({0: 8.0}).assign(cosine=1.0, cosine_different=1 - 1e-9)
    assert compute_half_lives(compute_retained(collapsed))["half_life"].isna().all()
    assert compute_half_lives(compute_retained(empty(PROBE_COLUMNS))).empty
    missing = probes_of({0: 8.0}).assign(cosine=np.nan)
    assert compute_half_lives(compute_retained(missing)).empty


def history_of(trials: pd.DataFrame, halves: dict[int, float]) -> pd.DataFrame:
    return compute_history_runs(trials, compute_half_lives(compute_retained(probes_of(halves))))


def test_levels_have_a_mean_where_every_run_has_a_half_life() -> None:
    """Half-life 8, 16 and 32 at three levels; at the fourth beyond the longest lag in one run."""
    trials = make_trials(decays=(0.75,), seeds=(0, 1))
    level = trials["mtd"].rank(method="dense").astype(int)
    halves = dict(zip(trials["number"], 4.0 * 2**level, strict=True))
    halves[int(trials["number"].iloc[-1])] = 1000.0
    runs = history_of(trials, halves)
    table = summarise_half_lives(runs)
    assert table["mean"].tolist() == pytest.approx([8, 16, 32, np.nan], nan_ok=True)
    assert table["beyond"].tolist() == [0, 0, 0, 1]
    assert table["seeds"].tolist() == [2, 2, 2, 2]
    assert table["median"].tolist() == pytest.approx([8, 16, 32, np.inf])
    assert table.loc[0, ["low", "high"]].tolist() == pytest.approx([8, 8])
    assert np.isinf(runs["half_life"]).sum() == 1


def test_configurations_of_one_level_are_averaged_separately() -> None:
    trials = make_trials(decays=(0.75, 0.875), times=(1, 5), seeds=(0, 1))
    # 4 + 5 = 8 + 1
    halves = dict(zip(trials["number"], 100 * (1 - trials["ema_decay"]), strict=True))
    runs = history_of(trials, halves)
    table = summarise_half_lives(runs, SETTINGS)
    assert list(table)[:3] == ["ema_decay", "queue_size", "mtd"]
    assert table["mtd"].tolist() == [5, 9, 9, 13]
    assert len(summarise_half_lives(runs)) == 3
    by_decay = table.groupby("ema_decay")["mean"].nunique()
    assert by_decay.tolist() == [1, 1]


def test_curves_are_means_over_the_runs_of_a_level() -> None:
    trials = make_trials(decays=(0.75,), times=(1,), seeds=(0, 1))
    probes = probes_of({0: 8.0, 1: 16.0})
    retained = compute_retained(probes)
    runs = compute_history_runs(trials, compute_half_lives(retained))
    curves = compute_retained_curves(runs, retained).set_index("lag")
    expected = [(0.5 ** (lag / 8) + 0.5 ** (lag / 16)) / 2 for lag in LAGS]
    assert curves["mean"].tolist() == pytest.approx(expected)
    assert curves["cosine_different"].tolist() == pytest.approx([0.25] * len(LAGS))
    assert curves["cosine"].tolist() == pytest.approx([0.25 + 0.75 * cosine for cosine in expected])
    assert (curves["low"] < curves["mean"]).all()


def test_correlations_are_those_of_scipy_by_seed() -> None:
    from scipy.stats import spearmanr, t

    trials = make_trials(seeds=(0, 1, 2), noise=2.0)
    rng = np.random.default_rng(1)
    halves = dict(zip(trials["number"], rng.uniform(4, 60, len(trials)), strict=True))
    halves[0], halves[8] = 1000.0, 2000.0
    runs = history_of(trials, halves)
    table = correlate_history(runs).set_index(["first", "second"])
    assert len(table) == 9
    for first, second in table.index:
        found = [spearmanr(seed[first], seed[second])[0] for _, seed in runs.groupby("seed")]
        row = table.loc[(first, second)]
        width = t.ppf(0.975, 2) * np.std(found, ddof=1) / np.sqrt(3)
        assert row["mean"] == pytest.approx(np.mean(found))
        assert row["low"] == pytest.approx(max(-1, np.mean(found) - width))
        assert row["high"] == pytest.approx(min(1, np.mean(found) + width))
        assert (row["seeds"], row["trials"]) == (3, 8)


def test_a_correlation_needs_three_different_runs_of_a_seed() -> None:
    two = make_trials(decays=(0.75,), times=(1, 2))
    halves = dict(zip(two["number"], np.linspace(4, 60, len(two)), strict=True))
    assert correlate_history(history_of(two, halves)).empty
    one = make_trials(seeds=(0,))
    halves = dict.fromkeys(one["number"], 8.0)
    table = correlate_history(history_of(one, halves))
    assert set(table["first"]) == {"mtd"}
    assert table[["low", "high"]].isna().all(axis=None)


def probed(study: StudyFrames, halves: dict[int, float]) -> StudyFrames:
    return dataclasses.replace(study, probes=probes_of(halves))


def write(study: StudyFrames, folder: Path) -> str:
    return report_of(study, folder, history.TOPIC)[1]


@pytest.mark.usefixtures("figures_not_drawn")
@pytest.mark.parametrize("is_declared", [False, True])
def test_a_study_that_was_probed_has_the_section(tmp_path: Path, is_declared: bool) -> None:
    """It opens the page of a study that declares this question."""
    trials = make_trials(seeds=(0, 1))
    halves = dict(zip(trials["number"], 2 * trials["mtd"], strict=True))
    halves[int(trials["mtd"].argmax())] = 1000.0
    study = probed(build_study(trials), halves)
    if is_declared:
        values = {"questions": [{"history": "mtd"}], "alpha": 0.05, "margin": 0.5, "looks": [2]}
        study = dataclasses.replace(study, plans=(Plan(0, values, ""),))
    page = write(study, tmp_path)
    assert '<h2 id="history">' in page
    # half-lives twice the MTD, interpolated; at the highest level one of two runs is beyond
    assert "The median half-life of a key is 10." in page
    highest = "longer than the longest lag at MTD 14.7, the longest."
    assert f" steps at MTD 5, the shortest, and {highest}" in page
    assert "longer than the longest lag (64 steps) in 1 of 16 trials" in page
    opens = "<h1>The median half-life of a key is 10."
    assert (opens in page) == is_declared
    # a range and a correlation are described, and not tested
    assert ("All tests and intervals on this page are exploratory" in page) == is_declared
    assert f'<figure id="figure-history"{" class=main" * is_declared}>' in page
    tables = tmp_path / "tables"
    assert len(pd.read_csv(tables / "trials_half_life.csv")) == 16
    assert len(pd.read_csv(tables / "half_life.csv")) == 8
    correlations = pd.read_csv(tables / "history_correlations.csv")
    assert correlations.loc[0, ["first", "second"]].tolist() == ["half_life", "mtd"]
    assert correlations.loc[0, "mean"] > 0.9
    assert correlations.loc[0, "low"] <= correlations.loc[0, "mean"] <= correlations.loc[0, "high"]
    assert "rank correlation over the trials of a seed: mean over seeds" in page
    for cell in ("half-life", "queue_size K", "MTD"):
        assert f"<td><bdi>{cell}</bdi></td>" in page


def test_a_study_that_was_not_probed_has_no_section(tmp_path: Path) -> None:
    assert "Measured history" not in write(
        build_study(make_trials(seeds=(0,), times=(1,))), tmp_path
    )
    assert not (tmp_path / "tables" / "half_life.csv").exists()


@pytest.mark.parametrize("seeds", [pytest.param((0,), marks=pytest.mark.slow), (0, 1)])
def test_runs_that_are_all_beyond_the_longest_lag_are_drawn(
    tmp_path: Path, seeds: tuple[int, ...]
) -> None:
    trials = make_trials(seeds=seeds, times=(1, 8))
    page = write(probed(build_study(trials), dict.fromkeys(trials["number"], 900.0)), tmp_path)
    assert "The median half-life of a key is longer than the longest lag at every MTD." in page
    assert (
        f"in {len(trials)} of {len(trials)} trials; a level with such a trial has no mean" in page
    )
    assert (tmp_path / "figures" / "history.png").read_bytes().startswith(b"\x89PNG")


def test_methods_without_an_mtd_are_named(tmp_path: Path) -> None:
    trials = make_trials(seeds=(0,), times=(1,)).assign(method="simcse", mtd=np.nan)
    page = write(probed(build_study(trials), dict.fromkeys(trials["number"], 16.0)), tmp_path)
    assert "No completed trial with an MTD has a half-life." in page
    assert "Mean half-life without an MTD: 16.0 steps in SimCSE." in page
    assert not (tmp_path / "figures" / "history.png").exists()
