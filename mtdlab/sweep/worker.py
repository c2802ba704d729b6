"""One trial is one function: claim, run, classify, record."""

import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from mtdlab.errors import ConnectionLost, StorageError
from mtdlab.settings import RunSettings, first_error
from mtdlab.store import FinishedTrial, Result
from mtdlab.store.restarts import MOST_LOST, expect_server, retry_lost
from mtdlab.store.store import open_store
from mtdlab.sweep.heartbeat import ClaimLost, Heartbeat
from mtdlab.sweep.model_folders import remove_checkpoints_of
from mtdlab.sweep.objective import Objective
from mtdlab.sweep.objectives import objective_of
from mtdlab.sweep.open_study import check_unchanged
from mtdlab.sweep.signals import Interrupted, StopRequest
from mtdlab.sweep.study import Job, OpenStudy, TrialRun, deleted
from mtdlab.terminal import lent_streams
from mtdlab.user_code import ended_forks

_LOG = logging.getLogger(__name__)


@lru_cache(maxsize=1)
def open_in_process(job: Job) -> OpenStudy:
    """A study, opened once per process: connections must not be shared between processes.

    Raises:
        MtdlabError: if it is no longer in the database.
    """
    expect_server(job.url)
    store = open_store(job.url, job.spec.name)
    if store is None:
        raise deleted(job.spec)
    return OpenStudy(job, store)


def run_next(job: Job, stop: StopRequest) -> FinishedTrial | None:
    """Claim a waiting trial and run it to its end; None where none can be claimed.

    A trial that fails is recorded and returned, not raised. One that is interrupted, or loses its
    connection to the database, goes back to waiting with its checkpoint, from which the next worker
    continues. Raises StorageError where the database fails.
    """
    if stop.requested():
        return None
    job.spec.ensure_imported()
    # before the claim, since it may import torch and transformers, which takes seconds
    objective = objective_of(job.spec)
    study = open_in_process(job)
    try:
        ended = _claim_and_run(objective, study, stop)
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
    objective: Objective, study: OpenStudy, stop: StopRequest
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
        check_unchanged(study.spec, study.store)
        with Heartbeat(study.store, claim) as heartbeat, lent_streams(), ended_forks():
            return _run(objective, TrialRun(study, claim, stop, heartbeat))
    except ClaimLost:
        return None
    except ConnectionLost:
        retry_lost(lambda: study.store.release(claim))
        raise
    except BaseException:
        # this process may live on, as that of a notebook, and would own the trial for ever
        with suppress(StorageError):
            study.store.release(claim)
        raise


def _run(objective: Objective, run: TrialRun) -> FinishedTrial | None:
    """Run a claimed trial; None if it was interrupted. Raises ClaimLost."""
    study, claim = run.study, run.claim
    parameters = claim.parameters
    if parameters is None:
        parameters = study.optuna.draw(claim)
    settings, mistake = None, ""
    try:
        settings = study.spec.settings(parameters, claim.seed, claim.role)
    except ValidationError as error:
        # sampled ones, which break a rule of the method
        mistake = first_error(error)
    known = (None, None) if settings is None else (without_seed(settings), settings.mtd)
    if not study.store.begin(claim, parameters, *known):
        raise ClaimLost
    notes: Sequence[str] = ()
    try:
        if settings is None:
            run.record(Result("FAIL", mistake, reason_code="error"))
        else:
            notes = objective.run(settings, run)
    except Interrupted:
        study.store.release(claim)
        return None
    # after the model, which is staged there
    remove_checkpoints_of(run.folder)
    if note := "; ".join(filter(None, notes)):
        study.store.add_note(claim, note)
    return study.store.ended_trial(claim)


def without_seed(settings: RunSettings) -> dict[str, Any]:
    """A run's settings by name, as they are recorded beside its seed and its MTD."""
    return {name: value for name, value in settings.model_dump().items() if name != "seed"}
