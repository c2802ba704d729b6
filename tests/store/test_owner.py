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


@pytest.mark.parametrize(
    ("other", "silent"),
    [
        ({"host": platform.node() + "-other"}, owner.SILENT_SECONDS),
        ({"boot": "another"}, owner.UNSEEN_SECONDS),
        ({"namespace": "pid:[1]"}, owner.UNSEEN_SECONDS),
    ],
    ids=["another host", "another boot", "another container"],
)
def test_a_process_that_cannot_be_looked_up_is_judged_by_its_heartbeat(
    other: dict[str, str], silent: float
) -> None:
    """Under one name there may be two machines: their trials must not be taken from each other."""
    theirs, now = owner.this_process() | other, time.time()
    assert not owner.is_visible(theirs)
    assert not owner.is_dead(theirs, now - silent + 5)
    assert owner.is_dead(theirs, now - silent - 5)


def test_what_may_have_died_is_known_soon() -> None:
    mine, now = owner.this_process(), time.time()
    assert not owner.may_be_dead(mine, now - 30)
    assert not owner.may_be_dead(mine | {"boot": "another"}, now)
    assert owner.may_be_dead(mine | {"boot": "another"}, now - 30)
    assert not owner.may_be_dead(mine | {"host": platform.node() + "-other"}, now - 30)


def test_a_record_of_an_earlier_version_has_no_namespace() -> None:
    mine = owner.this_process()
    del mine["namespace"]
    assert owner.is_visible(mine)
    assert not owner.is_dead(mine, 0.0)
