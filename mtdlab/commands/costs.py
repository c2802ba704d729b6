"""What a study costs, for `plan`: as a row, and in words."""

from dataclasses import asdict
from typing import Any

from mtdlab.config import StudySpec
from mtdlab.errors import MtdlabError, TrialError, one_line
from mtdlab.sweep.finished import clock


def costs(spec: StudySpec, jobs: int | None, jobs_per_gpu: int) -> dict[str, Any]:
    """The estimate's fields; only `reason` where there is none."""
    from mtdlab.cost.estimate import estimate

    try:
        return asdict(estimate(spec, jobs, jobs_per_gpu))
    except (MtdlabError, TrialError) as error:
        return {"reason": str(error)}
    except Exception as error:
        # memory, a killed worker, a GPU: the settings have been shown, and the reason is
        return {"reason": one_line(error)[:200]}


def cost_lines(found: dict[str, Any]) -> list[str]:
    """Time, memory and disk, a line each; or why there is no estimate."""
    if "reason" in found:
        return [f"no estimate: {found['reason']}"]
    workers = f"{found['workers']} worker{'s' if found['workers'] > 1 else ''}"
    short, long = map(clock, found["trial"])
    lasting = short if short == long else f"{short} to {long}"
    return [
        f"time    about {clock(found['seconds'])}: trials of {lasting} on {workers} "
        f"with {found['threads']} thread{'s' if found['threads'] > 1 else ''} each, "
        f"after {clock(found['start'])} to start",
        f"memory  up to {_size(found['memory'])}: {workers} of {_size(found['worker_memory'])}",
        f"disk    {_size(found['database'])} of database, {_size(found['model'])} for the best "
        "model",
        f"from a few steps of {found['measured']} of {found['kinds']} kinds, timed here just now",
    ]


def _size(count: float) -> str:
    for unit in ("kB", "MB"):
        count /= 1000
        if count < 999.5:
            return f"{count:.3g} {unit}"
    return f"{count / 1000:.3g} GB"
