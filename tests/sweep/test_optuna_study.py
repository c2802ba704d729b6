"""What Optuna is asked: draws and pruning are its own, and its trials are written when they end."""

from typing import Any

import optuna
import pytest
from sqlalchemy import Connection, Engine, event
from stub_store import begin_trial, claim_trial

from mtdlab.config import StudySpec
from mtdlab.config.reader import parse_study
from mtdlab.errors import MtdlabError
from mtdlab.settings import TrainerSettings
from mtdlab.store import Claim, Result, Store
from mtdlab.store.owner import this_process
from mtdlab.sweep.open_study import open_study
from mtdlab.sweep.optuna_study import OptunaStudy
from mtdlab.sweep.samplers import distributions, pruner, sampler

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


def open_drawn(url: str, drawn: str, watched: str) -> tuple[StudySpec, Store, OptunaStudy]:
    text = DRAWN.replace("SAMPLER", drawn).replace("PRUNER", watched)
    spec = parse_study("drawn", text, [])
    return spec, open_study(spec, url, ""), OptunaStudy(url, spec)


def begin(opened: OptunaStudy, store: Store) -> tuple[Claim, dict[str, Any]]:
    claim = claim_trial(store)
    parameters = opened.draw(claim)
    assert store.begin(claim, parameters, {"steps": 8}, 5.0, in_optuna=opened.needs_running)
    return claim, parameters


def score_of(parameters: dict[str, Any]) -> float:
    return 50 - abs(parameters["ema_decay"] - 0.8) * 40 - parameters["queue_size"] / 10


def of_optuna(spec: StudySpec, count: int) -> list[tuple[str, dict[str, Any]]]:
    """The states and parameters of as many trials, asked and told as Optuna proposes."""
    pruning = pruner(spec)
    plain = optuna.create_study(study_name="drawn", direction="maximize", pruner=pruning)
    for index in range(count):
        plain.sampler = sampler(spec, f"sample-{index:05d}")
        trial = plain.ask()
        for name, kind in distributions(spec).items():
            trial._suggest(name, kind)
        state = optuna.trial.TrialState.COMPLETE
        for step in (2, 4, 6, 8):
            trial.report(score_of(trial.params) - 8 + step, step)
            if trial.should_prune():
                state = optuna.trial.TrialState.PRUNED
                break
        is_complete = state.name == "COMPLETE"
        plain.tell(trial, score_of(trial.params) if is_complete else None, state=state)
    return [(trial.state.name, trial.params) for trial in plain.trials]


@pytest.mark.parametrize("watched", ["none", "median", "hyperband"])
@pytest.mark.parametrize("drawn", ["random", "tpe", "qmc"])
def test_trials_are_drawn_and_pruned_as_by_optunas_own_loop(
    url: str, drawn: str, watched: str
) -> None:
    spec, store, opened = open_drawn(url, drawn, watched)
    found = []
    for _ in range(16):
        claim, parameters = begin(opened, store)
        score = score_of(parameters)
        scores = {"sts_dev": score, "sts_average": score}
        result = Result("COMPLETE", values={"score": score}, scores=scores)
        reported: dict[int, float] = {}
        for step in (2, 4, 6, 8) if opened.is_watched else ():
            reported[step] = score - 8 + step
            if opened.report(claim.number, step, reported[step]):
                arrays = {"reported/step": [*reported], "reported/score": [*reported.values()]}
                result = Result("PRUNED", arrays=arrays)  # type: ignore[arg-type]
                break
        assert store.finish(claim, result)
        found.append((result.state, parameters))
    assert found == of_optuna(spec, 16)
    if watched != "none":
        assert "PRUNED" in dict(found)


@pytest.mark.parametrize("watched", ["none", "median"])
def test_a_trial_is_in_optunas_tables_while_it_runs_only_for_a_pruner(
    url: str, watched: str
) -> None:
    _, store, opened = open_drawn(url, "random", watched)
    claim, _ = begin(opened, store)

    def copies() -> list[optuna.trial.FrozenTrial]:
        return optuna.load_study(study_name="drawn", storage=url).trials

    assert [each.state.name for each in copies()] == ([] if watched == "none" else ["RUNNING"])
    if watched != "none":
        assert not opened.report(claim.number, 2, 40.0)
        assert opened.reported(claim.number) == {2: 40.0}
    # its process dies; the next one goes on with the same trial
    store.release(claim)
    again = begin_trial(store, mtd=5.0, in_optuna=opened.needs_running)
    assert again.number == claim.number
    if watched != "none":
        assert opened.reported(claim.number) == {2: 40.0}
    scores = {"sts_dev": 41.0, "sts_average": 42.0}
    result = Result("COMPLETE", values={"score": 42.0}, scores=scores)
    assert store.finish(again, result)
    [copy] = copies()
    assert (copy.state.name, copy.value) == ("COMPLETE", 41.0)
    assert copy.user_attrs.items() >= {"mtd": 5.0, "seed": 0, "sts_average": 42.0}.items()


def test_what_another_program_deletes_or_ends_does_not_end_a_trial(url: str) -> None:
    spec, store, opened = open_drawn(url, "random", "median")
    claim, _ = begin(opened, store)
    other = optuna.load_study(study_name="drawn", storage=url)
    other.tell(claim.number, 7.0)
    assert not opened.report(claim.number, 2, 40.0)
    optuna.delete_study(study_name="drawn", storage=url)
    assert not opened.report(claim.number, 4, 40.0)
    assert opened.reported(claim.number) == {}
    result = Result("COMPLETE", values={"score": 42.0}, scores={"sts_dev": 41.0})
    assert store.finish(claim, result)
    with pytest.raises(MtdlabError, match="was deleted through Optuna while this sweep ran"):
        opened.draw(claim_trial(store))
    open_study(spec, url, "")
    [copy] = optuna.load_study(study_name="drawn", storage=url).trials
    assert (copy.number, copy.value) == (claim.number, 41.0)


def test_a_trial_of_another_program_with_a_number_of_ours_is_deleted(url: str) -> None:
    """Optuna numbers a trial by the count of trials: the first to end had number 1."""
    spec, store, opened = open_drawn(url, "random", "none")
    claims = [begin(opened, store)[0] for _ in range(2)]
    result = Result("COMPLETE", values={"score": 42.0}, scores={"sts_dev": 41.0})
    assert store.finish(claims[1], result)
    other = optuna.load_study(study_name="drawn", storage=url)
    other.tell(other.ask(), 7.0)
    assert store.finish(claims[0], result)
    open_study(spec, url, "")
    copies = optuna.load_study(study_name="drawn", storage=url).trials
    assert sorted((copy.number, copy.value) for copy in copies) == [(0, 41.0), (1, 41.0)]
    assert store.repair_copy() == 0


def test_a_grid_asks_optuna_nothing(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither its storage nor a query of its own per trial."""
    text = "study: g\ntrainer: {steps: 4}\nsearch: {ema_decay: [0.5, 0.75]}\nseeds: [0, 1]\n"
    spec = parse_study("g", text, [])
    store = open_study(spec, url, "")
    monkeypatch.setattr("mtdlab.sweep.optuna_study.open_storage", None)
    opened, commits = OptunaStudy(url, spec), []

    def note(connection: Connection) -> None:
        commits.append(connection)

    event.listen(Engine, "commit", note)
    try:
        while claim := store.claim(this_process()):
            assert claim.parameters is not None
            settings = spec.settings(claim.parameters, claim.seed)
            assert isinstance(settings, TrainerSettings)
            assert store.begin(claim, claim.parameters, {}, 5.0, in_optuna=opened.needs_running)
            assert store.finish(claim, Result("FAIL", "not trained"))
    finally:
        event.remove(Engine, "commit", note)
    # claim, begin and result of four trials, and the claim that finds none
    assert len(commits) == 3 * 4 + 1
