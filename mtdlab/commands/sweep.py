"""The command sweep."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from mtdlab.commands.options import (
    Artifacts,
    AsJson,
    Evaluator,
    Imports,
    Jobs,
    JobsPerGpu,
    Models,
    Objective,
    Overrides,
    Profile,
    Storage,
    StudyFile,
    find_objective,
    import_named,
)
from mtdlab.commands.printing import print_json
from mtdlab.terminal import print_text


def sweep(
    file: StudyFile,
    storage: Storage = None,
    jobs: Jobs = None,
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
    max_failed: Annotated[
        int | None,
        typer.Option(
            "--max-failed",
            min=1,
            metavar="N",
            help="Stop, with exit code 1, when N trials of the study have failed.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Run or resume a study. Sweeps that run at the same time share its trials.

    Relative paths in the file are looked up in its folder, then in the working folder, then in
    MTDLAB_DATA; those of --set in the working folder first.
    """
    from mtdlab.commands.sweep_summary import summary_fields, summary_lines
    from mtdlab.config import read_study
    from mtdlab.store.urls import storage_url, without_passwords
    from mtdlab.sweep.finished import describe_look
    from mtdlab.sweep.run import sweep as run
    from mtdlab.sweep.signals import ended_by_signals

    command = without_passwords(shlex.join(["mtdlab", *sys.argv[1:]]))
    with ended_by_signals():
        modules = import_named(import_, file, evaluator)
        program = find_objective(objective, file)
        spec = read_study(file, set_ or [], profile, modules, program)
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
            command=command,
        )
    if as_json:
        print_json(summary_fields(result, models, command))
    else:
        print_text("\n".join(summary_lines(result, models, command)))
        if result.look:
            print_text(describe_look(result.look, len(spec.looks)))
    raise typer.Exit(result.exit_code)
