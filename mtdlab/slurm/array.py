"""A study as an array of Slurm tasks: what each asks for, the script, and how it is submitted.

Resources are derived from the estimate of `plan`. It is measured where the script is written, often
a login node; the margins allow for compute nodes that are slower, and for trials that need more
than the measured steps.
"""

import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mtdlab.errors import MtdlabError

if TYPE_CHECKING:
    from mtdlab.cost.estimate import CostEstimate

DEFAULT_SIZE = 1001
"""MaxArraySize of a cluster that is not configured otherwise (slurm.conf)."""
ANSWER_SECONDS = 20


def max_array_size(given: int | None) -> int:
    """The most tasks of an array: as given or configured. Raises MtdlabError for fewer than 2."""
    size = given
    if size is None and (scontrol := shutil.which("scontrol")):
        # Slurm may be down
        with suppress(OSError, subprocess.TimeoutExpired):
            command = [scontrol, "show", "config"]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=ANSWER_SECONDS, check=False
            )
            found = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.MULTILINE)
            size = int(found[1]) if found else None
    size = DEFAULT_SIZE if size is None else size
    # 1 allows the index 0 alone, 0 none
    if size < 2:
        raise MtdlabError(
            f"this cluster allows no job arrays (MaxArraySize is {size}); submit jobs that run "
            "`mtdlab worker` without an array"
        )
    return size


TIME_MARGIN = 2.0
"""Factor on the estimated time: another processor, a node and a file system shared with others."""
MEMORY_MARGIN = 1.5
"""Factor on the measured memory: Slurm kills a task above its limit, and fragmentation grows."""
GPU_HOST_BYTES = 4_000_000_000
"""Added for each GPU: the host memory of a CUDA context and its libraries, which an estimate
without a GPU lacks."""
GPU_CPUS = 4
"""Cores for each GPU: one issues the kernels, the others read batches and compute scores."""
STARTS = 10
"""A task's trials take at least so many times as long as its start, which every task pays."""
MOST_TASKS = 32
"""Without --tasks: each worker holds up to three connections, and a PostgreSQL server allows 100
unless it is configured otherwise."""
FEWEST_UNKNOWN = 8
"""Tasks where no estimate says how long a trial takes, unless there are fewer trials."""
UNKNOWN_MINUTES = 4 * 60
"""Time limit where no estimate says how long a trial takes."""
MOST_MINUTES = 24 * 60
"""A longer limit waits longer in the queue, and many partitions refuse it; a task requeues itself
at its limit."""
ROUND_MINUTES = 5
LEAD_SECONDS = 120
"""From the signal to the time limit: the step in progress and a checkpoint. Slurm may send it a
minute earlier."""
SPARE_TIMEOUTS = 3
"""Time limits that a task may reach beyond those that are expected."""
UNKNOWN_TIMEOUTS = 20
"""Time limits that a task may reach where no estimate says how many are expected."""
_CLOCK = re.compile(r"(?:([0-9]+)-)?([0-9]+):([0-5][0-9]):([0-5][0-9])")


@dataclass(frozen=True)
class Resources:
    """What each of `tasks` tasks asks for.

    Attributes:
        workers: worker processes of a task: one, or one for each of its GPUs.
        seconds: time limit.
        lead: seconds from the signal to it.
        memory: megabytes; None leaves the cluster's default.
        timeouts: how often a task may reach its time limit.
        reasons: how each was derived, by the name under which it is printed.
    """

    tasks: int
    workers: int
    cpus: int
    gpus: int
    seconds: int
    lead: int
    memory: int | None
    timeouts: int
    reasons: Mapping[str, str]


def parse_time(text: str) -> int:
    """Seconds of a time limit: minutes, HH:MM:SS or D-HH:MM:SS. Raises MtdlabError."""
    seconds = 60 * int(text) if re.fullmatch(r"[0-9]{1,7}", text) else 0
    if found := _CLOCK.fullmatch(text):
        days, hours, minutes, rest = (int(part or 0) for part in found.groups())
        seconds = ((24 * days + hours) * 60 + minutes) * 60 + rest
    if seconds < 60:
        raise MtdlabError(
            f"--time {text!r}: not a time limit of a minute or more; write minutes, such as 90, or "
            "HH:MM:SS, such as 01:30:00"
        )
    return seconds


def format_time(seconds: int) -> str:
    """A time limit as Slurm reads it: HH:MM:SS."""
    minutes, rest = divmod(seconds, 60)
    return f"{minutes // 60:02}:{minutes % 60:02}:{rest:02}"


def derive(
    trials: int,
    estimate: "CostEstimate | None",
    *,
    tasks: int | None = None,
    seconds: int | None = None,
    gpus: int = 0,
) -> Resources:
    """The resources of the tasks that run `trials` trials.

    Args:
        estimate: that of the study on this machine; None where there is none.
        tasks, seconds: as given by the user; None: derived.
        gpus: of each task.
    """
    workers = max(1, gpus)
    useful = math.ceil(trials / workers)
    if estimate is None:
        derived, minutes, needed, evaluation = FEWEST_UNKNOWN, UNKNOWN_MINUTES, None, 0.0
        cpus, memory = 1, None
        reasons = {
            "tasks": f"without an estimate at most {FEWEST_UNKNOWN}",
            "time": "without an estimate; a task requeues itself at its limit",
            "memory": "the cluster's default; --sbatch mem=4G for another",
            "cores": "one a worker",
        }
    else:
        longest, start, evaluation = max(estimate.trial), estimate.start, estimate.evaluation
        after = LEAD_SECONDS + evaluation
        worthwhile = max(1, int(trials * longest / (STARTS * max(start, 1.0)) / workers))
        derived = min(worthwhile, MOST_TASKS)
        runs = math.ceil(trials / ((tasks or min(useful, derived)) * workers))
        needed = TIME_MARGIN * (start + runs * longest) + after
        minutes = ROUND_MINUTES * math.ceil(needed / 60 / ROUND_MINUTES)
        # the workers of a task, and the process that started them
        parent = estimate.memory - estimate.workers * estimate.worker_memory
        measured, cuda = parent + workers * estimate.worker_memory, gpus * GPU_HOST_BYTES
        # Slurm's M is 2**20 bytes
        memory = 100 * math.ceil((MEMORY_MARGIN * measured + cuda) / 2**20 / 100)
        cpus = estimate.threads
        reasons = {
            "tasks": f"at most {MOST_TASKS}, and each trains at least {STARTS} times as long as it "
            f"takes to start ({start:.0f} s)",
            "time": f"{TIME_MARGIN:g} x ({start:.0f} s to start + {runs} x {longest:.0f} s a trial)"
            f" + {after:.0f} s",
            "memory": f"{MEMORY_MARGIN:g} x {measured / 2**20:.0f} M measured"
            + (f" + {cuda / 1e9:g} GB for CUDA" if gpus else ""),
            "cores": "the threads with which a worker was measured",
        }
    limit = 60 * min(minutes, MOST_MINUTES)
    if tasks:
        reasons["tasks"] = "as given"
    if seconds:
        limit, reasons["time"] = seconds, "as given"
    elif needed and needed > limit:
        reasons["time"] += f"; more than {format_time(limit)}, at which a task requeues itself"
    if gpus:
        cpus, reasons["cores"] = GPU_CPUS * gpus, f"{GPU_CPUS} a GPU"
    lead = min(LEAD_SECONDS + math.ceil(evaluation), limit // 2)
    timeouts = math.ceil(needed / limit) - 1 + SPARE_TIMEOUTS if needed else UNKNOWN_TIMEOUTS
    tasks = tasks or min(useful, derived)
    return Resources(tasks, workers, cpus, gpus, limit, lead, memory, timeouts, reasons)


MOST_PREEMPTIONS = 100
"""Preemptions after which a task is not requeued: they are no fault of the study, but a task that
never gets as far as a checkpoint has to end."""
OWN_OPTIONS = "array time signal requeue no-requeue open-mode output ntasks wrap".split()  # noqa: SIM905
"""Options of sbatch that --sbatch does not take: the script is written with its own."""
_OPTION = re.compile(r"[a-z][a-z0-9-]*")
_PLAIN = re.compile(r"[A-Za-z0-9_@%+=:,./~^-]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f\x85\u2028\u2029]")


@dataclass(frozen=True)
class Script:
    """What an array script is made from.

    Attributes:
        trials: that are left to run.
        command: of a task: the worker.
        url_is_secret: whether the database's URL is taken from MTDLAB_STORAGE, since it has a
            password.
        options: other options of sbatch, in place of the script's own.
        folder: in which the tasks run.
        logs: folder of the logs and of the counts of requeues.
        size: tasks of the first array.
    """

    study: str
    trials: int
    resources: Resources
    command: Sequence[str]
    url_is_secret: bool
    options: Mapping[str, str]
    folder: Path
    logs: Path
    size: int

    def text(self) -> str:
        """The script. Raises MtdlabError for a path that Slurm cannot write logs to."""
        # imported here to keep --help fast
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("mtdlab.slurm", "."),
            undefined=StrictUndefined,
            trim_blocks=True,
            keep_trailing_newline=True,
            autoescape=False,
        )
        environment.filters["quoted"] = lambda value: shlex.quote(str(value))
        values = vars(self) | {
            "preemptions": MOST_PREEMPTIONS,
            "directives": [format_option(*option) for option in self._options().items()],
            "command": shlex.join(self.command),
        }
        return environment.get_template("array.sbatch").render(values)

    def _options(self) -> dict[str, str]:
        if "\\" in str(self.logs):
            raise MtdlabError(
                f"--out: {self.logs} has a backslash, after which Slurm replaces no number of a "
                "task; name a file in another folder"
            )
        asked = self.resources
        return {
            "job-name": f"mtdlab-{self.study}",
            "array": f"0-{self.size - 1}",
            "time": format_time(asked.seconds),
            "cpus-per-task": str(asked.cpus),
            **({} if asked.memory is None else {"mem": f"{asked.memory}M"}),
            **({"gres": f"gpu:{asked.gpus}"} if asked.gpus else {}),
            "signal": f"USR1@{asked.lead}",
            "requeue": "",
            "open-mode": "append",
            "output": f"{self.logs}/".replace("%", "%%") + "%A_%a.log",
            **self.options,
        }


def read_options(given: Sequence[str]) -> dict[str, str]:
    """The values of --sbatch by option, without --. Raises MtdlabError for one that is refused."""
    options = {}
    for text in given:
        option, _, value = text.removeprefix("--").partition("=")
        if not _OPTION.fullmatch(option):
            raise MtdlabError(
                f"--sbatch {text!r}: not an option of sbatch; write it as OPTION=VALUE, such as "
                "qos=low, or as OPTION, such as exclusive"
            )
        if option in OWN_OPTIONS:
            raise MtdlabError(
                f"--sbatch {option}: cannot be set here, the script has its own; --tasks, --time "
                "and --out set what can be chosen"
            )
        options[option] = value
        format_option(option, value)
    return options


def format_option(option: str, value: str) -> str:
    """An option as a line of #SBATCH has it, quoted as sbatch reads it. Raises MtdlabError."""
    if _CONTROL.search(value):
        raise MtdlabError(
            f"{option} {value!r}: a line of #SBATCH cannot hold a line break or another control "
            "character; leave it out"
        )
    if not value:
        return f"--{option}"
    if _PLAIN.fullmatch(value):
        return f"--{option}={value}"
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'--{option}="{escaped}"'


def submissions(script: Path, tasks: int, size: int) -> list[str]:
    """The commands that submit all tasks, in arrays of at most `size`."""
    name = shlex.quote(str(script))
    if tasks <= size:
        return [f"sbatch {name}"]
    arrays = [min(size, tasks - first) for first in range(0, tasks, size)]
    return [f"sbatch --array=0-{count - 1} {name}" for count in arrays]
