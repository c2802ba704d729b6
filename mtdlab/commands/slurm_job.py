"""What the command slurm does: derives the resources, records the study, writes the script."""

import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from mtdlab.commands.plan import ended_trials
from mtdlab.commands.plan_cost import find_costs
from mtdlab.config.program_study import ProgramSpec
from mtdlab.cost.estimate import ignore
from mtdlab.errors import MtdlabError
from mtdlab.slurm.resources import Resources, derive, written_time
from mtdlab.slurm.script import Script, submissions
from mtdlab.store.urls import shown, sqlite_file, without_passwords
from mtdlab.sweep.run import sweep
from mtdlab.terminal import print_text

if TYPE_CHECKING:
    from mtdlab.config import StudySpec


@dataclass(frozen=True)
class Asked:
    """What the user asks of the cluster; None where it is derived. size: MaxArraySize."""

    tasks: int | None
    seconds: int | None
    gpus: int | None
    options: Mapping[str, str]
    size: int
    measure: bool


def plan_job(
    spec: "StudySpec", url: str, asked: Asked, path: Path, models: Path, code: Sequence[str]
) -> Script:
    """Derive the resources, before anything is written.

    code  the options that name the user's code, for the workers.

    Raises MtdlabError where the file cannot be written.
    """
    path = path.absolute()
    _refuse_unwritable(path)
    trials, resources = _resources(spec, url, asked)
    script = Script(
        study=spec.name,
        trials=trials,
        resources=resources,
        command=_worker(spec.name, url, models, code, resources.workers),
        url_is_secret=_is_secret(url),
        options=asked.options,
        folder=Path.cwd(),
        logs=path.with_name(f"{path.stem}-logs"),
        size=min(resources.tasks, asked.size),
    )
    script.text()
    return script


def _resources(spec: "StudySpec", url: str, asked: Asked) -> tuple[int, Resources]:
    """The number of trials that are left, and what each task asks for.

    A study that a look may extend can have none left now.
    """
    ended = ended_trials(spec, url)
    trials = sum((unit.setting, unit.seed) not in ended for unit in spec.units())
    gpus = _gpus(spec) if asked.gpus is None else asked.gpus
    costs = {}
    if asked.measure and trials:
        # before anything is checked: it takes this process as one that has only imported
        costs = find_costs(spec, gpus or None, 1, ended, ignore)
    if "reason" in costs:
        print_text(f"mtdlab: no estimate: {costs['reason']}", file=sys.stderr)
    estimate = costs if "threads" in costs else None
    derived = derive(max(1, trials), estimate, tasks=asked.tasks, seconds=asked.seconds, gpus=gpus)
    return trials, derived


def _gpus(spec: "StudySpec") -> int:
    """GPUs of a task: one where the study asks for one, or would take one on this machine."""
    if isinstance(spec, ProgramSpec):
        return 0
    devices = {spec.fixed(method).device for method in spec.methods}
    wanted = any(device.startswith("cuda") for device in devices)
    return int(wanted or ("auto" in devices and torch.cuda.is_available()))


def _worker(study: str, url: str, models: Path, code: Sequence[str], jobs: int) -> list[str]:
    """The command of a task: by the path of this Python, since a node has another PATH.

    -P: modules in the working folder do not hide installed ones.
    """
    words = [sys.executable, "-P", "-m", "mtdlab", "worker", "--study", study]
    if not _is_secret(url):
        words += ["--storage", url]
    words += ["--models", str(models), *code]
    return [*words, "--jobs", str(jobs)] if jobs > 1 else words


def _is_secret(url: str) -> bool:
    return without_passwords(url) != url


def _refuse_unwritable(path: Path) -> None:
    if path.is_dir() or not path.parent.is_dir():
        raise _unwritable(path, "is a folder" if path.is_dir() else "no such folder")


def _unwritable(path: Path, reason: str) -> MtdlabError:
    return MtdlabError(
        f"--out {path}: the script cannot be written ({reason.lower()}); name another file"
    )


def save_script(job: Script, path: Path) -> None:
    """Write the script and create the folder of its logs. Raises MtdlabError."""
    try:
        job.logs.mkdir(exist_ok=True)
        path.write_text(job.text(), encoding="utf-8")
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None


def record(spec: "StudySpec", url: str, models: Path, command: Sequence[str]) -> None:
    """Record the study and its trials by a sweep that runs none of them.

    command  that would run the study without a cluster, with which the page names it.

    Raises MtdlabError where the study cannot run here.
    """
    sweep(spec, url, models=models, jobs=0, command=shlex.join(command))


def warn_of_file(url: str) -> None:
    """Say what may go wrong where the database is a SQLite file."""
    if sqlite_file(url) is not None:
        print_text(
            f"mtdlab: {shown(url)} is one file, and network file systems do not lock it reliably; "
            "use PostgreSQL, unless all tasks run on one node with the file on its local disk",
            file=sys.stderr,
        )


def describe_job(job: Script, path: Path, url: str) -> list[str]:
    """What was written, what each task asks for and why, and what to do next."""
    trials = f"{job.trials} trial{'s' if job.trials != 1 else ''}"
    near = Path(os.path.relpath(path))
    commands = submissions(near, job.resources.tasks, job.size)
    lines = [
        f"study {job.study}: {trials} left, recorded in {shown(url)}",
        f"script {near}, logs in {os.path.relpath(job.logs)}",
        *_asked_lines(job),
    ]
    if job.url_is_secret:
        lines.append(
            "the script holds no password: export MTDLAB_STORAGE before sbatch, or leave the "
            "password to ~/.pgpass and write the script again"
        )
    if len(commands) > 1:
        lines.append(f"an array has at most {job.size} tasks (MaxArraySize): submit all of these")
    lines += [f"next: {command}" for command in commands]
    return [*lines, f"then: mtdlab report --study {job.study}"]


def _asked_lines(job: Script) -> list[str]:
    """A line for each resource: its value, and how it was derived."""
    asked = job.resources
    values = {
        "tasks": str(asked.tasks),
        "time": written_time(asked.seconds),
        "memory": f"{asked.memory} M" if asked.memory else "not set",
        "cores": str(asked.cpus),
    }
    replaced = {"memory": "mem", "cores": "cpus-per-task"}
    rows = []
    for name, value in values.items():
        option = job.options.get(replaced.get(name, ""))
        rows.append(
            f"  {name:7} {value}: {asked.reasons[name]}"
            if option is None
            else f"  {name:7} {option}: as given"
        )
    if asked.gpus:
        rows.append(f"  GPUs    {asked.gpus}: a worker on each")
    rows.append(
        f"  signal  USR1 {asked.lead} s before the limit; at most {asked.timeouts} requeues at it"
    )
    return rows
