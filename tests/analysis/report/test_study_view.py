"""What a study shows in a notebook: verdict, summary, figure and a small view as HTML."""

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from matplotlib.figure import Figure

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.report.context import StudyContext
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


@pytest.fixture
def study() -> StudyFrames:
    return build_study(make_trials(noise=0.05, decays=(0.75,), times=(1, 2, 4, 8, 16)))


def test_the_verdict_and_the_summary_are_the_pages(study: StudyFrames) -> None:
    assert study.verdict() == StudyContext(study).verdict
    assert study.summary() == study.verdict().sentence


def test_the_view_escapes_what_the_study_brings(study: StudyFrames) -> None:
    hostile = replace(study, description="<script>alert(1)</script>", name="a&b")
    view = hostile._repr_html_()
    assert "<script>" not in view
    assert "<b>Study a&amp;b</b>" in view
    assert "&lt;script&gt;" in view
    assert view.count("<tr>") == view.count("</tr>") >= 4
    assert study.summary()[:40] in view


def test_the_plot_is_a_figure_that_shows_itself(study: StudyFrames) -> None:
    figure: Any = study.plot()
    assert isinstance(figure, Figure)
    assert figure.axes[0].get_xlabel() == "MTD (steps)"
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_study_without_an_mtd_shows_its_methods(study: StudyFrames) -> None:
    methods = study.trials.assign(mtd=float("nan"))
    methods["method"] = ["simcse" if queue > 200 else "mixcse" for queue in methods["queue_size"]]
    figure = replace(study, trials=methods.drop(columns="queue_size").assign(queue_size=0)).plot()
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["mixcse", "SimCSE"]


def test_a_study_without_a_score_has_a_view_but_no_plot(study: StudyFrames) -> None:
    failed = replace(study, trials=study.trials.assign(state="FAIL", score=float("nan")))
    with pytest.raises(ValueError, match="no trial has completed with a score yet"):
        failed.plot()
    assert "failed" in failed._repr_html_()


def test_a_verdict_imports_neither_torch_nor_matplotlib_nor_the_database() -> None:
    code = (
        "import sys, pandas as pd; from mtdlab.analysis.data.frames import empty, TRIAL_COLUMNS; "
        "from mtdlab.analysis.notebook import Study; "
        "study = Study('a', 'sts_test', 1, empty(TRIAL_COLUMNS)); study._repr_html_(); "
        "print(study.verdict().verdict, "
        "*(name in sys.modules for name in ('torch', 'matplotlib', 'sqlalchemy')))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.stderr) == ("inconclusive False False False\n", "")
