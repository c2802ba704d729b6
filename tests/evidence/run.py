"""`make evidence`: error rates, coverage and power of what the page says, by simulation.

    python tests/evidence/run.py [NAME ...] [--datasets N] [--out FOLDER]

Prints a table for each of the modules beside this file and writes it as CSV into a folder.
"""

import argparse
import importlib
import time
from pathlib import Path

import pandas as pd

NAMES = (
    "verdict",
    "tails",
    "differences",
    "conditions",
    "failures",
    "effects",
    "questions",
    "claims",
    "best",
    "blocks",
    "baseline",
    "choice",
    "items",
    "means",
    "selection",
    "sufficiency",
    "sequential",
    "decide",
    "loops",
    "default_study",
    "history_studies",
    "power",
)
SEED = 0


def main() -> None:
    """Run the named simulations, all by default."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--datasets", type=int, default=2000, help="simulated studies a cell")
    parser.add_argument("--out", type=Path, default=Path("docs/explanation/evidence"))
    chosen = parser.parse_args()
    if unknown := set(chosen.names) - set(NAMES):
        parser.error(f"{', '.join(sorted(unknown))}: choose from {', '.join(NAMES)}")
    chosen.out.mkdir(parents=True, exist_ok=True)
    for name in chosen.names or NAMES:
        started = time.monotonic()
        table = importlib.import_module(name).rows(chosen.datasets, SEED)
        table.to_csv(chosen.out / f"{name}.csv", index=False, float_format="%.4g")
        minutes = (time.monotonic() - started) / 60
        print(f"{name}: {len(table)} cells of {chosen.datasets} studies, {minutes:.1f} min")
        with pd.option_context("display.width", 250, "display.max_columns", None):
            print(table.round(3).to_string(index=False), flush=True)


if __name__ == "__main__":
    main()
