"""The commands sweep, worker and stop, for processes that share a study on any machines."""

from typing import Annotated

import typer

from mtdlab.api.given import Given
from mtdlab.commands import options as opt
from mtdlab.terminal import print_text
from mtdlab.trial.signals import ended_by_signals


def sweep(
    context: typer.Context,
    file: opt.StudyFile,
    storage: opt.Storage = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Worker processes. Default: one a core, or GPU. 0: record the trials and run "
            "none, for mtdlab worker.",
        ),
    ] = None,
    jobs_per_gpu: opt.JobsPerGpu = 1,
    models: opt.Models = opt.MODELS,
    artifacts: opt.Artifacts = None,
    profile: opt.Profile = None,
    set_: opt.Overrides = None,
    import_: opt.Imports = None,
    evaluator: opt.Evaluator = None,
    objective: opt.Objective = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed trials again.")
    ] = False,
    changed_code: Annotated[
        bool,
        typer.Option(
            "--changed-code",
            help="With --retry-failed: also with code of your own that has changed since.",
        ),
    ] = False,
    max_failed: opt.MaxFailed = None,
    backend: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="What runs the trials: processes, of this machine, or dask, a cluster's workers.",
        ),
    ] = "processes",
    scheduler: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Scheduler of the dask cluster, tcp://HOST:PORT. Also: DASK_SCHEDULER_ADDRESS.",
        ),
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Run or resume a study. Sweeps that run at the same time share its trials.

    Relative paths in the file are looked up in its folder, then in the working folder, then in
    MTDLAB_DATA; those of --set in the working folder first.
    """
    from mtdlab.commands.sweep_summary import print_result
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.cluster import find_scheduler
    from mtdlab.sweep.run import Execution
    from mtdlab.sweep.run import sweep as run

    # what continues the study runs what failed again only where that is asked for
    invocation = opt.invocation_of(context).without("retry-failed").without("changed-code")
    if jobs == 0:
        # the command that resumes the study runs its trials
        invocation = invocation.without("jobs")
    given = Given(file, profile, set_, import_, evaluator, objective)
    with ended_by_signals():
        spec = given.read()
        result = run(
            spec,
            storage_url(storage),
            Execution(
                jobs,
                jobs_per_gpu,
                retry_failed,
                changed_code,
                max_failed,
                scheduler=find_scheduler(backend, scheduler, jobs),
            ),
            models=models,
            artifacts=artifacts,
            invocation=invocation,
        )
    raise typer.Exit(print_result(result, spec, models, invocation, as_json=as_json))


def worker(
    context: typer.Context,
    study: opt.StudyOption,
    storage: opt.Storage = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Worker processes. With one, trials run in this process.")
    ] = 1,
    jobs_per_gpu: opt.JobsPerGpu = 1,
    models: opt.Models = opt.MODELS,
    import_: opt.Imports = None,
    evaluator: opt.Evaluator = None,
    objective: opt.Objective = None,
    max_failed: opt.MaxFailed = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Stay until no process runs a trial of the study, to run those of processes that "
            "die.",
        ),
    ] = False,
    as_json: opt.AsJson = False,
) -> None:
    """Run trials of a study that a sweep has recorded; no study file is needed.

    Any number of workers and sweeps share a study, on one machine or, with PostgreSQL, on many.
    `mtdlab sweep FILE --jobs 0` records a study and runs none of its trials.
    """
    from mtdlab.commands.sweep_summary import print_result
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.run import Execution, sweep
    from mtdlab.trial.recorded_study import read_defined

    url = storage_url(storage)
    with ended_by_signals():
        given = Given(import_=import_, evaluator=evaluator, objective=objective)
        spec, recorded = read_defined(study, url, *given.code())
        result = sweep(
            spec,
            url,
            Execution(jobs, jobs_per_gpu, max_failed=max_failed, wait=wait),
            models=models,
            invocation=recorded,
        )
    invocation = opt.invocation_of(context)
    raise typer.Exit(print_result(result, spec, models, invocation, as_json=as_json))


def stop(study: opt.StudyName, storage: opt.Storage = None) -> None:
    """Request that every sweep and worker of a study stops, on whichever machine it runs.

    Each stops within seconds, after the current step of its trials, which it saves. Its exit code
    is that of SIGTERM, 143.
    """
    from mtdlab.store.recorded import read_recorded
    from mtdlab.store.store import Store
    from mtdlab.store.urls import storage_url

    url = storage_url(storage)
    owners = Store(url, read_recorded(url, study).id).request_stop()
    if not owners:
        print_text(f"no sweep or worker runs study {study}")
    for owner in owners:
        print_text(f"requested to stop: process {owner['pid']} on {owner['host']}")
