"""Whether the process that owns a trial is alive."""

import json
import os
import platform
import signal
import subprocess
import sys
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
    assert not owner.is_dead(its_owner, 0.0)
    os.kill(child.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while state_of(child.pid) != "Z" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert state_of(child.pid) == "Z"
    assert owner.is_dead(its_owner, 0.0)


@PROC
def test_another_process_of_the_same_id_is_not_the_owner(child: subprocess.Popen[bytes]) -> None:
    assert owner.is_dead(owner_of(child.pid) | {"started": "1"}, 0.0)


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
    theirs = owner.this_process() | other
    assert not owner.is_visible(theirs)
    assert not owner.is_dead(theirs, silent - 5)
    assert owner.is_dead(theirs, silent + 5)
    assert owner.is_dead(theirs, None)
    # the clock was set back since: a process that lives would have beaten again
    assert not owner.is_dead(theirs, 5 - silent)
    assert owner.is_dead(theirs, -silent - 5)


def test_a_process_that_is_there_and_cannot_be_read_is_judged_by_its_heartbeat(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where /proc hides the processes of other users."""
    mine = owner.this_process()

    def refuse(_pid: int, _signal: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    monkeypatch.setattr(owner, "_started", lambda _: None)
    assert not owner.is_dead(mine, owner.UNSEEN_SECONDS - 5)
    assert owner.is_dead(mine, owner.UNSEEN_SECONDS + 5)


ASK = """\
import json, os, subprocess, sys
from mtdlab.store import owner
if sys.argv[2] == "hidden":
    subprocess.run(["mount", "-t", "proc", "-o", "hidepid=2", "proc", "/proc"], check=True)
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
found = json.loads(sys.argv[1])
print(owner.is_dead(found, 5.0), owner.is_dead(found, 100.0), owner.is_visible(found))
"""


@PROC
@pytest.mark.parametrize(
    ("unshared", "mode"),
    [
        pytest.param(
            *(("--time", "--boottime", "100000", "--fork"), "shifted"),
            id="another time namespace",
            marks=pytest.mark.slow,
        ),
        pytest.param(("--mount",), "hidden", id="hidepid"),
    ],
)
def test_a_process_that_the_kernel_hides_or_shifts_is_judged_by_its_heartbeat(
    child: subprocess.Popen[bytes], unshared: tuple[str, ...], mode: str
) -> None:
    begin = ["unshare", *unshared]
    if subprocess.run([*begin, "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("namespaces need rights that this user lacks")
    asked = [*begin, sys.executable, "-c", ASK, json.dumps(owner_of(child.pid)), mode]
    answer = subprocess.run(asked, capture_output=True, text=True, check=True)
    assert answer.stdout.split() == ["False", "True", "False"]


def test_what_may_have_died_is_known_soon() -> None:
    mine = owner.this_process()
    assert not owner.may_be_dead(mine, 30)
    assert not owner.may_be_dead(mine | {"boot": "another"}, 0)
    assert owner.may_be_dead(mine | {"boot": "another"}, 30)
    assert owner.may_be_dead(mine | {"boot": "another"}, -30)
    assert not owner.may_be_dead(mine | {"host": platform.node() + "-other"}, 30)


def test_a_record_of_an_earlier_version_has_no_namespace() -> None:
    mine = owner.this_process()
    del mine["namespace"]
    assert owner.is_visible(mine)
    assert not owner.is_dead(mine, None)
