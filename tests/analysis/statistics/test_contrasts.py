"""Two configurations or two studies compared: settings that differ, paired differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mtdlab.analysis import compare_studies, compare_trials
from mtdlab.analysis.data.frames import RecordedSetting, StudyFrames
from tests.analysis.conftest import build_study, make_trials


@pytest.fixture
def study() -> StudyFrames:
    """Two EMA decays at two queue sizes with four seeds."""
    trials = make_trials(noise=0.3, decays=(0.75, 0.85), times=(1, 8), seeds=range(4))
    return build_study(trials)


def scores(study: StudyFrames, decay: float, queue: int) -> np.ndarray:
    trials = study.trials
    chosen = trials[(trials["ema_decay"] == decay) & (trials["queue_size"] == queue)]
    return chosen.sort_values("seed")["score"].to_numpy()


def number_of(study: StudyFrames, decay: float, queue: int, seed: int) -> int:
    trials = study.trials
    same = (trials["ema_decay"] == decay) & (trials["queue_size"] == queue)
    return int(trials[same & (trials["seed"] == seed)]["number"].iloc[0])


def test_two_trials_are_compared_by_their_configurations(study: StudyFrames) -> None:
    queues = sorted(study.trials["queue_size"].unique())
    first, second = number_of(study, 0.75, queues[1], 0), number_of(study, 0.85, queues[1], 2)
    found = compare_trials(study, first, second)
    assert found.settings == {"ema_decay": (0.75, 0.85)}
    expected = scores(study, 0.75, queues[1]) - scores(study, 0.85, queues[1])
    assert found.table["difference"].to_numpy() == pytest.approx(expected)
    interval = stats.ttest_1samp(expected, 0).confidence_interval(0.95)
    assert (found.difference.low, found.difference.high) == pytest.approx(tuple(interval))
    assert (found.seeds, found.configurations) == (4, 1)


def test_trials_of_one_configuration_are_refused(study: StudyFrames) -> None:
    queue = int(study.trials["queue_size"].min())
    numbers = (number_of(study, 0.75, queue, seed) for seed in (0, 1))
    with pytest.raises(ValueError, match="are of one configuration"):
        compare_trials(study, *numbers)


def test_two_studies_are_compared_where_both_have_every_seed(study: StudyFrames) -> None:
    queues = sorted(study.trials["queue_size"].unique())
    other = study.trials.copy()
    other["score"] += 1 + 0.1 * other["seed"]
    # another study: a setting that differs, one configuration and one seed less
    other = other[(other["queue_size"] == queues[0]) | (other["ema_decay"] == 0.75)]
    other = other[other["seed"] > 0].assign(temperature=0.1)
    known = {**study.settings, "temperature": RecordedSetting("temperature", default=0.05)}
    first = replace(study, settings=known)
    second = replace(study, name="other", trials=other, settings=known)
    found = compare_studies(first, second)
    assert found.settings == {"temperature": (0.05, 0.1)}
    assert (found.seeds, found.configurations) == (3, 3)
    shared = found.table[["ema_decay", "queue_size"]].to_numpy().tolist()
    assert shared == [[0.75, queues[0]], [0.75, queues[1]], [0.85, queues[0]]]
    expected = -(1 + 0.1 * np.arange(1, 4))
    interval = stats.ttest_1samp(expected, 0).confidence_interval(0.95)
    assert found.difference.mean == pytest.approx(expected.mean())
    assert (found.difference.low, found.difference.high) == pytest.approx(tuple(interval))
    assert found.table["difference"].to_numpy() == pytest.approx([expected.mean()] * 3)


def test_a_setting_that_a_method_lacks_is_none(study: StudyFrames) -> None:
    other = study.trials.drop(columns="queue_size")
    known = {name: setting for name, setting in study.settings.items() if name != "queue_size"}
    queue = int(study.trials["queue_size"].min())
    first = replace(study, trials=study.trials[study.trials["queue_size"] == queue])
    found = compare_studies(first, replace(study, name="other", trials=other, settings=known))
    assert found.settings["queue_size"] == (queue, None)


def test_studies_without_a_shared_seed_or_configuration_have_no_difference(
    study: StudyFrames,
) -> None:
    other = replace(study, trials=study.trials.assign(seed=study.trials["seed"] + 10))
    found = compare_studies(study, other)
    assert (found.seeds, found.configurations, len(found.table)) == (0, 0, 0)
    assert np.isnan(found.difference.mean)


def test_trials_and_studies_without_a_common_score_are_refused(study: StudyFrames) -> None:
    states = study.trials["state"].mask(study.trials["number"] == 1, "FAIL")
    with pytest.raises(ValueError, match="trial 1 of study mtd is not complete"):
        compare_trials(replace(study, trials=study.trials.assign(state=states)), 0, 1)
    with pytest.raises(ValueError, match="study empty has no complete trial yet"):
        compare_studies(study, replace(study, name="empty", trials=study.trials.iloc[:0]))
    with pytest.raises(ValueError, match="scores of different tasks or directions cannot"):
        compare_studies(study, replace(study, metric="STS12"))
