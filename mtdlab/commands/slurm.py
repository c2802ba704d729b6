"""The command slurm, which records a study and writes a job array of workers."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.invocation import Invocation
from mtdlab.api.given import Given, as_options
from mtdlab.api.plan import NoEstimate, find_costs, find_ended, read_begun
from mtdlab.commands import options as opt
from mtdlab.commands.show import report_command
from mtdlab.errors import MtdlabError, refusing
from mtdlab.methods.user_modules import present_evaluator
from mtdlab.terminal import print_text, warn

if TYPE_CHECKING:
    from mtdlab.config.study import StudySpec
    from mtdlab.slurm.array import Script


def slurm(
    file: opt.StudyFile,
    storage: opt.Storage = None,
    models: opt.Models = opt.MODELS,
    profile: opt.Profile = None,
    set_: opt.Overrides = None,
    import_: opt.Imports = None,
    evaluator: opt.Evaluator = None,
    objective: opt.Objective = None,
    tasks: Annotated[
        int | None, typer.Option(min=1, max=1_000_000, help="Tasks. Default: from the estimate.")
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Time limit of a task: minutes or HH:MM:SS. Default: from the estimate.",
        ),
    ] = None,
    gpus: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=64,
            help="GPUs of a task, with a worker on each. Default: 1 if the study uses a GPU.",
        ),
    ] = None,
    partition: Annotated[str | None, typer.Option(help="Partition of the cluster.")] = None,
    account: Annotated[str | None, typer.Option(help="Account that is charged.")] = None,
    sbatch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=VALUE", help="Another option of sbatch (repeatable): qos=low, mem=4G."
        ),
    ] = None,
    max_array_size: Annotated[
        int | None,
        typer.Option(
            min=0, help="MaxArraySize of the cluster. Default: what scontrol says, or 1001."
        ),
    ] = None,
    measure: opt.Measure = True,
    out: Annotated[Path | None, typer.Option(help="File to write. Default: STUDY.sbatch.")] = None,
) -> None:
    """Record a study and write a Slurm script that runs its trials in a job array.

    Each task is an `mtdlab worker`, with time, memory and cores from the estimate of `plan`. At its
    time limit and when it is preempted a task saves a checkpoint and requeues itself.
    """
    from mtdlab.slurm.array import Script, derive, parse_time, read_options
    from mtdlab.slurm.array import max_array_size as ask_size
    from mtdlab.store.urls import mask, sqlite_file, storage_url, without_password
    from mtdlab.sweep.open_study import has_trials_left
    from mtdlab.sweep.run import Execution, sweep

    named = {"partition": partition, "account": account}
    options = [f"{option}={value}" for option, value in named.items() if value is not None]
    given_options = read_options([*options, *(sbatch or [])])
    seconds = None if time is None else parse_time(time)
    size = ask_size(max_array_size)
    given = Given(file, profile, set_, import_, evaluator, objective, storage)
    url = storage_url(storage)
    spec = read_begun(given)
    if not has_trials_left(spec, url):
        print_text(f"nothing is left to run; next: {report_command(spec.name, url)}")
        return
    path = out or Path(f"{spec.name}.sbatch")
    unwritable, other_file = f"--out {path}: the script cannot be written", "name another file"
    if path.is_dir() or not path.parent.is_dir():
        reason = "is a folder" if path.is_dir() else "no such folder"
        raise MtdlabError(f"{unwritable}: {reason}; {other_file}")
    ended = find_ended(spec, url)
    # a study that a look may extend can have none left now
    trials = sum(trial.key not in ended for trial in spec.planned_trials())
    gpus = _gpus(spec) if gpus is None else gpus
    costs = find_costs(spec, gpus or None, 1, ended) if measure and trials else None
    if isinstance(costs, NoEstimate):
        warn(f"no estimate: {costs.reason}")
        costs = None
    resources = derive(max(1, trials), costs, tasks=tasks, seconds=seconds, gpus=gpus)
    is_secret = without_password(url) != url
    shown = None if is_secret else url
    job = Script(
        study=spec.name,
        trials=trials,
        resources=resources,
        command=_worker(given, spec.name, shown, models, resources.workers),
        url_is_secret=is_secret,
        options=given_options,
        folder=Path.cwd(),
        logs=path.absolute().with_name(f"{path.stem}-logs"),
        size=min(resources.tasks, size),
    )
    text = job.text()
    # a sweep that runs none of the trials records them
    sweep(spec, url, Execution(jobs=0), models=models, invocation=given.invocation(models))
    with refusing(OSError, what=unwritable, hint=other_file):
        job.logs.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    if sqlite_file(url) is not None:
        warn(
            f"{mask(url)} is one file, and network file systems do not lock it reliably; "
            "use PostgreSQL, unless all tasks run on one node with the file on its local disk"
        )
    print_text("\n".join(_describe(job, path, url)))


def _worker(given: Given, study: str, url: str | None, models: Path, workers: int) -> list[str]:
    """The command of a task; without a URL it finds the database by its environment."""
    modules, program = given.code()
    function = present_evaluator()
    options = as_options(
        study=study,
        storage=url,
        models=str(models),
        # by their paths: a worker has no study file, in whose folder it could look them up
        import_=[module.spec for module in modules],
        evaluator=function.spec if function else None,
        objective=f"{program.module.spec}:{program.function}" if program else None,
        jobs=str(workers) if workers > 1 else None,
    )
    # by the path of this Python, since a node has another PATH; -P: modules in the working folder
    # do not hide installed ones
    return [sys.executable, "-P", "-m", *Invocation("worker", options=options).words]


def _gpus(spec: "StudySpec") -> int:
    """The number of GPUs of a task: one where the study asks for one or would take one here."""
    import torch

    from mtdlab.config.method_study import MethodSpec

    if not isinstance(spec, MethodSpec):
        return 0  # a program takes its own
    devices = {spec.fixed(method).device for method in spec.methods}
    wanted = any(device.startswith("cuda") for device in devices)
    return int(wanted or ("auto" in devices and torch.cuda.is_available()))


def _describe(job: "Script", path: Path, url: str) -> list[str]:
    """The lines on what was written, what each task asks for and why, and what to do next."""
    from mtdlab.slurm.array import format_time, submissions
    from mtdlab.store.urls import mask

    near, asked = Path(os.path.relpath(path)), job.resources
    commands = submissions(near, asked.tasks, job.size)
    lines = [
        f"study {job.study}: {format_count(job.trials, 'trial')} left, recorded in {mask(url)}",
        f"script {near}, logs in {os.path.relpath(job.logs)}",
    ]
    values = {
        "tasks": (str(asked.tasks), None),
        "time": (format_time(asked.seconds), None),
        "memory": (f"{asked.memory} M" if asked.memory else "not set", job.options.get("mem")),
        "cores": (str(asked.cpus), job.options.get("cpus-per-task")),
    }
    for name, (value, given) in values.items():
        shown = f"{value}: {asked.reasons[name]}" if given is None else f"{given}: as given"
        lines.append(f"  {name:7} {shown}")
    if asked.gpus:
        lines.append(f"  GPUs    {asked.gpus}: a worker on each")
    lines.append(
        f"  signal  USR1 {asked.lead} s before the limit; at most {asked.timeouts} requeues at it"
    )
    if job.url_is_secret:
        lines.append(
            "the script holds no password: export MTDLAB_STORAGE before sbatch, or leave the "
            "password to ~/.pgpass and write the script again"
        )
    if len(commands) > 1:
        lines.append(f"an array has at most {job.size} tasks (MaxArraySize): submit all of these")
    lines += [f"next: {command}" for command in commands]
    return [*lines, f"then: {report_command(job.study, url)}"]
