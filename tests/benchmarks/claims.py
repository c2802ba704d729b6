"""Milliseconds per claim with 0 to 50,000 recorded trials: python FILE [URL].

Of mtdlab's claim alone, without Optuna. URL: an empty database; by default a new SQLite file.
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from sqlalchemy import delete, insert

from mtdlab.store import Store
from mtdlab.store.database import writing_engine
from mtdlab.store.tables import TrialRow

COUNTS = (0, 1_000, 10_000, 50_000)
CLAIMS = 30
OWNER = {"host": "here", "boot": "1", "pid": 1, "started": "1"}


def rows(begin: int, end: int, state: str) -> Iterator[dict[str, Any]]:
    """Trials of study 1; the finished ones come first in its order."""
    for position in range(begin, end):
        yield {
            "study_id": 1,
            "position": position,
            "setting": str(position),
            "seed": 0,
            "leads": True,
            "parameters": {"ema_decay": 0.5, "queue_size": 512},
            "state": state,
            "settings": {"steps": 100, "note": "x" * 500} if state == "COMPLETE" else None,
        }


def measure(url: str, recorded: int) -> tuple[float, float]:
    """Median seconds of a claim, and of one at which none waits, with `recorded` trials."""
    store = Store(url, study_id=1)
    store.write_study("many", "sts_test", {"sampler": "grid"}, "", "")
    with writing_engine(url).begin() as connection:
        connection.execute(delete(TrialRow))
        if recorded:
            connection.execute(insert(TrialRow), list(rows(0, recorded, "COMPLETE")))
        waiting = list(rows(recorded, recorded + CLAIMS, "WAITING"))
        connection.execute(insert(TrialRow), waiting)
    return _timed(store, True), _timed(store, False)


def _timed(store: Store, expected: bool) -> float:
    seconds = []
    for _ in range(CLAIMS):
        started = time.perf_counter()
        claim = store.claim(OWNER)
        seconds.append(time.perf_counter() - started)
        assert (claim is not None) == expected
    return median(seconds)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        given = sys.argv[1] if len(sys.argv) > 1 else f"sqlite:///{Path(folder) / 'claims.db'}"
        for recorded in COUNTS:
            claimed, none = measure(given, recorded)
            print(f"{recorded:7,d} recorded: claim {claimed * 1e3:7.2f} ms, none {none * 1e3:7.2f}")
