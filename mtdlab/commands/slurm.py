"""The command slurm: writes a job array of workers."""

from pathlib import Path
from typing import Annotated

import typer

from mtdlab.commands.options import (
    Evaluator,
    Imports,
    Models,
    Objective,
    Overrides,
    Profile,
    Storage,
    StudyFile,
    find_code,
    models_option,
    written_options,
)
from mtdlab.terminal import print_text


def slurm(
    file: StudyFile,
    storage: Storage = None,
    models: Models = Path("models"),
    profile: Profile = None,
    set_: Overrides = None,
    import_: Imports = None,
    evaluator: Evaluator = None,
    objective: Objective = None,
    tasks: Annotated[
        int | None,
        typer.Option(
            min=1, max=1_000_000, show_default=False, help="Tasks. Default: from the estimate."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            show_default=False,
            help="Time limit of a task: minutes or HH:MM:SS. Default: from the estimate.",
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=64,
            show_default=False,
            help="GPUs of a task, with a worker on each. Default: 1 if the study uses a GPU.",
        ),
    ] = None,
    partition: Annotated[
        str | None, typer.Option(show_default=False, help="Partition of the cluster.")
    ] = None,
    account: Annotated[
        str | None, typer.Option(show_default=False, help="Account that is charged.")
    ] = None,
    sbatch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=VALUE", help="Another option of sbatch (repeatable): qos=low, mem=4G."
        ),
    ] = None,
    max_array_size: Annotated[
        int | None,
        typer.Option(
            min=0,
            show_default=False,
            help="MaxArraySize of the cluster. Default: what scontrol says, or 1001.",
        ),
    ] = None,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure/--no-measure", help="Time a few steps to estimate the cost on this machine."
        ),
    ] = True,
    out: Annotated[
        Path | None, typer.Option(help="File to write. Default: STUDY.sbatch.", show_default=False)
    ] = None,
) -> None:
    """Record a study and write a Slurm script that runs its trials in a job array.

    Each task is an `mtdlab worker`, with time, memory and cores from the estimate of `plan`. At its
    time limit and when it is preempted a task saves a checkpoint and requeues itself.
    """
    from mtdlab.commands.slurm_job import (
        Asked,
        describe_job,
        plan_job,
        record,
        save_script,
        warn_of_file,
    )
    from mtdlab.config import read_study
    from mtdlab.methods.user_evaluator import present_evaluator
    from mtdlab.slurm.cluster import max_array_size as ask_size
    from mtdlab.slurm.resources import parse_time
    from mtdlab.slurm.script import read_options
    from mtdlab.store.urls import storage_url
    from mtdlab.sweep.preflight import has_trials_left
    from mtdlab.sweep.recorded_study import as_begun

    named = {"partition": partition, "account": account}
    options = [f"{option}={value}" for option, value in named.items() if value is not None]
    asked = Asked(
        tasks=tasks,
        seconds=parse_time(time) if time is not None else None,
        gpus=gpus,
        options=read_options([*options, *(sbatch or [])]),
        size=ask_size(max_array_size),
        measure=measure,
    )
    modules, program = find_code(import_, evaluator, objective, file)
    url = storage_url(storage)
    spec = as_begun(read_study(file, set_ or [], profile, modules, program), url)
    if not has_trials_left(spec, url):
        print_text(f"nothing is left to run; next: mtdlab report --study {spec.name}")
        return
    code = written_options(import_=import_, evaluator=evaluator, objective=objective)
    study = written_options(profile=profile, set_=set_, storage=storage)
    path = out or Path(f"{spec.name}.sbatch")
    # by their paths: a worker has no study file, in whose folder it could look them up
    function = present_evaluator()
    found = written_options(
        import_=[module.spec for module in modules],
        evaluator=function.spec if function else None,
        objective=f"{program.module.spec}:{program.function}" if program else None,
    )
    job = plan_job(spec, url, asked, path, models, found)
    folder = written_options(models=models_option(models))
    record(spec, url, models, ["mtdlab", "sweep", str(file), *study, *code, *folder])
    save_script(job, path)
    warn_of_file(url)
    print_text("\n".join(describe_job(job, path, url)))
