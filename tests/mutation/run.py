"""`make mutation`: a fixed sample of mutants, each run against its package's own tests.

    python tests/mutation/run.py [--groups FILE] [--tree FOLDER] [--like TABLE] [--out TABLE]

Prints how many are killed and lists the survivors; ends with 1 below the share that is asked for.
A sample of another version (`--like`, a table written by `--out`) is run again mutant by mutant.
The heavy libraries are imported once; each mutant then runs in a fork, in a copy of the tree.
"""

import argparse
import csv
import importlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from mutants import Mutant, find, match, sample

ROOT = Path(__file__).parents[2]
SIZE = 100
LEAST_KILLED = 0.9
COPIED = ("mtdlab", "analysis", "tests", "studies", "docs", "pyproject.toml", "README.md")
IMPORTED = (
    *("torch", "transformers", "optuna", "pandas", "scipy.special", "scipy.stats"),
    *("sqlalchemy.orm", "pydantic", "yaml", "filelock"),
)
FORK = multiprocessing.get_context("fork")


NAMES = ("outcome", "seconds", "killer", "where", "group", "before", "after", "nth")
"""Of what became of a mutant: killed (and by which test), survived, timeout or absent."""


def run_tests(tree: Path, tests: Sequence[str], log: Path) -> None:
    """The body of a fork: the tests of a tree, from inside it, ending with pytest's exit code."""
    os.setsid()
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    os.environ["PYTHONPATH"] = str(tree)
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    import pytest

    options = ["-x", "-q", "--no-header", "--tb=line", "-p", "no:cacheprovider", "-m", "not slow"]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of what is imported already
    code = pytest.main([*options, *tests])
    sys.stdout.flush()
    os._exit(code)


def kill(process: BaseProcess) -> None:
    """End a fork and what it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()
    process.join()


def killer(log: Path) -> str:
    """The first failed test that pytest's summary names."""
    lines = log.read_text(errors="replace").splitlines()
    named = [line for line in lines if line.startswith(("FAILED ", "ERROR "))]
    return named[0].split()[1] if named else ""


class Slot:
    """A copy of the tree, with the fork that runs in it, if any."""

    def __init__(self, tree: Path, folder: Path) -> None:
        self.tree, self.log = folder / "tree", folder / "log"
        self.process: BaseProcess | None = None
        self.mutant: Mutant | None = None
        self.deadline = self.started = 0.0
        self.tree.mkdir(parents=True)
        ignored = shutil.ignore_patterns("__pycache__")
        for name in COPIED:
            copy = shutil.copytree if (tree / name).is_dir() else shutil.copy
            # the package has a link to the folder of the analysis, whose files are mutated
            extra = {"ignore": ignored, "symlinks": True} if (tree / name).is_dir() else {}
            copy(tree / name, self.tree / name, **extra)  # type: ignore[operator]

    def start(self, tests: Sequence[str], limit: float, mutant: Mutant | None = None) -> None:
        """Begin the tests, on a mutant or on the tree as it is."""
        self.mutant = mutant
        if mutant is not None:
            self.write(mutant.module, mutant.code)
        self.process = FORK.Process(target=run_tests, args=(self.tree, tests, self.log))
        self.started = time.monotonic()
        self.deadline = self.started + limit
        self.process.start()

    def write(self, module: str, code: str) -> None:
        """Replace a module and drop its bytecode, which is found by size and time stamp only."""
        path = self.tree / module
        path.write_text(code, encoding="utf-8")
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            compiled.unlink()

    def end(self, original: Path) -> tuple[str, float, str]:
        """Outcome, seconds and killer; afterwards the slot is free and its tree as it was."""
        assert self.process is not None
        seconds = time.monotonic() - self.started
        late = self.process.exitcode is None
        kill(self.process)
        code, self.process = self.process.exitcode, None
        if self.mutant is not None:
            self.write(self.mutant.module, (original / self.mutant.module).read_text("utf-8"))
        if late:
            return "timeout", seconds, ""
        return "survived" if code == 0 else "killed", seconds, killer(self.log)


@contextmanager
def slots(tree: Path, jobs: int) -> Iterator[list[Slot]]:
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        made = [Slot(tree, Path(folder) / str(number)) for number in range(jobs)]
        try:
            yield made
        finally:
            for slot in made:
                if slot.process is not None:
                    kill(slot.process)


def time_clean(name: str, tests: Sequence[str], tree: Path, slot: Slot) -> float:
    """Seconds that a group's tests take on the tree as it is, where they must pass."""
    slot.start(tests, 1800)
    assert slot.process is not None
    slot.process.join(1800)
    outcome, seconds, _ = slot.end(tree)
    if outcome != "survived":
        raise SystemExit(f"{name}: its tests fail on the tree as it is\n{slot.log.read_text()}")
    print(f"{name}: its tests pass in {seconds:.0f} s", file=sys.stderr, flush=True)
    return seconds


def run_all(
    mutants: Sequence[Mutant], groups: dict[str, Any], tree: Path, jobs: int
) -> Iterator[tuple[Mutant, tuple[str, float, str]]]:
    """Each mutant with its outcome, as they end, group by group."""
    order = list(groups)
    waiting = sorted(mutants, key=lambda mutant: order.index(mutant.group))
    limits: dict[str, float] = {}
    with slots(tree, jobs) as all_slots:
        while waiting or any(slot.process for slot in all_slots):
            for slot in all_slots:
                if slot.process is None and waiting:
                    mutant = waiting.pop(0)
                    tests = groups[mutant.group]["tests"]
                    if mutant.group not in limits:
                        clean = time_clean(mutant.group, tests, tree, slot)
                        limits[mutant.group] = 60 + 5 * clean
                    slot.start(tests, limits[mutant.group], mutant)
            busy = [slot for slot in all_slots if slot.process is not None]
            wait([slot.process.sentinel for slot in busy if slot.process], timeout=1)
            for slot in busy:
                assert slot.process is not None
                if not slot.process.is_alive() or time.monotonic() > slot.deadline:
                    assert slot.mutant is not None
                    yield slot.mutant, slot.end(tree)


def read_keys(table: Path) -> list[tuple[str, str, str, int]]:
    with table.open(newline="") as file:
        rows = csv.DictReader(file, delimiter="\t")
        return [(row["group"], row["before"], row["after"], int(row["nth"])) for row in rows]


def write_table(rows: Sequence[tuple[object, ...]], table: Path) -> None:
    with table.open("w", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([NAMES, *rows])


def difference(mutant: Mutant, tree: Path) -> str:
    """The changed line, before and after."""
    before = (tree / mutant.module).read_text("utf-8").splitlines()[mutant.line - 1].strip()
    after = mutant.code.splitlines()[mutant.line - 1].strip()
    return f"{mutant.module}:{mutant.line}\n    - {before}\n    + {after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--groups", type=Path, default=Path(__file__).with_name("groups.toml"))
    parser.add_argument("--tree", type=Path, default=ROOT, help="the version to mutate")
    parser.add_argument("--like", type=Path, help="run the mutants of this table")
    parser.add_argument("--out", type=Path, help="write every outcome to this table")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    chosen = parser.parse_args()
    tree = chosen.tree.resolve()
    groups = tomllib.loads(chosen.groups.read_text())
    found = [mutant for name in groups for mutant in find(name, tree, groups[name]["modules"])]
    absent = []
    if chosen.like:
        keys = read_keys(chosen.like)
        matched = list(match(keys, found))
        mutants = [one for one in matched if one is not None]
        absent = [key for key, one in zip(keys, matched, strict=True) if one is None]
    else:
        mutants = sample(found, SIZE)
    os.environ |= {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    for module in IMPORTED:
        importlib.import_module(module)
    importlib.import_module("torch").set_num_threads(1)
    rows, survivors = [], []
    for mutant, (outcome, seconds, test) in run_all(mutants, groups, tree, chosen.jobs):
        where = f"{mutant.module}:{mutant.line}"
        print(f"{outcome:8} {seconds:5.1f} s  {where}  {test}", file=sys.stderr, flush=True)
        rows.append((outcome, f"{seconds:.1f}", test, where, *mutant.key))
        if chosen.out:  # after each: a run that is ended early leaves what it found
            write_table(rows, chosen.out)
        if outcome == "survived":
            survivors.append(difference(mutant, tree))
    killed = len(mutants) - len(survivors)
    print(f"{killed} of {len(mutants)} mutants killed; {len(survivors)} survived")
    print(*sorted(survivors), sep="\n")
    for key in absent:
        print(f"absent here: {key}")
    return 0 if killed >= LEAST_KILLED * len(mutants) else 1


if __name__ == "__main__":
    raise SystemExit(main())
