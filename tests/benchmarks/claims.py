"""Milliseconds of database a trial, by the number of recorded trials: python FILE [URL].

Of a claim, of the begin of a trial and of its result, in mtdlab's and in Optuna's tables. URL: an
empty database, emptied again for each number; by default new SQLite files.
"""

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from scale import COUNTS, LEVELS, RESULT, fill, write_study
from sqlalchemy import MetaData, create_engine

from mtdlab.config.study import StudySpec
from mtdlab.store.claims import Claim
from mtdlab.store.owner import this_process
from mtdlab.store.store import Store, open_store
from mtdlab.trial.worker import without_seed

TRIALS = 40
"""That are measured: all seeds of two levels."""
OWNER = this_process()

Timer = Callable[[str], None]


def run_trial(spec: StudySpec, store: Store, lap: Timer) -> None:
    """What a worker asks the database for one trial, in its order."""
    claim = store.claim(OWNER)
    assert isinstance(claim, Claim)
    lap("claim")
    assert claim.parameters is not None
    settings = spec.settings(claim.parameters, claim.seed)
    assert store.begin(claim, claim.parameters, without_seed(settings), settings.mtd)
    lap("begin")
    assert store.finish(claim, RESULT)
    lap("result")


def measure(
    spec: StudySpec, url: str, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Median seconds of each part, or what else a clock counts; but `TRIALS` all are recorded."""
    fill(spec, url, waiting=TRIALS)
    store = open_store(url, spec.name)
    assert store is not None
    seconds: dict[str, list[float]] = {}
    for _ in range(TRIALS):
        last = clock()

        def lap(part: str) -> None:
            nonlocal last
            now = clock()
            seconds.setdefault(part, []).append(now - last)
            last = now

        run_trial(spec, store, lap)
    return {part: median(times) for part, times in seconds.items()}


@contextmanager
def database(url: str | None, folder: Path) -> Iterator[str]:
    """An empty database, which is emptied again."""
    if url is None:
        yield f"sqlite:///{folder / 'claims.db'}"
        return
    engine, tables = create_engine(url), MetaData()
    tables.reflect(engine)
    if tables.tables:
        sys.exit("the database has tables; name an empty one")
    try:
        yield url
    finally:
        tables.reflect(engine)
        tables.drop_all(engine)
        engine.dispose()


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else None
    for recorded in (len(LEVELS) * 2, *COUNTS):
        with tempfile.TemporaryDirectory() as name, database(given, Path(name)) as place:
            parts = measure(write_study(Path(name), recorded), place)
            printed = ", ".join(f"{part} {time * 1e3:.1f} ms" for part, time in parts.items())
            print(f"{recorded - TRIALS:7,d} recorded: {printed}", flush=True)
