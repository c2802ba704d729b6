"""One trial is one function: claim, run, classify, record."""

import json
import math
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from optuna.exceptions import UpdateFinishedTrialError
from pydantic import ValidationError

from mtdlab.config import StudySpec, TrainerSettings
from mtdlab.config.paths import located
from mtdlab.errors import MtdlabError, StorageError
from mtdlab.methods.user_modules import ensure_imported
from mtdlab.settings import first_error
from mtdlab.store import Claim, Result, Store
from mtdlab.sweep.best_model import Trained, save_if_best
from mtdlab.sweep.checkpoints import SAME, TrialCheckpoints, describe_run
from mtdlab.sweep.environment import environment
from mtdlab.sweep.finished import FinishedTrial
from mtdlab.sweep.heartbeat import ClaimLost, Heartbeat
from mtdlab.sweep.model_folders import CHECKPOINTS
from mtdlab.sweep.monitor import OpenStudy, TrialMonitor
from mtdlab.sweep.open_study import check_unchanged
from mtdlab.sweep.optuna_study import OptunaStudy, attributes
from mtdlab.sweep.results import complete, ended_early
from mtdlab.sweep.signals import Interrupted, StopRequest
from mtdlab.sweep.slots import take_gpu
from mtdlab.sweep.spool import load_result, save_result
from mtdlab.sweep.tracking import track
from mtdlab.training.inputs import load_inputs
from mtdlab.training.loop import start, train


@lru_cache(maxsize=1)
def open_in_process(url: str, spec: StudySpec, models: Path) -> OpenStudy:
    """A study, opened once per process: connections must not be shared between processes.

    Raises MtdlabError if it is no longer in the database.
    """
    opened = OptunaStudy(url, spec)
    store = Store(url, opened.study_id)
    row = store.study()
    if row is None:
        raise MtdlabError(f"study {spec.name} was deleted or renamed while this sweep ran")
    return OpenStudy(
        opened,
        store,
        row.precision,
        row.select_by,
        model=models / spec.name,
        checkpoints=models / CHECKPOINTS / spec.name,
    )


def run_next(spec: StudySpec, url: str, models: Path, stop: StopRequest) -> FinishedTrial | None:
    """Claim a waiting trial and run it to its end; None where none can be claimed.

    A trial that fails is recorded and returned, not raised. One that is interrupted goes back
    to waiting with its checkpoint, from which the next worker continues. Raises StorageError where
    the database fails.
    """
    if stop.requested():
        return None
    take_gpu()
    ensure_imported(spec.user_modules)
    study = open_in_process(url, spec, models)
    claim = study.store.claim(study.owner)
    if claim is None:
        return None
    try:
        check_unchanged(spec, study.store)
        with Heartbeat(study.store, claim, study.owner) as heartbeat:
            return _run(spec, study, claim, stop, heartbeat)
    except ClaimLost:
        return None
    except BaseException:
        # this process may live on, as that of a notebook, and would own the trial for ever
        with suppress(StorageError):
            study.store.release(claim.row, study.owner)
        raise


def _run(
    spec: StudySpec, study: OpenStudy, claim: Claim, stop: StopRequest, heartbeat: Heartbeat
) -> FinishedTrial | None:
    """Run a claimed trial; None if it was interrupted. Raises ClaimLost."""
    try:
        trial, parameters = study.optuna.begin(claim)
    except UpdateFinishedTrialError:
        # another worker ended it while this process was suspended after its claim, or it ended
        # in Optuna's tables alone: then it begins anew
        study.store.restart(claim)
        raise ClaimLost from None
    settings, mistake = _settings(spec, parameters, claim.seed)
    known = (None, None) if settings is None else (attributes(settings), settings.mtd)
    if not study.store.begin(claim, trial._trial_id, trial.number, parameters, *known):
        raise ClaimLost
    checkpoints = TrialCheckpoints(study.checkpoints / f"{claim.setting}-{claim.seed}")
    result, trained = Result("FAIL", mistake, reason_code="error"), None
    if settings is not None:
        monitor = TrialMonitor(study, claim, trial, stop, settings, checkpoints, heartbeat)
        try:
            result, trained = train_trial(spec, settings, monitor)
        except Interrupted:
            if study.store.release(claim.row, study.owner):
                study.optuna.release(trial._trial_id)
            return None
    note = _record(spec, study, claim, trial.number, result, trained, checkpoints)
    score = result.values.get("score", math.nan)
    ranking = result.scores.get(study.select_by, math.nan) if study.select_by else score
    study.optuna.record(
        trial._trial_id, result.state, ranking, score, reason=result.reason, note=note
    )
    return FinishedTrial(
        trial.number,
        claim.seed,
        parameters,
        result.state,
        result.reason,
        math.nan if settings is None or settings.mtd is None else settings.mtd,
        score,
        ranking,
        result.values.get("wall_seconds", math.nan),
        note,
    )


def _settings(
    spec: StudySpec, parameters: dict[str, Any], seed: int
) -> tuple[TrainerSettings | None, str]:
    """The settings of a trial; None and the rule that they break, if sampled ones break one."""
    try:
        return spec.settings(parameters, seed), ""
    except ValidationError as error:
        return None, first_error(error)


def _record(
    spec: StudySpec,
    study: OpenStudy,
    claim: Claim,
    number: int,
    result: Result,
    trained: Trained | None,
    checkpoints: TrialCheckpoints,
) -> str:
    """Record a trial's result, save its model if it is the best, track it; returns its note."""
    if not study.store.finish(claim, study.owner, result):
        raise ClaimLost
    notes = list(checkpoints.notes)
    if trained is not None:
        notes.append(save_if_best(study.model, study.store, claim, trained))
        if spec.tracking == "tensorboard":
            notes.append(track(study.model.name, number, trained.settings, trained.outcome))
    if trained is not None or result.state != "COMPLETE":
        # after the model: `restore_model` finds by them that it was not saved
        checkpoints.remove()
    note = "; ".join(filter(None, notes))
    if note:
        study.store.add_note(claim, note)
    return note


def train_trial(
    spec: StudySpec, settings: TrainerSettings, monitor: TrialMonitor
) -> tuple[Result, Trained | None]:
    study = monitor.study
    settings = _with_precision(settings, study.precision)
    try:
        inputs = load_inputs(located(settings, spec.places))
        run = describe_run(settings, inputs)
        identity = json.dumps([spec.metric, study.select_by, *(run[name] for name in SAME)])
        if (kept := load_result(monitor.checkpoints.folder, identity)) is not None:
            monitor.checkpoints.notes.append("its result was kept on the disk")
            return kept, None
        state = start(settings, inputs)
        with monitor.checkpoints.continued(state, run):
            outcome = train(settings, inputs, monitor, state)
            facts = environment(settings, inputs)
        result = complete(spec.metric, study.select_by, outcome, facts)
    except (Interrupted, ClaimLost, StorageError):
        raise
    except Exception as error:
        # any other error ends this trial, not the study
        return ended_early(error, monitor.step), None
    if result.state != "COMPLETE":
        return result, None
    monitor.heartbeat.beat()
    monitor.heartbeat.check()
    save_result(monitor.checkpoints.folder, result, identity)
    select_by = study.select_by or spec.metric
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
