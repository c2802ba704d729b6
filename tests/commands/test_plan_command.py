"""What plan prints of trials that are done, and of evaluations that take longer than training."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from mtdlab.api.plan import NoEstimate, StudyPlan, find_costs, find_ended, plan
from mtdlab.commands.plan import (
    cost_lines,
    describe_baseline,
    describe_size,
)
from mtdlab.config.reader import read_study
from mtdlab.config.study import StudySpec
from mtdlab.cost.estimate import CostEstimate, trials_of, warn_of_evaluation
from mtdlab.errors import MtdlabError, TrialError
from mtdlab.store.claims import Result
from mtdlab.store.owner import this_process
from mtdlab.sweep.open_study import open_study
from tests.commands.conftest import Command

ESTIMATE = CostEstimate(
    trials=3,
    fewest=3,
    workers=2,
    threads=1,
    seconds=(600.0, 600.0),
    trial=(100.0, 200.0),
    evaluation=140.0,
    start=10.0,
    **{"memory": 2_000_000_000, "worker_memory": 800_000_000, "gpu_memory": 0, "gpu_workers": 0},
    **{"database": 200_000, "model": 90_000_000},
)


@pytest.fixture
def spec(tmp_path: Path) -> StudySpec:
    path = tmp_path / "a.yaml"
    path.write_text("study: a\nsearch: {ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n")
    return read_study(path)


def test_finished_trials_are_not_planned_again(spec: StudySpec, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'a.db'}"
    assert find_ended(spec, url) == {}
    store = open_study(spec, url)
    assert find_ended(spec, url) == {}
    for state in ("COMPLETE", "FAIL"):
        claim = store.claim(this_process())
        assert claim is not None
        store.begin(claim, claim.parameters or {}, {}, 10.0)
        assert store.finish(claim, Result(state))
    ended = find_ended(spec, url)
    assert sorted(ended.values()) == ["COMPLETE", "FAIL"]
    size = describe_size(spec, 2, ended)
    assert size == "study a: 2 configurations x 2 seeds = 4 trials; 1 done, 1 failed, 2 left"
    left = [(trial.model_dump()["ema_decay"], trial.seed) for trial in trials_of(spec, ended)]
    assert left == [(0.5, 1), (0.75, 1)]


BEYOND = """\
study: b
trainer: {steps: 160}
search: {ema_decay: [0.75, 0.9, 0.995], queue_size: [512, 8192]}
"""


def levels_of(planned: StudyPlan) -> int:
    assert planned.design.power is not None
    targets = planned.design.power.targets
    return next(target.compared for target in targets if target.kind == "slope")


@pytest.mark.usefixtures("few_simulated_studies")
def test_levels_beyond_the_run_are_said_and_do_not_count_in_the_power(tmp_path: Path) -> None:
    path, url = tmp_path / "b.yaml", f"sqlite:///{tmp_path / 'b.db'}"
    path.write_text(BEYOND)
    found = plan(path, storage=url, measure=False)
    assert found.configurations["mtd"].tolist() == [12, 18, 132, 138, 208, 328]
    assert found.warnings[-3:] == (
        "MTD 132, 138, 328 (K/N 128): the queue is full after 128 steps, a run has 160.",
        "MTD 208, 328 (η 0.995): 45 % of the momentum encoder's initial weights remain after 160 "
        "steps.",
        "Beyond the run, and taking no part in the verdict on MTD (beyond_run: keep adds them): "
        "MTD 132, 138, 208, 328.",
    )
    assert levels_of(found) == 2
    path.write_text(BEYOND + "beyond_run: keep\n")
    kept = plan(path, storage=url, measure=False)
    assert levels_of(kept) == 6
    assert kept.design.specification.beyond_run == "keep"
    assert kept.design.specification.sha256 != found.design.specification.sha256


def test_an_evaluation_longer_than_training_is_warned_of_with_both_times() -> None:
    [warning] = warn_of_evaluation(60.0, 140.0)
    assert warning == (
        "a trial evaluates for 2 min and trains for 60 s; raise evaluate_every, or take tasks or "
        "evaluation pairs out"
    )
    assert cost_lines(replace(ESTIMATE, warnings=[warning]))[-1] == f"warning {warning}"
    assert warn_of_evaluation(60.0, 120.0) == []
    # a training whose duration is not known
    assert warn_of_evaluation(math.inf, 140.0) == []


def test_time_memory_and_disk_are_lines() -> None:
    assert cost_lines(ESTIMATE) == [
        "time    about 10 min: 10 s to start, 3 trials of 2 to 3 min on 2 workers with 1 thread",
        "memory  up to 2.0 GB: 2 workers of 800.0 MB",
        "disk    200.0 kB of database, 90.0 MB for the best model",
    ]


@pytest.mark.parametrize(
    ("seconds", "trial", "said"),
    [
        (
            (600.0, 1800.0),
            (100.0, 400.0),
            "10 to 30 min: 10 s to start, 1 to 3 trials of 2 to 7 min",
        ),
        ((4020.0, 8580.0), (5.0, 5.2), "67 min to 2 h 23 min: 10 s to start, 1 to 3 trials of 5 s"),
        ((50.0, 3 * 3600.0), (5.0, 5.2), "50 s to 3 h 0 min: 10 s to start, 1 to 3 trials of 5 s"),
    ],
)
def test_a_study_that_a_look_may_end_takes_a_range(
    seconds: tuple[float, float], trial: tuple[float, float], said: str
) -> None:
    lines = cost_lines(replace(ESTIMATE, seconds=seconds, trial=trial, fewest=1))
    assert lines[0] == f"time    about {said} on 2 workers with 1 thread"
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    ("fit", "said"),
    [
        (24, "GPU     3.0 GB for each worker: up to 24 fit on each GPU (--jobs-per-gpu)"),
        (0, "GPU     3.0 GB for each worker: more than the smallest GPU has"),
    ],
)
def test_the_workers_that_fit_on_a_gpu_are_said(fit: int, said: str) -> None:
    assert said in cost_lines(replace(ESTIMATE, gpu_memory=3_000_000_000, gpu_workers=fit))
    assert not any(line.startswith("GPU") for line in cost_lines(ESTIMATE))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (MtdlabError("encoder no/such: not there"), NoEstimate("encoder no/such: not there", 2)),
        (TrialError("a process has died"), NoEstimate("a process has died")),
        (MemoryError("too large"), NoEstimate("MemoryError: too large")),
    ],
)
def test_what_cannot_be_estimated_is_said(
    spec: StudySpec, monkeypatch: pytest.MonkeyPatch, error: Exception, said: NoEstimate
) -> None:
    def estimate(*_: object, **__: object) -> CostEstimate:
        raise error

    monkeypatch.setattr("mtdlab.cost.estimate.estimate", estimate)
    costs = find_costs(spec, None, 1, ())
    assert costs == said
    assert cost_lines(costs) == [f"no estimate: {said.reason}"]


def test_the_trials_of_a_baseline_are_planned_with_the_others(spec: StudySpec) -> None:
    beside = replace(spec, baseline={"method": "simcse"})
    size = describe_size(beside, 2, {})
    assert size == "study a: (2 configurations + baseline) x 2 seeds = 6 trials"
    assert describe_baseline(beside) == "baseline method simcse"
    methods = [trial.method for trial in trials_of(beside)]
    assert methods == ["mocose", "mocose", "simcse"] * 2
    drawn = replace(beside, sampler="random", trials=2)
    assert [trial.method for trial in trials_of(drawn)] == ["mocose"] * 4 + ["simcse"] * 2


@pytest.mark.parametrize(
    ("trainer", "suggested"),
    [("{}", True), ("{method: simcse}", False), ("{queue_size: 0}", False)],
)
def test_a_baseline_without_a_queue_is_suggested_where_all_have_one(
    tmp_path: Path, trainer: str, suggested: bool
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"study: a\ntrainer: {trainer}\nsearch: {{temperature: [0.05, 0.1]}}\n")
    text = describe_baseline(read_study(path))
    assert text.endswith("add to the file: baseline: {method: simcse}") == suggested
    assert bool(text) == suggested


PAIRS = [f"a cat {at} runs\tthe dog {at} sits\t{at % 6}\n" for at in range(30)]
SHARED = "evaluation own: 10 of 20 test pairs are dev pairs too, on which checkpoints are chosen"
REFUSED = "evaluation own: each of its 20 test pairs is a dev pair too"
LEFT_OUT = "evaluation own: dev pairs: 1 of 21 lines left out: 1 without a score"
OF_CORPUS = (
    "corpus texts.txt: blank lines left out: 1 of 201",
    "corpus texts.txt: Texts are negatives of themselves, which works against the loss. Expected "
    "for each of 200 sentences: 0.67 in its batch of 8 and 1.5 in the queue of 16.",
)


def write_study(dev: list[str], test: list[str]) -> None:
    """A study in the working folder, whose corpus has each text 20 times and a blank line."""
    Path("own").mkdir()
    for name, lines in {"dev": [*dev, "a\tb\t\n"], "test": test}.items():
        Path("own", f"{name}.tsv").write_text("".join(lines))
    Path("texts.txt").write_text("".join(f"sentence {at % 10}\n" for at in range(200)) + "\n")
    sizes = "batch_size: 8, queue_size: 16, steps: 2, evaluate_every: 2"
    trainer = f"{{corpus: texts.txt, evaluation: own, {sizes}}}"
    Path("a.yaml").write_text(f"study: a\ntrainer: {trainer}\nsearch: {{ema_decay: [0.5]}}\n")


@pytest.mark.parametrize(
    ("at", "said"),
    [(10, (LEFT_OUT, SHARED)), (0, (REFUSED,))],
    ids=["some pairs in both", "all"],
)
def test_data_are_read_without_timing_steps(
    command: Command, at: int, said: tuple[str, ...]
) -> None:
    write_study(PAIRS[:20], PAIRS[at : at + 20])
    printed = " ".join(command("plan a.yaml --no-measure --no-record").stdout.split())
    for sentence in (*OF_CORPUS, *said):
        assert f"warning {sentence}" in printed
    found = plan("a.yaml", measure=False, record=False).warnings
    assert all(any(text.startswith(each) for text in found) for each in (*OF_CORPUS, *said))


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"corpus": "pairs:bad.tsv"}, "corpus bad.tsv:2: 1 columns separated by tabs, not 2"),
        ({"corpus": "no.txt"}, "corpus no.txt: cannot be read"),
        ({"corpus": "no.txt", "method": "contriever"}, "corpus no.txt: cannot be read"),
        ({"evaluation": "bad"}, "evaluation bad/dev.tsv:2: 'x' is no score"),
        ({"batch_size": "256"}, "batch_size is 256, but the corpus has 200 sentences"),
    ],
)
def test_data_that_a_sweep_would_refuse_are_told_without_timing_steps(
    command: Command, changed: dict[str, str], said: str
) -> None:
    write_study(PAIRS[:20], PAIRS[10:])
    Path("bad.tsv").write_text("a\tb\nalone\n")
    Path("bad").mkdir()
    Path("bad/dev.tsv").write_text("".join([PAIRS[0], "a\tb\tx\n", *PAIRS[1:]]))
    given = " ".join(f"--set trainer.{name}={value}" for name, value in changed.items())
    if "method" in changed:
        Path("a.yaml").write_text("study: a\nsearch: {ema_decay: [0.5]}\n")
    printed = " ".join(command(f"plan a.yaml --no-measure --no-record {given}").stdout.split())
    assert f"warning {said}" in printed


def test_what_a_finished_study_was_trained_on_is_not_read(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_study(PAIRS[:20], PAIRS[10:])
    ended = {trial.key: "COMPLETE" for trial in read_study(Path("a.yaml")).planned_trials()}
    monkeypatch.setattr("mtdlab.commands.plan.find_ended", lambda *_: ended)
    assert "warning corpus" not in command("plan a.yaml --no-measure --no-record").stdout


def test_a_single_run_is_told_the_same_of_its_data(command: Command) -> None:
    write_study(PAIRS[:20], PAIRS[10:])
    warned = command("train a.yaml").stderr
    assert all(f"mtdlab: {sentence}" in warned for sentence in (*OF_CORPUS, LEFT_OUT, SHARED))
