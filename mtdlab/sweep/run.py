"""A sweep runs the trials of a study that are not done yet.

It is idempotent: run again it resumes the study, and sweeps that run at the same time share it.
"""

import time
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mtdlab.analysis.data.defaults import MODELS_FOLDER
from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.config.study import StudySpec
from mtdlab.errors import MtdlabError
from mtdlab.store.progress import StudyOverview
from mtdlab.store.ranking import FinishedTrial
from mtdlab.store.restarts import retry_lost
from mtdlab.store.tables import LookRow
from mtdlab.sweep.cluster import Cluster
from mtdlab.sweep.engine import Engine, Processes, ThisProcess, Work
from mtdlab.sweep.open_study import check_same_inputs, has_trials_left, open_study
from mtdlab.sweep.supervisor import Supervisor
from mtdlab.terminal import Phases, begin_phase, following_phases, warn
from mtdlab.training.present import check_study
from mtdlab.trial.artifacts import Artifacts, choose_artifacts, refuse_other_artifacts
from mtdlab.trial.heartbeat import recorded_sweep
from mtdlab.trial.recorded_study import with_recorded_values
from mtdlab.trial.references import add_references
from mtdlab.trial.signals import StopRequest, stop_on_signals
from mtdlab.trial.study import Job, OpenStudy, deleted, modules_of, objective_of


@dataclass(frozen=True)
class SweepResult(StudyOverview):
    """The state of a study after a sweep, and the exit code.

    Attributes:
        too_many_failed: whether they are `max_failed` or more, which ended the sweep.
        keeps_models: whether a model is saved: not by a program of the user.
    """

    storage: str = field(repr=False)
    ran: int
    seconds: float
    exit_code: int
    look: LookRow | None = None
    failures: tuple[FinishedTrial, ...] = ()
    too_many_failed: bool = False
    keeps_models: bool = True


@dataclass(frozen=True)
class Execution:
    """How a sweep runs its trials, by arguments of `mtdlab.run_study`; which ones is the study's.

    With 0 `jobs` trials are recorded and none is run. With `wait` a sweep ends only when no other
    process runs a trial of the study.
    """

    jobs: int | None = None
    jobs_per_gpu: int = 1
    retry_failed: bool = False
    changed_code: bool = False
    max_failed: int | None = None
    wait: bool = False
    scheduler: str | None = None


def sweep(
    spec: StudySpec,
    url: str,
    execution: Execution,
    *,
    models: Path = Path(MODELS_FOLDER),
    artifacts: str | None = None,
    invocation: Invocation = NO_INVOCATION,
) -> SweepResult:
    """Run or resume a study; `models` and `artifacts` are those of `mtdlab.run_study`.

    Raises MtdlabError where the study was begun with other settings than the file's, or where an
    encoder, a text or the shared place is missing, or is not that of its first sweep; StorageError
    where the database fails.
    """
    started = time.perf_counter()
    if execution.changed_code and not execution.retry_failed:
        raise MtdlabError("--changed-code runs failed trials alone; give --retry-failed with it")
    job = Job(with_recorded_values(spec, url), url, models.absolute())
    spec, runs = job.spec, execution.jobs != 0
    place = choose_artifacts(job, artifacts)
    with ExitStack() as opened:
        opened.enter_context(following_phases(Phases(format_seconds)))
        engine: Engine = ThisProcess()
        inputs: dict[str, Any] | None = None
        if has_trials_left(spec, url, retry_failed=execution.retry_failed):
            for warning in spec.warnings():
                warn(warning)
            # before the seconds that importing torch takes
            check_study(spec)
            begin_phase("importing the packages that train")
            if runs:
                engine = _engine(spec, execution)
                opened.enter_context(closing(engine))
            inputs = objective_of(spec).check(job)
        if place is not None and (inputs is not None or artifacts is not None):
            Artifacts(place).check()
        changed_code = execution.changed_code
        store = open_study(spec, url, invocation, changed_code=changed_code, notify=warn)
        if place is not None:
            refuse_other_artifacts(spec.name, store.record_once("artifacts", place), place)
        if execution.retry_failed:
            store.retry_failed()
        if inputs:
            warn(check_same_inputs(spec.name, store, inputs))
        stop = opened.enter_context(stop_on_signals())
        row = opened.enter_context(recorded_sweep(store, stop, execution.max_failed))
        study = OpenStudy(job, store)
        work = Work(study, row, stop)
        supervisor = Supervisor(work, engine, execution.max_failed, wait=execution.wait)
        if runs:
            if inputs is not None:
                warn(objective_of(spec).prepare(study))
            engine.lead(supervisor.run)
            if not stop.requested() and (place or study.checkpoints.exists()):
                retry_lost(partial(objective_of(spec).restore, study))
        if not stop.requested():
            # what it needs may be on another machine alone
            with suppress(MtdlabError):
                add_references(url, spec.name, goes_on=lambda: not stop.requested())
    return retry_lost(lambda: _result(study, supervisor, stop, started))


def _engine(spec: StudySpec, execution: Execution) -> Engine:
    """What runs the workers; processes import their modules while the inputs are checked."""
    if execution.scheduler is not None:
        return Cluster(execution.scheduler)
    # it imports torch
    from mtdlab.trial.slots import default_jobs, threads_each

    jobs = execution.jobs or default_jobs(execution.jobs_per_gpu)
    most = min(jobs, len(spec.planned_trials()))
    if most == 1:
        return ThisProcess()
    first = min(most, sum(map(spec.begins_with, spec.planned_trials())))
    return Processes(most, threads_each(first), modules_of(spec))


def _result(
    study: OpenStudy, supervisor: Supervisor, stop: StopRequest, started: float
) -> SweepResult:
    """The result of a sweep that has ended; `started`, by `time.perf_counter`."""
    store = study.store
    if (overview := store.overview()) is None:
        raise deleted(study.spec)
    failures = tuple(store.failures())
    code = 3 if failures else 0
    return SweepResult(
        **vars(overview),
        storage=study.job.url,
        ran=supervisor.ran,
        seconds=time.perf_counter() - started,
        exit_code=1 if supervisor.too_many_failed else stop.exit_code or code,
        look=store.last_look(),
        failures=failures,
        too_many_failed=supervisor.too_many_failed,
        keeps_models=study.spec.keeps_models,
    )
