"""The command sweep."""

from pathlib import Path
from typing import Annotated

import typer

from mtdlab.commands.options import (
    Artifacts,
    AsJson,
    Evaluator,
    Imports,
    JobsPerGpu,
    MaxFailed,
    Models,
    Objective,
    Overrides,
    Profile,
    Storage,
    StudyFile,
    find_code,
    this_command,
)


def sweep(
    file: StudyFile,
    storage: Storage = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            min=0,
            show_default=False,
            help="Worker processes. Default: one a core, or GPU. 0: record the trials and run "
            "none, for mtdlab worker.",
        ),
    ] = None,
    jobs_per_gpu: JobsPerGpu = 1,
    models: Models = Path("models"),
    artifacts: Artifacts = None,
    profile: Profile = None,
    set_: Overrides = None,
    import_: Imports = None,
    evaluator: Evaluator = None,
    objective: Objective = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Run failed trials again.")
    ] = False,
    max_failed: MaxFailed = None,
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
            show_default=False,
            help="Scheduler of the dask cluster, tcp://HOST:PORT. Also: DASK_SCHEDULER_ADDRESS.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run or resume a study. Sweeps that run at the same time share its trials.

    Relative paths in the file are looked up in its folder, then in the working folder, then in
    MTDLAB_DATA; those of --set in the working folder first.
    """
    from mtdlab.commands.sweep_summary import print_result
    from mtdlab.config import read_study
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.cluster import find_scheduler
    from mtdlab.sweep.run import sweep as run
    from mtdlab.sweep.signals import ended_by_signals

    command = this_command()
    with ended_by_signals():
        code = find_code(import_, evaluator, objective, file)
        spec = read_study(file, set_ or [], profile, *code)
        url = storage_url(storage)
        result = run(
            spec,
            url,
            models=models,
            artifacts=artifacts,
            jobs=jobs,
            jobs_per_gpu=jobs_per_gpu,
            retry_failed=retry_failed,
            max_failed=max_failed,
            scheduler=find_scheduler(backend, scheduler, jobs),
            command=command,
        )
    raise typer.Exit(print_result(result, spec, models, command, as_json=as_json))
