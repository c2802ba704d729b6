"""Checkpoints on disk: what is saved is loaded, a damaged one is noticed."""

from collections import OrderedDict
from pathlib import Path

import pytest
import torch

from mtdlab.training import checkpoint as module
from mtdlab.training.checkpoint import find_checkpoint, save_checkpoint
from mtdlab.trial.model_folders import CHECKPOINTS, remove_checkpoints_of

FACTS = {"processor": "x86_64", "versions": "torch 2.13.0"}


def state(step: int) -> dict[str, object]:
    shared = torch.randn(4, 3)
    return {
        "step": step,
        "method": OrderedDict(online=shared, target=shared, queue=torch.full((2,), float(step))),
        "optimizer": {"state": {0: {"step": torch.tensor(3.0)}}, "param_groups": [{"lr": 1e-3}]},
        "best": {"score": float("-inf"), "vectors": torch.empty(0, 0), "name": "ж", "none": None},
        "part": torch.arange(12).reshape(3, 4)[:, 1],
        "flag": True,
        "pair": (1, 2),
    }


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_state_is_loaded_as_it_was_saved(tmp_path: Path) -> None:
    saved = state(7)
    save_checkpoint(tmp_path / "run", 7, saved, FACTS)
    found = find_checkpoint(tmp_path / "run")
    assert found.damaged == ()
    assert found.checkpoint is not None
    assert (found.checkpoint.step, found.checkpoint.facts) == (7, FACTS)
    loaded = found.checkpoint.state
    torch.testing.assert_close(loaded.pop("method"), dict(saved.pop("method")), rtol=0, atol=0)  # type: ignore[call-overload]
    assert loaded["optimizer"]["state"][0]["step"] == 3
    assert loaded["optimizer"]["param_groups"] == [{"lr": 1e-3}]
    assert loaded["best"]["score"] == float("-inf")
    assert loaded["best"]["vectors"].shape == (0, 0)
    assert (loaded["best"]["name"], loaded["best"]["none"]) == ("ж", None)
    assert loaded["part"].tolist() == [1, 5, 9]
    assert (loaded["flag"], loaded["pair"], loaded["step"]) == (True, [1, 2], 7)


def test_tensors_that_share_memory_are_written_once(tmp_path: Path) -> None:
    weights = torch.zeros(100_000)
    save_checkpoint(tmp_path, 1, {"online": weights, "target": weights}, {})
    assert (tmp_path / "step-0000000001" / module.TENSORS).stat().st_size < 1.1 * weights.nbytes
    assert module.state_bytes({"online": weights, "target": [weights]}) == weights.nbytes


def test_the_two_newest_stay(tmp_path: Path) -> None:
    for step in (9, 10, 100, 1_000_000):
        save_checkpoint(tmp_path, step, {"step": step}, {})
    assert names(tmp_path) == ["step-0000000100", "step-0001000000"]
    (tmp_path / ".step-0000000101.building-x").mkdir()
    save_checkpoint(tmp_path, 1_000_000, {"step": -1}, {})
    assert len(names(tmp_path)) == 2
    found = find_checkpoint(tmp_path).checkpoint
    assert found is not None
    assert found.state == {"step": -1}


@pytest.mark.parametrize("name", [module.TENSORS, module.VALUES, module.MANIFEST])
@pytest.mark.parametrize("damage", ["missing", "empty", "short", "changed"])
def test_a_damaged_checkpoint_falls_back_to_the_one_before(
    tmp_path: Path, name: str, damage: str
) -> None:
    for step in (5, 6):
        save_checkpoint(tmp_path, step, state(step), FACTS)
    path = tmp_path / "step-0000000006" / name
    content = path.read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    if damage == "missing":
        path.unlink()
    else:
        path.write_bytes({"empty": b"", "short": content[:-1], "changed": flipped}[damage])
    found = find_checkpoint(tmp_path)
    assert found.checkpoint is not None
    assert found.checkpoint.step == 5
    assert len(found.damaged) == 1
    assert found.damaged[0].startswith("checkpoint step-0000000006 is damaged (")


def test_no_checkpoint_is_found_where_none_is_intact(tmp_path: Path) -> None:
    assert find_checkpoint(tmp_path / "missing") == module.Found(None)
    (tmp_path / "step-0000000003").mkdir()
    found = find_checkpoint(tmp_path)
    assert found.checkpoint is None
    assert "step-0000000003 is damaged" in found.damaged[0]


def test_an_error_while_saving_leaves_the_earlier_checkpoints(tmp_path: Path) -> None:
    save_checkpoint(tmp_path, 1, {"step": 1}, {})
    with pytest.raises(TypeError, match="/what: a checkpoint cannot hold a set"):
        save_checkpoint(tmp_path, 2, {"what": {1}}, {})
    assert names(tmp_path) == ["step-0000000001"]


def test_all_of_a_run_is_removed(tmp_path: Path) -> None:
    folder = tmp_path / "models" / CHECKPOINTS / "identity" / "study" / "run"
    save_checkpoint(folder, 1, {"step": 1}, {})
    remove_checkpoints_of(folder)
    assert names(tmp_path / "models") == []
    remove_checkpoints_of(folder)
