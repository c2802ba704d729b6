"""The verdict on studies whose shape is known."""

from collections import Counter
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.frames import Settings
from analysis.inference import judge_shape, resample_peaks
from analysis.verdict import compute_verdict

MakeTrials = Callable[..., pd.DataFrame]


def level_ground(_mtd: float) -> float:
    return 40.0


LEVELS = np.array([5, 6, 7.667, 8, 8.667, 10.667, 12, 14.667, 21])


def flat_scores(rng: np.random.Generator, seeds: int) -> np.ndarray:
    return 40 + rng.normal(scale=5, size=(seeds, 1)) + rng.normal(size=(seeds, len(LEVELS)))


@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_flat_noise_is_almost_never_called_peaked(seeds: int) -> None:
    rng = np.random.default_rng(seeds)
    shapes = Counter(judge_shape(flat_scores(rng, seeds), LEVELS, 0.95, 0.5) for _ in range(200))
    assert shapes["peaked inside"] <= 6
    assert shapes["rising"] + shapes["falling"] <= 20


def test_a_plateau_is_seldom_called_peaked() -> None:
    rng = np.random.default_rng(0)
    plateau = 3 * np.log(np.minimum(LEVELS, 10))
    shapes = Counter(
        judge_shape(flat_scores(rng, 3) + plateau, LEVELS, 0.95, 0.5) for _ in range(200)
    )
    assert shapes["peaked inside"] <= 12


def test_an_inverted_u_is_found_in_spite_of_the_seeds(
    trials_of: MakeTrials, settings: Settings
) -> None:
    verdicts = [compute_verdict(trials_of(noise=0.3, draw=draw), settings) for draw in range(12)]
    assert sum(verdict.shape == "peaked inside" for verdict in verdicts) >= 11
    verdict = verdicts[0]
    assert verdict.peak.low <= 8.667 <= verdict.peak.high
    assert verdict.rise.low > 0
    assert verdict.fall.low > 0
    assert verdict.sentence.startswith("The score peaks inside the range, at MTD")
    assert "all 27 resamples of 3 seeds" in verdict.sentence


@pytest.mark.parametrize(("sign", "shape"), [(1, "rising"), (-1, "falling")])
def test_a_monotone_score_is_called_so(
    trials_of: MakeTrials, settings: Settings, sign: int, shape: str
) -> None:
    trials = trials_of(shape=lambda mtd: 40 + 4 * sign * np.log(mtd), noise=0.2)
    verdict = compute_verdict(trials, settings)
    assert verdict.shape == shape
    assert verdict.peak.mtd == (14.667 if sign > 0 else 5)
    assert "is not excluded" in verdict.sentence


def test_flat_is_said_only_when_differences_are_ruled_out(
    trials_of: MakeTrials, settings: Settings
) -> None:
    level = trials_of(seeds=range(6), shape=level_ground, noise=0.1)
    assert compute_verdict(level, settings).shape == "flat"
    noisy = [trials_of(seeds=range(6), shape=level_ground, draw=draw, noise=1.0) for draw in (1, 2)]
    verdict = compute_verdict(noisy[0], settings)
    assert {verdict.shape, compute_verdict(noisy[1], settings).shape} == {"undecided"}
    assert verdict.seeds_needed is not None
    assert verdict.seeds_needed > 6
    assert f"about {verdict.seeds_needed} seeds" in verdict.sentence


def test_scores_without_any_scatter_are_flat() -> None:
    scores = np.full((3, len(LEVELS)), 40.1) + np.array([[0.3], [5.7], [-2.9]])
    assert judge_shape(scores, LEVELS, 0.95, 0.5) == "flat"


def test_one_seed_cannot_judge(trials_of: MakeTrials, settings: Settings) -> None:
    verdict = compute_verdict(trials_of(seeds=(7,), noise=0), settings)
    assert (verdict.shape, verdict.seeds, verdict.levels) == ("undecided", 1, 8)
    assert verdict.peak.mtd == 8.667
    assert np.isnan(verdict.peak.low)
    assert np.isnan(verdict.rise.low)
    assert verdict.sentence.startswith("With one seed, an effect of MTD cannot be separated")


def test_nothing_to_compare_is_said(trials_of: MakeTrials, settings: Settings) -> None:
    trials = trials_of()
    none = compute_verdict(trials.assign(state="FAIL"), settings)
    assert (none.shape, none.seeds, none.levels) == ("undecided", 0, 0)
    assert none.sentence == "No completed run with an MTD has a score yet."
    one = compute_verdict(trials[trials["mtd"] == 5], settings)
    assert one.sentence.startswith("All scored runs share one MTD")
    apart = trials[(trials["seed"] == 0) & (trials["mtd"] < 7)]
    other = trials[(trials["seed"] == 1) & (trials["mtd"] > 7)]
    split = compute_verdict(pd.concat([apart, other]), settings)
    assert split.sentence.startswith("No two seeds were run")


def test_few_seeds_are_resampled_in_full_and_many_by_a_fixed_seed() -> None:
    scores = np.random.default_rng(0).normal(size=(3, 4))
    peaks, method = resample_peaks(scores, 0)
    assert len(peaks) == 27
    slow = [
        scores[[i, j, k]].mean(axis=0).argmax()
        for i in range(3)
        for j in range(3)
        for k in range(3)
    ]
    assert peaks.tolist() == slow
    many = np.random.default_rng(0).normal(size=(8, 4))
    first, method = resample_peaks(many, 5)
    assert "2000 resamples of 8 seeds, random seed 5" in method
    assert first.tolist() == resample_peaks(many, 5)[0].tolist()


def test_arguments_out_of_range_are_refused(trials_of: MakeTrials, settings: Settings) -> None:
    with pytest.raises(ValueError, match="margin is 0"):
        compute_verdict(trials_of(), settings, margin=0)
    with pytest.raises(ValueError, match="level is 2"):
        compute_verdict(trials_of(), settings, level=2)
