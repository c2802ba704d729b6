"""Topics: this file adds one, and nothing but drawing imports matplotlib or seaborn."""

import dataclasses
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.inference.pairing import LevelScores, level_scores
from mtdlab.analysis.report import write_report
from mtdlab.analysis.report.cells import make_table
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import TOPICS, Topic, score, training
from mtdlab.analysis.report.topics.base import Axes, Contents, Drawing
from mtdlab.analysis.report.warnings import list_warnings
from tests.analysis.conftest import build_study, make_trials
from tests.docs.reference_tables import example_studies

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def build(context: StudyContext) -> Contents | None:
    if not len(context.traced):
        return None
    best = context.traced.groupby("seed", as_index=False)["score"].max()

    def panel(ax: Axes) -> None:
        ax.plot(best["seed"], best["score"], "o")

    alt = f"{len(best)} seeds"
    return Contents(
        csv={"best_by_seed": best},
        figures={"best_by_seed": Drawing("Best by seed", [("", panel)], "A point per seed.", alt)},
        text=[f"The best score of any seed is {best['score'].max():.2f}."],
        tables=[make_table(best, caption="The best run of each seed.", csv="best_by_seed")],
        warnings=["One seed only."] if len(best) < 2 else [],
    )


TOY = Topic("toy", "Best seeds", build, csv=["best_by_seed"])


def write(study: StudyFrames, out: Path, topics: tuple[Topic[StudyContext], ...] = (TOY,)) -> str:
    written = write_report(study, out, generated="now", version="0", topics=topics)
    return written.page.read_text(encoding="utf-8")


@pytest.mark.slow
def test_a_training_with_one_configuration_and_seed_is_a_trial_in_all_sections() -> None:
    for study in example_studies():
        context = StudyContext(study)
        for topic in TOPICS:
            if (contents := topic.build(context)) is None:
                continue
            shown = [*contents.text, *contents.warnings, contents.missing]
            for table in contents.tables:
                shown += [table.caption, *(column.label for column in table.columns)]
            names = [*topic.csv, *(str(name) for frame in contents.csv.values() for name in frame)]
            found = [
                text for text in (*shown, *names) if re.search(r"(?<![a-z])runs(?![a-z])", text)
            ]
            # the looks, whose frame has these columns, come from the database
            assert set(found) <= {"runs"}, topic.name
            assert "runs" not in found or topic.name == "looks"


def test_scores_by_level_are_tabulated_once_for_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    tabulated: list[LevelScores] = []

    def tabulate(*arguments: Any, **options: Any) -> LevelScores:
        tabulated.append(level_scores(*arguments, **options))
        return tabulated[-1]

    for module in ("results", "shape"):
        monkeypatch.setattr(f"mtdlab.analysis.questions.{module}.level_scores", tabulate)
    context = StudyContext(build_study(make_trials()))
    assert len(score.tabulate(context)) == 8
    assert "two groups" not in " ".join(list_warnings(context))
    assert (context.question.need, len(tabulated)) == (None, 1)


def test_means_over_mtd_are_of_the_settings_that_all_levels_have() -> None:
    """A level whose runs failed at the high rate is not drawn above the others."""
    easy = make_trials(noise=0, shape=lambda _: 60.0).assign(learning_rate=1e-4)
    hard = easy.assign(learning_rate=1e-2, number=easy["number"] + 100, score=easy["score"] - 30)
    trials = pd.concat([easy, hard], ignore_index=True)
    failed = trials["mtd"].eq(trials["mtd"].max()) & trials["learning_rate"].eq(1e-2)
    trials.loc[failed, "state"] = "FAIL"
    context = StudyContext(build_study(trials))
    table = score.tabulate(context)
    assert table["mean"].to_numpy() == pytest.approx(table["mean"].iloc[0])
    drawing = score.draw(context)
    assert drawing is not None
    assert "whose other settings are the same at all levels" in drawing.caption


def test_curves_and_scores_by_task_are_of_configurations_where_these_have_names() -> None:
    trials = make_trials(seeds=(0, 1), decays=(0.5, 0.85), times=(2,))
    slow, fast = (tuple(trials.loc[trials["ema_decay"] == at, "number"]) for at in (0.85, 0.5))
    steps = [{"number": n, "step": at, "loss": 1.0} for n in trials["number"] for at in (1, 2)]
    curves = pd.DataFrame(steps).assign(score=30.0)
    named = dataclasses.replace(
        build_study(trials), curves=curves, names={"slow": slow, "fast": fast}
    )
    context = StudyContext(named)
    shown = training.TOPIC.build(context)
    assert shown is not None
    [drawing] = shown.figures.values()
    _, ax = plt.subplots()
    drawing.panels[0][1](ax)
    # in the order of the study file, not that of MTD
    assert [text.get_text() for text in ax.texts] == ["slow", "fast"]
    # long names would leave no room beside them
    longer = {
        f"with keys of an averaged encoder, {name}": rows for name, rows in named.names.items()
    }
    shown = training.TOPIC.build(StudyContext(dataclasses.replace(named, names=longer)))
    assert shown is not None
    _, ax = plt.subplots()
    shown.figures["training_curves"].panels[0][1](ax)
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [*longer]
    assert not ax.texts
    plt.close("all")
    by_task = score.BY_TASK.build(context)
    assert by_task is not None
    [table] = by_task.tables
    assert table.columns[0].label == "configuration"
    assert [row[0] for row in table.rows] == ["slow", "fast"]
    partly = dataclasses.replace(named, names={"slow": slow})
    [table] = score.BY_TASK.build(StudyContext(partly)).tables  # type: ignore[union-attr]
    assert [row[0] for row in table.rows] == ["slow", "–"]


def test_a_topic_in_one_file_is_on_the_page(tmp_path: Path) -> None:
    trials = make_trials(times=(1, 8))
    page = write(build_study(trials), tmp_path)
    assert '<h2 id="toy">Best seeds</h2>' in page
    assert '<a href="#toy">Best seeds</a>' in page
    assert f"<p>The best score of any seed is {trials['score'].max():.2f}.</p>" in page
    assert "One seed only." not in page
    assert '<figure id="figure-best_by_seed">' in page
    assert "The best run of each seed." in page
    assert (tmp_path / "figures" / "best_by_seed.png").read_bytes().startswith(b"\x89PNG")
    table = pd.read_csv(tmp_path / "tables" / "best_by_seed.csv")
    assert table["score"].tolist() == trials.groupby("seed")["score"].max().tolist()


def test_a_topic_that_does_not_apply_leaves_no_section_and_no_file(tmp_path: Path) -> None:
    write(build_study(make_trials(times=(1, 8))), tmp_path)
    page = write(build_study(make_trials().iloc[:0]), tmp_path)
    assert 'id="toy"' not in page
    assert not (tmp_path / "figures" / "best_by_seed.png").exists()
    assert not (tmp_path / "tables" / "best_by_seed.csv").exists()


def test_warnings_of_a_topic_stand_in_its_section(tmp_path: Path) -> None:
    page = write(build_study(make_trials(seeds=(0,), times=(1,))), tmp_path)
    assert '<p class="warning"><strong>Note.</strong> One seed only.</p>' in page


def test_the_whole_description_is_printed_once_in_what_was_run(
    tmp_path: Path,
) -> None:
    study = build_study(make_trials(seeds=(0,), times=(1,)))
    assert "Does K" not in write(study, tmp_path)
    page = write(dataclasses.replace(study, description="Does K < N? A grid."), tmp_path)
    assert '<h2 id="run">What was run</h2></summary>\n<p>Does K &lt; N? A grid.</p>' in page
    assert page.count("Does K") == 1


def test_no_two_topics_write_the_same_file_or_heading() -> None:
    for names in (
        [topic.name for topic in TOPICS],
        [topic.title for topic in TOPICS],
        [name for topic in TOPICS for name in topic.csv],
    ):
        assert len(names) == len(set(names))


_COMPUTE_ALL = """
import importlib, pathlib, pickle, sys
from mtdlab import analysis
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import TOPICS
folder = pathlib.Path(analysis.__file__).parent
for file in folder.rglob("*.py"):
    parts = file.relative_to(folder.parent).with_suffix("").parts
    if parts[1] != "figures":
        name = ".".join(part for part in parts if part != "__init__")
        importlib.import_module(f"mtdlab.{name}")
analysis.inference.simultaneous._DRAWS = 1_000
context = StudyContext(pickle.load(sys.stdin.buffer))
found, drawn = 0, set()
for topic in TOPICS:
    contents = topic.build(context)
    if contents is not None:
        found += 1
        assert {*contents.csv} <= {*topic.csv}, topic
        assert drawn.isdisjoint(contents.figures), topic
        drawn |= {*contents.figures}
print(found, "matplotlib" in sys.modules, "seaborn" in sys.modules)
"""


@pytest.mark.slow
def test_nothing_but_drawing_imports_matplotlib() -> None:
    study = build_study(make_trials(batches=(64, 128), times=(1, 2, 4, 8)))
    ran = subprocess.run(
        [sys.executable, "-c", _COMPUTE_ALL], input=pickle.dumps(study), capture_output=True
    )
    # score, claims, published curve, sufficiency, settings and score, correlation, batches, EMA
    # decay, batch size, initial queue, tasks, geometry, spectra, best trial, trials
    assert (ran.stdout.decode().split(), ran.stderr) == (["15", "False", "False"], b"")
