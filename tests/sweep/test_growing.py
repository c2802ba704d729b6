"""A study that has ended grows by values, methods, a baseline and seeds, and what it has stays."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mtdlab.analysis.data.invocation import NO_INVOCATION
from mtdlab.errors import MtdlabError
from mtdlab.settings import TrainerSettings
from mtdlab.store.database import adding
from mtdlab.store.exchange import read_records
from mtdlab.store.owner import this_process
from mtdlab.store.tables import StudyRow, TrialRow
from mtdlab.sweep import run
from mtdlab.sweep.open_study import open_study
from mtdlab.trial import worker
from mtdlab.trial.recorded_study import refuse_other_file
from mtdlab.trial.signals import stop_on_signals
from tests.conftest import Written
from tests.sweep.conftest import Scored

PLAIN = "study: a\ntrainer: {steps: 4}\nsearch: {ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n"
CHOSEN = PLAIN + "nuisance: {learning_rate: [0.001, 0.002], seeds: [8, 9]}\n"
METHODS = "study: a\ntrainer: {steps: 4}\nsearch: {method: [mocose, simcse]}\n"
POOLING = "study: a\ntrainer: {steps: 4}\nsearch: {pooling: [mean]}\n"
SAMPLED = "study: a\ntrainer: {steps: 4}\nsearch: {pooling: [mean]}\ntrials: 2\nsampler: random\n"
UNTIL = """
study: a
trainer: {steps: 4}
search: {ema_decay: [0.5, 0.75]}
until: {decided: true, max_seeds: 2}
"""
Swept = Callable[[str], run.SweepResult]


def score(settings: TrainerSettings) -> float:
    return 40.0 + settings.seed + 1000 * settings.learning_rate


@pytest.fixture
def swept(scored: Scored, written: Written, url: str) -> Swept:
    """Sweep a file, as in a new process."""
    scored(score)

    def sweep(text: str) -> run.SweepResult:
        worker.open_in_process.cache_clear()
        return run.sweep(written(text), url, run.Execution(jobs=1))

    return sweep


@pytest.mark.parametrize(
    ("before", "after", "added"),
    [
        (POOLING, POOLING.replace("mean]", "mean, cls]"), 1),
        (METHODS, METHODS.replace("simcse]", "simcse, mixcse]"), 1),
        (SAMPLED, SAMPLED.replace("trials: 2", "trials: 3") + "seeds: [0, 1]\n", 4),
        # 2 choices of 2 values with 2 seeds, and 2 seeds
        (CHOSEN, CHOSEN.replace("0.75]", "0.75, 0.9]"), 6),
        (CHOSEN, CHOSEN + "baseline: {method: simcse}\n", 6),
        (CHOSEN, CHOSEN.replace("[0, 1]", "[0, 1, 2]"), 2),
    ],
    ids=["text", "method", "sampled", "value and nuisance", "baseline and nuisance", "seed"],
)
def test_a_complete_study_runs_what_is_added_alone(
    swept: Swept, url: str, before: str, after: str, added: int
) -> None:
    first = swept(before)
    grown = swept(after)
    assert grown.ran == added
    assert grown.counts == {"COMPLETE": first.counts["COMPLETE"] + added}
    rows = read_records(url, "a")[TrialRow]
    assert {row["settings"]["learning_rate"] for row in rows if row["seed"] < 8} <= {0.002, 3e-5}
    assert swept(after).ran == 0


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (SAMPLED, SAMPLED.replace("mean]", "mean, cls]"), "search.pooling: was [mean], now [mean,"),
        (UNTIL, UNTIL.replace("0.75]", "0.75, 0.9]"), "search.ema_decay: was [0.5, 0.75], now "),
        (METHODS, METHODS.replace(", simcse", ""), "search.method: was [mocose, simcse], now "),
        (PLAIN, METHODS, "search.ema_decay: was [0.5, 0.75], now None; search.method: was None"),
        (METHODS, METHODS.replace("4", "5"), "trainer.mocose.steps: was 4, now 5; trainer.simcse"),
        (PLAIN, PLAIN + "sampler: random\ntrials: 1\n", "sampler: was grid, now random)"),
        (PLAIN, PLAIN + UNTIL.splitlines()[-1], "beyond_run: was None, now leave-out; until: was"),
    ],
)  # fmt: skip
def test_what_cannot_be_added_is_refused_in_the_words_of_the_file(
    written: Written, url: str, before: str, after: str, words: str
) -> None:
    open_study(written(before), url).claim(this_process())
    with pytest.raises(MtdlabError, match=f"another file .{re.escape(words)}") as refused:
        open_study(written(after), url)
    message = str(refused.value)
    assert "Choices" not in message
    assert "configurations" not in message
    # so does plan, which writes nothing
    with pytest.raises(MtdlabError, match=f"another file .{re.escape(words)}"):
        refuse_other_file(written(after), url, NO_INVOCATION)
    assert len(message.splitlines()[0]) < 200


def test_a_study_that_an_earlier_version_began_grows_too(written: Written, url: str) -> None:
    """It recorded the values of a searched setting that is no number."""
    store = open_study(written(POOLING), url)
    store.claim(this_process())
    with adding(url) as session:
        row = session.get_one(StudyRow, store.study_id)
        before = "Choices(values=('mean',), relative_to=None)"
        row.identity = {**row.identity, "search": {"pooling": before}}
    grown = written(POOLING.replace("mean]", "mean, cls]"))
    assert open_study(grown, url).counts() == {"RUNNING": 1, "WAITING": 1}


def test_a_sweep_that_has_begun_is_told_of_a_method_that_another_one_adds(
    written: Written, url: str, no_inputs: Path
) -> None:
    before = written(METHODS)
    open_study(before, url)
    open_study(written(METHODS.replace("simcse]", "simcse, mixcse]")), url)
    job = worker.Job(before, url, no_inputs)
    with stop_on_signals() as stop, pytest.raises(MtdlabError, match="was given a method"):
        worker.work(job, 1, stop)
