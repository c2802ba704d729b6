"""The state of a study, from the states of its trials.

The module imports nothing, so that commands start fast.
"""

from collections.abc import Mapping
from typing import Literal

State = Literal["planned", "running", "paused", "complete", "failed"]


def find_state(counts: Mapping[str, int], begun: int) -> State:
    """The state of a study.

    running   a trial is running.
    planned   no trial has begun.
    paused    trials wait and none is running.
    complete  all trials have ended, and at least one of them is complete.
    failed    all trials have ended, and none is complete.

    Args:
        counts: its trials by state: COMPLETE, RUNNING, WAITING, FAIL, PRUNED; those without a trial
            may be missing.
        begun: how many of its trials have begun.
    """
    if counts.get("RUNNING"):
        return "running"
    if counts.get("WAITING"):
        return "paused" if begun else "planned"
    return "complete" if counts.get("COMPLETE") else "failed"
