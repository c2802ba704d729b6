"""The experiments of the papers, compared with values by hand."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import NuisanceTrials, RecordedSetting, StudyFrames
from mtdlab.analysis.data.items import ItemScores
from mtdlab.analysis.data.published import load_published
from mtdlab.analysis.data.settings import with_defaults
from mtdlab.analysis.experiments import (
    EXPERIMENTS,
    Comparison,
    Experiment,
    compare,
    compute_experiment_tasks,
    needs_curves,
)
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import training
from mtdlab.analysis.report.topics.experiment import describe_comparison, warn_mixed
from mtdlab.analysis.statistics.training import compute_collapse, detect_collapse
from tests.analysis.conftest import SETTINGS, build_study

pytestmark = pytest.mark.usefixtures("few_simulated_tables")

NAMED = {experiment.name: experiment for experiment in EXPERIMENTS}
Point = dict[str, float | str]
BASE: Point = {
    "ema_decay": 0.85,
    "queue_size": 512,
    "batch_size": 64,
    "initial_queue_size": 128,
    "queue_slice": "all",
    "fgsm_epsilon": 0.0,
    "mtd": 14.667,
}
AUGMENTATIONS: tuple[Point, ...] = (
    {"augmentation": "none"},
    {"augmentation": "none", "fgsm_epsilon": 5e-9},
    {"augmentation": "position-shuffle"},
    {"augmentation": "token-cutoff:0.1"},
    {"augmentation": "feature-cutoff:0.01"},
    {"augmentation": "feature-cutoff:0.1"},
    {"augmentation": "typos:0.05"},
    {"augmentation": "synonyms:models/roberta-base"},
    {"augmentation": "paraphrase:xlnet-base-cased"},
    {"augmentation": "back-translation:H/opus-mt-en-de,H/opus-mt-de-en"},
)
SLICES = ("0-512", "256-768", "512-1024", "0-256,768-1024", "all")


def grid(**values: Sequence[float | str]) -> list[Point]:
    """Every combination of the settings' values, the last setting changing fastest."""
    return [dict(zip(values, point, strict=True)) for point in product(*values.values())]


# The paper's own grid for each experiment, in the order of its file.
GRIDS: dict[str, list[Point]] = {
    "ema_decay": grid(ema_decay=[0.5, 0.8, 0.85, 0.9, 0.95, 0.99]),
    "heads": grid(projection_layers=range(4), prediction_layers=(1, 2, 3)),
    "augmentation": list(AUGMENTATIONS),
    "prediction_dim": grid(prediction_dim=[256, 512, 768, 1024, 2048]),
    "batch_size": grid(batch_size=[32, 64, 128, 256]),
    "initial_queue": [
        {"queue_size": size, "initial_queue_size": share * size}
        for share in (0, 0.25, 0.5, 1)
        for size in (128, 256, 512, 1024, 4096)
    ],
    "queue_slices": grid(queue_size=[1024], queue_slice=SLICES),
    "fgsm_epsilon": grid(fgsm_epsilon=[1e-9, 5e-9, 1e-8, 5e-8, 0]),
    "queue_clusters": grid(queue_clusters=[0, 1, 5, 10, 15, 20]),
}


def make_runs(points: list[Point], scores: list[list[float]], **more: float | str) -> pd.DataFrame:
    """A run per point and seed; scores has a row per point and a column per seed."""
    rows = [
        BASE | more | point | {"seed": seed, "score": score}
        for point, row in zip(points, scores, strict=True)
        for seed, score in enumerate(row)
    ]
    trials = pd.DataFrame(rows).assign(state="COMPLETE", reason="", score_before=10.0)
    trials.insert(0, "number", np.arange(len(trials)))
    return trials


def study_of(trials: pd.DataFrame, **frames: Any) -> StudyFrames:
    return StudyFrames("s", "sts_test", len(trials), trials, settings=SETTINGS, **frames)


def found(
    name: str, trials: pd.DataFrame, width: int | None = None, **frames: Any
) -> Comparison | None:
    return compare(study_of(trials, **frames), NAMED[name], width)


def shown_of(trials: pd.DataFrame) -> list[str]:
    return [
        experiment.name for experiment in EXPERIMENTS if found(experiment.name, trials) is not None
    ]


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_the_papers_own_grid_meets_every_published_value(experiment: Experiment) -> None:
    points = GRIDS[experiment.name]
    scores = [[10.0 + place, 12.0 + place] for place in range(len(points))]
    trials = make_runs(points, scores)
    table = found(experiment.name, trials, width=768).table
    cells = load_published(experiment.file)
    values = cells.drop(columns="initial_queue") if "initial_queue" in cells else cells[["average"]]
    assert table["n"].tolist() == [2] * len(points)
    # by hand: the place of a point is 11 less than its mean, and its row in the file
    in_file = table.assign(place=table["mean"] - 11).sort_values("place")
    assert in_file["published"].tolist() == values.to_numpy().ravel().tolist()
    # two seeds at a distance of 2: t(0.975, 1 degree) = 12.706 times sqrt(2) / sqrt(2)
    assert (table["high"] - table["mean"]).to_numpy() == pytest.approx(12.7062047, rel=1e-6)


@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_sections_are_those_of_what_was_varied(experiment: Experiment) -> None:
    points = GRIDS[experiment.name]
    trials = make_runs(points, [[1.0, 2.0]] * len(points))
    also = {"augmentation": {"fgsm_epsilon"}}.get(experiment.name, set())
    expected = {experiment.name} | also
    if experiment.name == "augmentation":
        # one augmentation was run with and without FGSM: that part is table 9's
        assert found("fgsm_epsilon", trials).table["n"].tolist() == [2, 2]
    assert set(shown_of(trials)) == expected
    assert shown_of(trials.iloc[:2]) == []
    assert shown_of(trials.assign(state="FAIL")) == []


def test_two_things_varied_are_two_experiments_each_over_the_other() -> None:
    points = grid(ema_decay=(0.5, 0.9), queue_clusters=(0, 5))
    trials = make_runs(points, [[10.0, 20.0], [12.0, 22.0], [30.0, 40.0], [34.0, 44.0]])
    assert shown_of(trials) == ["ema_decay", "queue_clusters"]
    decays, clusters = found("ema_decay", trials), found("queue_clusters", trials)
    assert decays.table["mean"].tolist() == pytest.approx([16, 37])
    assert clusters.table["mean"].tolist() == pytest.approx([25, 28])
    assert decays.table[["n", "seeds"]].to_numpy().tolist() == [[4, 2], [4, 2]]
    assert "Means are over queue_clusters (0, 5)." in describe_comparison(decays)


def test_settings_that_were_not_run_at_every_row_are_left_out() -> None:
    points = [
        {"ema_decay": 0.5, "queue_size": 128},
        {"ema_decay": 0.9, "queue_size": 128},
        {"ema_decay": 0.9, "queue_size": 512},
    ]
    trials = make_runs(points, [[10.0], [11.0], [99.0]], initial_queue_size=0)
    comparison = found("ema_decay", trials)
    assert comparison.table["mean"].tolist() == pytest.approx([10, 11])
    assert (comparison.left_out, comparison.balanced) == (1, True)
    assert comparison.kept == {"queue_size": 128}
    assert describe_comparison(comparison)[-1] == (
        "1 trial left out: not every row was run with their other settings and seed. All rows have "
        "queue_size (128); other values were left out."
    )


def test_a_value_that_was_chosen_for_a_row_leaves_out_nothing() -> None:
    trials = make_runs(grid(ema_decay=[0.75, 0.95]), [[1.0, 2.0], [3.0, 4.0]])
    rates = np.where(trials["ema_decay"] == 0.75, 1e-3, 2e-3)
    study = build_study(trials.assign(learning_rate=rates))
    tuning = NuisanceTrials(("learning_rate",), (), 0, {}, trials.iloc[:0])
    comparison = StudyContext(replace(study, tuning=tuning)).comparisons["ema_decay"]
    assert (comparison.others, comparison.left_out, comparison.balanced) == ((), 0, True)
    assert StudyContext(study).comparisons["ema_decay"].others == ("learning_rate",)
    assert comparison.chosen == {"learning_rate": ((1e-3,), (2e-3,))}
    assert describe_comparison(comparison)[-1] == (
        "Rows differ in learning_rate, which was chosen for each, so that a difference may come "
        "from it: 0.001 in 0.75; 0.002 in 0.95."
    )
    same = replace(study, trials=trials.assign(learning_rate=1e-3), tuning=tuning)
    assert StudyContext(same).comparisons["ema_decay"].chosen == {}


def test_settings_that_change_together_are_warned_of() -> None:
    points = [{"batch_size": size, "queue_size": 8 * size} for size in (32, 64)]
    comparison = found("batch_size", make_runs(points, [[1.0, 2.0], [3.0, 4.0]]))
    assert not comparison.balanced
    assert "cannot be separated here" in next(warn_mixed(comparison))
    shares = [{"queue_size": 128, "initial_queue_size": 0}, {"queue_size": 512}]
    diagonal = found("initial_queue", make_runs(shares, [[1.0, 2.0], [3.0, 4.0]]))
    assert "with one initial share of random keys only" in next(warn_mixed(diagonal))


def test_an_old_study_has_the_settings_it_did_not_record() -> None:
    trials = make_runs(grid(projection_layers=(0, 1)), [[1.0], [2.0]]).drop(columns="fgsm_epsilon")
    table = found("heads", trials).table
    assert table["prediction_layers"].tolist() == [2, 2]
    assert table["published"].tolist() == [62.67, 76.89]
    assert shown_of(trials) == ["heads"]


def test_values_recorded_in_part_are_filled() -> None:
    trials = make_runs([{"queue_clusters": 5}, {}], [[1.0], [2.0]])
    assert trials["queue_clusters"].isna().any()
    table = found("queue_clusters", trials).table
    assert table["queue_clusters"].tolist() == [0, 5]
    dims = make_runs([{"prediction_dim": 64}, {"prediction_dim": np.nan}], [[1.0], [2.0]])
    assert found("prediction_dim", dims).table["prediction_dim"].tolist() == [0, 64]
    assert NAMED["prediction_dim"].label(0.0) == "the encoder's"


def test_another_method_is_no_part_of_an_experiment() -> None:
    points = [{"ema_decay": 0.5}, {"ema_decay": 0.9}, {"method": "simcse"}]
    trials = make_runs(points, [[1.0], [2.0], [3.0]])
    assert found("ema_decay", trials).table["ema_decay"].tolist() == [0.5, 0.9]


def test_settings_that_a_method_does_not_have_stay_missing() -> None:
    trials = make_runs([{"method": "mocose"}, {"method": "simcse"}], [[1.0], [2.0]])
    lacking = trials["method"] == "simcse"
    trials.loc[lacking, ["queue_size", "fgsm_epsilon"]] = np.nan
    trials.loc[lacking, "queue_slice"] = ""
    trials["queue_clusters"] = np.nan
    trials["prediction_dim"] = None
    settings = SETTINGS | {
        "queue_size": RecordedSetting("queue_size", "K", default=512),
        "queue_slice": RecordedSetting("queue_slice", default="all"),
    }
    filled = with_defaults(trials.drop(columns="fgsm_epsilon"), settings)
    names = ["queue_size", "queue_slice", "fgsm_epsilon", "queue_clusters", "prediction_dim"]
    assert filled.loc[~lacking, names].to_numpy().tolist() == [[512, "all", 5e-9, 0, 0]]
    assert filled.loc[lacking, names].isna().all(axis=None)
    assert filled["augmentation"].isna().tolist() == [False, True]


def test_a_row_is_of_the_methods_that_have_the_setting() -> None:
    points = [
        {"method": "esimcse", "queue_size": size, "initial_queue_size": size // 4 * share}
        for size in (128, 512)
        for share in (0, 1)
    ]
    trials = make_runs([*points, {"method": "simcse"}], [[1.0], [2.0], [3.0], [4.0], [9.0]])
    lacking = trials["method"] == "simcse"
    trials.loc[lacking, ["queue_size", "initial_queue_size", "fgsm_epsilon"]] = np.nan
    comparison = found("initial_queue", trials)
    assert comparison.table["mean"].tolist() == pytest.approx([1, 3, 2, 4])
    assert (comparison.others, comparison.left_out) == ((), 0)
    assert shown_of(trials) == ["initial_queue"]


def test_augmentations_of_a_method_without_fgsm_are_named_without_it() -> None:
    points = grid(method=["simcse"], augmentation=("none", "typos:0.05"))
    trials = make_runs(points, [[1.0], [2.0]]).drop(columns="fgsm_epsilon")
    table = found("augmentation", trials).table
    assert sorted(table["augmented"]) == ["none", "typos:0.05"]


def test_a_seed_that_lacks_a_setting_makes_no_difference_of_it() -> None:
    points = grid(ema_decay=(0.5, 0.85), learning_rate=(1, 2))
    # the score depends on the learning rate alone: 40 or 70
    trials = make_runs(points, [[40.0 + seed for seed in range(5)], [70.0] * 5] * 2)
    lost = (trials["ema_decay"] == 0.85) & (trials["learning_rate"] == 1) & (trials["seed"] > 0)
    trials["state"] = trials["state"].mask(lost, "FAIL")
    comparison = found("ema_decay", trials)
    # (55 + 4 x 70) / 5
    assert comparison.table["mean"].tolist() == pytest.approx([67, 67])
    assert comparison.left_out == 4
    assert "score the same" in describe_comparison(comparison)[0]


def test_a_study_that_runs_shows_what_is_there_and_compares_nothing() -> None:
    points = [{"ema_decay": 0.5, "learning_rate": 1}, {"ema_decay": 0.85, "learning_rate": 2}]
    comparison = found("ema_decay", make_runs(points, [[1.0, 2.0], [5.0, 6.0]]))
    assert comparison.table["mean"].tolist() == pytest.approx([1.5, 5.5])
    assert not comparison.balanced
    assert "highest" not in " ".join(describe_comparison(comparison))
    assert "No seed ran any" in next(warn_mixed(comparison))


def test_best_and_worst_are_of_the_same_seeds() -> None:
    rows = [[10.0, 30.0, np.nan], [12.0, 33.0, np.nan], [np.nan, 90.0, 99.0]]
    trials = make_runs(grid(ema_decay=[0.5, 0.8, 0.85]), rows)
    comparison = found("ema_decay", trials)
    assert comparison.table["n"].tolist() == [2, 2, 2]
    said = describe_comparison(comparison)[0]
    assert "0.8 has the highest mean (22.50) and 0.5 the lowest (20.00)" in said
    assert "1 excluded for lack of seeds" in said
    alone = make_runs(grid(ema_decay=[0.5, 0.8]), [[1.0, np.nan], [np.nan, 2.0]])
    assert (
        "No two values of ema_decay η can be compared yet"
        in describe_comparison(found("ema_decay", alone))[0]
    )


def test_rows_that_score_the_same_have_no_best() -> None:
    trials = make_runs(grid(ema_decay=[0.5, 0.8]), [[51.0, 51.0]] * 2)
    said = describe_comparison(found("ema_decay", trials))
    assert said == ("All values of ema_decay η score the same (51.00).",)


def test_a_grid_by_steps_meets_published_values() -> None:
    steps = [0.5 + 0.05 * step for step in (0, 6, 7, 8)]
    assert 0.85 not in steps
    table = found("ema_decay", make_runs(grid(ema_decay=steps), [[1.0]] * 4)).table
    assert table["published"].tolist() == [75.76, 75.19, 76.49, 76.05]


def test_widths_are_shares_of_the_encoders() -> None:
    trials = make_runs(grid(prediction_dim=[0, 43, 85, 128, 171, 256]), [[1.0]] * 6)
    narrow = found("prediction_dim", trials, width=128).table["published"]
    # table 6a at 1, 1/3, 2/3, 1 and 4/3 of 768; twice the encoder was not published
    assert narrow.tolist()[:5] == [77.04, 73.91, 76.07, 77.04, 77.02]
    assert np.isnan(narrow[5])
    unknown = found("prediction_dim", trials)
    assert unknown.table["published"].isna().all()
    assert "0 of the 6 values are published." in describe_comparison(unknown)


def test_another_method_has_no_published_values() -> None:
    trials = make_runs(grid(batch_size=[32, 64]), [[1.0, 2.0]] * 2, method="simcse")
    assert found("batch_size", trials).table["published"].isna().all()


def test_runs_that_differ_from_the_published_are_compared_and_the_difference_is_said() -> None:
    rows = [[1.0, 2.0], [3.0, 4.1], [2.0, 3.1]]
    points = grid(ema_decay=[0.5, 0.8, 0.85])
    trials = make_runs(points, rows)
    trials["queue_size"] = trials["seed"].map({0: 128, 1: 64})
    comparison = found("ema_decay", trials)
    assert comparison.table["published"].notna().all()
    said = describe_comparison(comparison)[1]
    assert said == (
        "The paper's trials had queue_size 512, batch_size 64, these have queue_size (64, 128)."
    )


def test_values_are_worded_as_they_are_set() -> None:
    points = [
        {"ema_decay": decay, "in_batch_negatives": negatives, "prediction_dim": dim}
        for decay in (0.5, 0.9)
        for negatives, dim in ((True, np.nan), (False, 128))
    ]
    said = describe_comparison(found("ema_decay", make_runs(points, [[1.0, 2.0]] * 4)))[-1]
    assert "in_batch_negatives (false, true)" in said
    assert "prediction_dim (the encoder's, 128)" in said


def test_a_step_that_changed_nothing_is_said() -> None:
    trials = make_runs(grid(fgsm_epsilon=[0, 1e-10, 5e-9]), [[1.0], [2.0], [3.0]])
    assert needs_curves(trials, SETTINGS)
    curves = pd.DataFrame({"number": [0, 1, 2, 2], "fgsm_changed": [0, 0, 0, 0.5]})
    comparison = found("fgsm_epsilon", trials, curves=curves)
    assert comparison.table["fgsm_changed"].tolist() == [0, 0, 0.25]
    said = " ".join(describe_comparison(comparison))
    assert said.count("changed no entry") == 1
    assert "An ε of 1e-10 changed no entry" in said


def test_slices_have_the_published_value_of_each_task() -> None:
    trials = make_runs(GRIDS["queue_slices"], [[1.0, 2.0]] * 5)
    scores = pd.DataFrame({"number": trials["number"], "task": "STS13", "score": trials["number"]})
    table = compute_experiment_tasks(found("queue_slices", trials), scores)
    by_slice = table.set_index("queue_slice")
    means = dict(zip(SLICES, (0.5, 2.5, 4.5, 6.5, 8.5), strict=True))
    assert by_slice["mean"].to_dict() == pytest.approx(means)
    published = load_published("table8_queue_slices")["STS13"]
    assert [by_slice["published"][name] for name in SLICES] == published.tolist()


def test_slices_of_another_queue_are_matched_by_their_share() -> None:
    points = grid(queue_size=[256], queue_slice=["64-192", "0-128", "0-64,192-256", "all", "0-64"])
    trials = make_runs(points, [[1.0, 2.0]] * 5)
    comparison = found("queue_slices", trials)
    published = comparison.table.set_index("queue_slice")["published"]
    # table 8, by hand
    expected = [77.02, 76.10, 76.18, 76.86]
    assert published[["64-192", "0-128", "0-64,192-256", "all"]].tolist() == expected
    assert np.isnan(published["0-64"])
    assert "4 of the 5 values are published." in describe_comparison(comparison)
    scores = pd.DataFrame({"number": trials["number"], "task": "STSB", "score": 1.0})
    tasks = compute_experiment_tasks(comparison, scores).set_index("queue_slice")
    assert tasks.loc["64-192", "published"] == 78.43
    # positions that mean another share in another queue have no published value
    longer = trials.assign(queue_size=512, seed=trials["seed"] + 2, number=trials["number"] + 10)
    both = found("queue_slices", pd.concat([trials, longer], ignore_index=True))
    assert both.table.set_index("queue_slice")["published"].notna().to_dict() == {
        "64-192": False,
        "0-128": False,
        "0-64,192-256": False,
        "all": True,
        "0-64": False,
    }


def evaluated(scores: dict[int, list[float]]) -> StudyFrames:
    """Two seeds at two decays, with these scores at every tenth step of a trial."""
    trials = make_runs(grid(ema_decay=[0, 0.85]), [[1.0, 1.0], [1.0, 1.0]])
    rows = [
        (number, 10 * (place + 1), score)
        for number, row in scores.items()
        for place, score in enumerate(row)
    ]
    curves = pd.DataFrame(rows, columns=["number", "step", "score"])
    curves = curves.assign(mean_cosine=0.5, uniformity=-1.0)
    return StudyFrames("mtd", "sts_test", 4, trials, curves, settings=SETTINGS)


def test_the_first_step_of_a_lasting_collapse_is_detected() -> None:
    study = evaluated(
        {
            0: [20, 9, 12, 9, 8],  # recovers once: collapsed from the fourth evaluation
            1: [4, 4, 4, 4, np.nan],  # never half of the untrained encoder's 10
            2: [20, 9, 11, 30, 30],
            3: [20, 20, 20, 20, 20],
        }
    )
    watch = detect_collapse(study).set_index("ema_decay")
    assert watch.loc[0, ["n", "collapsed", "first", "last"]].tolist() == [2, 2, 10, 40]
    assert watch.loc[0.85, ["n", "collapsed"]].tolist() == [2, 0]
    curve = compute_collapse(study)
    symmetric = curve[curve["ema_decay"] == 0]
    assert symmetric["mean"].tolist() == pytest.approx([12, 6.5, 8, 6.5, 8])
    assert symmetric["n"].tolist() == [2, 2, 2, 2, 1]


def test_a_score_missing_to_the_end_is_a_collapse() -> None:
    study = evaluated({0: [20, 20, np.nan], 1: [20, np.nan, 20], 2: [20] * 3, 3: [20] * 3})
    watch = detect_collapse(study).set_index("ema_decay")
    assert watch.loc[0, ["collapsed", "first"]].tolist() == [1, 30]


def test_a_negative_score_is_no_collapse_and_equal_vectors_are() -> None:
    study = evaluated({0: [-4, -3, -1], 1: [20, 21, 20, 22], 2: [20] * 3, 3: [20] * 3})
    study.trials["score_before"] = -3.0
    watch = detect_collapse(study).set_index("ema_decay")
    assert watch.loc[0, ["n", "collapsed"]].tolist() == [2, 0]
    of_second = study.curves["number"] == 1
    study.curves.loc[of_second, "mean_cosine"] = [0.999, 0.9, 0.995, 1.0]
    watch = detect_collapse(study).set_index("ema_decay")
    assert watch.loc[0, ["collapsed", "first", "last"]].tolist() == [1, 30, 30]


def test_runs_that_a_collapse_ended_are_counted() -> None:
    study = evaluated({2: [20] * 3, 3: [20] * 3})
    study.trials["state"] = ["FAIL", "FAIL", "COMPLETE", "COMPLETE"]
    study.trials["reason"] = ["collapsed: every cosine is the same", "oom: no memory", "", ""]
    assert needs_curves(study.trials, SETTINGS)
    numbers = ["n", "collapsed", "failed", "pruned"]
    watch = detect_collapse(study).set_index("ema_decay")
    assert watch[numbers].to_numpy().tolist() == [[1, 1, 1, 0], [2, 0, 0, 0]]
    study.trials.loc[0, "reason"] = "no sts_test: collapsed: every cosine is the same"
    study.trials.loc[1, "state"] = "PRUNED"
    watch = detect_collapse(study)
    assert watch[numbers].to_numpy().tolist() == [[1, 1, 0, 1], [2, 0, 0, 0]]
    contents = training.COLLAPSE.build(StudyContext(study))
    assert contents.text == ["Collapse was detected in 1 of 3 trials."]


def test_without_a_symmetric_structure_there_are_no_rows() -> None:
    study = evaluated({0: [20.0], 2: [20.0]})
    study.trials["ema_decay"] = study.trials["ema_decay"].replace(0, 0.5)
    assert not needs_curves(study.trials, SETTINGS)
    assert detect_collapse(study).empty
    assert compute_collapse(study).empty


def test_means_of_an_experiment_cover_evaluation_items() -> None:
    """Rows differ by items alone: 2 points here, which other items would give at random."""
    rng = np.random.default_rng(2)
    points = GRIDS["ema_decay"]
    own = rng.normal(0, 15, size=(len(points), 100))
    values = np.repeat(own, 4, axis=0) + rng.normal(0, 1, size=(4 * len(points), 100))
    scores = values.mean(axis=1).reshape(-1, 4).tolist()
    trials = make_runs(points, scores)
    items = ItemScores(np.arange(len(values)), values, None, {"own": 100}, "digest")
    these, like = (found("ema_decay", trials, load_items=lambda n=n: n) for n in (None, items))
    assert ({*these.table["items"]}, {*like.table["items"]}) == ({0}, {100})
    # 15 / sqrt(100) = 1.5 points, times 1.96 at least
    assert (like.table["high"] - like.table["mean"]).min() > 2
    incomplete = items.of(range(1, len(values)))
    assert found("ema_decay", trials, load_items=lambda: incomplete).table["items"].min() == 0
