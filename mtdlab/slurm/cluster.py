"""The longest job array that a cluster allows."""

import re
import shutil
import subprocess

from mtdlab.errors import MtdlabError

DEFAULT_SIZE = 1001
"""MaxArraySize of a cluster that is not configured otherwise (slurm.conf)."""
ANSWER_SECONDS = 20


def max_array_size(given: int | None) -> int:
    """The most tasks of one array: as given, as this cluster says, or Slurm's default.

    Raises MtdlabError where the cluster allows no arrays.
    """
    size = _configured() if given is None else given
    size = DEFAULT_SIZE if size is None else size
    # 1 allows the index 0 alone, 0 none
    if size < 2:
        raise MtdlabError(
            f"this cluster allows no job arrays (MaxArraySize is {size}); submit jobs that run "
            "`mtdlab worker` without an array"
        )
    return size


def _configured() -> int | None:
    """MaxArraySize of this machine's cluster; None where there is no Slurm or it is down."""
    scontrol = shutil.which("scontrol")
    if scontrol is None:
        return None
    try:
        done = subprocess.run(
            [scontrol, "show", "config"],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = re.search(r"^MaxArraySize\s*=\s*(\d+)", done.stdout, re.MULTILINE)
    return int(found[1]) if found else None
