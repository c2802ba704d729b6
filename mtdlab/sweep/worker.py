"""One trial is one function: claim, run, classify, record."""

import math
import time
import traceback
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from pydantic import ValidationError

from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.errors import describe
from mtdlab.evaluation.sts import Evaluation
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import first_error
from mtdlab.settings.tasks import needed
from mtdlab.store import Claim, Result, Store
from mtdlab.sweep.best_model import Trained, save_if_best
from mtdlab.sweep.environment import environment
from mtdlab.sweep.finished import FinishedTrial
from mtdlab.sweep.optuna_study import OptunaStudy, attributes
from mtdlab.sweep.owner import this_process
from mtdlab.sweep.signals import Interrupted, StopRequest
from mtdlab.sweep.slots import take_gpu
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from mtdlab.training.outcome import Outcome

HEARTBEAT_SECONDS = 2.0
_MOST_TRACEBACK = 20_000


class _ClaimLost(Exception):
    """Another worker claimed this trial while this process was suspended."""


@dataclass
class _OpenStudy:
    """What a worker process keeps open for one study.

    precision  what `precision: auto` means in this study; None where no trial uses it.
    select_by  the score that ranks the trials; None where the study's metric does.
    """

    optuna: OptunaStudy
    store: Store
    precision: str | None
    select_by: str | None
    model: Path
    owner: dict[str, Any] = field(default_factory=this_process)


@lru_cache(maxsize=1)
def _open_study(url: str, spec: StudySpec, models: Path) -> _OpenStudy:
    opened = OptunaStudy(url, spec)
    store = Store(url, opened.study_id)
    row = store.study()
    assert row is not None, "a worker starts after its study was written"
    return _OpenStudy(opened, store, row.precision, row.select_by, models / spec.name)


def run_next(spec: StudySpec, url: str, models: Path, stop: StopRequest) -> FinishedTrial | None:
    """Claim a waiting trial and run it to its end; None where none can be claimed.

    A trial that fails is recorded and returned, not raised. One that is interrupted goes back
    to waiting. Raises StorageError where the database fails.
    """
    stop.ignore_terminal()
    if stop.requested():
        stop.exit_if_orphaned()
        return None
    take_gpu()
    ensure_imported(spec.user_modules)
    study = _open_study(url, spec, models)
    claim = study.store.claim(study.owner)
    if claim is None:
        return None
    trial, parameters = study.optuna.begin(claim)
    try:
        return _run(spec, study, claim, trial, parameters, stop)
    except Interrupted:
        if study.store.release(claim.row, study.owner):
            study.optuna.release(trial._trial_id)
        stop.exit_if_orphaned()
    except _ClaimLost:
        pass
    return None


def _run(
    spec: StudySpec,
    study: _OpenStudy,
    claim: Claim,
    trial: optuna.Trial,
    parameters: dict[str, Any],
    stop: StopRequest,
) -> FinishedTrial:
    optuna_id, mtd, trained = trial._trial_id, math.nan, None
    try:
        settings = spec.settings(parameters, claim.seed)
    except ValidationError as error:
        study.store.begin(claim, optuna_id, trial.number, parameters, None, None)
        result = Result("FAIL", first_error(error))
    else:
        mtd = math.nan if settings.mtd is None else settings.mtd
        study.store.begin(
            claim, optuna_id, trial.number, parameters, attributes(settings), settings.mtd
        )
        result, trained = _train(spec, settings, _TrialMonitor(study, claim, trial, stop))
    note = _record(study, claim, result, trained)
    score = result.values.get("score", math.nan)
    ranking = result.scores.get(study.select_by, math.nan) if study.select_by else score
    study.optuna.record(optuna_id, result.state, ranking, score, reason=result.reason, note=note)
    return FinishedTrial(
        trial.number,
        claim.seed,
        parameters,
        result.state,
        result.reason,
        mtd,
        score,
        ranking,
        result.values.get("wall_seconds", math.nan),
        note,
    )


def _record(study: _OpenStudy, claim: Claim, result: Result, trained: Trained | None) -> str:
    """Record a trial's result, then save its model if it is the best; returns the trial's note."""
    if not study.store.finish(claim, study.owner, result):
        raise _ClaimLost
    if trained is None:
        return ""
    note = save_if_best(study.model, study.store, claim, trained)
    if note:
        study.store.add_note(claim, note)
    return note


class _TrialMonitor:
    """Called after every step: stops and prunes the trial, and records its heartbeat."""

    def __init__(
        self, study: _OpenStudy, claim: Claim, trial: optuna.Trial, stop: StopRequest
    ) -> None:
        self.study, self.claim, self.trial, self.stop = study, claim, trial, stop
        self.step, self.last_heartbeat = 0, time.monotonic()

    def __call__(self, step: int, evaluation: Evaluation | None) -> None:
        self.step = step
        if self.stop.requested():
            raise Interrupted
        if evaluation is not None and math.isfinite(evaluation.score):
            self.trial.report(evaluation.score, step)
            if self.trial.should_prune():
                raise optuna.TrialPruned
        if time.monotonic() - self.last_heartbeat > HEARTBEAT_SECONDS:
            if not self.study.store.heartbeat(self.claim, self.study.owner, step):
                raise _ClaimLost
            self.last_heartbeat = time.monotonic()


def _train(
    spec: StudySpec, settings: TrainerSettings, monitor: _TrialMonitor
) -> tuple[Result, Trained | None]:
    settings = _with_precision(settings, monitor.study.precision)
    try:
        inputs = load_inputs(settings)
        outcome = train(settings, inputs, monitor)
        facts = environment(settings, inputs)
        result = _complete(spec.metric, monitor.study.select_by, outcome, facts)
    except (Interrupted, _ClaimLost):
        raise
    except Exception as error:
        # any other error ends this trial, not the study
        return _ended_early(error, monitor.step), None
    if result.state != "COMPLETE":
        return result, None
    select_by = monitor.study.select_by or spec.metric
    origin = {
        "study": spec.name,
        "trial": monitor.trial.number,
        "chosen": f"for the highest {select_by} of the study's trials",
        "file": spec.text,
    }
    return result, Trained(settings, inputs, outcome, origin | facts)


def _with_precision(settings: TrainerSettings, precision: str | None) -> TrainerSettings:
    """`precision: auto` replaced by what it means in this study, on whichever machine."""
    if settings.precision != "auto" or precision is None:
        return settings
    return settings.model_copy(update={"precision": precision})


def _ended_early(error: Exception, step: int) -> Result:
    if isinstance(error, optuna.TrialPruned):
        return Result("PRUNED", f"pruned at step {step}")
    out_of_memory = (
        isinstance(error, MemoryError)
        or "out of memory" in str(error).lower()
        or type(error).__name__ == "OutOfMemoryError"
    )
    reason = "oom: out of memory" if out_of_memory else describe(error)
    lines = traceback.format_exception(error)
    return Result("FAIL", reason, traceback="".join(lines)[-_MOST_TRACEBACK:])


def _complete(
    metric: str, select_by: str | None, outcome: Outcome, facts: dict[str, str]
) -> Result:
    named = {name: outcome.score_of(name)[0] for name in (metric, select_by) if name}
    for name, score in named.items():
        if not math.isfinite(score):
            return Result("FAIL", f"no {name}: {_reason(name, outcome)}")
    pairs = outcome.after.dev if metric == "sts_dev" else outcome.after.test
    return Result(
        "COMPLETE",
        values={
            "score": named[metric],
            "score_before": outcome.score_of(metric)[1],
            "alignment": pairs.alignment,
            "uniformity": pairs.uniformity,
            "mean_cosine": pairs.mean_cosine,
            "best_step": outcome.best_step,
            "wall_seconds": outcome.wall_seconds,
        },
        scores=outcome.all_scores() | named,
        arrays={
            **{f"curve/{name}": column for name, column in outcome.curve.items()},
            **{f"probe/{name}": column for name, column in outcome.probes.items()},
            "spectrum/before": outcome.before.spectrum.astype(np.float32),
            "spectrum/after": outcome.after.spectrum.astype(np.float32),
        },
        environment=facts,
    )


def _reason(metric: str, outcome: Outcome) -> str:
    reasons = [each.reason for each in outcome.scores if each.task in needed(metric)]
    return next(filter(None, reasons), "collapsed: every cosine is the same")
