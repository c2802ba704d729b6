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
ENDED_STATES = ("Z", "X")
"""States in /proc/PID/stat of a process that has ended: zombie and dead."""


def this_process() -> dict[str, Any]:
    """Host, boot, process id and start time: together they identify one process uniquely."""
    pid = os.getpid()
    return {"host": platform.node(), "boot": _boot(), "pid": pid, "started": _started(pid)}


def is_dead(owner: Owner, heartbeat: float) -> bool:
    """Whether an owner has ended: on this host by its process, else by its last heartbeat."""
    if owner.get("host") != platform.node():
        return time.time() - heartbeat > SILENT_SECONDS
    if owner.get("boot") != _boot():
        return True
    started = _started(int(owner["pid"]))
    return started is None or started != owner.get("started")


def is_of_this_boot(owner: Owner) -> bool:
    """Whether an owner runs, or ran, on this machine since it was started."""
    return owner.get("host") == platform.node() and owner.get("boot") == _boot()


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
