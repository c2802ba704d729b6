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


def save_result(folder: Path, result: Result, settings: str) -> None:
    """Write a result and sync it to the disk. A disk that fails is ignored: the database is next.

    folder    of the trial's checkpoints; settings: the trial's, as JSON.
    """
    values: dict[str, Any] = {
        field.name: getattr(result, field.name)
        for field in fields(Result)
        if field.name != "arrays"
    }
    with suppress(OSError), new_folder(folder / RESULT, replace=True) as building:
        save_file(dict(result.arrays), building / _ARRAYS)
        text = json.dumps({"settings": settings, "result": values})
        (building / _VALUES).write_text(text, encoding="utf-8")


def load_result(folder: Path, settings: str) -> Result | None:
    """The result that was saved for these settings; None without one, or where it is damaged."""
    try:
        found = json.loads((folder / RESULT / _VALUES).read_text(encoding="utf-8"))
        if found["settings"] != settings:
            return None
        return Result(**found["result"], arrays=load_file(folder / RESULT / _ARRAYS))
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None
