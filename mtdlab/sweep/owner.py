"""Who owns a trial, and whether that process is still alive."""

import os
import platform
import time
import uuid
from pathlib import Path
from typing import Any

from mtdlab.store import Owner

SILENT_SECONDS = 600.0
"""An owner on another host counts as dead after so long without a heartbeat."""


def this_process() -> dict[str, Any]:
    """Host, boot, process id and its start: together they name one process for good."""
    pid = os.getpid()
    return {"host": platform.node(), "boot": _boot(), "pid": pid, "started": _started(pid)}


def is_dead(owner: Owner, heartbeat: float) -> bool:
    """Whether an owner is provably gone: on this host by its process, else by its silence."""
    if owner.get("host") != platform.node():
        return time.time() - heartbeat > SILENT_SECONDS
    if owner.get("boot") != _boot():
        return True
    started = _started(int(owner["pid"]))
    return started is None or started != owner.get("started")


def _boot() -> str:
    """The running boot's id; where the system names none, the machine's own address."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else str(uuid.getnode())


def _started(pid: int) -> str | None:
    """When a process began, in the system's own words; None where there is none."""
    try:
        # the name in parentheses may hold anything; field 22 is the 20th after it
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except FileNotFoundError:
        if Path("/proc/self/stat").exists():
            return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"
