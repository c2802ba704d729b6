"""The measured similarity of keys: a table and a figure of scores against it."""

from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis import figures
from mtdlab.analysis.data.frames import HISTORY_COLUMNS, StudyFrames
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import history
from tests.analysis.conftest import build_study, make_trials


def measured(trials: pd.DataFrame) -> StudyFrames:
    """A study with two measurements a trial, whose mean falls by 0.01 with each step of MTD."""
    rows = [
        (row["number"], step, 2, 4, 1 - 0.01 * row["mtd"] + off, 0.5, 0.1)
        for _, row in trials.iterrows()
        for step, off in ((5, -0.02), (10, 0.02))
    ]
    history = pd.DataFrame(rows, columns=list(HISTORY_COLUMNS)).astype(dict(HISTORY_COLUMNS))
    return replace(build_study(trials), history=history)


def test_levels_have_their_similarity_and_scores_are_drawn_against_it() -> None:
    trials = make_trials(noise=0.1)
    context = StudyContext(measured(trials))
    contents = history.KEYS.build(context)
    assert contents is not None
    table = contents.csv["key_similarity"]
    np.testing.assert_allclose(table["mean"], 1 - 0.01 * table["mtd"], atol=1e-4)
    assert set(table["oldest"]) == {0.5}
    least, most = trials["mtd"].min(), trials["mtd"].max()
    drawing = contents.figures["key_similarity"]
    assert drawing is not None
    assert f"highest at MTD {least:.3g} ({1 - 0.01 * least:.3f})" in drawing.alt
    assert f"lowest at MTD {most:.3g} ({1 - 0.01 * most:.3f})" in drawing.alt
    with figures.figure_style("key_similarity"):
        _, ax = plt.subplots()
        drawing.panels[0][1](ax)
    points = np.vstack([np.asarray(drawn.get_offsets()) for drawn in ax.collections])
    assert len(points) == len(context.traced)
    assert sorted(points[:, 1]) == pytest.approx(sorted(context.traced["score"]))


def test_runs_without_a_measurement_have_no_section() -> None:
    assert history.KEYS.build(StudyContext(build_study(make_trials()))) is None
