"""Trials per minute of each engine with 1, 2 and 4 workers: python FILE [TRIALS].

The trials are those of a program that returns at once, so that the engines' own cost is measured,
without the start of the processes: from the first trial's end to the last one's.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mtdlab.store.progress import list_studies

PROGRAM = "def train(settings, *, seed, checkpoints, report):\n    return {'accuracy': seed}\n"
WORKERS = (1, 2, 4)


class Bench:
    """A folder with a study, and the processes that run it."""

    def __init__(self, folder: Path, trials: int) -> None:
        self.folder, self.trials = folder, trials
        self.url = f"sqlite:///{folder / 'studies.db'}"
        (folder / "own.py").write_text(PROGRAM)
        (folder / "own.yaml").write_text(
            "study: own\nmetric: accuracy\ntrainer: {steps: 1}\n"
            f"search: {{rate: [1.0, 2.0]}}\nseeds: {list(range(trials // 2))}\n"
        )

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a module of Python in the folder."""
        path = os.pathsep.join([str(self.folder), *filter(None, sys.path)])
        variables = {"PYTHONPATH": path, "MTDLAB_STORAGE": self.url, "OMP_NUM_THREADS": "1"}
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        return subprocess.Popen(
            [sys.executable, "-m", *words], cwd=self.folder, env=os.environ | variables, **quiet
        )

    def mtdlab(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command of mtdlab with the program."""
        return self.start("mtdlab", *words, "--objective", "own:train")

    def rate(self) -> float:
        """Trials per minute, between the ends of the first and the last trial."""
        moments: list[tuple[float, int]] = []
        while not moments or moments[-1][1] < self.trials:
            [study] = list_studies(self.url)
            moments.append((time.perf_counter(), study.counts.get("COMPLETE", 0)))
            time.sleep(0.05)
        first = next(moment for moment in moments if moment[1])
        return 60 * (self.trials - first[1]) / (moments[-1][0] - first[0])


def sweep(bench: Bench, workers: int) -> list["subprocess.Popen[bytes]"]:
    """One sweep with worker processes."""
    return [bench.mtdlab("sweep", "own.yaml", "--jobs", str(workers))]


def separate(bench: Bench, workers: int) -> list["subprocess.Popen[bytes]"]:
    """Workers that were started one by one."""
    return [bench.mtdlab("worker", "--study", "own") for _ in range(workers)]


def dask(bench: Bench, workers: int) -> list["subprocess.Popen[bytes]"]:
    """One sweep on a dask cluster."""
    file = bench.folder / "scheduler.json"
    words = ["--no-dashboard", "--no-show", "--host", "127.0.0.1", "--port", "0"]
    started = [bench.start("distributed.cli.dask_scheduler", *words, "--scheduler-file", str(file))]
    while not file.exists():
        time.sleep(0.1)
    address = re.findall(r"tcp://[\d.]+:\d+", file.read_text())[0]
    words = [address, "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started += [bench.start("distributed.cli.dask_worker", *words) for _ in range(workers)]
    sweep = ("sweep", "own.yaml", "--backend", "dask", "--scheduler", address)
    return [bench.mtdlab(*sweep), *started]


def measure(engine: object, workers: int, trials: int) -> float:
    """Trials per minute of an engine."""
    with tempfile.TemporaryDirectory() as name:
        bench = Bench(Path(name), trials)
        bench.mtdlab("sweep", "own.yaml", "--jobs", "0").wait()
        processes = engine(bench, workers)  # type: ignore[operator]
        try:
            return bench.rate()
        finally:
            processes[0].wait()
            for process in processes[1:]:
                # a dask worker that is ended beside its scheduler waits for it
                process.kill()
                process.wait()


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    for engine in (sweep, separate, dask):
        rates = [f"{measure(engine, workers, count):7.0f}" for workers in WORKERS]
        print(f"{engine.__name__:9}", *rates, flush=True)
