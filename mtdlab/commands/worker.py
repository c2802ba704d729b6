"""The commands worker and stop: processes that share a study, on any number of machines."""

from pathlib import Path
from typing import Annotated

import typer

from mtdlab.commands.options import (
    AsJson,
    Evaluator,
    Imports,
    JobsPerGpu,
    MaxFailed,
    Models,
    Objective,
    Storage,
    StudyName,
    StudyOption,
    find_code,
    this_command,
)
from mtdlab.terminal import print_text


def worker(
    study: StudyOption,
    storage: Storage = None,
    jobs: Annotated[
        int, typer.Option(min=1, help="Worker processes. With one, trials run in this process.")
    ] = 1,
    jobs_per_gpu: JobsPerGpu = 1,
    models: Models = Path("models"),
    import_: Imports = None,
    evaluator: Evaluator = None,
    objective: Objective = None,
    max_failed: MaxFailed = None,
    wait: Annotated[
        bool,
        typer.Option(
            "--wait",
            help="Stay until no process runs a trial of the study, to run those of processes that "
            "die.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Run trials of a study that a sweep has recorded; no study file is needed.

    Any number of workers and sweeps share a study, on one machine or, with PostgreSQL, on many.
    `mtdlab sweep FILE --jobs 0` records a study and runs none of its trials.
    """
    from mtdlab.commands.sweep_summary import print_result
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.recorded_study import read_defined
    from mtdlab.sweep.run import sweep
    from mtdlab.sweep.signals import ended_by_signals

    url = storage_url(storage)
    with ended_by_signals():
        code = find_code(import_, evaluator, objective)
        spec, recorded_command = read_defined(study, url, *code)
        result = sweep(
            spec,
            url,
            models=models,
            jobs=jobs,
            jobs_per_gpu=jobs_per_gpu,
            max_failed=max_failed,
            wait=wait,
            command=recorded_command,
        )
    raise typer.Exit(print_result(result, spec, models, this_command(), as_json=as_json))


def stop(study: StudyName, storage: Storage = None) -> None:
    """Request that every sweep and worker of a study stops, on whichever machine it runs.

    Each stops within seconds, after the current step of its trials, which it saves. Its exit code
    is that of SIGTERM, 143.
    """
    from mtdlab.store import Store
    from mtdlab.store.names import find_id
    from mtdlab.store.recorded import read_recorded
    from mtdlab.store.urls import storage_url

    url = storage_url(storage)
    read_recorded(url, study)
    identity = find_id(url, study)
    owners = [] if identity is None else Store(url, identity).request_stop()
    if not owners:
        print_text(f"no sweep or worker runs study {study}")
    for owner in owners:
        print_text(f"requested to stop: process {owner['pid']} on {owner['host']}")
