"""Whether the process that owns a trial is alive."""

import os
import platform
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mtdlab.store import owner

PROC = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs Linux's /proc")


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lives until its test kills it, reaped only after the test."""
    with subprocess.Popen(["sleep", "600"]) as process:
        yield process
        process.kill()


def owner_of(pid: int) -> dict[str, object]:
    return owner.this_process() | {"pid": pid, "started": owner._started(pid)}


def state_of(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


@PROC
def test_a_zombie_is_dead(child: subprocess.Popen[bytes]) -> None:
    """A killed process that nobody reaps keeps its process id and its start time."""
    its_owner = owner_of(child.pid)
    assert not owner.is_dead(its_owner, time.time())
    os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while state_of(child.pid) != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state_of(child.pid) == "Z"
    assert owner.is_dead(its_owner, time.time())


@PROC
def test_another_process_of_the_same_id_is_not_the_owner(child: subprocess.Popen[bytes]) -> None:
    assert owner.is_dead(owner_of(child.pid) | {"started": "1"}, time.time())


def test_an_earlier_boot_and_a_silent_host_are_dead() -> None:
    mine = owner.this_process()
    now = time.time()
    assert owner.is_dead(mine | {"boot": "another"}, now)
    elsewhere = mine | {"host": platform.node() + "-other"}
    assert not owner.is_dead(elsewhere, now - owner.SILENT_SECONDS + 60)
    assert owner.is_dead(elsewhere, now - owner.SILENT_SECONDS - 60)
