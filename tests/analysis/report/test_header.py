"""The answer in full sentences, the terms, and cells of tables."""

import dataclasses

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import RecordedSetting
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.report.cells import format_count, make_table, number
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.summary import list_terms, summarise_study
from tests.analysis.conftest import build_study, make_trials


def test_the_summary_is_the_answer_and_the_effect_of_training() -> None:
    trials = make_trials()
    verdict, training = summarise_study(StudyContext(build_study(trials)))
    assert verdict.startswith(
        "The score peaks between MTD 8 and 10.7. MTD 8.67, the highest mean, minus MTD 14.7, "
    )
    assert "3 seeds, 8 levels, MTD 5 to 14.7. " in verdict
    mean = trials["score"].mean()
    assert f"from 30.00 to {mean:.2f} ({mean - 30:+.2f} points)" in training
    unknown = build_study(trials.assign(score_before=np.nan))
    assert "was not recorded" in summarise_study(StudyContext(unknown))[1]


def test_terms_are_settings_as_they_are_declared() -> None:
    study = build_study(make_trials().assign(augmentation=["none", "typos:0.1"] * 12, steps=9))
    declared = {
        "augmentation": RecordedSetting("augmentation", description="joined with `+`"),
        "queue_size": RecordedSetting("queue_size", "K", description="keys of earlier batches"),
        "steps": RecordedSetting("steps", description="training steps"),
    }
    terms = list_terms(dataclasses.replace(study, settings={**study.settings, **declared}))
    assert list(terms) == ["MTD", "queue_size K", "augmentation", "seed", "score"]
    assert terms["queue_size K"] == "Keys of earlier batches."
    assert terms["augmentation"] == "Joined with +."
    assert terms["score"] == "sts_average, in points; higher is better."


def test_cells_are_written_to_be_read() -> None:
    frame = pd.DataFrame(
        {"mtd": [26 / 3, np.nan], "score": [12.345, np.inf], "reason": ["a\x07b", None]}
    )
    table = make_table(frame, caption="")
    assert table.rows == (("8.67", "12.35", "a\N{REPLACEMENT CHARACTER}b"), ("–", "–", "–"))
    assert [column.numeric for column in table.columns] == [True, True, False]


def test_counts_that_are_the_same_in_all_rows_stand_in_the_caption() -> None:
    frame = pd.DataFrame({"mtd": [5, 6], "n": [4, 4], "seeds": [4, 4], "mean": [1.0, 2.0]})
    table = make_table(frame, caption="Means.")
    assert [column.label for column in table.columns] == ["MTD", "mean"]
    assert table.caption == "Means. Each row: 4 seeds."
    several = make_table(frame.assign(n=8), caption="Means.")
    assert several.caption == "Means. Each row: 8 trials, 4 seeds."
    uneven = make_table(frame.assign(n=[4, 3], seeds=[4, 3]), caption="Means.")
    assert [column.label for column in uneven.columns] == ["MTD", "seeds", "mean"]
    assert uneven.caption == "Means."


def test_words_and_numbers() -> None:
    assert format_count(1, "run") == "1 run"
    assert format_count(1200, "run") == "1,200 runs"
    assert number(5e-9) == "5e-9"
    assert clean("x" * 300, most=5) == "xxxx…"
