"""The choice of nuisance values on a page, in the status and beside the page."""

from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest

from mtdlab.analysis.data.frames import NuisanceTrials, StudyFrames
from mtdlab.analysis.data.stored_frames import from_parquet, to_parquet
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.study_facts import describe_status
from mtdlab.analysis.report.summary import list_rows
from mtdlab.analysis.report.topics import conditions, tuning
from mtdlab.analysis.report.warnings import list_caveats, list_warnings
from tests.analysis.conftest import build_study, make_trials, report_of

RATES = (0.001, 0.002, 0.004)
DECAYS = (0.5, 0.9)


def tuned(*, chosen: dict[float, float], per: tuple[str, ...] = ()) -> StudyFrames:
    """A study of two decays whose learning rates were chosen with the seeds 8 and 9."""
    study = build_study(make_trials(seeds=(0, 1), decays=DECAYS, times=(2,)))
    reported = study.trials.assign(learning_rate=study.trials["ema_decay"].map(chosen))
    own = study.trials.drop_duplicates("ema_decay")
    rows = [
        own.assign(seed=seed, learning_rate=rate, selected=own["score"] + 100 * rate)
        for seed in (8, 9)
        for rate in RATES
    ]
    trials = pd.concat(rows, ignore_index=True)
    group = trials["ema_decay"].astype("str")
    trials = trials.assign(number=range(100, 100 + len(trials)), group=group, configuration=group)
    values = {str(decay): {"learning_rate": rate} for decay, rate in chosen.items()}
    choice = NuisanceTrials(("learning_rate",), per, len(trials), values, trials)
    return replace(study, trials=reported, tuning=choice, select_by="sts_dev")


@pytest.mark.usefixtures("figures_not_drawn")
def test_every_tried_value_is_on_the_page_and_no_condition(tmp_path: Path) -> None:
    study = tuned(chosen={0.5: 0.004, 0.9: 0.002})
    _, html = report_of(study, tmp_path, tuning.TOPIC, conditions.TOPIC)
    assert "highest mean sts_dev, over seeds that only the choice has (8, 9)" in html
    assert "differences at their chosen values" in html
    assert "16 of 16 trials (12 that choose nuisance settings) complete, none failed" in html
    # the LaTeX table names the rows by all that was chosen
    assert "learning rate 0.004" not in html.split("Results table")[0]
    table = pd.read_csv(tmp_path / "tables" / "tuning.csv")
    assert table["group"].tolist() == ["EMA decay 0.5"] * 3 + ["EMA decay 0.9"] * 3
    assert table.loc[table["chosen"], "learning_rate"].tolist() == [0.004, 0.002]
    # 100 points for each unit of the rate
    assert table["difference"].tolist() == pytest.approx([-0.3, -0.2, 0.0] * 2)
    assert conditions.build(StudyContext(study)) is None


def test_what_is_claimed_is_a_difference_at_the_chosen_values() -> None:
    context = StudyContext(tuned(chosen={0.5: 0.002, 0.9: 0.002}))
    caveat = (
        "Each learning rate was chosen on dev data by 2 other seeds, so a difference may come from "
        "the choice."
    )
    assert caveat in list_caveats(context)
    [whole] = [text for text in list_warnings(context) if text.startswith(caveat)]
    assert "in up to 28 % of studies with 2 seeds to choose by" in whole


@pytest.mark.parametrize(
    ("per", "groups"), [((), "configurations"), (("ema_decay",), "values of EMA decay")]
)
def test_a_choice_at_the_end_of_its_range_is_a_caveat_of_the_first_screen(
    per: tuple[str, ...], groups: str
) -> None:
    context = StudyContext(tuned(chosen={0.5: 0.004, 0.9: 0.002}, per=per))
    first = f"The chosen learning rate is the lowest or highest value tried for 1 of 2 {groups}."
    assert first in list_caveats(context)
    [whole] = [text for text in list_warnings(context) if text.startswith(first)]
    assert whole.endswith("A value beyond the range may suit it better.")


def test_every_tried_value_is_in_the_rows_of_the_terminal() -> None:
    study = tuned(chosen={0.5: 0.004, 0.9: 0.004}, per=("ema_decay",))
    told = "learning_rate 0.001{0}; learning_rate 0.002{0}; learning_rate 0.004{1}"
    for_none, for_all = (f": chosen for {count} of 2 values of ema_decay" for count in (0, 2))
    assert list_rows(StudyContext(study))["nuisance"] == told.format(for_none, for_all)
    assert study.tuning is not None
    before = replace(study, tuning=replace(study.tuning, chosen={}))
    assert list_rows(StudyContext(before))["nuisance"] == told.format("", "")
    none = replace(study.tuning, trials=study.tuning.trials[:0])
    assert list_rows(StudyContext(replace(study, tuning=none)))["nuisance"] == ""


def test_a_group_is_named_by_the_setting_that_shares_its_choice() -> None:
    study = tuned(chosen={0.5: 0.002, 0.9: 0.002}, per=("ema_decay",))
    contents = tuning.build(StudyContext(study))
    assert contents is not None
    assert {*contents.csv["tuning"]["group"]} == {"EMA decay 0.5", "EMA decay 0.9"}
    assert "chosen for each value of ema_decay before" in contents.text[0]


def test_the_data_beside_a_page_have_the_choice(tmp_path: Path) -> None:
    study = tuned(chosen={0.5: 0.002, 0.9: 0.004})
    for name, content in to_parquet(study, generated="today").items():
        (tmp_path / name).write_bytes(content)
    again, _ = from_parquet(tmp_path)
    assert study.tuning is not None
    assert again.tuning is not None
    pd.testing.assert_frame_equal(again.tuning.trials, study.tuning.trials)
    assert replace(again.tuning, trials=study.tuning.trials) == replace(
        study.tuning, trials=study.tuning.trials
    )
    assert describe_status(again).text == describe_status(study).text
