"""One trial is one function: claim, run, classify, record."""

import logging
import math
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mtdlab.config import StudySpec
from mtdlab.errors import ConnectionLost, MtdlabError, StorageError
from mtdlab.settings import RunSettings, first_error
from mtdlab.store import Claim, Result
from mtdlab.store.restarts import MOST_LOST, expect_server, retry_lost
from mtdlab.store.store import open_store
from mtdlab.sweep.heartbeat import ClaimLost, Heartbeat
from mtdlab.sweep.model_folders import CHECKPOINTS, remove_checkpoints_of
from mtdlab.sweep.monitor import OpenStudy, TrialRun
from mtdlab.sweep.objective import Ended, Objective
from mtdlab.sweep.objectives import objective_of
from mtdlab.sweep.open_study import check_unchanged
from mtdlab.sweep.optuna_study import OptunaStudy
from mtdlab.sweep.progress import FinishedTrial
from mtdlab.sweep.signals import Interrupted, StopRequest

_LOG = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def open_in_process(url: str, spec: StudySpec, models: Path) -> OpenStudy:
    """A study, opened once per process: connections must not be shared between processes.

    Raises MtdlabError if it is no longer in the database.
    """
    expect_server(url)
    store = open_store(url, spec.name)
    row = None if store is None else store.study()
    if store is None or row is None:
        raise MtdlabError(f"study {spec.name} was deleted or renamed while this sweep ran")
    return OpenStudy(
        OptunaStudy(url, spec),
        store,
        row.precision,
        row.select_by,
        model=models / spec.name,
        checkpoints=models / CHECKPOINTS / spec.name,
    )


def run_next(spec: StudySpec, url: str, models: Path, stop: StopRequest) -> FinishedTrial | None:
    """Claim a waiting trial and run it to its end; None where none can be claimed.

    A trial that fails is recorded and returned, not raised. One that is interrupted, or loses its
    connection to the database, goes back to waiting with its checkpoint, from which the next worker
    continues. Raises StorageError where the database fails.
    """
    if stop.requested():
        return None
    spec.ensure_imported()
    # before the claim, since it may import torch and transformers, which takes seconds
    objective = objective_of(spec)
    study = open_in_process(url, spec, models)
    try:
        ended = _claim_and_run(spec, objective, study, stop)
    except ConnectionLost as error:
        study.lost += 1
        if study.lost == MOST_LOST:
            study.lost = 0
            raise
        _LOG.warning("%s; the trial continues from its checkpoint", error)
        return None
    if ended is not None:
        study.lost = 0
    return ended


def _claim_and_run(
    spec: StudySpec, objective: Objective, study: OpenStudy, stop: StopRequest
) -> FinishedTrial | None:
    try:
        claim = study.store.claim(study.owner)
    except ConnectionLost:
        # it may have been committed
        retry_lost(lambda: study.store.release_unbegun(study.owner))
        raise
    if claim is None:
        return None
    try:
        check_unchanged(spec, study.store)
        with Heartbeat(study.store, claim, study.owner) as heartbeat:
            return _run(spec, objective, study, claim, stop, heartbeat)
    except ClaimLost:
        return None
    except ConnectionLost:
        retry_lost(lambda: study.store.release(claim.row, study.owner))
        raise
    except BaseException:
        # this process may live on, as that of a notebook, and would own the trial for ever
        with suppress(StorageError):
            study.store.release(claim.row, study.owner)
        raise


def _run(
    spec: StudySpec,
    objective: Objective,
    study: OpenStudy,
    claim: Claim,
    stop: StopRequest,
    heartbeat: Heartbeat,
) -> FinishedTrial | None:
    """Run a claimed trial; None if it was interrupted. Raises ClaimLost."""
    parameters = claim.parameters
    if parameters is None:
        parameters = study.optuna.draw(claim)
    settings, mistake = _settings(spec, parameters, claim.seed)
    known = (None, None) if settings is None else (attributes(settings), settings.mtd)
    if not study.store.begin(claim, parameters, *known, in_optuna=study.optuna.needs_running):
        raise ClaimLost
    folder = study.checkpoints / f"{claim.setting}-{claim.seed}"
    ended = Ended(Result("FAIL", mistake, reason_code="error"))
    if settings is not None:
        run = TrialRun(study, claim, stop, heartbeat, folder)
        try:
            ended = objective.run(spec, settings, run)
        except Interrupted:
            study.store.release(claim.row, study.owner)
            return None
    note, result = _record(study, claim, ended, folder), ended.result
    score = result.values.get("score", math.nan)
    return FinishedTrial(
        claim.number,
        claim.seed,
        parameters,
        result.state,
        result.reason,
        math.nan if settings is None or settings.mtd is None else settings.mtd,
        score,
        result.scores.get(study.select_by, score),
        result.values.get("wall_seconds", math.nan),
        note,
    )


def attributes(settings: RunSettings) -> dict[str, Any]:
    """A run's settings and its MTD by name."""
    return settings.model_dump() | {"mtd": settings.mtd}


def _settings(
    spec: StudySpec, parameters: dict[str, Any], seed: int
) -> tuple[RunSettings | None, str]:
    """The settings of a trial; None and the rule that they break, if sampled ones break one."""
    try:
        return spec.settings(parameters, seed), ""
    except ValidationError as error:
        return None, first_error(error)


def _record(study: OpenStudy, claim: Claim, ended: Ended, folder: Path) -> str:
    """Record a trial's result, keep what belongs to it, remove its folder; returns its note."""
    if not study.store.finish(claim, study.owner, ended.result):
        raise ClaimLost
    notes = [*ended.notes, *ended.keep()]
    # after the model, which is staged there
    remove_checkpoints_of(folder)
    note = "; ".join(filter(None, notes))
    if note:
        study.store.add_note(claim, note)
    return note
