"""What scores are held against: its lines, its sentence, its caveat, and what stores it."""

from dataclasses import replace
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis import figures
from mtdlab.analysis.data.frames import REFERENCE_COLUMNS, StudyFrames
from mtdlab.analysis.data.stored_frames import from_parquet
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.headline import build_headline
from mtdlab.analysis.report.topics import configurations, methods, references, score
from mtdlab.analysis.report.topics.references import describe_standing
from tests.analysis.conftest import build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def held_against(trials: pd.DataFrame | None = None, **scores: float) -> StudyFrames:
    study = build_study(make_trials(noise=0.1) if trials is None else trials)
    names = {"overlap": "word overlap", "flow": "mean, flow"}
    rows = [("tiny", names.get(name, name), value) for name, value in scores.items()]
    frame = pd.DataFrame(rows, columns=list(REFERENCE_COLUMNS)).astype(dict(REFERENCE_COLUMNS))
    return replace(study, references=frame)


@pytest.mark.parametrize(
    ("scores", "sentence", "caveat"),
    [
        (
            {"cls": 20.0, "mean": 50.0, "flow": 60.0, "overlap": 30.0},
            "is not above 2 of the 4 scores without training: untrained, mean pooling, flow "
            "(60.00); untrained, mean pooling (50.00). Whitening and flow are fitted to the "
            "sentences of the test pairs.",
            "Below the untrained encoder, 50.00 (mean pooling): the best mean is ",
        ),
        (
            {"cls": 20.0, "flow": 60.0},
            "is not above 1 of the 2 scores without training: untrained, mean pooling, flow "
            "(60.00). Whitening and flow are fitted to the sentences of the test pairs.",
            "Below the untrained encoder, 60.00 (mean pooling, flow on the test pairs): the best "
            "mean is ",
        ),
        (
            {"cls": 20.0, "overlap": 55.0},
            "is not above 1 of the 2 scores without training: word overlap (55.00).",
            "Below word overlap: it has 55.00, the best mean ",
        ),
        (
            {"cls": 20.0, "overlap": 30.0},
            "is above all 2 scores without training, first: word overlap (30.00).",
            "",
        ),
        ({}, "", ""),
    ],
)
def test_a_sentence_and_a_caveat_say_where_the_best_lies(
    scores: dict[str, float], sentence: str, caveat: str
) -> None:
    context = StudyContext(held_against(**scores))
    assert describe_standing(context).endswith(sentence)
    assert bool(describe_standing(context)) == bool(scores)
    caveats = build_headline(context).caveats
    found = [text for text in caveats if text.startswith("Below")]
    assert len(found) == bool(caveat)
    assert all(text.startswith(caveat) and len(text) <= 110 for text in found)
    assert caveats[0] == found[0] if found else True
    # the recommended configuration is held against the same reading
    if caveat.startswith("Below the untrained encoder"):
        recommendation = build_headline(context).recommendation
        assert recommendation is not None
        reading = caveat[caveat.index("(") : caveat.index(")") + 1]
        assert recommendation.label == f"Highest mean, below the untrained encoder {reading}"


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_page_has_its_table_and_is_made_again_from_its_data(tmp_path: Path) -> None:
    study = held_against(cls=20.0, mean=50.0)
    _, html = report_of(study, tmp_path / "one", score.TOPIC, references.TOPIC)
    assert "untrained, mean pooling" in html
    assert html.count("is not above 1 of the 2 scores without training") == 1
    table = pd.read_csv(tmp_path / "one" / "tables" / "references.csv")
    pd.testing.assert_frame_equal(table, study.references, check_dtype=False)
    stored, _ = from_parquet(tmp_path / "one" / "data")
    pd.testing.assert_frame_equal(stored.references, study.references)
    assert report_of(stored, tmp_path / "two", score.TOPIC, references.TOPIC)[1] == html


def test_figures_have_the_same_reading_the_highest_and_word_overlap_as_lines() -> None:
    """None with a map, which is fitted to the test sentences."""
    trials = make_trials(noise=0.1)
    cooler = make_trials(noise=0.1).assign(temperature=0.1)
    mixed = pd.concat([trials.assign(temperature=0.05), cooler], ignore_index=True)
    mixed = mixed[mixed["mtd"] == mixed["mtd"].min()].assign(number=range(6))
    by_method = trials.assign(method=["mocose", "simcse"] * (len(trials) // 2))
    scores = {"cls": 20.0, "mean": 44.0, "flow": 46.0, "overlap": 38.0}
    shown = ["before training 30.00", "untrained, mean pooling 44.00", "word overlap 38.00"]
    over_mtd = score.draw(StudyContext(held_against(trials, **scores)))
    [of_methods] = methods.build(StudyContext(held_against(by_method, **scores))).figures.values()
    context = StudyContext(held_against(mixed, **scores))
    rows = configurations.draw_ranked(context, context.best.table, title="")
    assert over_mtd is not None
    for drawing in (over_mtd, of_methods, rows):
        assert "Dotted lines are scores without training" in drawing.caption
        _, ax = plt.subplots()
        drawing.panels[0][1](ax)
        labels = ax.get_legend_handles_labels()[1]
        assert [label for label in labels if label in shown] == shown
        assert not any("flow" in label for label in labels)
    plt.close("all")


def test_the_reading_of_the_trials_is_named_once() -> None:
    trials = make_trials().assign(score_before=44.0)
    same = StudyContext(held_against(trials, mean=44.0, overlap=38.0))
    lines = {"before training": 44.0, "word overlap": 38.0}
    assert references.choose_lines(same) == pytest.approx(lines)
    # several poolings, so that no score is before training
    several = trials.assign(score_before=np.linspace(10, 27, len(trials)))
    assert list(references.choose_lines(StudyContext(held_against(several, mean=44.0)))) == [
        "untrained, mean pooling"
    ]


def test_a_line_far_from_the_scores_stands_in_the_legend_alone() -> None:
    _, ax = plt.subplots()
    ax.set_ylim(70, 75)
    figures.draw_references({"near": 78.0, "far": 95.0, "low": 10.0}, ax)
    assert ax.get_legend_handles_labels()[1] == [
        "near 78.00",
        "far 95.00, above the axis",
        "low 10.00, below the axis",
    ]
    assert 78 < ax.get_ylim()[1] < 80
    plt.close("all")
