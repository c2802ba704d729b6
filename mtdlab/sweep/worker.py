"""One trial is one function: claim, run, classify, record."""

import math
import time
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from pydantic import ValidationError

from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.errors import MtdlabError, TrialError, one_line
from mtdlab.evaluation.sts import Evaluation
from mtdlab.settings import first_error
from mtdlab.settings.tasks import needed
from mtdlab.store import Claim, Result, Store
from mtdlab.sweep.best_model import Trained, keep_if_best
from mtdlab.sweep.environment import environment
from mtdlab.sweep.finished import Ended
from mtdlab.sweep.optuna_study import Mirror, attributes
from mtdlab.sweep.owner import this_process
from mtdlab.sweep.signals import Interrupted, Stop
from mtdlab.sweep.slots import take_gpu
from mtdlab.training.export import locked
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import train
from mtdlab.training.outcome import Outcome

BEAT_SECONDS = 2.0


class _Lost(Exception):
    """Another worker took this trial while this one was asleep."""


@dataclass
class _Desk:
    """What a worker keeps open for one study."""

    mirror: Mirror
    store: Store
    model: Path
    owner: dict[str, Any] = field(default_factory=this_process)


@lru_cache(maxsize=1)
def _desk(url: str, spec: StudySpec, models: Path) -> _Desk:
    mirror = Mirror(url, spec)
    return _Desk(mirror, Store(url, mirror.study_id), models / spec.name)


def run_next(spec: StudySpec, url: str, models: Path, stop: Stop) -> Ended | None:
    """Take a waiting trial and bring it to its end; None where there is none to take.

    A trial that fails is recorded and returned, not raised. One that is interrupted goes back
    to waiting. Raises StorageError where the database fails.
    """
    stop.ignore_terminal()
    if stop.requested():
        stop.leave_if_orphaned()
        return None
    take_gpu()
    desk = _desk(url, spec, models)
    claim = desk.store.claim(desk.owner)
    if claim is None:
        return None
    trial, parameters = desk.mirror.begin(claim)
    try:
        return _run(spec, desk, claim, trial, parameters, stop)
    except Interrupted:
        if desk.store.release(claim.row, desk.owner):
            desk.mirror.release(trial._trial_id)
        stop.leave_if_orphaned()
    except _Lost:
        pass
    return None


def _run(
    spec: StudySpec,
    desk: _Desk,
    claim: Claim,
    trial: optuna.Trial,
    parameters: dict[str, Any],
    stop: Stop,
) -> Ended:
    identity, mtd, trained = trial._trial_id, math.nan, None
    try:
        settings = spec.settings(parameters, claim.seed)
    except ValidationError as error:
        desk.store.begin(claim, identity, trial.number, parameters, None, None)
        result = Result("FAIL", first_error(error))
    else:
        mtd = math.nan if settings.mtd is None else settings.mtd
        desk.store.begin(
            claim, identity, trial.number, parameters, attributes(settings), settings.mtd
        )
        result, trained = _train(spec, settings, _Watch(desk, claim, trial, stop))
    result = _finish(desk, claim, result, trained)
    score = result.values.get("score", math.nan)
    desk.mirror.tell(identity, result.state, score, result.reason)
    return Ended(
        trial.number,
        claim.seed,
        parameters,
        result.state,
        result.reason,
        mtd,
        score,
        result.values.get("wall_seconds", math.nan),
    )


def _finish(desk: _Desk, claim: Claim, result: Result, trained: Trained | None) -> Result:
    """Record a trial's end, and its model where it is the best so far."""
    with locked(desk.model):
        if trained is not None:
            reason = keep_if_best(desk.model, desk.store, trained, result.values["score"])
            result = replace(result, reason=reason)
        if not desk.store.finish(claim, desk.owner, result):
            raise _Lost
    return result


class _Watch:
    """Called after every step: stops, prunes, and says that the trial is alive."""

    def __init__(self, desk: _Desk, claim: Claim, trial: optuna.Trial, stop: Stop) -> None:
        self.desk, self.claim, self.trial, self.stop = desk, claim, trial, stop
        self.step, self.last_beat = 0, time.monotonic()

    def __call__(self, step: int, evaluation: Evaluation | None) -> None:
        self.step = step
        if self.stop.requested():
            raise Interrupted
        if evaluation is not None and math.isfinite(evaluation.score):
            self.trial.report(evaluation.score, step)
            if self.trial.should_prune():
                raise optuna.TrialPruned
        if time.monotonic() - self.last_beat > BEAT_SECONDS:
            if not self.desk.store.beat(self.claim, self.desk.owner, step):
                raise _Lost
            self.last_beat = time.monotonic()


def _train(
    spec: StudySpec, settings: TrainerSettings, watch: _Watch
) -> tuple[Result, Trained | None]:
    try:
        materials = load_inputs(settings)
        outcome = train(settings, materials, watch)
        facts = environment(settings, materials)
        result = _complete(spec, outcome, facts)
    except (Interrupted, _Lost):
        raise
    except Exception as error:
        # whatever else breaks is this trial's end, not the study's
        return _ended_early(error, watch.step), None
    if result.state != "COMPLETE":
        return result, None
    origin = {"study": spec.name, "trial": watch.trial.number, "file": spec.text}
    return result, Trained(settings, materials, outcome, origin | facts)


def _ended_early(error: Exception, step: int) -> Result:
    if isinstance(error, optuna.TrialPruned):
        return Result("PRUNED", f"pruned at step {step}")
    if isinstance(error, TrialError | MtdlabError):
        return Result("FAIL", str(error))
    oom = (
        isinstance(error, MemoryError)
        or "out of memory" in str(error).lower()
        or type(error).__name__ == "OutOfMemoryError"
    )
    return Result("FAIL", "oom: out of memory" if oom else one_line(error)[:500])


def _complete(spec: StudySpec, outcome: Outcome, facts: dict[str, str]) -> Result:
    score, before = outcome.score_of(spec.metric)
    if not math.isfinite(score):
        return Result("FAIL", f"no {spec.metric}: {_why(spec.metric, outcome)}")
    pairs = outcome.after.dev if spec.metric == "sts_dev" else outcome.after.test
    return Result(
        "COMPLETE",
        values={
            "score": score,
            "score_before": before,
            "alignment": pairs.alignment,
            "uniformity": pairs.uniformity,
            "mean_cosine": pairs.mean_cosine,
            "best_step": outcome.best_step,
            "wall_seconds": outcome.wall_seconds,
        },
        scores=outcome.all_scores(),
        arrays={
            **{f"curve/{name}": column for name, column in outcome.curve.items()},
            "spectrum/before": outcome.before.spectrum.astype(np.float32),
            "spectrum/after": outcome.after.spectrum.astype(np.float32),
        },
        environment=facts,
    )


def _why(metric: str, outcome: Outcome) -> str:
    reasons = [each.reason for each in outcome.scores if each.task in needed(metric)]
    return next(filter(None, reasons), "collapsed: every cosine is the same")
