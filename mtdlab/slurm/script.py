"""The text of an array script, and the commands that submit it."""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mtdlab.errors import MtdlabError
from mtdlab.slurm.resources import Resources, format_time

MOST_PREEMPTIONS = 100
"""Preemptions after which a task is not requeued: they are no fault of the study, but a task that
never gets as far as a checkpoint has to end."""
OWN_OPTIONS = {
    "array": "use --tasks",
    "time": "use --time",
    "signal": "the script relies on its own",
    "requeue": "the script sets it",
    "no-requeue": "the script requeues its tasks",
    "open-mode": "the script sets it",
    "output": "logs are beside the script; name another with --out",
    "ntasks": "a task of the array runs one worker",
    "wrap": "the script is the job",
}
"""Options of sbatch that --sbatch does not take, and why."""
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
        return environment.get_template("array.sbatch").render(
            study=self.study,
            trials=self.trials,
            resources=self.resources,
            preemptions=MOST_PREEMPTIONS,
            directives=[format_option(*each) for each in self._options().items()],
            command=shlex.join(self.command),
            url_is_secret=self.url_is_secret,
            folder=self.folder,
            logs=self.logs,
        )

    def _options(self) -> dict[str, str]:
        asked = self.resources
        options = {
            "job-name": f"mtdlab-{self.study}",
            "array": f"0-{self.size - 1}",
            "time": format_time(asked.seconds),
            "cpus-per-task": str(asked.cpus),
        }
        if asked.memory is not None:
            options["mem"] = f"{asked.memory}M"
        if asked.gpus:
            options["gres"] = f"gpu:{asked.gpus}"
        if "\\" in str(self.logs):
            raise MtdlabError(
                f"--out: {self.logs} has a backslash, after which Slurm replaces no number of a "
                "task; name a file in another folder"
            )
        options |= {
            "signal": f"USR1@{asked.lead}",
            "requeue": "",
            "open-mode": "append",
            "output": f"{self.logs}/".replace("%", "%%") + "%A_%a.log",
        }
        return options | dict(self.options)


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
            raise MtdlabError(f"--sbatch {option}: cannot be set here; {OWN_OPTIONS[option]}")
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
