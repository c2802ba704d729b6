"""Compare what `mtdlab plan` predicts with what the sweep then takes; about 12 minutes, quiet.

    python tests/benchmarks/bench_plan.py [--study NAME ...] [--precision NAME ...]

Five studies with fewer levels, seeds and, of MiniLM, steps than usual, in two precisions. Of each
`plan` is called twice, the first time with an empty cache of tokens, then the sweep runs. Printed
are the predicted and the measured seconds of the whole sweep and of its longest trial, and the
largest memory of a worker with the largest peak that a trial recorded. Every ratio is predicted /
measured.
"""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STUDIES = Path(__file__).parents[2] / "studies"
PRECISIONS = ("float32", "bfloat16")
PAIRS = "pairs.tsv"
MTD = "mtd"
TWO_LEVELS = "search.ema_decay=[0.5, 0.9]"
CUT: Mapping[str, tuple[str, Sequence[str]]] = {
    "default": (MTD, ["until=null", "seeds=[1000, 1001]"]),
    "methods": ("methods", ["seeds=[0]"]),
    "minilm": (
        MTD,
        [
            *("until=null", "seeds=[1000]", TWO_LEVELS, "trainer.learning_rate=3e-5"),
            "trainer.encoder=sentence-transformers/all-MiniLM-L6-v2",
            *("trainer.batch_size=32", "trainer.steps=40", "trainer.evaluate_every=20"),
        ],
    ),
    "pairs": (
        MTD,
        ["until=null", "seeds=[1000, 1001]", TWO_LEVELS, f"trainer.corpus=pairs:{PAIRS}"],
    ),
    "contriever": ("contriever", ["seeds=[0]", TWO_LEVELS]),
}
"""A study that comes with mtdlab, and its --set, by the name under which it is printed."""
COLUMNS = (
    *("study", "precision", "call", "predicted s", "measured s", "ratio"),
    *("trial s", "measured s", "ratio", "worker MB", "peak MB", "ratio", "plan s"),
)


def write_pairs(path: Path) -> None:
    """4,096 pairs of a sentence and its paraphrase, of about ten words each."""
    people, verbs = [f"person {at}" for at in range(16)], ("runs", "sleeps", "eats", "waits")
    places, hours = [f"house {at}" for at in range(16)], ("dawn", "noon", "dusk", "night")
    lines = [
        f"{who} {verb} in the {place} of the town at {hour}\tat {hour}, in {place}, {who} {verb}"
        for who in people
        for verb in verbs
        for place in places
        for hour in hours
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def call(folder: Path, *arguments: str) -> dict[str, Any]:
    """The JSON object that a command prints. Raises CalledProcessError where it fails."""
    environment = os.environ | {"MTDLAB_CACHE": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "mtdlab", *arguments, "--json"],
        cwd=folder,
        env=environment,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def recorded(folder: Path) -> tuple[float, float]:
    """The longest duration and the largest peak memory of the trials of a sweep."""
    database = sqlite3.connect(folder / "mtdlab.db")
    query = "SELECT max(wall_seconds), max(peak_memory) FROM mtdlab_trials WHERE state = 'COMPLETE'"
    [(seconds, memory)] = database.execute(query)
    database.close()
    return seconds, memory


def compare(name: str, precision: str) -> list[list[str]]:
    """A row for each of the two calls of `plan`."""
    file, changes = CUT[name]
    sets = [f"--set={change}" for change in (*changes, f"trainer.precision={precision}")]
    with TemporaryDirectory(prefix="mtdlab-bench-") as place:
        folder = Path(place)
        write_pairs(folder / PAIRS)
        study = str(STUDIES / f"{file}.yaml")
        plans = []
        for _ in range(2):
            began = time.perf_counter()
            found = call(folder, "plan", study, *sets)["estimate"]
            plans.append((found, time.perf_counter() - began))
        seconds = call(folder, "sweep", study, *sets)["seconds"]
        trial, peak = recorded(folder)
    return [
        [name, precision, str(number), *figures(found, seconds, trial, peak), f"{taken:.0f}"]
        for number, (found, taken) in enumerate(plans, 1)
    ]


def figures(found: dict[str, Any], seconds: float, trial: float, peak: float) -> list[str]:
    """Predicted, measured and ratio, of the sweep, the longest trial and a worker's memory."""
    if "reason" in found:
        return [f"no estimate: {found['reason']}"]
    whole, longest, memory = found["seconds"][1], found["trial"][1], found["worker_memory"]
    return [
        *(f"{whole:.0f}", f"{seconds:.0f}", f"{whole / seconds:.2f}"),
        *(f"{longest:.1f}", f"{trial:.1f}", f"{longest / trial:.2f}"),
        *(f"{memory / 1e6:.0f}", f"{peak / 1e6:.0f}", f"{memory / peak:.2f}"),
    ]


def main() -> None:
    """Print a row for each study, precision and call, as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--study", action="append", choices=list(CUT))
    parser.add_argument("--precision", action="append", choices=PRECISIONS)
    given = parser.parse_args()
    print("  ".join(COLUMNS))
    for precision in given.precision or PRECISIONS:
        for name in given.study or CUT:
            for row in compare(name, precision):
                print("  ".join(row), flush=True)


if __name__ == "__main__":
    main()
