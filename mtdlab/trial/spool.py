"""The result of a trial, kept on the disk until the database has it.

It lies beside the trial's checkpoints, which are removed when the database has the result. A trial
whose process ends in between is claimed again, and its result is read instead of trained again.
"""

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from analysis.data.environment import Environment, read_fields
from mtdlab.evaluation.items import Items
from mtdlab.files import new_folder
from mtdlab.store import Result

RESULT = "result"
"""Folder of the result, in the folder of the trial's checkpoints."""
_ARRAYS, _VALUES = "arrays.safetensors", "values.json"


def save_result(folder: Path, result: Result, identity: str) -> None:
    """Write a result and sync it to the disk. A disk that fails is ignored: the database is next.

    `folder` is that of the trial's checkpoints, `identity` what the result depends on: a trial of
    another identity does not take it.
    """
    values = {name: each for name, each in vars(result).items() if name not in ("arrays", "items")}
    values["items"] = {task: (each.kind, each.digest) for task, each in result.items.items()}
    values["environment"] = result.environment and asdict(result.environment)
    arrays: dict[str, Any] = dict(result.arrays)
    for task, each in result.items.items():
        arrays |= {f"items/{task}": each.values}
        arrays |= {} if each.gold is None else {f"gold/{task}": each.gold}
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
