"""How a trial ended, as it is recorded: complete with its scores, pruned, or failed.

A result lies on the disk until the database has it, beside the trial's checkpoints, which are
removed then. A trial whose process ends in between is claimed again, and its result is read instead
of trained again.
"""

import json
import math
import traceback
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import optuna
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mtdlab.analysis.data.environment import Environment, read_fields
from mtdlab.errors import StorageError, TrialError, describe, message_of
from mtdlab.evaluation.items import Items
from mtdlab.files import new_folder
from mtdlab.settings.tasks import needed
from mtdlab.store.claims import Result
from mtdlab.store.optuna_copy import REPORTED_SCORE, REPORTED_STEP
from mtdlab.trial.heartbeat import ClaimLost
from mtdlab.trial.model_folders import RESULT
from mtdlab.trial.signals import Interrupted

if TYPE_CHECKING:
    # it imports transformers, which a program of the user does without
    from mtdlab.training.loop import Outcome
    from mtdlab.trial.monitor import Watch

NOT_ENDING = (Interrupted, ClaimLost, StorageError, KeyboardInterrupt)
"""Exceptions that end the work of this process on a trial, and not the trial. Every other one does,
also SystemExit and others that are no `Exception`: code of the user can raise any."""
_MOST_TRACEBACK = 20_000
"""Characters of a traceback that are kept, its end."""


def ended_early(error: BaseException, watch: "Watch") -> Result:
    """The result of a trial that `error` ended, with what it had reported."""
    arrays = watch.arrays(REPORTED_STEP, REPORTED_SCORE) if watch.reported else {}
    if isinstance(error, optuna.TrialPruned):
        return Result("PRUNED", f"pruned at step {watch.step}", arrays=arrays)
    reason = describe(error)
    code = error.code if isinstance(error, TrialError) else "error"
    if (
        isinstance(error, MemoryError)
        or "out of memory" in message_of(error).lower()
        or type(error).__name__ == "OutOfMemoryError"
    ):
        reason, code = "oom: out of memory", "oom"
    kept = "".join(traceback.format_exception(error))[-_MOST_TRACEBACK:]
    return Result("FAIL", reason, arrays=arrays, traceback=kept, reason_code=code)


def complete(metric: str, select_by: str, outcome: "Outcome", environment: Environment) -> Result:
    """The result of a run that ended; failed where metric or select_by have no score."""
    named = {name: outcome.score_of(name)[0] for name in (metric, select_by)}
    for name, score in named.items():
        if not math.isfinite(score):
            reasons = (task.reason for task in outcome.after.tasks if task.task in needed(name))
            reason = next(filter(None, reasons), "collapsed: every cosine is the same")
            code = "error"
            if reason.startswith("collapsed"):
                code = "collapsed"
            elif reason.endswith("are not finite"):
                code = "nan_loss"
            return Result("FAIL", f"no {name}: {reason}", reason_code=code)
    pairs = outcome.after.dev if metric == "sts_dev" else outcome.after.test
    return Result(
        "COMPLETE",
        values={
            "score": named[metric],
            "score_before": outcome.score_of(metric)[1],
            "alignment": pairs.alignment,
            "uniformity": pairs.uniformity,
            "mean_cosine": pairs.mean_cosine,
            "best_step": outcome.best_step,
            "wall_seconds": outcome.wall_seconds,
            "peak_memory": outcome.peak_memory,
        },
        scores=outcome.after.by_name() | named,
        arrays={
            **{f"curve/{name}": column for name, column in outcome.curve.items()},
            **{f"probe/{name}": column for name, column in outcome.probes.items()},
            **{f"history/{name}": column for name, column in outcome.history.items()},
            "spectrum/before": outcome.before.spectrum.astype(np.float32),
            "spectrum/after": outcome.after.spectrum.astype(np.float32),
        },
        environment=environment,
        items=outcome.items_of(metric),
    )


_ARRAYS, _VALUES = "arrays.safetensors", "values.json"


def save_result(folder: Path, result: Result, identity: str) -> None:
    """Write a result and sync it to the disk. A disk that fails is ignored: the database is next.

    `folder` is that of the trial's checkpoints, `identity` what the result depends on: a trial of
    another identity does not take it.
    """
    values = {name: part for name, part in vars(result).items() if name not in ("arrays", "items")}
    values["items"] = {task: (items.kind, items.digest) for task, items in result.items.items()}
    values["environment"] = result.environment and asdict(result.environment)
    arrays: dict[str, Any] = dict(result.arrays)
    for task, items in result.items.items():
        arrays |= {f"items/{task}": items.values}
        arrays |= {} if items.gold is None else {f"gold/{task}": items.gold}
    with suppress(OSError), new_folder(folder / RESULT, replace=True) as building:
        save_file(arrays, building / _ARRAYS)
        text = json.dumps({"identity": identity, "result": values})
        (building / _VALUES).write_text(text, encoding="utf-8")


def load_result(folder: Path, identity: str) -> Result | None:
    """The result that was saved for this identity; None without one, or where it is damaged."""
    try:
        found = json.loads((folder / RESULT / _VALUES).read_text(encoding="utf-8"))
        if found["identity"] != identity:
            return None
        values, arrays = found["result"], load_file(folder / RESULT / _ARRAYS)
        items = {
            task: Items(kind, arrays.pop(f"items/{task}"), digest, arrays.pop(f"gold/{task}", None))
            for task, (kind, digest) in values["items"].items()
        }
        environment = values["environment"] and read_fields(Environment, values["environment"])
        return Result(**values | {"arrays": arrays, "items": items, "environment": environment})
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None
