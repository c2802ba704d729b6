"""The loop of a worker. One trial is one function: claim, run, classify, record."""

import logging
import traceback
from collections.abc import Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

from pydantic import ValidationError

from mtdlab.errors import ConnectionLost, MtdlabError, StorageError, one_line
from mtdlab.settings import RunSettings, first_error
from mtdlab.store.claims import Result
from mtdlab.store.restarts import MOST_ATTEMPTS, expect_server, retry_lost
from mtdlab.store.store import open_store, record_error
from mtdlab.terminal import following_phases, lent_streams
from mtdlab.trial.heartbeat import ClaimLost, Heartbeat
from mtdlab.trial.model_folders import remove_checkpoints_of
from mtdlab.trial.recorded_study import check_unchanged
from mtdlab.trial.signals import Interrupted, StopRequest
from mtdlab.trial.study import Job, OpenStudy, TrialRun, deleted, objective_of
from mtdlab.user_code import ended_forks

_LOG = logging.getLogger(__name__)
CLAIM_SECONDS = 0.5
"""Between two attempts to claim a trial, while none waits that can be claimed."""


@lru_cache(maxsize=1)
def open_in_process(job: Job) -> OpenStudy:
    """A study, opened once per process: connections cannot be shared. MtdlabError if it is gone."""
    expect_server(job.url)
    if (store := open_store(job.url, job.spec.name)) is None:
        raise deleted(job.spec)
    return OpenStudy(job, store)


def work(job: Job, sweep: int, stop: StopRequest) -> bool:
    """Claim, run and record waiting trials until none can be claimed; whether one was claimed.

    Every worker of a sweep calls it, in whichever process; `sweep` is the row of the sweep. A trial
    that fails is recorded. One that is interrupted, or loses its connection to the database, goes
    back to waiting with its checkpoint, from which the next worker continues. Raises StorageError
    where the database fails, and MtdlabError where the study is no longer that of the job.
    """
    job.spec.ensure_imported()
    # before the claim, since it may import torch and transformers, which takes seconds
    objective_of(job.spec)
    study, lost, has_claimed = open_in_process(job), 0, False
    while not stop.requested():
        try:
            if not _run_next(study, sweep, stop):
                return has_claimed
            lost, has_claimed = 0, True
        except ConnectionLost as error:
            lost += 1
            if lost == MOST_ATTEMPTS:
                raise
            _LOG.warning("%s; the trial continues from its checkpoint", error)
    return has_claimed


def _run_next(study: OpenStudy, sweep: int, stop: StopRequest) -> bool:
    """Claim a trial and run it to its end, or until it is interrupted; False if none was."""
    try:
        claim = study.store.claim(study.owner, sweep)
    except ConnectionLost:
        # it may have been committed
        retry_lost(lambda: study.store.release_without_steps(study.owner))
        raise
    if claim is None:
        return False
    try:
        if claim.version != study.version:
            check_unchanged(study.spec, study.reread())
            study.version = claim.version
        with (
            Heartbeat(study.store, claim) as heartbeat,
            following_phases(heartbeat.begin_phase),
            lent_streams(),
            ended_forks(),
        ):
            _run(TrialRun(study, claim, stop, heartbeat))
    except ClaimLost:
        pass
    except ConnectionLost:
        retry_lost(lambda: study.store.release(claim))
        raise
    except BaseException:
        # this process may live on, as that of a notebook, and would own the trial for ever
        with suppress(StorageError):
            study.store.release(claim)
        raise
    return True


def _run(run: TrialRun) -> None:
    """Run a claimed trial to its end, or release it if it is interrupted. Raises ClaimLost."""
    study, claim = run.study, run.claim
    parameters = study.optuna.draw(claim) if claim.parameters is None else claim.parameters
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
            notes = objective_of(study.spec).run(settings, run)
    except Interrupted:
        study.store.release(claim)
        return
    # after the model, which is staged there
    remove_checkpoints_of(run.folder)
    if note := "; ".join(filter(None, notes)):
        study.store.add_note(claim, note)


def report_error(url: str, sweep: int, error: Exception) -> int:
    """Record an error with the row of the sweep, which it ends; the exit code of the process."""
    recorded: dict[str, Any]
    if isinstance(error, MtdlabError):
        recorded = {"exit_code": error.exit_code, "message": str(error)}
    else:
        whole = "".join(traceback.format_exception(error))
        recorded = {"exit_code": 1, "message": one_line(error), "traceback": whole}
    # a database that fails is found by the sweep too
    with suppress(StorageError):
        record_error(url, sweep, recorded)
    return int(recorded["exit_code"])


def without_seed(settings: RunSettings) -> dict[str, Any]:
    """A run's settings by name, as they are recorded beside its seed and its MTD."""
    return {name: value for name, value in settings.model_dump().items() if name != "seed"}
