"""What stands above the topics of a report: status, settings, summary and warnings."""

import dataclasses
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

from analysis.frames import Setting, StudyFrames
from analysis.report.cells import clean, make_table, number
from analysis.report.context import StudyContext
from analysis.report.header import (
    describe_settings,
    describe_status,
    list_terms,
    list_warnings,
    summarise_study,
)
from analysis.report.text import count

MakeTrials = Callable[..., pd.DataFrame]
MakeStudy = Callable[..., StudyFrames]


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


def test_levels_excluded_from_the_verdict_are_counted(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of()
    here = trials["mtd"].eq(trials.loc[4, "mtd"])
    trials.loc[here & trials["seed"].ne(trials.loc[4, "seed"]), "state"] = "FAIL"
    assert "1 level of MTD with a score excluded" in warnings_of(study_of(trials))


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
    sentence = f"Only {name} varies in this study, so its effect and that of MTD cannot be"
    assert (sentence in said) if name else ("Only" not in said)


def test_synthetic_data_are_named(trials_of: MakeTrials, study_of: MakeStudy) -> None:
    study = study_of(trials_of())
    facts = {"corpus": "builtin: 9 sentences", "evaluation": "STS-B"}
    real_pairs = warnings_of(dataclasses.replace(study, facts=facts))
    assert real_pairs == "The training text is synthetic (the built-in data set)."
    own = {"corpus": "wiki.txt", "evaluation": "builtin"}
    assert warnings_of(dataclasses.replace(study, facts=own)) == ""


def test_the_summary_is_three_sentences_with_their_numbers(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    trials = trials_of()
    verdict, runs, training = summarise_study(StudyContext(study_of(trials)))
    assert verdict.startswith("The score peaks inside the range: at MTD 8.667")
    assert runs == (
        "24 runs completed with a score, at 8 levels of MTD from 5 to 14.667, with 3 seeds."
    )
    mean = trials["score"].mean()
    assert f"from 30.00 to {mean:.2f} ({mean - 30:+.2f} points)" in training
    unknown = study_of(trials.assign(score_before=np.nan))
    assert "was not recorded" in summarise_study(StudyContext(unknown))[2]


def test_the_status_says_what_is_to_come(trials_of: MakeTrials, study_of: MakeStudy) -> None:
    trials = trials_of()
    assert describe_status(study_of(trials)) == "24 of 24 planned runs completed."
    trials.loc[0, "state"] = "RUNNING"
    trials.loc[1, "state"] = "FAIL"
    assert describe_status(study_of(trials, planned=30)) == (
        "Still running: 22 of 30 planned runs completed, 1 failed, 1 running now, 6 to come."
    )


def test_settings_are_listed_with_their_values(trials_of: MakeTrials, study_of: MakeStudy) -> None:
    settings = describe_settings(study_of(trials_of(times=range(1, 21))))
    assert settings == {
        "ema_decay": "0.75, 0.85",
        "queue_size": "20 values from 64 to 1280",
        "seed": "0, 1, 2",
    }


def test_terms_are_settings_as_they_are_declared(
    trials_of: MakeTrials, study_of: MakeStudy
) -> None:
    study = study_of(trials_of().assign(augmentation=["none", "typos:0.1"] * 12, steps=9))
    declared = {
        "augmentation": Setting("augmentation", description="joined with `+`"),
        "queue_size": Setting("queue_size", "K", description="keys of earlier batches"),
        "steps": Setting("steps", description="training steps"),
    }
    terms = list_terms(dataclasses.replace(study, settings={**study.settings, **declared}))
    assert list(terms) == ["MTD", "queue_size K", "augmentation", "seed", "score"]
    assert terms["queue_size K"] == "Keys of earlier batches."
    assert terms["augmentation"] == "Joined with +."
    assert terms["score"] == "sts_average, x 100; higher is better."


def test_cells_are_written_to_be_read() -> None:
    frame = pd.DataFrame(
        {"mtd": [26 / 3, np.nan], "score": [12.345, np.inf], "reason": ["a\x07b", None]}
    )
    table = make_table(frame, caption="")
    assert table.rows == (("8.667", "12.35", "a\N{REPLACEMENT CHARACTER}b"), ("–", "–", "–"))
    assert [column.numeric for column in table.columns] == [True, True, False]


def test_words_and_numbers() -> None:
    assert count(1, "run") == "1 run"
    assert count(1200, "run") == "1,200 runs"
    assert number(5e-9) == "5e-9"
    assert clean("x" * 300, most=5) == "xxxx…"
