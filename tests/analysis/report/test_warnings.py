"""What a page warns of, each warning with a study that has it and one that has not."""

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.environment import Environment, RecordedCorpus, RecordedEvaluation
from mtdlab.analysis.data.frames import RecordedSetting
from mtdlab.analysis.report.context import StudyContext, describe_selection, describe_splits
from mtdlab.analysis.report.topics import score
from mtdlab.analysis.report.warnings import (
    list_warnings,
    warn_of_environment,
    warn_of_failures,
)
from mtdlab.analysis.statistics.training import count_best_at_end
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")

ALONE = "Of what makes up MTD only {} varies: its effect and that of MTD cannot be told apart."
GROUPS, PRUNED, EXCLUDED = make_trials(seeds=range(8)), make_trials(), make_trials()
GROUPS.loc[(GROUPS["mtd"] == GROUPS["mtd"].max()) & GROUPS["seed"].isin([1, 4]), "score"] -= 10
PRUNED.loc[[3, 9], "state"] = "PRUNED"
HERE = EXCLUDED["mtd"].eq(EXCLUDED.loc[4, "mtd"])
EXCLUDED.loc[HERE & EXCLUDED["seed"].ne(EXCLUDED.loc[4, "seed"]), "state"] = "FAIL"
ENDS = make_trials().assign(steps=160, best_step=160.0)


def trained(corpus: str, evaluation: str = "") -> Environment:
    """What trials ran with, on a corpus and evaluation pairs of these names."""
    pairs = RecordedEvaluation(evaluation, 2, 2) if evaluation else None
    return Environment(RecordedCorpus(corpus, 9, "sentences", "0f"), evaluation=pairs)


def warnings_of(trials: pd.DataFrame, **changed: Any) -> list[str]:
    """Of trials on data of one's own."""
    study = dataclasses.replace(build_study(trials), **{"environments": (), **changed})
    return list(list_warnings(StudyContext(study)))


@pytest.mark.parametrize(
    ("trials", "beginnings"),
    [
        (make_trials(), []),
        (make_trials(batches=(64, 128)), []),
        (
            make_trials(batches=(64, 128)).query("batch_size == 64 or ema_decay == 0.75"),
            ["Batch sizes differ between levels of MTD"],
        ),
        (make_trials(seeds=range(8)), []),
        (
            GROUPS,
            ["Scores fall into two groups at 1 level of MTD. By level: at MTD 14.7 2 of 8 seeds"],
        ),
        (EXCLUDED, ["The verdict leaves out 1 level of MTD"]),
        (make_trials(times=range(1, 21)), ["The 40 levels of MTD are merged"]),
        (make_trials(decays=(0.85,)), [ALONE.format("queue_size")]),
        (make_trials(times=(1,)), [ALONE.format("ema_decay")]),
        (make_trials(decays=(0.85,), batches=(64, 128)), []),
        (make_trials(decays=(0.85,), times=(1,)), ["Only 3 trials completed"]),
        (PRUNED, ["A pruner stopped 2 trials"]),
        (make_trials(seeds=(0, 1)), []),
        (make_trials(seeds=(4,)), ["All trials have the same seed, so"]),
        (make_trials(seeds=(4,), decays=(0.75,), times=(1,)), ["Only 1 trial completed"]),
        (make_trials().iloc[:0], []),
        (make_trials().iloc[:4], ["Only 4 trials completed", ALONE.format("queue_size")]),
        (make_trials().iloc[:5], [ALONE.format("queue_size")]),
        (
            ENDS.assign(best_step=ENDS["best_step"].where(ENDS["number"] > 0, 80)),
            ["23 of 24 trials scored best at their last evaluation."],
        ),
        (ENDS.assign(best_step=ENDS["best_step"].where(ENDS["number"] > 11, 80)), []),
        (ENDS.drop(columns="steps"), []),
    ],
)
def test_trials_have_these_warnings_and_no_others(
    trials: pd.DataFrame, beginnings: list[str]
) -> None:
    found = warnings_of(trials)
    assert len(found) == len(beginnings)
    for text, beginning in zip(found, beginnings, strict=True):
        assert text.startswith(beginning)


@pytest.mark.parametrize(
    ("changed", "warnings"),
    [
        *(({"sampler": sampler}, []) for sampler in ("grid", "random", "qmc")),
        ({"sampler": "tpe"}, ["An adaptive sampler (tpe) chose the settings."]),
        ({"environments": (trained("wiki.txt", "builtin"),)}, []),
        (
            {"environments": (trained("builtin", "STS-B"),)},
            ["The training text is synthetic (the built-in data set)."],
        ),
        (
            {"environments": (trained("builtin"),)},
            ["The training text and the evaluation pairs are synthetic (the built-in data set)."],
        ),
        *(
            (
                {"metric": name},
                [
                    f"The highest {name} counts as the best, since no direction was stated. If it "
                    "is a loss, as its name says, run it as another study with direction: minimize."
                ],
            )
            for name in ("eval/loss", "val_loss", "RMSE")
        ),
        *(
            ({"metric": name}, [])
            for name in ("eval/accuracy", "neg_mean_squared_error", "-loss", "lossless")
        ),
    ],
)
def test_samplers_and_data_that_limit_conclusions_are_named(
    changed: dict[str, Any], warnings: list[str]
) -> None:
    assert [
        text.partition(" It tries")[0] for text in warnings_of(make_trials(), **changed)
    ] == warnings


def test_collapsed_trials_are_counted_at_their_level() -> None:
    trials = make_trials()
    failed = trials["mtd"].eq(trials["mtd"].max()) & trials["seed"].eq(1)
    trials.loc[failed, ["state", "reason"]] = ["FAIL", "collapsed at step 10"]
    trials.loc[failed, "score"] = np.nan
    study = build_study(trials)
    said = " ".join(list_warnings(StudyContext(study)))
    assert (
        "at 1 level of MTD. By level: 1 of 1 that were assessed, of 3 trials, at MTD 14.7." in said
    )
    assert StudyContext(study).collapsed["share"].isna().all(), "no curve was read"
    curves = trials[["number", "score"]].assign(step=10, uniformity=-2.0, mean_cosine=0.1)
    read = StudyContext(dataclasses.replace(study, curves=curves))
    said = " ".join(list_warnings(read))
    assert "Trials collapsed at 1 level of MTD. By level: 1 of 3 trials at MTD 14.7." in said
    shares = read.collapsed["share"]
    assert shares.iloc[-1] == pytest.approx(100 / 3)
    assert shares.iloc[:-1].tolist() == [0] * (len(shares) - 1)
    text = " ".join(score.describe(StudyContext(build_study(make_trials()))))
    assert "collapse" not in text, "without curves it is not known"


def test_trials_without_a_curve_do_not_count_as_not_collapsed() -> None:
    trials = make_trials(seeds=range(4), times=(8,))
    last = trials["mtd"].eq(trials["mtd"].max())
    cosine = np.where(last & trials["seed"].eq(0), 1.0, 0.1)
    curves = trials[["number", "score"]].assign(step=10, uniformity=-2.0, mean_cosine=cosine)
    study = dataclasses.replace(build_study(trials), curves=curves[trials["seed"] < 2])
    assert StudyContext(study).collapsed.iloc[-1].tolist() == [4, 2, 1, 50]
    assert "1 of 2 that were assessed, of 4 trials," in " ".join(list_warnings(StudyContext(study)))


def failures(trials: pd.DataFrame, numbers: list[int]) -> pd.DataFrame:
    return trials.assign(state=trials["state"].mask(trials["number"].isin(numbers), "FAIL"))


def test_failures_at_one_level_are_warned_of_and_scattered_ones_are_not() -> None:
    trials = make_trials(seeds=range(5))
    assert warn_of_failures(trials, {}) == ""
    # trials of one level follow each other: 0 to 4 are at MTD 5
    text = warn_of_failures(failures(trials, [0, 1, 2, 4]), {})
    assert text.startswith("Failures are concentrated in 1 level of MTD. ")
    assert "4 of 5 with MTD 5, against 4 of 40 in all" in text
    assert warn_of_failures(failures(trials, [0, 7, 14, 22]), {}) == ""
    assert warn_of_failures(failures(trials, list(range(40))), {}) == ""
    # without levels of MTD, by configuration
    trials = failures(trials, [0, 1, 2, 4]).assign(lr=trials["mtd"] / 5, mtd=0.0)
    text = warn_of_failures(trials, {"lr": RecordedSetting("lr")})
    assert text.startswith("Failures are concentrated in 1 configuration. ")
    assert "4 of 5 with lr 1, against 4 of 40 in all" in text
    # of a method, though its levels of MTD differ
    trials = trials.assign(method=np.where(trials["lr"] == 1, "a", "b"), mtd=trials["lr"])
    settings = {name: RecordedSetting(name) for name in ("lr", "method")}
    assert "4 of 5 with lr 1, method a" in warn_of_failures(trials, settings)


@pytest.mark.slow
def test_the_test_of_failures_rarely_warns_of_chance() -> None:
    trials = make_trials(seeds=range(10))
    rng = np.random.default_rng(1)
    warned = [
        warn_of_failures(failures(trials, rng.choice(80, size=12, replace=False).tolist()), {})
        != ""
        for _ in range(200)
    ]
    assert sum(warned) <= 14


def test_a_level_beyond_the_run_is_warned_of_and_not_counted_as_missing() -> None:
    trials = make_trials(decays=(0.5, 0.9, 0.995), times=(8,)).assign(steps=160)
    study = build_study(trials)
    [text] = [text for text in list_warnings(StudyContext(study)) if "eyond the run" in text]
    assert text == (
        "MTD 208 (η 0.995): 45 % of the momentum encoder's initial weights remain after 160 steps. "
        "Beyond the run, and taking no part in the verdict on MTD (beyond_run: keep adds them): "
        "MTD 208."
    )
    assert "excluded" not in " ".join(list_warnings(StudyContext(study)))


def test_a_level_beyond_the_run_is_warned_of_for_every_method() -> None:
    """ESimCSE's level is as far beyond the run as Contriever's, whose curve may not be drawn."""
    own = make_trials(decays=(0.9,), times=(8,)).assign(steps=320, method="mocose")
    others = [
        make_trials(decays=(decay,), times=(times,)).assign(steps=320, method=method)
        for decay, times, method in ((0.995, 2, "esimcse"), (0.9995, 64, "contriever"))
    ]
    trials = pd.concat([own, *others], ignore_index=True)
    study = build_study(trials.assign(number=np.arange(len(trials))))
    [text] = [text for text in list_warnings(StudyContext(study)) if "eyond the run" in text]
    assert "MTD 202 (η 0.995): 20 % of the momentum encoder's initial weights remain" in text
    assert "MTD 2064 (η 0.9995): 85 % of the momentum encoder's initial weights remain" in text


def test_runs_that_computed_differently_are_named_with_their_levels() -> None:
    trials = make_trials()
    environment = trials[["number"]].assign(
        precision="bfloat16", threads="1", Python="3.11.2", torch="2.13.0"
    )
    assert warn_of_environment(environment, trials) == ""
    assert warn_of_environment(environment.assign(processor=""), trials) == ""
    low = trials["mtd"] < 7
    environment["precision"] = np.where(low, "float32", "bfloat16")
    environment["torch"] = np.where(low, "2.14.0", environment["torch"])
    text = warn_of_environment(environment, trials)
    assert "precision (bfloat16 at MTD 7.67, 8, 8.67, 10.7, 12, 14.7; float32 at MTD 5, 6)" in text
    assert "torch (2.13.0 at MTD 7.67, 8, 8.67, 10.7, 12, 14.7; 2.14.0 at MTD 5, 6)" in text
    assert "Python" not in text
    assert "threads" not in text
    assert warnings_of(trials, environment=environment) == [text]


@pytest.mark.parametrize(
    ("used", "text"),
    [
        (["dev"], "chosen on the dev pairs"),
        (["last", "test"], "chosen on the TEST pairs or those of the last step"),
        ([None], "chosen by a rule that is not recorded"),
    ],
)
def test_how_checkpoints_were_chosen(used: list[str | None], text: str) -> None:
    study = build_study(make_trials().iloc[: len(used)].assign(select_on=used))
    own = dataclasses.replace(study, metric="mteb:mine")
    described = describe_splits(own)
    chosen = f"Checkpoints were {text}, and trials ranked by mteb:mine."
    assert chosen in described


def test_checkpoints_of_the_last_step_say_nothing_of_short_training() -> None:
    trials = make_trials(times=(1, 8)).assign(steps=160, best_step=160)
    assert count_best_at_end(trials)[0] == len(trials)
    assert count_best_at_end(trials.assign(select_on="last")) == (0, 0)
    # of one evaluation, the last, nothing follows
    assert count_best_at_end(trials.assign(evaluate_every=trials["steps"])) == (0, 0)
    assert count_best_at_end(trials.assign(evaluate_every=1))[0] == len(trials)


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
    trials = make_trials(times=(1, 8))
    warned = warnings_of(trials.assign(select_on=(chosen * 12)[: len(trials)]))
    stated = [note.replace("checkpoints", "Checkpoints were")] if note else []
    assert [text.partition(", so")[0] for text in warned] == stated


def test_pairs_that_are_left_out_or_in_both_splits_are_counted() -> None:
    left = "30 of 100 lines left out: 30 without a score"
    pairs = RecordedEvaluation("own", 70, 50, left_out={"dev": left}, shared=5)
    ran_with = dataclasses.replace(trained("texts"), evaluation=pairs)
    shown = warnings_of(make_trials(), environments=(ran_with,))
    assert shown == [
        "5 of 50 test pairs are dev pairs too. Checkpoints are chosen on dev pairs, so "
        "scores on these are too high.",
        f"Of the dev pairs' file {left}.",
    ]


def test_texts_that_are_their_own_negatives_are_told_with_mtd_in_epochs() -> None:
    trials = make_trials().assign(steps=160)
    often = dataclasses.replace(RecordedCorpus("own", 2000, "sentences", "0f"), repeated=0.0095)
    [shown] = warnings_of(trials, environments=(Environment(often),))
    assert "0.6 in its batch of 64 and" in shown
    assert shown.endswith("epochs of 2,000 sentences.")
    rare = dataclasses.replace(often, amount=1_000_000, repeated=1e-6)
    assert warnings_of(trials, environments=(Environment(rare),)) == []
    left_out = dataclasses.replace(rare, left_out="blank lines left out: 3 of 1,000,003")
    shown = warnings_of(trials, environments=(Environment(left_out),))
    assert shown == ["Of the training text blank lines left out: 3 of 1,000,003."]


def test_a_setting_that_goes_with_the_level_is_named() -> None:
    trials = make_trials()
    rates = {mtd: 1e-3 if mtd < 8 else 1e-2 for mtd in trials["mtd"]}
    text = "Levels of MTD do not have the same values of learning_rate: what differs between"
    tied = trials.assign(learning_rate=trials["mtd"].map(rates))
    # no rate is at all levels, and one level has two
    more = tied[tied["mtd"] == tied["mtd"].min()].assign(learning_rate=1e-2)
    for runs in (tied, pd.concat([tied, more.assign(number=more["number"] + 1000)])):
        assert [found.startswith(text) for found in warnings_of(runs)].count(True) == 1
    crossed = pd.concat([trials.assign(learning_rate=rate) for rate in (1e-3, 1e-2)])
    free = warnings_of(crossed.assign(number=range(len(crossed))))
    assert not any("do not have the same values" in warning for warning in free)


def test_failures_of_a_named_configuration_are_told_by_its_name() -> None:
    trials = pd.DataFrame(
        {
            "number": range(20),
            "state": ["FAIL"] * 4 + ["COMPLETE"] * 16,
            "mtd": np.nan,
            "lr": np.repeat([1.0, 2.0, 3.0, 4.0], 5),
        }
    )
    settings, named = {"lr": RecordedSetting("lr")}, dict.fromkeys(range(5), "high rate")
    assert "4 of 5 with high rate," in warn_of_failures(trials, settings, named)
    assert "4 of 5 with lr 1," in warn_of_failures(trials, settings)


def test_methods_that_differ_in_other_settings_cannot_be_told_from_these() -> None:
    trials = make_trials(seeds=range(3), decays=(0.9,), times=(8,))
    other = trials.assign(method="b", number=trials["number"] + 50, learning_rate=2e-3)
    both = pd.concat([trials.assign(method="a", learning_rate=1e-3), other], ignore_index=True)
    plain = "A difference of methods cannot be told from that of the other settings in which they"
    [warning] = [text for text in warnings_of(both) if text.startswith(plain)]
    assert warning.endswith(" differ. These are learning rate.")
    # of a setting that one method alone has, and without a difference, nothing is said
    alone = both.assign(learning_rate=[*[np.nan] * 3, *[1e-3] * 3])
    for trials in (alone, both.assign(learning_rate=1e-3)):
        assert not [text for text in warnings_of(trials) if text.startswith(plain)]
