"""Folders that appear whole or not at all."""

from pathlib import Path

import pytest

from mtdlab import files
from mtdlab.files import new_folder, remove_leftovers


def test_a_folder_appears_whole(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b"
    with new_folder(target) as building:
        (building / "one").write_text("1")
        assert building.parent == target.parent
        assert not target.exists()
    assert (target / "one").read_text() == "1"
    assert list(target.parent.iterdir()) == [target]


def test_empty_folders_that_another_process_removes_meanwhile_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    above, sync, removed = tmp_path / "a", files.sync, []

    def sync_before_another_ends(path: Path) -> None:
        sync(path)
        if path == tmp_path and not removed:
            removed.append(above)
            above.rmdir()

    monkeypatch.setattr(files, "sync", sync_before_another_ends)
    with new_folder(above / "b" / "c") as building:
        (building / "one").write_text("1")
    assert removed == [above]
    assert (above / "b" / "c" / "one").read_text() == "1"


@pytest.mark.parametrize("replace", [False, True])
def test_an_error_leaves_what_was_there(tmp_path: Path, replace: bool) -> None:
    target = tmp_path / "b"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(OSError, match="No such file"), new_folder(target, replace=replace) as new:
        (new / "missing" / "one").touch()
    assert [path.name for path in target.iterdir()] == ["old"]
    assert list(tmp_path.iterdir()) == [target]


def test_an_earlier_folder_is_replaced_only_where_wanted(tmp_path: Path) -> None:
    target = tmp_path / "b"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(OSError, match="not empty"), new_folder(target) as building:
        (building / "new").touch()
    assert [path.name for path in target.iterdir()] == ["old"]
    with new_folder(target, replace=True) as building:
        (building / "new").touch()
    assert [path.name for path in target.iterdir()] == ["new"]
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize(("name", "neighbour"), [("b", "b-2"), ("[ab]", "a")])
def test_leftovers_are_the_targets_own(tmp_path: Path, name: str, neighbour: str) -> None:
    """Not those of a name that begins alike, or that its name as a pattern would match."""
    with new_folder(tmp_path / neighbour) as building:
        left = tmp_path / building.name.replace(f".{neighbour}.", f".{name}.")
        left.mkdir()
        remove_leftovers(tmp_path / name)
        assert not left.exists()
        assert building.exists()
    assert list(tmp_path.iterdir()) == [tmp_path / neighbour]
