"""Checkpoints of a run on disk: one folder per step, complete and verified, or not read.

    FOLDER/step-0000000160/tensors.safetensors   every tensor of the state
                           values.json           its numbers, and where each tensor belongs
                           manifest.json         size and SHA-256 of both, facts of the run

A folder is built under another name, synced to the disk and renamed. A power failure therefore
leaves a complete checkpoint, or a folder that is not read. Nothing in the files is executed.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from mtdlab.files import new_folder

FORMAT = 3
KEPT = 2
"""The number of checkpoints that are kept: if the newest is damaged, the one before is read."""
TENSORS, VALUES, MANIFEST = "tensors.safetensors", "values.json", "manifest.json"
FILES = (TENSORS, VALUES, MANIFEST)
"""The files of a checkpoint; the manifest tells whether it is complete."""
Facts = Mapping[str, str]


@dataclass(frozen=True)
class Checkpoint:
    """A state as it was saved after `step` steps. facts: what the run computed with."""

    step: int
    state: dict[str, Any]
    facts: Facts


@dataclass(frozen=True)
class Found:
    """The newest checkpoint that is intact, or None; and a sentence for each damaged one."""

    checkpoint: Checkpoint | None
    damaged: tuple[str, ...] = ()


def save_checkpoint(folder: Path, step: int, state: Mapping[str, Any], facts: Facts) -> Path:
    """Save a state after `step` steps, then remove all but the two newest checkpoints.

    A state is nested mappings, lists, tensors, numbers and texts; tensors that share memory are
    written once. Raises OSError where the disk fails, TypeError for a value of another type.
    Returns the checkpoint's folder.
    """
    tensors: Named = {}
    values, target = _pack(state, "", tensors), folder / checkpoint_name(step)
    needed = sum(tensor.nbytes for _, tensor in tensors.values())
    with new_folder(target, replace=True, needed=needed) as building:
        save_file({name: _alone(tensor) for name, tensor in tensors.values()}, building / TENSORS)
        (building / VALUES).write_text(json.dumps(values), encoding="utf-8")
        files = {name: _describe(building / name) for name in (TENSORS, VALUES)}
        manifest = {"format": FORMAT, "step": step, "files": files, "facts": dict(facts)}
        (building / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    # also what a killed process left: one process at a time trains a run
    for old in [*_newest_first(folder)[KEPT:], *folder.glob(".step-*")]:
        shutil.rmtree(old, ignore_errors=True)
    return target


def find_checkpoint(folder: Path) -> Found:
    """Read the newest checkpoint of a folder that is intact. A folder that is missing has none."""
    damaged: list[str] = []
    for path in _newest_first(folder):
        try:
            return Found(_read(path), tuple(damaged))
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            damaged.append(f"checkpoint {path.name} is damaged ({error}) and was not used")
    return Found(None, tuple(damaged))


def state_bytes(state: Mapping[str, Any]) -> int:
    """The size of a state's tensors, each counted once, in bytes."""
    tensors: Named = {}
    _pack(state, "", tensors)
    return sum(tensor.nbytes for _, tensor in tensors.values())


def checkpoint_name(step: int) -> str:
    """The name of the folder of a checkpoint."""
    # zeros in front, so that names sort as numbers
    return f"step-{step:010d}"


def _newest_first(folder: Path) -> list[Path]:
    return sorted(folder.glob("step-*"), reverse=True)


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        return {
            "size": path.stat().st_size,
            "sha256": hashlib.file_digest(file, "sha256").hexdigest(),
        }


def _read(path: Path) -> Checkpoint:
    manifest = json.loads((path / MANIFEST).read_text(encoding="utf-8"))
    if manifest["format"] != FORMAT:
        raise ValueError(f"format {manifest['format']}, {FORMAT} is read")
    if path.name != checkpoint_name(manifest["step"]):
        raise ValueError(f"its manifest is that of step {manifest['step']}")
    for name in (TENSORS, VALUES):
        if _describe(path / name) != manifest["files"][name]:
            raise ValueError(f"{name} is not what its manifest says")
    values = json.loads((path / VALUES).read_text(encoding="utf-8"))
    state = _unpack(values, load_file(path / TENSORS))
    return Checkpoint(manifest["step"], state, dict(manifest["facts"]))


# A mapping is written as its items, since keys are texts or integers and JSON has texts alone;
# every JSON object is therefore one of three tags, and other values stand for themselves.
_TENSOR, _ITEMS, _LIST = "tensor", "items", "list"
Named = dict[Any, tuple[str, Tensor]]
"""The names and tensors of a state by their place in memory."""


def _pack(value: Any, path: str, tensors: Named) -> Any:
    """The JSON form of a value; adds its tensors to `tensors`."""
    if isinstance(value, Tensor):
        place = (value.data_ptr(), value.dtype, value.shape, value.stride(), value.device)
        # an empty tensor has no place of its own
        name, _ = tensors.setdefault(place if value.numel() else path, (path, value.detach()))
        return {_TENSOR: name}
    if isinstance(value, Mapping):
        items = value.items()
        return {_ITEMS: [[key, _pack(item, f"{path}/{key}", tensors)] for key, item in items]}
    if isinstance(value, (list, tuple)):
        return {_LIST: [_pack(item, f"{path}/{at}", tensors) for at, item in enumerate(value)]}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"{path}: a checkpoint cannot hold a {type(value).__name__}")


def _alone(tensor: Tensor) -> Tensor:
    """The tensor, copied where it is a part of a larger one, which safetensors refuses."""
    whole = tensor.is_contiguous() and tensor.untyped_storage().nbytes() == tensor.nbytes
    return tensor if whole else tensor.clone(memory_format=torch.contiguous_format)


def _unpack(value: Any, tensors: Mapping[str, Tensor]) -> Any:
    if not isinstance(value, dict):
        return value
    [(tag, content)] = value.items()
    if tag == _TENSOR:
        return tensors[content]
    if tag == _LIST:
        return [_unpack(item, tensors) for item in content]
    return {key: _unpack(item, tensors) for key, item in content}
