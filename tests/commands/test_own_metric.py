"""A study whose metric is a function: swept, shown, run again, refused with another function."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from forked_commands import ForkedCommand

from mtdlab import load_study
from mtdlab.config.reader import read_study
from mtdlab.errors import MtdlabError
from mtdlab.methods.user_modules import import_evaluator
from tests.commands.conftest import Command

FUNCTION = """
import numpy as np
TEXTS = {"dev": ["a dog runs", "the cat", "a bird"], "test": ["the red house", "a cat", "old man"]}

def score(encode, split):
    return {"spread": float(1 - np.corrcoef(encode(TEXTS[split]))[0, SECOND])}
"""
STUDY = """
study: own
metric: evaluator:spread
trainer: {{encoder: {encoder}, corpus: {corpus}, evaluation: {pairs}, batch_size: 8, steps: 4,
  evaluate_every: 2, queue_size: 16, initial_queue_size: 8, max_length: 16, precision: float32}}
search: {{ema_decay: [0.5, 0.9]}}
"""


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    yield
    import_evaluator(None)


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_study_of_a_function(
    command: Command, tmp_path: Path, tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path
) -> None:
    for name, second in (("mine", "1"), ("other", "2")):
        (tmp_path / f"{name}.py").write_text(FUNCTION.replace("SECOND", second))
    text = STUDY.format(encoder=tiny_encoder, corpus=tiny_corpus, pairs=tiny_pairs)
    (tmp_path / "own.yaml").write_text(text)

    refused = command("sweep own.yaml", code=2)
    assert "evaluator:spread needs a function; name it with --evaluator MODULE:" in refused.stderr
    refused = command("sweep own.yaml --evaluator mine.py:gone", code=2)
    assert "has no function gone; " in refused.stderr
    refused = command(
        "sweep own.yaml --evaluator mine.py:score --set metric=evaluator:spraed", code=2
    )
    assert "evaluator:spraed: the function of --evaluator returns no such" in refused.stderr
    assert not (tmp_path / "mtdlab.db").exists()

    # a worker process imports the function
    words = ["sweep", "own.yaml", "--evaluator", "mine.py:score", "--jobs", "2"]
    process = ForkedCommand(words, tmp_path, {}, merged=True)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    study = load_study("own")
    assert list(study.trials["state"]) == ["COMPLETE"] * 2
    scores = study.scores.pivot_table(index="number", columns="task", values="score")
    assert list(scores["evaluator:spread"]) == list(study.trials["score"])
    assert (study.metric, study.select_by) == ("evaluator:spread", "evaluator:spread:dev")

    refused = command("sweep own.yaml --evaluator other.py:score", code=2)
    assert "imports" in refused.stderr
    assert "evaluator score" in refused.stderr
    refused = command("reproduce own 0", code=2)
    assert "and an evaluator with --evaluator" in refused.stderr
    assert "identical" in command("reproduce own 0 --evaluator mine.py:score").stdout

    command("report --study own")
    page = (tmp_path / "reports" / "own" / "index.html").read_text()
    assert "Reported: evaluator:spread, on test data." in page
    assert "Checkpoints were chosen on evaluator:spread:dev, and trials ranked by" in page


def test_an_encoder_is_scored_by_a_function(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(FUNCTION.replace("SECOND", "1"))
    printed = command("evaluate builtin --evaluator mine.py:score").stdout
    assert "Other tasks, x 100" in printed
    assert "evaluator:spread:dev" in printed
    refused = command("evaluate builtin --evaluator mine.py:score --whiten 8", code=2)
    assert "evaluator: scored for an encoder as it is; remove --whiten" in refused.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_loss_of_a_function_chooses_checkpoints_and_trials_where_it_is_low(
    command: Command, tmp_path: Path, tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path
) -> None:
    """One minus the spread is a loss of the same runs: it keeps the checkpoints of the spread."""
    (tmp_path / "mine.py").write_text(FUNCTION.replace("SECOND", "1"))
    low = FUNCTION.replace("SECOND", "1").replace('"spread": float(1 -', '"nll": float(')
    (tmp_path / "loss.py").write_text(low)
    text = STUDY.format(encoder=tiny_encoder, corpus=tiny_corpus, pairs=tiny_pairs)
    (tmp_path / "own.yaml").write_text(text)
    (tmp_path / "low.yaml").write_text(
        text.replace("spread", "nll").replace("own", "low", 1)
        + "direction: minimize\nverdict: {margin: 0.001}\n"
    )
    command("sweep own.yaml --evaluator mine.py:score --jobs 1")
    said = command("sweep low.yaml --evaluator loss.py:score --jobs 1").stdout
    high, lower = load_study("own"), load_study("low")
    assert (lower.metric, lower.select_by) == ("evaluator:-nll", "evaluator:-nll:dev")
    # the spread is 1 minus the correlation, x 100
    assert list(lower.trials["score"]) == pytest.approx(list(high.trials["score"] / 100 - 1))
    assert list(lower.trials["best_step"]) == list(high.trials["best_step"])
    assert lower.model["trial"] == high.model["trial"]
    assert "best trial by evaluator:nll:dev" in said
    assert "-nll" not in said
    command("report --study low")
    page = (tmp_path / "reports" / "low" / "index.html").read_text()
    assert "Reported: evaluator:nll, on test data." in page
    assert "Checkpoints were chosen on evaluator:nll:dev" in page
    refused = command("sweep low.yaml --evaluator loss.py:score --set metric=sts_test", code=2)
    assert "higher is better of sts_test" in refused.stderr


def test_another_loss_of_the_function_chooses_checkpoints_and_trials(
    tmp_path: Path, tiny_encoder: Path, tiny_corpus: Path, tiny_pairs: Path
) -> None:
    """`direction` holds for each score of the function that the file names, not only the metric."""
    (tmp_path / "loss.py").write_text(FUNCTION.replace("SECOND", "1"))
    import_evaluator("loss:score", [tmp_path])
    file = tmp_path / "low.yaml"
    study = STUDY.format(encoder=tiny_encoder, corpus=tiny_corpus, pairs=tiny_pairs)
    study += "direction: minimize\nverdict: {margin: 0.001}\nselect_by: evaluator:ppl:dev\n"
    study = study.replace("steps: 4", "steps: 4, select_on: evaluator:ppl:dev")
    file.write_text(study.replace("spread", "nll"))
    low = read_study(file)
    assert (low.metric, low.select_by) == ("evaluator:-nll", "evaluator:-ppl:dev")
    assert low.trainer["select_on"] == "evaluator:-ppl:dev"
    assert low.trainer["tasks"].split(",")[-2:] == ["evaluator:-nll", "evaluator:-ppl"]

    file.write_text(study.replace("spread", "nll").replace("ppl", "accuracy"))
    with pytest.raises(MtdlabError, match="but evaluator:accuracy:dev is no loss by its name"):
        read_study(file)
