"""Who owns a trial, and whether that process is still alive."""

import os
import platform
import time
import uuid
from pathlib import Path
from typing import Any

from mtdlab.store.claims import Owner

SILENT_SECONDS = 600.0
"""An owner on another host counts as dead after so long without a heartbeat."""
UNSEEN_SECONDS = 60.0
"""The same for an owner under the name of this host that cannot be looked up here: of an earlier
boot or of a container that has ended, or on another machine of that name."""
HEARTBEAT_SECONDS = 2.0
"""Between two heartbeats of a trial."""
ENDED_STATES = ("Z", "X")
"""States in /proc/PID/stat of a process that has ended: zombie and dead."""


def this_process() -> dict[str, Any]:
    """Host, boot, namespace of process ids, process id and start time identify one process."""
    pid = os.getpid()
    return {
        "host": platform.node(),
        "boot": _boot(),
        "namespace": _namespace(),
        "pid": pid,
        "started": _started(pid),
    }


def is_dead(owner: Owner, heartbeat: float) -> bool:
    """Whether an owner has ended: by its process where it can be looked up, else by its last
    heartbeat.
    """
    if not is_visible(owner):
        silent = time.time() - heartbeat
        return silent > (UNSEEN_SECONDS if _is_of_this_name(owner) else SILENT_SECONDS)
    started = _started(int(owner["pid"]))
    return started is None or started != owner.get("started")


def may_be_dead(owner: Owner, heartbeat: float) -> bool:
    """Whether an owner under the name of this host may have ended: known in `UNSEEN_SECONDS`."""
    unseen = _is_of_this_name(owner) and not is_visible(owner)
    return unseen and time.time() - heartbeat > 2 * HEARTBEAT_SECONDS


def is_visible(owner: Owner) -> bool:
    """Whether an owner's process can be looked up: it runs, or ran, in this boot and container."""
    here = owner.get("boot") == _boot() and owner.get("namespace", _namespace()) == _namespace()
    return _is_of_this_name(owner) and here


def _is_of_this_name(owner: Owner) -> bool:
    return bool(owner.get("host") == platform.node())


def _namespace() -> str:
    """The namespace of process ids, of which each container has its own; empty without any."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def _boot() -> str:
    """The id of the running boot; where the system has none, the machine's hardware address."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else str(uuid.getnode())


def _started(pid: int) -> str | None:
    """When a process began, in clock ticks since the boot; None where it is gone.

    A zombie is gone: it has ended and only waits for its parent to reap it, which in a
    container whose process 1 does not reap never happens.
    """
    try:
        # the name in parentheses may contain anything; state is the first field after it
        # (field 3 in proc(5)), the start time the 20th (field 22)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return None if fields[0] in ENDED_STATES else fields[19]
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc/self/stat").exists():
            return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"
