"""Tabulate how long every test takes, from pytest's JUnit XML.

    pytest --junitxml=tests.xml
    python tests/durations.py tests.xml durations.csv

The CSV file has a row per test, the slowest first: file, test, seconds with those of its fixtures.
Sums per file are printed, the largest first.
"""

import csv
import sys
from collections import defaultdict
from pathlib import Path
from xml.etree import ElementTree


def read_durations(path: Path) -> list[tuple[str, str, float]]:
    """File, test and seconds, the slowest test first."""
    rows = [
        (case.attrib["classname"].replace(".", "/") + ".py", case.attrib["name"], case.get("time"))
        for case in ElementTree.parse(path).iter("testcase")
    ]
    timed = [(file, test, float(seconds or 0)) for file, test, seconds in rows]
    return sorted(timed, key=lambda row: (-row[2], *row[:2]))


def main(source: str, target: str) -> None:
    rows = read_durations(Path(source))
    with Path(target).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["file", "test", "seconds"])
        writer.writerows((name, test, f"{seconds:.3f}") for name, test, seconds in rows)
    sums: defaultdict[str, float] = defaultdict(float)
    for name, _, seconds in rows:
        sums[name] += seconds
    for name in sorted(sums, key=lambda name: -sums[name]):
        print(f"{sums[name]:9.1f} s  {name}")
    print(f"{sum(sums.values()):9.1f} s  {len(rows)} tests")


if __name__ == "__main__":
    main(*sys.argv[1:])
