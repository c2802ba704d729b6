"""Comparison of methods, checked with values by hand."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.runs import varied_settings
from mtdlab.analysis.inference.shapes import compare_columns
from mtdlab.analysis.questions.best import BestQuestion
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.study_facts import list_varied
from mtdlab.analysis.report.summary import summarise_study
from mtdlab.analysis.report.topics import TOPICS, representation
from mtdlab.analysis.report.topics import methods as topic
from mtdlab.analysis.report.topics import trials as trials_topic
from mtdlab.analysis.report.warnings import list_warnings
from mtdlab.analysis.statistics.methods import (
    compute_method_properties,
    compute_methods,
    compute_paths,
    select_curve_trials,
)
from mtdlab.analysis.statistics.multi_study import compute_curves
from tests.analysis.conftest import SETTINGS, build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


@pytest.fixture(scope="module")
def mixed() -> pd.DataFrame:
    """MoCoSE at MTD 5 and 8, "queued" at 8, "plain" and "bare" without an MTD; 3 seeds each."""
    trials = make_trials(decays=(0.75,), times=(1, 4, 4, 1, 1), noise=0)
    names = ["mocose", "mocose", "queued", "plain", "bare"]
    trials["method"] = np.repeat(names, 3)
    trials.loc[trials["method"] == "plain", "mtd"] = 0.0
    trials.loc[trials["method"] == "bare", "mtd"] = np.nan
    # by seed: differences of "plain" to the best, MoCoSE at 8, are 1, 2 and 3 points
    trials["score"] = np.repeat([30.0, 40.0, 20.0, 40.0, 10.0], 3)
    trials.loc[trials["method"] == "plain", "score"] -= [1, 2, 3]
    return trials


def methods_of(trials: pd.DataFrame) -> pd.DataFrame:
    return compute_methods(build_study(trials), trials)


def test_a_row_for_each_method_and_level(mixed: pd.DataFrame) -> None:
    table = methods_of(mixed)
    assert table["method"].tolist() == ["bare", "mocose", "mocose", "plain", "queued"]
    np.testing.assert_array_equal(table["mtd"], [np.nan, 5, 8, np.nan, 8])
    assert table["mean"].tolist() == pytest.approx([10, 30, 40, 38, 20])
    assert (table["n"] == 3).all()
    np.testing.assert_allclose(table["difference"], [-30, -10, np.nan, -2, -20])
    scores = np.array([[10.0, 30, 40, 39 - seed, 20] for seed in range(3)])
    found = compare_columns(scores, 2, 0.05)
    assert table["difference_low"][3] == pytest.approx(found[3, 1])
    assert table["difference_high"][3] == pytest.approx(found[3, 2])


def test_differences_are_over_common_seeds(mixed: pd.DataFrame) -> None:
    part = mixed[(mixed["method"] != "plain") | (mixed["seed"] == 2)]
    row = methods_of(part).set_index("method").loc["plain"]
    assert row["difference"] == pytest.approx(-3)
    assert np.isnan(row["difference_low"])


def test_the_presets_that_methods_ran_with_are_named(mixed: pd.DataFrame) -> None:
    def presets_of(presets: object) -> list[str]:
        study = build_study(mixed.assign(preset=presets))
        context = StudyContext(study)
        return [text for text in context.best.describe() if "reset" in text]

    assert presets_of("paper") == ["Presets: paper (every method)."]
    several = np.where(mixed["method"] == "plain", "published-code", "intended")
    assert presets_of(several) == [
        "Presets: intended (MoCoSE, bare, queued), published-code (plain)."
    ]
    assert presets_of(None) == []


def test_geometry_and_duration_by_method(mixed: pd.DataFrame) -> None:
    runs = mixed.assign(steps=10, batch_size=50, alignment=0.25)
    runs["wall_seconds"] = np.where(runs["method"] == "bare", 2.0, 1.0) + runs["seed"]
    # two equal singular values: effective rank 2; one: 1
    index = pd.MultiIndex.from_product([runs["number"], ["before", "after"]])
    spectra = pd.DataFrame([[1.0, 1.0], [1.0, 0.0]] * len(runs), index=index)
    runs["peak_memory"] = np.where(runs["method"] == "bare", 9e8, 6e8)
    spectra.loc[(runs["number"].iloc[-1], "after")] = [3.0, 3.0]
    study = dataclasses.replace(build_study(runs), spectra=spectra)
    found = compute_method_properties(study).set_index(["measure", "method"])
    seconds = found.loc["seconds per 1,000 sentences"]
    first = sorted(runs["seed"].unique())
    assert seconds.loc["plain", "mean"] == pytest.approx(2 * (1 + np.mean(first)))
    # constant over the seeds: an interval of width 0
    expected = [2.0, 2.0, 2.0]
    assert seconds.loc["bare", ["difference", "difference_low", "difference_high"]].tolist() == (
        pytest.approx(expected)
    )
    assert found.loc[("effective rank", "plain"), "mean"] == pytest.approx(1)
    assert found.loc[("effective rank", "bare"), "mean"] == pytest.approx(4 / 3)
    assert found.loc[("alignment", "queued"), "mean"] == pytest.approx(0.25)
    memory = found.loc["peak memory, MB"]
    assert memory.loc["bare", ["mean", "difference"]].tolist() == pytest.approx([900, 300])
    assert len(found) == 5 * 5
    # of one run alone no peak is known
    runs.loc[runs.index[0], "peak_memory"] = np.nan
    bare = dataclasses.replace(build_study(runs.drop(columns="steps")), spectra=spectra.iloc[:0])
    without = compute_method_properties(bare)
    assert set(without["measure"]) == {"alignment", "uniformity"}


def test_one_method_is_no_comparison(mixed: pd.DataFrame) -> None:
    assert methods_of(make_trials()).empty
    assert methods_of(make_trials().assign(method=None)).empty
    alone = mixed.assign(state=mixed["state"].where(mixed["method"] == "plain", "FAIL"))
    assert methods_of(alone).empty


def test_one_curve_is_of_one_method(mixed: pd.DataFrame) -> None:
    assert set(select_curve_trials(mixed, SETTINGS)["method"]) == {"mocose"}
    one = mixed[mixed["method"] != "queued"]
    assert select_curve_trials(one, SETTINGS) is one


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_page_compares_methods_and_says_whose_the_curve_is(
    mixed: pd.DataFrame, tmp_path: Path
) -> None:
    study = build_study(mixed)
    _, page = report_of(study, tmp_path, topic.TOPIC)
    assert "<h1>MoCoSE at MTD 8 " in page
    assert " of 4 other configurations " in page
    cells = [" ".join(re.sub("<[^>]*>", " ", row).split()) for row in page.split("<tr>")]
    assert any(row.startswith("plain – ") and " 38.00 " in row for row in cells)
    assert any(row.startswith("queued 8 ") and " 20.00 " in row for row in cells)
    table = pd.read_csv(tmp_path / "tables" / "methods.csv")
    assert table["mtd"].isna().sum() == 2
    assert "the verdict on it is of MoCoSE alone" in " ".join(list_warnings(StudyContext(study)))


def test_one_level_beside_methods_has_no_section_over_mtd(mixed: pd.DataFrame) -> None:
    over_mtd = {"score", "geometry", "spectra"}
    for trials, expected in ((mixed, over_mtd), (mixed[mixed["mtd"] != 5], set())):
        context = StudyContext(build_study(trials))
        shown = {topic.name for topic in TOPICS if topic.build(context) is not None}
        assert shown & over_mtd == expected
        assert "methods" in shown
        assert ("So are the curves over MTD" in " ".join(list_warnings(context))) == bool(expected)


def test_the_figure_says_that_one_learning_rate_served_all(mixed: pd.DataFrame) -> None:
    def caption_of(trials: pd.DataFrame) -> str:
        return topic.build(StudyContext(build_study(trials))).figures["methods"].caption

    text = "One learning rate, 0.001, served all methods; the study tuned it for none of them"
    assert text in caption_of(mixed.assign(learning_rate=0.001))
    for rates in ([0.001, 3e-5], [0.001, np.nan], ["fast"]):
        given = (rates * len(mixed))[: len(mixed)]
        assert text not in caption_of(mixed.assign(learning_rate=given)), rates
    assert "learning rate" not in caption_of(mixed.drop(columns="learning_rate", errors="ignore"))


def test_significance_is_stated_by_the_interval(mixed: pd.DataFrame) -> None:
    def count_worse(trials: pd.DataFrame) -> str:
        context = StudyContext(build_study(trials))
        return context.best.describe()[0]

    trials = mixed[mixed["method"].isin(["mocose", "plain"]) & (mixed["seed"] > 0)]
    assert count_worse(trials).startswith("1 of 2 other configurations is significantly worse")
    clear = trials.assign(score=trials["score"] - 100 * (trials["method"] == "plain"))
    assert count_worse(clear).startswith("2 of 2 other configurations are significantly")


@pytest.mark.usefixtures("figures_not_drawn")
def test_without_any_mtd_methods_are_rows(mixed: pd.DataFrame, tmp_path: Path) -> None:
    trials = mixed[mixed["method"].isin(["plain", "bare"])]
    written, page = report_of(build_study(trials), tmp_path, topic.TOPIC)
    assert sorted(path.name for path in written.figures) == ["methods.png", "methods.svg"]
    assert "Score by method" in page


def test_parts_of_a_study_of_methods_are_drawn_apart(mixed: pd.DataFrame) -> None:
    study = dataclasses.replace(build_study(mixed), name="methods")
    curves = compute_curves([study])
    found = list(zip(curves["study"], curves["mtd"], strict=True))
    assert found == [
        ("methods: bare", 0),
        ("methods: MoCoSE", 5),
        ("methods: MoCoSE", 8),
        ("methods: plain", 0),
        ("methods: queued", 8),
    ]


def test_a_setting_varies_where_a_method_has_it() -> None:
    trials = pd.DataFrame(
        {
            "method": ["mocose", "mocose", "simcse"],
            "queue_size": [512, 512, np.nan],
            "queue_slice": ["all", "all", ""],
            "prediction_dim": [np.nan, 256, np.nan],
            "dropout": [0.1, 0.1, 0.2],
        }
    )
    assert varied_settings(trials, list(trials)) == ["method", "prediction_dim", "dropout"]
    without = trials.drop(columns="method")
    assert varied_settings(without, ["queue_size"]) == ["queue_size"]


@pytest.mark.usefixtures("figures_not_drawn")
def test_runs_without_the_settings_of_the_others_are_in_no_row_of_them(tmp_path: Path) -> None:
    queued = make_trials(times=(1, 8), noise=0).assign(method="mocose", fgsm_epsilon=0.0)
    plain = queued.head(3).assign(
        number=[12, 13, 14], method="simcse", queue_slice="", score=[10.0, 11.0, 12.0]
    )
    lacking = ["ema_decay", "queue_size", "initial_queue_size", "fgsm_epsilon", "mtd"]
    plain[lacking] = np.nan
    study = build_study(pd.concat([queued, plain], ignore_index=True))
    declared = {
        name: dataclasses.replace(study.settings[name], default=default)
        for name, default in (("ema_decay", 0.85), ("queue_size", 512), ("queue_slice", "all"))
    }
    study = dataclasses.replace(study, settings={**study.settings, **declared})
    written, page = report_of(study, tmp_path)
    tables = {path.stem: pd.read_csv(path) for path in written.tables}
    assert tables["ema_decay"]["ema_decay"].tolist() == [0.75, 0.85]
    assert tables["ema_decay"]["n"].tolist() == [6, 6]
    assert not {"augmentation", "fgsm_epsilon", "queue_slices"} & set(tables)
    recorded = tables["trials"].set_index("number")
    assert recorded.loc[12:, lacking].isna().all(axis=None)
    assert list_varied(study) == {
        "ema_decay η": "0.75, 0.85",
        "queue_size K": "64, 512",
        "method": "mocose, simcse",
        "seed": "0, 1, 2",
    }
    *_, rows = trials_topic.build(StudyContext(study)).tables
    headings = [column.label for column in rows.columns]
    assert "queue_slice" not in headings
    first = ["trial", "score", "state", "seed", "ema_decay η", "queue_size K", "method"]
    assert headings[:7] == first
    row = next(row for row in rows.rows if row[0] == "12")
    assert row[:7] == ("12", "10.00", "COMPLETE", "0", "–", "–", "simcse")
    rows = [row for row in page.split("<tr>") if "<bdi>SimCSE</bdi>" in row]
    assert any(">11.00<" in row for row in rows)


def test_the_summary_compares_methods_where_mtd_does_not_vary(mixed: pd.DataFrame) -> None:
    one_level = mixed[(mixed["mtd"].isna()) | (mixed["mtd"] == mixed["mtd"].min())]
    context = StudyContext(build_study(one_level))
    found = context.answer
    assert isinstance(found.topic, BestQuestion)
    assert found.topic.is_of_methods
    assert "MTD" not in found.heading
    assert "significantly worse than the best" in summarise_study(context)[0]


def test_the_question_is_that_of_methods_where_mtd_varies_too(mixed: pd.DataFrame) -> None:
    context = StudyContext(build_study(mixed))
    summary = summarise_study(context)
    assert "significantly worse than the best" in summary[0]
    assert context.verdict.sentence in summary[1:]
    answer = context.answer
    assert isinstance(answer.topic, BestQuestion)
    assert answer.topic.is_of_methods
    assert answer.heading.split(" ")[:3] == ["MoCoSE", "at", "MTD"]


def test_alignment_and_uniformity_of_methods_over_training(mixed: pd.DataFrame) -> None:
    """Two of three trials of "plain" reach step 20: the mean there would be of others."""
    evaluated = [(10, 0.3, -1.0), (20, 0.2, -2.0)]
    rows = [
        {"number": number, "step": step, "alignment": alignment, "uniformity": uniformity}
        for number in mixed["number"]
        for step, alignment, uniformity in evaluated
    ]
    curves = pd.DataFrame(rows).assign(score=1.0, loss=1.0, mean_cosine=0.1)
    plain = mixed.loc[mixed["method"] == "plain", "number"].iloc[0]
    curves = curves[(curves["number"] != plain) | (curves["step"] < 20)]
    curves.loc[curves["number"] == mixed["number"].iloc[0], "alignment"] += 0.6
    study = dataclasses.replace(build_study(mixed), curves=curves)
    paths = compute_paths(study).set_index(["method", "step"])
    # six trials of MoCoSE, of which one lies 0.6 above the others
    assert paths.loc[("mocose", 20), ["n", "alignment", "uniformity"]].tolist() == pytest.approx(
        [6, 0.3, -2.0]
    )
    assert paths.loc["plain"].index.tolist() == [10]
    built = representation.PATHS.build(StudyContext(study))
    assert built is not None
    # four methods are described by the figure alone
    assert not built.text
    description = built.figures["method_paths"].alt
    assert "MoCoSE ends at alignment 0.300 and uniformity -2.000." in description
    assert "plain ends at alignment 0.300 and uniformity -1.000." in description
    # a configuration with a name is not averaged with others of its method
    first = {"without heads": (int(mixed["number"].iloc[0]),)}
    named = compute_paths(dataclasses.replace(study, names=first)).set_index(["method", "step"])
    assert named.loc[("without heads", 20), "alignment"] == pytest.approx(0.8)
    assert named.loc[("mocose", 20), "alignment"] == pytest.approx(0.2)
    one = dataclasses.replace(study, trials=mixed[mixed["method"] == "mocose"])
    assert representation.PATHS.build(StudyContext(one)) is None
    bare = dataclasses.replace(study, curves=curves.assign(alignment=np.nan))
    assert representation.PATHS.build(StudyContext(bare)) is None
