"""`mtdlab report --watch`: writes the page again while its studies run."""

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.frames import StudyFrames

PAUSE = 5.0
"""Seconds between two readings, at least."""
_SHARE = 10
_ENDED = ("COMPLETE", "FAIL", "PRUNED")


def watch(
    load: "Callable[[], Sequence[StudyFrames]]",
    write: Callable[[], None],
    *,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Write now, and whenever a trial has begun or ended, until all planned trials have ended.

    load  reads the studies; write: writes their page from what it reads itself.

    Waits ten times as long as writing takes, so that the trials keep the processor.
    """
    written: list[object] = []
    pause = PAUSE
    while True:
        # read before writing: a change in between is written in the next round
        studies = load()
        if _states(studies) != written:
            started = time.monotonic()
            write()
            written, pause = _states(studies), max(PAUSE, _SHARE * (time.monotonic() - started))
        if all(map(has_ended, studies)):
            return
        sleep(pause)


def _states(studies: "Sequence[StudyFrames]") -> list[object]:
    """What changes when a trial begins or ends."""
    return [(study.planned, tuple(study.trials["state"])) for study in studies]


def has_ended(study: "StudyFrames") -> bool:
    """Whether all planned trials have ended."""
    return int(study.trials["state"].isin(_ENDED).sum()) >= study.planned
