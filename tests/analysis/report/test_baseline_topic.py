"""The baseline on a page: its difference on the first screen, its band, its trials."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis import figures
from mtdlab.analysis.data.frames import Baseline, StudyFrames
from mtdlab.analysis.data.stored_frames import from_parquet
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.headline import build_headline
from mtdlab.analysis.report.study_facts import describe_status
from mtdlab.analysis.report.topics import baseline, configurations, score, trials
from mtdlab.analysis.report.topics.baseline import compare_baseline
from mtdlab.analysis.statistics.best_trial import compute_choices
from mtdlab.analysis.statistics.contrasts import compare_trials
from tests.analysis.conftest import build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def beside(scores: dict[int, float], **columns: Any) -> StudyFrames:
    """A study of three seeds with a SimCSE baseline whose seeds have these scores."""
    study = build_study(make_trials(seeds=range(3), times=[1, 2, 4]))
    own = pd.DataFrame({"number": range(100, 100 + len(scores)), "seed": list(scores)})
    own = own.assign(score=list(scores.values()), state="COMPLETE", reason="", wall_seconds=3.0)
    own = own.reindex(columns=study.trials.columns).assign(method="simcse", **columns)
    return replace(study, baseline=Baseline({"method": "simcse"}, 3, own))


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_first_screen_states_the_difference_to_the_recommended_configuration(
    tmp_path: Path,
) -> None:
    study = beside({0: 60.0, 1: 61.0, 2: 62.0})
    report, html = report_of(study, tmp_path, score.TOPIC, baseline.TOPIC, trials.TOPIC)
    found = report.baseline
    best = study.trials.groupby(["ema_decay", "queue_size"])["score"].mean().max()
    assert found.difference.mean == pytest.approx(61.0 - best)
    assert found.difference.low < found.difference.mean < found.difference.high
    head = f"Baseline, SimCSE without a queue: {61.0 - best:+.2f} points against the configuration"
    assert found.sentence.startswith(head)
    assert "it holds for all 6 configurations at once). Its mean sts_average is 61.00." in html
    assert html.count("Baseline, SimCSE without a queue") == 1
    assert "18 of 21 trials" not in html
    assert "21 of 21 trials (3 of the baseline) complete, none failed" in html
    # ranked with the others: its trials are the best, its mean is the highest
    rows = [html.index(f'id="trial-{number}"') for number in (102, 101, 100, 0)]
    assert rows == sorted(rows)
    table = pd.read_csv(tmp_path / "tables" / "baseline.csv")
    assert table["role"].tolist() == ["baseline", *["search"] * 6]
    assert table["mean"].is_monotonic_decreasing
    assert table["difference"].isna().tolist() == [True, *[False] * 6]
    assert table["difference"].iloc[1] == pytest.approx(found.difference.mean)
    listed = pd.read_csv(tmp_path / "tables" / "trials.csv")
    assert (listed["role"] == "baseline").sum() == 3
    again = compare_baseline(StudyContext(study))
    assert again is not None
    assert again.sentence == found.sentence


@pytest.mark.parametrize(
    ("scores", "label", "step"),
    [
        ({0: 60.0, 1: 61.0, 2: 62.0}, "Recommended configuration: the baseline", "Keep the base"),
        ({0: 60.0, 1: 30.0, 2: 62.0}, "Highest mean of the search, below the baseline's", ""),
        ({0: 20.0, 1: 21.0, 2: 22.0}, "", ""),
    ],
)
def test_what_loses_to_the_baseline_is_not_recommended_or_confirmed(
    scores: dict[int, float], label: str, step: str
) -> None:
    study = beside(scores)
    shown, alone = (
        build_headline(StudyContext(each)) for each in (study, replace(study, baseline=None))
    )
    for headline in (shown, alone):
        assert headline.recommendation is not None
        assert headline.next_step is not None
    assert shown.recommendation.label == (label or alone.recommendation.label)
    is_baseline = label.startswith("Recommended")
    assert (shown.recommendation.settings == {"method": "simcse"}) == is_baseline
    assert shown.next_step.text.startswith(step)
    assert (shown.next_step == alone.next_step) == (not is_baseline)
    assert ("confirm" in shown.next_step.command) == ("confirm" in alone.next_step.command) or step


def test_the_best_trial_and_the_highest_mean_may_be_those_of_the_baseline() -> None:
    study = beside({0: 60.0, 1: 61.0, 2: 62.0})
    best = compute_choices(study).iloc[0]
    assert (best["number"], best["n"]) == (102, 21)
    [table] = trials.BEST.build(StudyContext(study)).tables
    assert table.rows[0][1] == "102"
    rate = study.trials.assign(learning_rate=[1e-3, 1e-2, 1e-4] * 6, mtd=5.0, ema_decay=0.5)
    rate = rate.assign(queue_size=64, seed=[0, 0, 0, 1, 1, 1, 2, 2, 2] * 2).head(9)
    context = StudyContext(replace(study, trials=rate))
    assert " of the search" in context.best.answer.heading
    table = configurations.show_ranked(context, context.best.table, "configurations")
    place = [column.label for column in table.columns].index("first trial")
    assert next(row[place] for row in table.rows) == "100"
    assert "Trial 100 is of the baseline" in table.caption
    drawing = configurations.draw_ranked(context, context.best.table, title="")
    _, ax = plt.subplots()
    drawing.panels[0][1](ax)
    assert ax.get_yticklabels()[0].get_text().startswith("baseline, SimCSE")
    # the bars are those of the differences to the best, at the line of its mean
    best, bars = context.best.ranked, ax.collections[0].get_segments()
    line = float(np.unique(ax.lines[0].get_xdata()).item())
    assert line == pytest.approx(best["mean"].iloc[0])
    ends = np.array([bar[:, 0] for bar in bars if np.isfinite(bar).all() and len(bar)])
    expected = line + best[["difference_low", "difference_high"]].to_numpy(dtype=np.float64)
    assert ends == pytest.approx(expected[1:])
    assert "a section of their own" in drawing.caption
    plt.close("all")


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn")
def test_the_page_is_made_again_from_its_data(tmp_path: Path) -> None:
    study = beside({0: 60.0, 1: 61.0})
    _, html = report_of(study, tmp_path / "one", baseline.TOPIC)
    stored, _ = from_parquet(tmp_path / "one" / "data")
    assert report_of(stored, tmp_path / "two", baseline.TOPIC)[1] == html


@pytest.mark.parametrize(
    ("scores", "columns", "sentence"),
    [
        ({}, {}, "no trial is complete with a score yet."),
        ({0: np.nan}, {"state": "FAIL"}, "no trial is complete with a score yet; 1 trial failed."),
        ({0: 60.0}, {}, "(1 common seed: no interval). Its mean sts_average is 60.00."),
        ({7: 60.0}, {}, "no seed in common with the configurations of the search."),
    ],
)
def test_what_is_not_known_is_said(
    scores: dict[int, float], columns: dict[str, Any], sentence: str
) -> None:
    found = compare_baseline(StudyContext(beside(scores, **columns)))
    assert found is not None
    assert sentence in found.sentence
    assert not np.isfinite(found.difference.low)


def test_failed_and_waiting_trials_of_it_are_those_of_the_study() -> None:
    status = describe_status(beside({0: np.nan}, state="FAIL", reason="the loss is nan"))
    assert (status.kind, status.failures) == ("paused", ("1 trial failed: the loss is nan",))
    assert status.text == "18 of 21 trials (3 of the baseline) complete, 1 failed, 2 waiting"
    assert "--retry-failed" in status.retry


def test_a_trial_of_the_search_is_compared_with_it() -> None:
    study = beside({0: 60.0, 1: 61.0, 2: 62.0})
    study = replace(study, trials=study.trials.assign(method="mocose"))
    found = compare_trials(study, 0, 101)
    of_search = study.trials[study.trials["mtd"] == study.trials["mtd"].iloc[0]]
    expected = of_search.sort_values("seed")["score"].to_numpy() - [60.0, 61.0, 62.0]
    assert found.table["difference"].to_numpy() == pytest.approx(expected)
    assert found.settings["method"] == ("mocose", "simcse")
    with pytest.raises(ValueError, match="trials 100 and 102 of study mtd are of one config"):
        compare_trials(study, 100, 102)


def test_the_band_is_drawn_whole_with_its_name_unless_it_would_dwarf_the_curve() -> None:
    for low, high, reaches in ((44.0, 52.0, True), (0.0, 100.0, False)):
        _, ax = plt.subplots()
        ax.set_ylim(20, 40)
        figures.draw_baseline("SimCSE", Estimate(48.0, low, high), ax)
        bottom, top = ax.get_ylim()
        assert [text.get_text() for text in ax.texts] == ["baseline, SimCSE: 48.00"]
        assert bottom <= 20
        assert top > 48
        assert (top > high) == reaches
    plt.close("all")


def test_a_name_that_would_leave_the_axes_is_left_to_the_page() -> None:
    _, ax = plt.subplots()
    figures.draw_baseline("SimCSE, learning_rate 0.0001 without a queue", Estimate(48.0), ax)
    assert [text.get_text() for text in ax.texts] == ["baseline: 48.00"]
    plt.close("all")


def test_the_curve_has_it_as_a_band_and_says_so() -> None:
    context = StudyContext(beside({0: 60.0, 1: 61.0, 2: 62.0}))
    drawing = score.draw(context)
    assert drawing is not None
    assert "The horizontal band is the baseline" in drawing.caption
    _, ax = plt.subplots()
    drawing.panels[0][1](ax)
    assert ax.get_ylim()[1] > 61
    assert any("baseline: 61.00" in text.get_text() for text in ax.texts)
    plt.close("all")
