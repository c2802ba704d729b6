"""What Optuna is asked: draws and pruning are its own, and its trials are written when they end."""

import itertools
from dataclasses import replace
from typing import Any

import optuna
import pytest
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from sqlalchemy import Connection, Engine, event, select
from stub_store import begin_trial, claim_trial

from mtdlab.config.reader import parse_study
from mtdlab.config.study import StudySpec
from mtdlab.settings import TrainerSettings
from mtdlab.store.claims import Claim, Result
from mtdlab.store.owner import this_process
from mtdlab.store.store import Store
from mtdlab.store.tables import ScoreRow, StudyRow, TrialRow
from mtdlab.sweep.open_study import open_study
from mtdlab.trial.samplers import PRUNERS, OptunaStudy, distributions, sobol_point

DRAWN = """
study: drawn
trainer: {steps: 8, evaluate_every: 2, batch_size: 8}
search:
  ema_decay: {low: 0.5, high: 0.95}
  learning_rate: {low: 1.0e-5, high: 1.0e-3, log: true}
  queue_size: {low: 8, high: 64, step: 8}
  initial_queue_size: [0]
  queue_fill: [exact, published]
sampler: SAMPLER
pruner: PRUNER
trials: 20
seeds: [0]
"""


def open_drawn(
    url: str, drawn: str, watched: str, trials: int = 20
) -> tuple[StudySpec, Store, OptunaStudy]:
    text = DRAWN.replace("SAMPLER", drawn).replace("PRUNER", watched)
    text = text.replace("trials: 20", f"trials: {trials}")
    spec = parse_study("drawn", text, [])
    store = open_study(spec, url)
    return spec, store, OptunaStudy(spec, store)


def begin(opened: OptunaStudy, store: Store) -> tuple[Claim, dict[str, Any]]:
    claim = claim_trial(store)
    parameters = opened.draw(claim)
    assert store.begin(claim, parameters, {"steps": 8}, 5.0)
    return claim, parameters


def score_of(parameters: dict[str, Any]) -> float:
    return 50 - abs(parameters["ema_decay"] - 0.8) * 40 - parameters["queue_size"] / 10


def sampler(spec: StudySpec, index: int) -> optuna.samplers.BaseSampler:
    """Optuna's sampler of a configuration."""
    if spec.sampler == "tpe":
        return optuna.samplers.TPESampler(seed=index)
    if spec.sampler == "qmc":
        return optuna.samplers.QMCSampler(seed=0, scramble=True)
    return optuna.samplers.RandomSampler(seed=index)


def plain_study(spec: StudySpec) -> optuna.Study:
    """A study of Optuna's alone."""
    pruner = PRUNERS[spec.pruner]()
    return optuna.create_study(study_name="drawn", direction="maximize", pruner=pruner)


def of_optuna(spec: StudySpec, count: int) -> list[tuple[str, dict[str, Any]]]:
    """The states and parameters of as many trials, asked and told as Optuna proposes."""
    plain = plain_study(spec)
    for index in range(count):
        plain.sampler = sampler(spec, index)
        trial = plain.ask(distributions(spec))
        state = optuna.trial.TrialState.COMPLETE
        for step in (2, 4, 6, 8):
            trial.report(score_of(trial.params) - 8 + step, step)
            if trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        is_complete = state.name == "COMPLETE"
        plain.tell(trial, score_of(trial.params) if is_complete else None, state=state)
    return [(trial.state.name, trial.params) for trial in plain.trials]


QUICK_PAIRS = {("random", "none"), ("tpe", "hyperband"), ("qmc", "median")}


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
@pytest.mark.parametrize(
    ("drawn", "watched"),
    [
        # each sampler and each pruner once; the long tests have every pair
        pytest.param(*pair, marks=[] if pair in QUICK_PAIRS else pytest.mark.slow)
        for pair in itertools.product(("random", "tpe", "qmc"), ("none", "median", "hyperband"))
    ],
)
def test_trials_are_drawn_and_pruned_as_by_optunas_own_loop(
    url: str, drawn: str, watched: str
) -> None:
    """By two workers in turn, of which each knows of the other's trials from the record alone."""
    spec, store, opened = open_drawn(url, drawn, watched)
    workers = itertools.cycle((opened, OptunaStudy(spec, store)))
    found = []
    for _ in range(16):
        opened = next(workers)
        claim, parameters = begin(opened, store)
        score = score_of(parameters)
        scores = {"sts_dev": score, "sts_average": score}
        result = Result("COMPLETE", values={"score": score}, scores=scores)
        reported: dict[int, float] = {}
        for step in (2, 4, 6, 8) if watched != "none" else ():
            reported[step] = score - 8 + step
            if opened.report(claim, step, reported[step]):
                arrays = {"reported/step": [*reported], "reported/score": [*reported.values()]}
                result = Result("PRUNED", arrays=arrays)  # type: ignore[arg-type]
                break
        assert store.finish(claim, result)
        found.append((result.state, parameters))
    assert found == of_optuna(spec, 16)
    if watched != "none":
        assert "PRUNED" in dict(found)


@pytest.mark.filterwarnings("ignore::optuna.exceptions.ExperimentalWarning")
def test_points_of_the_sobol_sequence_are_those_of_optunas_sampler() -> None:
    space: dict[str, BaseDistribution] = {
        "float": FloatDistribution(-1.0, 2.5),
        "log": FloatDistribution(1e-5, 1e-3, log=True),
        "raster": FloatDistribution(0.1, 0.9, step=0.2),
        "int": IntDistribution(-3, 4),
        "steps": IntDistribution(8, 64, step=8),
        "log int": IntDistribution(1, 1000, log=True),
        "choice": CategoricalDistribution(["a", "b", "c"]),
        "one": FloatDistribution(0.5, 0.5),
        "one choice": CategoricalDistribution([0]),
    }
    study = optuna.create_study(sampler=optuna.samplers.QMCSampler(seed=0, scramble=True))
    for index in range(200):
        trial = study.ask(space)
        if index:
            assert sobol_point(space, index) == trial.params
        study.tell(trial, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("watched", ["median", "hyperband"])
def test_draw_and_pruning_are_optunas_own_among_ten_thousand_trials(url: str, watched: str) -> None:
    count = 10_000
    spec, store, opened = open_drawn(url, "tpe", watched, count + 1)
    plain = plain_study(spec)
    for index in range(count):
        plain.sampler = sampler(replace(spec, sampler="random"), index)
        trial = plain.ask(distributions(spec))
        score = score_of(trial.params)
        for step in (2, 4, 6, 8):
            trial.report(score - 8 + step, step)
        plain.tell(trial, score)
    with store.database.writing() as session:
        rows = session.scalars(select(TrialRow).order_by(TrialRow.position).limit(count))
        for row, trial in zip(rows, plain.get_trials(deepcopy=False), strict=True):
            row.number, row.state, row.parameters = trial.number, "COMPLETE", trial.params
            row.reports = {str(step): score for step, score in trial.intermediate_values.items()}
            session.add(ScoreRow(trial_id=row.id, task="sts_dev", score=trial.value))
        session.get_one(StudyRow, store.study_id).next_number = count
    claim, parameters = begin(opened, store)
    plain.sampler = sampler(spec, count)
    trial = plain.ask(distributions(spec))
    assert (claim.number, parameters) == (trial.number, trial.params)
    for step, score in ((2, 49.0), (4, 10.0)):
        trial.report(score, step)
        assert opened.report(claim, step, score) == trial.should_prune()


@pytest.mark.parametrize("drawn", ["random", "tpe"])
def test_a_trial_is_in_optunas_tables_when_it_has_ended(url: str, drawn: str) -> None:
    """Its reports are in the record before, from which another process goes on."""
    _, store, opened = open_drawn(url, drawn, "median")
    claim, _ = begin(opened, store)

    def copies() -> list[optuna.trial.FrozenTrial]:
        return optuna.load_study(study_name="drawn", storage=url).trials

    assert not opened.report(claim, 2, 40.1)
    assert copies() == []
    # its process dies; the next one goes on with the same trial
    store.release(claim)
    again = begin_trial(store, {"host": "other"}, mtd=5.0)
    assert (again.number, again.reports) == (claim.number, {2: 40.1})
    # the process that was taken for dead reports nothing more
    opened.report(claim, 4, 7.0)
    store.release(again)
    again = begin_trial(store, mtd=5.0)
    assert again.reports == {2: 40.1}
    scores = {"sts_dev": 41.0, "sts_average": 42.0}
    result = Result("COMPLETE", values={"score": 42.0}, scores=scores)
    assert store.finish(again, result)
    [copy] = copies()
    assert (copy.state.name, copy.value) == ("COMPLETE", 41.0)
    assert copy.intermediate_values == {2: 40.1}
    assert copy.user_attrs.items() >= {"mtd": 5.0, "seed": 0, "sts_average": 42.0}.items()


def test_a_failed_trial_is_run_again_as_a_new_one(url: str) -> None:
    _, store, opened = open_drawn(url, "tpe", "hyperband")
    claim, parameters = begin(opened, store)
    opened.report(claim, 2, 40.0)
    assert store.finish(claim, Result("FAIL", "it failed", reason_code="error"))
    store.retry_failed()
    again = claim_trial(store)
    assert (again.number, again.parameters, again.reports) == (1, parameters, {})
    assert store.begin(again, parameters, {"steps": 8}, 5.0)
    assert not opened.report(again, 2, 40.0)


def test_a_number_that_a_dead_process_had_claimed_is_drawn_as_by_a_fresh_one(url: str) -> None:
    spec, store, opened = open_drawn(url, "tpe", "none")
    claims = [claim_trial(store) for _ in range(2)]
    opened.draw(claims[1])
    store.release(claims[0])
    again = claim_trial(store)
    assert again.number == 0
    assert opened.draw(again) == OptunaStudy(spec, store).draw(again)


def test_what_another_program_deletes_or_ends_changes_no_trial(url: str) -> None:
    spec, store, opened = open_drawn(url, "tpe", "median")
    claim, _ = begin(opened, store)
    other = optuna.load_study(study_name="drawn", storage=url)
    other.tell(other.ask(), 7.0)
    assert not opened.report(claim, 2, 40.0)
    optuna.delete_study(study_name="drawn", storage=url)
    assert not opened.report(claim, 4, 40.0)
    result = Result("COMPLETE", values={"score": 42.0}, scores={"sts_dev": 41.0})
    assert store.finish(claim, result)
    # a sweep goes on without the copy
    begin(opened, store)
    open_study(spec, url)
    [copy] = optuna.load_study(study_name="drawn", storage=url).trials
    assert (copy.number, copy.value) == (claim.number, 41.0)
    assert copy.intermediate_values == {2: 40.0, 4: 40.0}


def test_a_trial_of_another_program_with_a_number_of_ours_is_deleted(url: str) -> None:
    """Optuna numbers a trial by the count of trials: the first to end had number 1."""
    spec, store, opened = open_drawn(url, "random", "none")
    claims = [begin(opened, store)[0] for _ in range(2)]
    result = Result("COMPLETE", values={"score": 42.0}, scores={"sts_dev": 41.0})
    assert store.finish(claims[1], result)
    other = optuna.load_study(study_name="drawn", storage=url)
    other.tell(other.ask(), 7.0)
    assert store.finish(claims[0], result)
    open_study(spec, url)
    copies = optuna.load_study(study_name="drawn", storage=url).trials
    assert sorted((copy.number, copy.value) for copy in copies) == [(0, 41.0), (1, 41.0)]
    assert store.repair_copy() == 0


def test_a_grid_asks_optuna_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs no query of its own per trial."""
    text = "study: g\ntrainer: {steps: 4}\nsearch: {ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n"
    spec = parse_study("g", text, [])
    store = open_study(spec, url)
    monkeypatch.setattr(Store, "searched", None)
    commits = []

    def note(connection: Connection) -> None:
        commits.append(connection)

    event.listen(Engine, "commit", note)
    try:
        while claim := store.claim(this_process()):
            assert claim.parameters is not None
            settings = spec.settings(claim.parameters, claim.seed)
            assert isinstance(settings, TrainerSettings)
            assert store.begin(claim, claim.parameters, {}, 5.0)
            assert store.finish(claim, Result("FAIL", "not trained"))
    finally:
        event.remove(Engine, "commit", note)
    # claim, begin and result of four trials, and the claim that finds none
    assert len(commits) == 3 * 4 + 1
