"""The page over several studies."""

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import Settings, StudyFrames
from mtdlab.analysis.report import MultiStudyReport, write_multi_study, write_report
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.multi_study import describe_differences, lead_with_answers
from mtdlab.analysis.statistics.multi_study import (
    compute_best_spectra,
    compute_curves,
    compute_overview,
    find_best_setting,
)
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "png_not_drawn")


def write(studies: list[StudyFrames], out: Path, name: str = "all") -> MultiStudyReport:
    return write_multi_study(studies, out, name=name, generated="now", version="0")


@pytest.fixture(scope="module")
def three() -> list[StudyFrames]:
    # without alignment a study's own page is quicker made
    first = build_study(
        make_trials(seeds=(0,), decays=(0.85,), times=(1, 8)).assign(alignment=np.nan)
    )
    simcse = make_trials(seeds=(0, 1), decays=(0.85,), times=(1,)).assign(method="simcse", mtd=0.0)
    second = dataclasses.replace(build_study(simcse), name="figure7-simcse")
    none = dataclasses.replace(build_study(first.trials.iloc[:0], planned=9), name="later")
    return [first, second, none]


@pytest.fixture(scope="module")
def pages(
    three: list[StudyFrames], tmp_path_factory: pytest.TempPathFactory
) -> dict[int, MultiStudyReport]:
    """The page of all three studies with its figures, those of the first and the last alone."""
    folders = [tmp_path_factory.mktemp("pages") for _ in range(3)]
    # own pages take most of the time, and less without spectra
    bare = [dataclasses.replace(study, spectra=pd.DataFrame()) for study in three]
    whole = write(three, folders[2])
    # one page shows that figures are drawn
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mtdlab.analysis.figures.to_svg", lambda _: "<svg></svg>")
        return {1: write(bare[2:], folders[0]), 2: write(bare[1:], folders[1]), 3: whole}


@pytest.mark.parametrize("count", [1, pytest.param(2, marks=pytest.mark.slow), 3])
def test_every_study_is_on_the_page_and_has_its_own(
    three: list[StudyFrames], pages: dict[int, MultiStudyReport], count: int
) -> None:
    written, studies = pages[count], three[-count:]
    names = [study.name for study in studies]
    text = written.page.read_text(encoding="utf-8")
    folder = written.page.parent.parent
    assert written.page == folder / "all" / "index.html"
    assert list(written.pages) == names
    for name in names:
        assert f'<a href="../{name}/index.html"><bdi>{name}</bdi></a>' in text
        assert (written.page.parent / ".." / name / "index.html").is_file()
    table = pd.read_csv(folder / "all" / "tables" / "studies.csv")
    assert table["study"].tolist() == names
    assert table["completed"].tolist() == [2, 2, 0][-count:]
    assert "later has no completed trial" in text
    assert "mtd has no completed trial" not in text
    assert "<td class=number>nan" not in text


def test_the_first_screen_has_the_answer_of_each_study(
    three: list[StudyFrames], pages: dict[int, MultiStudyReport]
) -> None:
    text = pages[3].page.read_text(encoding="utf-8")
    assert "What do mtd, figure7-simcse and later show?" in text
    assert "3 studies: 2 complete, 1 planned" in text
    assert "<h1>Decided in none of 2 studies</h1>" in text
    own = StudyContext(three[0]).answer
    assert f"<li>? mtd: {own.heading}." in text
    assert "<li>? figure7-simcse: The mean score is" in text
    assert "Highest mean" not in text
    table = pd.read_csv(pages[3].page.parent / "tables" / "studies.csv")
    assert table["verdict"].tolist() == ["inconclusive", "not applicable", "not applicable"]


def test_one_question_is_asked_once_and_answered_by_study() -> None:
    flat = make_trials(seeds=range(6), times=(1, 8), shape=lambda _: 50.0, noise=3.0)
    rising = flat.assign(score=flat["score"] + 20 * (flat["queue_size"] > 100))
    studies = [
        dataclasses.replace(build_study(trials), name=name)
        for name, trials in {"flat": flat, "rising": rising}.items()
    ]
    first = lead_with_answers([StudyContext(study) for study in studies])
    assert first.question == f"{StudyContext(studies[0]).question.sentence} (flat and rising)"
    assert first.answer == (
        "The score shows no significant effect of MTD in flat; rises with MTD in rising"
    )
    assert not first.is_open
    assert [line[:2] for line in first.answers] == ["? ", "✓ "]
    assert "points (95 % CI" in first.answers[1]


def test_scores_of_different_metrics_are_not_compared(three: list[StudyFrames]) -> None:
    other = dataclasses.replace(three[1], metric="sts_test", name="other")
    shown = lead_with_answers([StudyContext(three[0]), StudyContext(other)])
    assert "different metrics, so their scores are not compared" in shown.certainty
    nothing = lead_with_answers([StudyContext(three[2])])
    assert nothing.answer == "No study has a score yet"


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_rendered")
def test_two_builds_are_the_same_and_own_pages_as_by_themselves(
    three: list[StudyFrames], pages: dict[int, MultiStudyReport], tmp_path: Path
) -> None:
    bare = [dataclasses.replace(study, spectra=pd.DataFrame()) for study in three[1:]]
    first, again = pages[2], write(bare, tmp_path / "b")
    for one, other in zip(
        (first.page, *first.figures, *first.tables),
        (again.page, *again.figures, *again.tables),
        strict=True,
    ):
        assert one.read_bytes() == other.read_bytes()
    name = bare[0].name
    alone = write_report(bare[0], tmp_path / "c" / name, generated="now", version="0")
    assert alone.page.read_bytes() == first.pages[name].page.read_bytes()


def test_runs_without_an_mtd_are_a_row_at_zero(three: list[StudyFrames]) -> None:
    curves = compute_curves(three)
    simcse = curves[curves["study"] == "figure7-simcse"]
    assert simcse["mtd"].tolist() == [0]
    assert simcse["mean"].tolist() == pytest.approx([three[1].trials["score"].mean()])
    assert curves["mtd"].tolist()[:2] == [7.667, 14.667]


def test_the_best_setting_is_named_with_its_mean(three: list[StudyFrames]) -> None:
    best = find_best_setting(three[0])
    means = three[0].trials.groupby("queue_size")["score"].mean()
    size = means.idxmax()
    assert best["setting"].tolist() == [f"queue size {size}"]
    assert best["mean"].tolist() == pytest.approx([means.max()])
    assert find_best_setting(three[2]).empty


def test_the_best_setting_is_within_the_run() -> None:
    trials = make_trials(decays=(0.75, 0.995), times=(1,)).assign(steps=160)
    trials.loc[trials["ema_decay"] == 0.995, "score"] += 200.0
    study = build_study(trials)
    kept = dataclasses.replace(study, beyond_run="keep")
    overview = compute_overview([study, kept])
    # with one setting left nothing varies
    assert overview["setting"].tolist() == ["", "EMA decay 0.995"]


def test_settings_are_distinguished_by_value(settings: Settings) -> None:
    trials = make_trials(seeds=(0, 1), decays=(0.85,), times=(1,)).iloc[[0, 0, 1, 1]]
    trials = trials.assign(
        learning_rate=[1e-5, 1.000001e-5] * 2,
        score=[10.0, 20.0, 10.0, 20.0],
        in_batch_negatives=pd.Series([True, False, True, False], dtype="object").to_numpy(),
        prediction_dim=[64.0, np.nan, 64.0, np.nan],
        ema_decay_end=pd.Series([1.0, None, 1.0, None], dtype="object").to_numpy(),
    )
    study = StudyFrames("a", "b", 4, trials.reset_index(drop=True), settings=settings)
    best = find_best_setting(study)
    assert best[["n", "mean"]].to_numpy().tolist() == [pytest.approx([2, 20])]
    assert best["setting"].tolist() == [
        "learning rate 1e-5, in-batch negatives false, prediction dimension the encoder's, "
        "ema_decay_end none"
    ]


def test_one_untrained_encoder_is_drawn_once(three: list[StudyFrames]) -> None:
    spectra = compute_best_spectra(three)
    assert list(spectra.index) == [
        ("mtd", "after"),
        ("figure7-simcse", "after"),
        ("encoder before training", "before"),
    ]
    number = three[0].trials.loc[three[0].trials["score"].idxmax(), "number"]
    own = three[0].spectra.loc[(number, "after")]
    np.testing.assert_allclose(spectra.loc[("mtd", "after")], own / own[0])
    other = dataclasses.replace(three[1], spectra=three[1].spectra.iloc[:, :8] ** 2)
    names = [model for model, _ in compute_best_spectra([three[0], other]).index]
    assert names[2:] == [
        "encoder before training of mtd",
        "encoder before training of figure7-simcse",
    ]


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn")
def test_metrics_are_not_mixed_in_one_figure(three: list[StudyFrames], tmp_path: Path) -> None:
    plain = dataclasses.replace(three[0], spectra=pd.DataFrame())
    other = dataclasses.replace(plain, name="other", metric="STS12")
    written = write([plain, other], tmp_path)
    assert [path.stem for path in written.figures][::2] == ["mtd_curves_1", "mtd_curves_2"]
    assert "are not drawn in one figure" in written.page.read_text(encoding="utf-8")
    one = write([plain], tmp_path)
    assert [path.name for path in one.figures] == ["mtd_curves_1.png", "mtd_curves_1.svg"]
    assert not (tmp_path / "all" / "figures" / "mtd_curves_2.png").exists()


def test_what_else_differs_between_studies_is_said(three: list[StudyFrames]) -> None:
    def again(name: str, steps: int, negatives: bool) -> StudyFrames:
        trials = three[0].trials.assign(
            steps=steps, in_batch_negatives=negatives, learning_rate=1e-3, encoder="builtin"
        )
        return dataclasses.replace(three[0], name=name, trials=trials)

    studies = [again("a", 120, True), again("b", 250, False), again("c", 120, True), three[2]]
    assert describe_differences(studies) == (
        " The studies differ in more than this: steps (120 in a, c; 250 in b), "
        "in_batch_negatives (true in a, c; false in b)."
    )
    assert describe_differences(studies[::2]) == ""


def test_the_page_does_not_take_a_studys_place(three: list[StudyFrames], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="the page cannot be called mtd"):
        write(three, tmp_path, "mtd")
