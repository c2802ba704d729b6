"""The result of a trial, kept on the disk until the database has it.

It lies beside the trial's checkpoints, which are removed when the database has the result. A trial
whose process ends in between is claimed again, and its result is read instead of trained again.
"""

import json
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mtdlab.files import new_folder
from mtdlab.store import Result

RESULT = "result"
"""Folder of the result, in the folder of the trial's checkpoints."""
_ARRAYS, _VALUES = "arrays.safetensors", "values.json"


def save_result(folder: Path, result: Result, identity: str) -> None:
    """Write a result and sync it to the disk. A disk that fails is ignored: the database is next.

    folder    of the trial's checkpoints.
    identity  what the result depends on: a trial of another identity does not take it.
    """
    values: dict[str, Any] = {
        field.name: getattr(result, field.name)
        for field in fields(Result)
        if field.name != "arrays"
    }
    with suppress(OSError), new_folder(folder / RESULT, replace=True) as building:
        save_file(dict(result.arrays), building / _ARRAYS)
        text = json.dumps({"identity": identity, "result": values})
        (building / _VALUES).write_text(text, encoding="utf-8")


def load_result(folder: Path, identity: str) -> Result | None:
    """The result that was saved for this identity; None without one, or where it is damaged."""
    try:
        found = json.loads((folder / RESULT / _VALUES).read_text(encoding="utf-8"))
        if found["identity"] != identity:
            return None
        return Result(**found["result"], arrays=load_file(folder / RESULT / _ARRAYS))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None
