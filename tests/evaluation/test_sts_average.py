"""`select_on: sts_average`: the average of the STS test sets that are there."""

import dataclasses
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_senteval import lay_out

from mtdlab.analysis.data.tasks import STS
from mtdlab.config.reader import read_study
from mtdlab.evaluation.suite import Evaluation
from mtdlab.training.inputs import StsAverage, load_inputs
from mtdlab.training.loop import train
from mtdlab.training.present import averaged_sets, data_warnings, warn_of_missing_sets
from mtdlab.trial.environment import environment_of
from tests.conftest import Settings
from tests.evaluation.conftest import embedder_of

SOME = ("STS12", "STSB", "SICKR")


@pytest.fixture
def senteval(tmp_path: Path, tiny_pairs: Path) -> Path:
    """A folder in SentEval's layout with three of the seven sets."""
    folder = tmp_path / "senteval"
    shutil.copytree(tiny_pairs, folder / "STS" / "STSBenchmark")
    lines = (tiny_pairs / "sts-dev.csv").read_text().splitlines()
    rows = [(score, one, other) for *_, score, one, other in (line.split("\t") for line in lines)]
    lay_out(folder, "STS12", rows[::2])
    lay_out(folder, "SICKR", rows[::3])
    return folder


def test_the_sets_that_are_there_are_named_and_the_missing_ones(senteval: Path) -> None:
    assert averaged_sets(str(senteval)) == SOME
    assert warn_of_missing_sets(str(senteval)) == (
        f"select_on: sts_average with evaluation {senteval}: checkpoints are selected on STS12, "
        "STSB, SICKR (STS13, STS14, STS15, STS16 missing); published programs average all seven"
    )
    for task in STS:
        if task not in SOME:
            lay_out(senteval, task)
    assert warn_of_missing_sets(str(senteval)) == ""


@pytest.mark.parametrize("source", ["builtin", "STS-B alone"])
def test_other_pairs_than_sentevals_are_their_test_pairs(
    settings_of: Settings, tiny_pairs: Path, source: str
) -> None:
    evaluation = "builtin" if source == "builtin" else str(tiny_pairs)
    assert averaged_sets(evaluation) == ()
    assert "the test pairs of `evaluation`" in warn_of_missing_sets(evaluation)
    settings = settings_of(evaluation=evaluation, select_on="sts_average")
    inputs = load_inputs(settings)
    average = StsAverage(evaluation, inputs.encoder, inputs.test)
    embedder = embedder_of(inputs.encoder)
    assert average.measure(embedder)[1] == inputs.test.measure(embedder)[1]


def test_the_score_is_the_mean_of_the_tasks(settings_of: Settings, senteval: Path) -> None:
    settings = settings_of(evaluation=str(senteval), tasks=",".join(SOME))
    inputs = load_inputs(settings)
    embedder = embedder_of(inputs.encoder)
    _, found = StsAverage(str(senteval), inputs.encoder, inputs.test).measure(embedder)
    vectors = inputs.suite.embed(embedder)
    scores: list[Any] = [task.score for task in inputs.suite.score_all(vectors)]
    assert found.score == pytest.approx(np.mean(scores))
    _, test = inputs.test.measure(embedder)
    assert dataclasses.replace(found, score=test.score) == test


def test_the_checkpoint_is_the_best_on_average(settings_of: Settings, senteval: Path) -> None:
    settings = settings_of(
        evaluation=str(senteval),
        tasks=",".join(SOME),
        select_on="sts_average",
        steps=24,
        evaluate_every=2,
        learning_rate=5e-3,
    )
    seen: dict[int, Evaluation] = {}

    def on_step(step: int, evaluation: Evaluation | None) -> None:
        if evaluation is not None:
            seen[step] = evaluation

    inputs = load_inputs(settings)
    outcome = train(settings, inputs, on_step)
    assert outcome.best_step == max(seen, key=lambda step: seen[step].score)
    scores: list[Any] = [task.score for task in outcome.after.tasks]
    assert seen[outcome.best_step].score == pytest.approx(np.mean(scores))
    assert outcome.after.test.uniformity == pytest.approx(seen[outcome.best_step].uniformity)
    chosen = str(environment_of(settings, inputs).evaluation)
    assert "; checkpoints selected on the average of STS12, STSB, SICKR (STS13, STS14" in chosen


def test_a_study_that_lacks_sets_is_warned_of(senteval: Path, tmp_path: Path) -> None:
    def warnings(search: str, trainer: str = "") -> list[str]:
        path = tmp_path / "study.yaml"
        settings = f"{{evaluation: {senteval}{trainer}}}"
        path.write_text(f"study: a\ntrainer: {settings}\nsearch: {{{search}}}\n")
        return data_warnings(read_study(path))

    [warning] = warnings("ema_decay: [0.5], select_on: [dev, sts_average]")
    assert "(STS13, STS14, STS15, STS16 missing)" in warning
    assert warnings("ema_decay: [0.5]") == []
    assert warnings("queue_size: [128, 256]", ", preset: published-code") == [warning]
