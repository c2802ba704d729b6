"""What a page warns of, each warning with a study that has it and one that has not."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.data.frames import StudyFrames
from analysis.report.context import StudyContext, describe_selection
from analysis.report.topics import score
from analysis.report.warnings import (
    count_collapsed,
    list_warnings,
    warn_of_environment,
    warn_of_failures,
    warn_of_few_runs,
    warn_of_pruner,
    warn_of_queue,
    warn_of_seeds,
    warn_of_selection,
    warn_of_short_training,
)

MakeTrials = Callable[..., pd.DataFrame]
MakeStudy = Callable[..., StudyFrames]
pytestmark = pytest.mark.usefixtures("few_simulated_tables")

SYNTHETIC = "The training text and the evaluation pairs are synthetic (the built-in data set)."


def warnings_of(study: StudyFrames) -> str:
    return " ".join(list_warnings(StudyContext(study)))


def test_an_adaptive_sampler_is_warned_of(trials_of: MakeTrials, study_of: MakeStudy) -> None:
    study = study_of(trials_of())
    for sampler in ("grid", "random", "qmc"):
        assert warnings_of(dataclasses.replace(study, sampler=sampler)) == SYNTHETIC
    adaptive = dataclasses.replace(study, sampler="tpe")
    assert "adaptive sampler (tpe)" in warnings_of(adaptive)


def test_batch_sizes_that_differ_between_levels_are_warned_of(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of(batches=(64, 128))
    assert warnings_of(study_of(trials)) == SYNTHETIC
    uneven = trials[(trials["batch_size"] == 64) | (trials["ema_decay"] == 0.75)]
    assert "The batch sizes differ between levels of MTD" in warnings_of(study_of(uneven))


def test_a_level_whose_scores_fall_into_two_groups_is_named(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of(seeds=range(8))
    assert "two groups" not in warnings_of(study_of(trials))
    last = trials["mtd"] == trials["mtd"].max()
    trials.loc[last & trials["seed"].isin([1, 4]), "score"] -= 10
    assert "Scores fall into two groups: at MTD 14.7 2 of 8 seeds lie" in (
        warnings_of(study_of(trials))
    )


def test_collapsed_trials_are_counted_at_their_level(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of()
    failed = trials["mtd"].eq(trials["mtd"].max()) & trials["seed"].eq(1)
    trials.loc[failed, ["state", "reason"]] = ["FAIL", "collapsed at step 10"]
    trials.loc[failed, "score"] = np.nan
    study = study_of(trials)
    assert "Trials collapsed: at least 1 of 3 trials at MTD 14.7." in warnings_of(study)
    assert count_collapsed(StudyContext(study))["share"].isna().all(), "no curve was read"
    curves = pd.DataFrame(
        {"number": trials["number"], "step": 10, "score": trials["score"], "uniformity": -2.0}
    ).assign(mean_cosine=0.1)
    read = dataclasses.replace(study, curves=curves)
    assert "Trials collapsed: 1 of 3 trials at MTD 14.7." in warnings_of(read)
    shares = count_collapsed(StudyContext(read))["share"]
    assert shares.iloc[-1] == pytest.approx(100 / 3)
    assert shares.iloc[:-1].tolist() == [0] * (len(shares) - 1)
    info = score.TOPIC.compute(StudyContext(study_of(trials_of())))
    assert info is not None
    assert "collapse" not in " ".join(score.TOPIC.text(info)), "without curves it is not known"


def test_trials_without_a_curve_do_not_count_as_not_collapsed(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of(seeds=range(4), times=(8,))
    last = trials["mtd"].eq(trials["mtd"].max())
    cosine = np.where(last & trials["seed"].eq(0), 1.0, 0.1)
    curves = pd.DataFrame({"number": trials["number"], "step": 10, "score": trials["score"]})
    curves = curves.assign(uniformity=-2.0, mean_cosine=cosine)
    study = dataclasses.replace(study_of(trials), curves=curves[trials["seed"] < 2])
    found = count_collapsed(StudyContext(study)).iloc[-1]
    assert found.tolist() == [4, 2, 1, 50]
    assert "at least 1 of 4 trials" in warnings_of(study)


def test_levels_excluded_from_the_verdict_are_counted(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of()
    here = trials["mtd"].eq(trials.loc[4, "mtd"])
    trials.loc[here & trials["seed"].ne(trials.loc[4, "seed"]), "state"] = "FAIL"
    assert "1 level of MTD with a score excluded" in warnings_of(study_of(trials))


def test_levels_that_are_merged_for_the_verdict_are_counted(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of(times=range(1, 21))
    assert trials["mtd"].nunique() > 30
    said = warnings_of(study_of(trials))
    assert f"The {trials['mtd'].nunique()} levels of MTD are merged" in said
    assert "excluded from the verdict" not in said


@pytest.mark.parametrize(
    ("grid", "name"),
    [
        ({"decays": (0.85,)}, "queue_size"),
        ({"times": (1,)}, "ema_decay"),
        ({}, ""),
        ({"decays": (0.85,), "batches": (64, 128)}, ""),
        ({"decays": (0.85,), "times": (1,)}, ""),
    ],
)
def test_a_single_varied_setting_is_not_separated_from_mtd(
    trials_of: MakeTrials, study_of: MakeStudy, grid: dict[str, tuple[float, ...]], name: str
) -> None:
    said = warnings_of(study_of(trials_of(**grid)))
    sentence = f"MTD is varied by {name} alone in this study, so the two effects cannot be"
    assert (sentence in said) if name else ("varies in this study" not in said)


def test_synthetic_data_are_named(trials_of: MakeTrials, study_of: MakeStudy) -> None:
    study = study_of(trials_of())
    facts = {"corpus": "builtin: 9 sentences", "evaluation": "STS-B"}
    real_pairs = warnings_of(dataclasses.replace(study, facts=facts))
    assert real_pairs == "The training text is synthetic (the built-in data set)."
    own = {"corpus": "wiki.txt", "evaluation": "builtin"}
    assert warnings_of(dataclasses.replace(study, facts=own)) == ""


def test_a_pruner_is_warned_of(trials_of: MakeTrials, study_of: MakeStudy) -> None:
    trials = trials_of()
    assert warn_of_pruner(trials) == ""
    trials.loc[[3, 9], "state"] = "PRUNED"
    assert warn_of_pruner(trials).startswith("A pruner stopped 2 trials")
    assert "A pruner stopped 2 trials" in warnings_of(study_of(trials))


def test_one_seed_is_warned_of_once_there_are_levels(trials_of: MakeTrials) -> None:
    assert warn_of_seeds(trials_of(seeds=(0, 1))) == ""
    assert warn_of_seeds(trials_of(seeds=(4,), decays=(0.75,), times=(1,))) == ""
    assert warn_of_seeds(trials_of(seeds=(4,))).startswith("All trials have the same seed.")


@pytest.mark.parametrize(("runs", "warned"), [(0, False), (1, True), (4, True), (5, False)])
def test_fewer_than_five_runs_are_warned_of(trials_of: MakeTrials, runs: int, warned: bool) -> None:
    text = warn_of_few_runs(trials_of().iloc[:runs])
    assert text.startswith(f"Only {runs} trial") is warned


def failures(trials: pd.DataFrame, numbers: list[int]) -> pd.DataFrame:
    return trials.assign(state=trials["state"].mask(trials["number"].isin(numbers), "FAIL"))


def test_failures_at_one_level_are_warned_of_and_scattered_ones_are_not(
    trials_of: MakeTrials,
) -> None:
    trials = trials_of(seeds=range(5))
    assert warn_of_failures(trials) == ""
    # trials of one level follow each other: 0 to 4 are at MTD 5
    text = warn_of_failures(failures(trials, [0, 1, 2, 4]))
    assert text.startswith(
        "Failures are concentrated at some levels of MTD: 4 of 5 at MTD 5, against 4 of 40 trials"
    )
    assert warn_of_failures(failures(trials, [0, 7, 14, 22])) == ""
    assert warn_of_failures(failures(trials, list(range(40)))) == ""


def test_the_test_of_failures_rarely_warns_of_chance(trials_of: MakeTrials) -> None:
    trials = trials_of(seeds=range(10))
    rng = np.random.default_rng(1)
    warned = [
        warn_of_failures(failures(trials, rng.choice(80, size=12, replace=False).tolist())) != ""
        for _ in range(200)
    ]
    assert sum(warned) <= 14


def test_a_queue_that_fills_late_or_never_is_warned_of(trials_of: MakeTrials) -> None:
    # K/N 1, 2, 4, 8 at N 64 with 32 random keys: full after 1, 2, 4, 8 steps
    trials = trials_of()
    assert warn_of_queue(trials) == ""
    assert warn_of_queue(trials.assign(steps=80)) == ""
    late = warn_of_queue(trials.assign(steps=20))
    assert (
        "The queue is filling during 8 of 20 steps at MTD 12, and during more than 10 % of the "
        "steps at MTD 8, 10.7, 12, 14.7." in late
    )
    never = warn_of_queue(trials.assign(steps=7))
    assert never.startswith("The queue is never full at MTD 12, 14.7.")


def test_the_long_queue_of_the_former_default_study_is_warned_of(trials_of: MakeTrials) -> None:
    trials = trials_of(times=(1, 8, 64)).assign(steps=120)
    trials["initial_queue_size"] = trials["queue_size"] // 4
    text = warn_of_queue(trials)
    assert text.startswith("The queue is filling during 48 of 120 steps at MTD 68, and during")
    assert "10 % of the steps at MTD 68, 70.7." in text


def test_the_queue_of_a_table_without_an_initial_size_starts_empty(trials_of: MakeTrials) -> None:
    trials = trials_of(times=(8,)).drop(columns="initial_queue_size").assign(steps=8)
    assert "filling during 8 of 8 steps" in warn_of_queue(trials)
    assert "never full" in warn_of_queue(trials.assign(steps=7))


def environment_of(trials: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "number": trials["number"],
            "precision": "bfloat16",
            "threads": "1",
            "versions": "Python 3.11.2, torch 2.13.0",
        }
    )


def test_runs_that_computed_alike_are_not_warned_of(trials_of: MakeTrials) -> None:
    trials = trials_of()
    environment = environment_of(trials)
    assert warn_of_environment(environment, trials) == ""
    assert warn_of_environment(environment.assign(processor=""), trials) == ""


def test_runs_that_computed_differently_are_named_with_their_levels(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of()
    environment = environment_of(trials)
    low = trials["mtd"] < 7
    environment["precision"] = np.where(low, "float32", "bfloat16")
    environment["versions"] = np.where(low, "Python 3.11.2, torch 2.14.0", environment["versions"])
    text = warn_of_environment(environment, trials)
    assert "precision (bfloat16 at MTD 7.67, 8, 8.67, 10.7, 12, 14.7; float32 at MTD 5, 6)" in text
    assert "torch 2.14.0 at MTD 5, 6" in text
    assert "Python" not in text
    assert "threads" not in text
    study = dataclasses.replace(study_of(trials), environment=environment)
    assert text in list_warnings(StudyContext(study))


@pytest.mark.parametrize(
    ("chosen", "note"),
    [
        (["dev", "dev"], ""),
        (["test", "dev"], "checkpoints chosen on the TEST pairs"),
        (["sts_average"], "checkpoints chosen on the STS TEST sets"),
        (["sts_average", "test"], "checkpoints chosen on the TEST pairs or the STS TEST sets"),
    ],
)
def test_checkpoints_chosen_on_test_data_are_stated(chosen: list[str], note: str) -> None:
    assert describe_selection(pd.DataFrame({"select_on": chosen})) == note
    warning = warn_of_selection(note)
    assert warning.partition(", as")[0] == note.replace("checkpoints", "Checkpoints were")


def test_most_trials_best_at_their_last_evaluation_are_a_limitation(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of().assign(steps=160, best_step=160.0)
    trials.loc[0, "best_step"] = 80.0
    [text] = [each for each in list_warnings(StudyContext(study_of(trials))) if "last eval" in each]
    assert text.startswith("23 of 24 trials had their highest score at the last evaluation")
    trials.loc[:11, "best_step"] = 80.0
    assert warn_of_short_training(trials) == ""
    assert warn_of_short_training(trials.drop(columns="steps")) == ""
