"""A SQLite file that is created on a network file system, by a made table of mounts."""

from pathlib import Path

import pytest

from mtdlab import files
from mtdlab.files import network_kind
from mtdlab.manage.exchange import export_study, import_study
from mtdlab.store.store import record_plan
from mtdlab.store.urls import sqlite_url
from mtdlab.sweep.open_study import open_study
from tests.conftest import Written


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on NFS whose name has a space, in a table that has other kinds too."""
    folder = tmp_path / "home of all"
    folder.mkdir()
    (tmp_path / "link").symlink_to(folder)
    lines = (
        "/dev/vda / ext4 rw 0 0",
        f"auto {tmp_path}/home\\040of\\040all autofs rw 0 0",
        f"server:/home {tmp_path}/home\\040of\\040all nfs4 rw,vers=4.2 0 0",
        f"tmpfs {tmp_path}/home\\040of\\040all/local tmpfs rw 0 0",
        f"//server/share {tmp_path}/share cifs rw 0 0",
        f"me@server: {tmp_path}/ssh fuse.sshfs rw 0 0",
        "damaged",
        "",
    )
    (tmp_path / "mounts").write_text("\n".join(lines))
    monkeypatch.setattr(files, "MOUNTS", tmp_path / "mounts")
    return folder


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("home of all/a.db", "nfs4"),
        ("link/a/b.db", "nfs4"),
        ("home of all/local/a.db", ""),
        ("home of allies/a.db", ""),
        ("share/a.db", "cifs"),
        ("ssh/a.db", "fuse.sshfs"),
        ("a.db", ""),
    ],
)
@pytest.mark.usefixtures("shared")
def test_the_kind_of_a_network_file_system(tmp_path: Path, path: str, kind: str) -> None:
    assert network_kind(tmp_path / path) == kind


def test_without_a_table_of_mounts_none_is_known(
    shared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MOUNTS", shared / "none")
    assert network_kind(shared) == ""


def test_a_database_that_is_created_there_is_told_once(
    shared: Path, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    """By whichever command creates it; an export is no database in use."""
    spec = written("study: a\nsearch: {ema_decay: [0.5]}\n")
    for name in ("sweep.db", "sweep.db", "plan.db", "plan.db", "import.db"):
        url = sqlite_url(shared / name)
        is_new = not (shared / name).exists()
        if name == "sweep.db":
            open_study(spec, url)
        elif name == "plan.db":
            record_plan(url, "a", {"study": "a"}, "0" * 64)
        else:
            export_study("a", sqlite_url(shared / "sweep.db"), shared / "exported.db")
            import_study(shared / "exported.db", url)
        told = capsys.readouterr().err
        sentence = (
            f"mtdlab: {shared / name} is on a network file system (nfs4), which does not lock"
        )
        assert told.startswith(sentence) == is_new
        assert told.count("use PostgreSQL, --storage postgresql+psycopg://") == is_new
        assert len(told.splitlines()) == is_new


@pytest.mark.usefixtures("shared")
def test_a_local_one_is_not(
    tmp_path: Path, written: Written, capsys: pytest.CaptureFixture[str]
) -> None:
    open_study(written("study: a\nsearch: {ema_decay: [0.5]}\n"), sqlite_url(tmp_path / "a.db"))
    assert capsys.readouterr().err == ""
