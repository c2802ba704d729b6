"""This module tells who owns a trial, and whether that process is still alive."""

import os
import platform
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

Owner = Mapping[str, Any]

SILENT_SECONDS = 600.0
"""An owner on another host counts as dead after so long without a heartbeat."""
UNSEEN_SECONDS = 60.0
"""An owner under the name of this host that cannot be looked up here counts as dead after so long
without a heartbeat: one of an earlier boot, of another user where /proc hides processes, of a
container, or on another machine of that name."""
HEARTBEAT_SECONDS = 2.0
"""Time between two heartbeats of a trial."""


def this_process() -> dict[str, Any]:
    """Return this process as an owner."""
    return owner_of(os.getpid())


def owner_of(pid: int) -> dict[str, Any]:
    """Return a process of this machine as an owner: what identifies it among all processes."""
    return {
        "host": platform.node(),
        "boot": _boot(),
        "namespace": _namespace(),
        "pid": pid,
        "started": _started(pid),
    }


def is_dead(owner: Owner, silent: float | None) -> bool:
    """Return whether an owner has ended: by its process if that is visible, else its heartbeat.

    Everywhere `silent` is the seconds since the last one, by the clock of the database; None
    without any, negative where the clock was set back since. A process that lives would have
    recorded another within seconds, so that one far ahead counts as little as one long ago.
    """
    lives = _lives(owner)
    if lives is not None:
        return not lives
    limit = UNSEEN_SECONDS if _is_of_this_name(owner) else SILENT_SECONDS
    return silent is None or abs(silent) > limit


def may_be_dead(owner: Owner, silent: float | None) -> bool:
    """Return whether an owner of this host's name may have ended: known in `UNSEEN_SECONDS`."""
    unseen = _is_of_this_name(owner) and not is_visible(owner)
    return unseen and (silent is None or abs(silent) > 2 * HEARTBEAT_SECONDS)


def is_visible(owner: Owner) -> bool:
    """Return whether an owner's process can be looked up: it is of this boot and container."""
    return _lives(owner) is not None


def is_ahead(silent: float | None) -> bool:
    """Return whether a heartbeat is too far in the future to be one of now."""
    return silent is not None and silent < -UNSEEN_SECONDS


def describe_end(owner: Owner, silent: float | None) -> str:
    """Say why a dead owner does not hold its trial, as a part of a sentence."""
    if silent is not None and is_ahead(silent) and not is_visible(owner):
        minutes = f"{-silent / 60:,.0f} min"
        return f"its last heartbeat is {minutes} ahead of the database's clock, which was set back"
    return f"its owner, process {owner.get('pid')} on {owner.get('host')}, has ended"


def _lives(owner: Owner) -> bool | None:
    """Return whether an owner's process lives; None where that cannot be looked up from here."""
    recorded = (owner.get("boot"), owner.get("namespace", _namespace()))
    if not _is_of_this_name(owner) or recorded != (_boot(), _namespace()):
        return None
    pid = int(owner["pid"])
    try:
        # finds also those that /proc hides from other users (hidepid)
        with suppress(PermissionError):
            os.kill(pid, 0)
    except ProcessLookupError:
        return False
    started = _started(pid)
    return None if started is None else started == owner.get("started")


def _is_of_this_name(owner: Owner) -> bool:
    return bool(owner.get("host") == platform.node())


def _namespace() -> str:
    """Return what process ids and start times are relative to, as those of a container."""
    found = []
    for kind in ("pid", "time"):
        with suppress(OSError):
            found.append(str(Path(f"/proc/self/ns/{kind}").readlink()))
    return " ".join(found)


def _boot() -> str:
    """Return the id of the running boot, or the machine's hardware address where it has none."""
    path = Path("/proc/sys/kernel/random/boot_id")
    return path.read_text().strip() if path.exists() else str(uuid.getnode())


def _started(pid: int) -> str | None:
    """Return when a process began, in ticks since the boot; empty for a zombie, None if unread."""
    try:
        # the name in parentheses may contain anything; state is the first field after it
        # (field 3 in proc(5)), the start time the 20th (field 22)
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    # one that nobody reaps, as in a container, has ended
    return "" if fields[0] in ("Z", "X") else fields[19]
