"""What plan says of a study's cost: time, memory, disk, and evaluations that dwarf training."""

import shlex
import time
from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from mtdlab.config.program_study import ProgramSpec
from mtdlab.errors import MtdlabError, TrialError, one_line
from mtdlab.sweep.finished import clock
from mtdlab.terminal import progress_bar

if TYPE_CHECKING:
    from mtdlab.config import StudySpec

DWARFS = 2.0
"""Above this ratio of evaluation to training a trial's evaluations are warned of."""


def find_costs(
    spec: "StudySpec",
    jobs: int | None,
    jobs_per_gpu: int,
    done: Collection[tuple[str, int]],
    before_timing: Callable[[], object],
) -> dict[str, Any]:
    """The fields of the estimate of the trials that are not done; only `reason` where it failed,
    and `exit_code` where a sweep would be refused for that reason.

    before_timing  called before steps are timed, while other work would disturb nothing yet.
    """
    if isinstance(spec, ProgramSpec):
        return {"reason": "how long a program takes is known once its trials have run"}
    with progress_bar(transient=True) as bar:
        task = bar.add_task("loading encoder and texts", total=None)

        def ready() -> None:
            before_timing()
            bar.update(task, description="timing training steps")

        try:
            from mtdlab.cost.estimate import estimate

            imports = time.process_time()
            found = estimate(
                spec, jobs, jobs_per_gpu, done=done, imports=imports, before_timing=ready
            )
        except MtdlabError as error:
            return {"reason": str(error), "exit_code": error.exit_code}
        except TrialError as error:
            return {"reason": str(error)}
        except Exception as error:
            # out of memory, a killed worker, a GPU error: the rest of the plan is shown
            return {"reason": one_line(error)[:200]}
    from mtdlab.sweep.preflight import selection_warnings, shortfall_warnings

    warnings = _warnings(found.training, found.evaluation)
    warnings += selection_warnings(spec) + shortfall_warnings(spec)
    return asdict(found) | {"warnings": warnings}


def cost_lines(found: dict[str, Any], command: str = "mtdlab sweep FILE") -> list[str]:
    """Time, memory and disk, a line each; or why there is no estimate. command  runs the study."""
    from rich.filesize import decimal

    if "reason" in found:
        return [f"no estimate: {found['reason']}"]
    workers, trials = _counted(found["workers"], "worker"), _counted(found["trials"], "trial")
    shortest, longest = map(clock, found["trial"])
    duration = shortest if shortest == longest else f"{shortest} to {longest}"
    return [
        f"time    about {clock(found['seconds'])}: {trials} of {duration} "
        f"on {workers} with {_counted(found['threads'], 'thread')} each, "
        f"after {clock(found['start'])} to start",
        f"memory  up to {decimal(found['memory'])}: {workers} of {decimal(found['worker_memory'])}",
        *_gpu_lines(found),
        f"disk    {decimal(found['database'])} of database, {decimal(found['model'])} for the best "
        "model",
        *(f"encoder {name}: {text}" for name, text in found["encoders"].items()),
        _basis(found),
        *_smaller_lines(found["smaller"], command),
        *(f"warning {warning}" for warning in found["warnings"]),
    ]


def _basis(found: dict[str, Any]) -> str:
    measured, kinds = found["measured"], found["kinds"]
    text = f"basis   {measured} of {kinds} kinds of step were timed on this machine"
    return text if measured == kinds else f"{text}; the slow ones scaled from smaller batches"


def _smaller_lines(smaller: dict[str, Any] | None, command: str) -> list[str]:
    if smaller is None:
        return []
    changed = shlex.join(part for each in smaller["overrides"] for part in ("--set", each))
    trials = _counted(smaller["trials"], "trial")
    return [
        f"to begin with a smaller study, about {clock(smaller['seconds'])} for {trials}:",
        f"  {command} {changed}",
    ]


def _gpu_lines(found: dict[str, Any]) -> list[str]:
    """What a worker needs of a GPU, and how many of them fit on one; none without a GPU."""
    from rich.filesize import decimal

    if not found["gpu_memory"]:
        return []
    fit, needed = found["gpu_workers"], decimal(found["gpu_memory"])
    if not fit:
        return [f"GPU     {needed} for each worker: more than the smallest GPU has"]
    return [f"GPU     {needed} for each worker: up to {fit} fit on each GPU (--jobs-per-gpu)"]


def _warnings(training: float, evaluation: float) -> list[str]:
    if evaluation <= DWARFS * training:
        return []
    return [
        f"a trial evaluates for {clock(evaluation)} and trains for {clock(training)}; raise "
        "evaluate_every, or take tasks or evaluation pairs out"
    ]


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' if number != 1 else ''}"
