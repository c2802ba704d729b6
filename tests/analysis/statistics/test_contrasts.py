"""Two configurations or two studies compared: settings that differ, paired differences."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from mtdlab.analysis import compare_studies, compare_trials
from mtdlab.analysis.data.frames import RecordedSetting, StudyFrames
from mtdlab.analysis.data.items import ItemScores
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


def test_items_that_flip_come_with_the_largest_differences(study: StudyFrames) -> None:
    numbers = np.sort(study.trials["number"].to_numpy())
    queue = int(study.trials["queue_size"].min())
    first, second = (number_of(study, decay, queue, 0) for decay in (0.75, 0.85))
    sides = [[number_of(study, decay, queue, seed) for seed in range(4)] for decay in (0.75, 0.85)]
    values = np.zeros((len(numbers), 3), dtype=np.float32)
    # right in all runs of one; in 3 of one and 1 of the other; in all of both but one
    values[np.ix_(np.isin(numbers, sides[0]), [0])] = 100
    values[np.isin(numbers, [*sides[0][:1], *sides[1][:3]]), 1] = 100
    values[np.isin(numbers, [*sides[0][:3], *sides[1]]), 2] = 100
    items = ItemScores(numbers, values, None, {"one": 2, "two": 1}, "digest")
    found = compare_trials(replace(study, load_items=lambda: items), first, second).items
    assert found[["task", "item"]].to_numpy().tolist() == [["one", 1], ["one", 2], ["two", 1]]
    assert found["difference"].tolist() == pytest.approx([100, -50, -25])
    assert found["flips"].tolist() == [True, True, False]
    other = replace(study, name="b", load_items=lambda: replace(items, digest="other"))
    assert compare_studies(replace(study, load_items=lambda: items), other).items.empty
    graded = replace(
        items, values=values + np.float32([0.1, 0.2, 0.3]), gold=np.array([2.0, 1.0, 1.0])
    )
    found = compare_trials(replace(study, load_items=lambda: graded), first, second).items
    assert "flips" not in found
    expected = {}
    for name, runs in zip(("first", "second"), sides, strict=True):
        similarities = graded.values[np.isin(numbers, runs)]
        parts = [
            abs(stats.rankdata(similarities[:, part], axis=1) - stats.rankdata(graded.gold[part]))
            / graded.gold[part].size
            for part in (slice(0, 2), slice(2, 3))
        ]
        expected[name] = 100 * np.concatenate(parts, axis=1).mean(axis=0)
    for name, errors in expected.items():
        assert found.sort_index()[name].to_numpy() == pytest.approx(errors)


def test_studies_without_items_have_none_to_compare(study: StudyFrames) -> None:
    assert compare_studies(study, replace(study, name="b")).items.empty
