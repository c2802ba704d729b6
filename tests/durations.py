"""Write how long every test takes, from pytest's JUnit XML, as CSV: file, test, seconds.

    pytest --junitxml=tests.xml
    python tests/durations.py tests.xml docs/measured/durations.csv

The slowest test comes first. Sums per file are printed, the largest first.
"""

import csv
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree


def durations(path: Path) -> list[tuple[str, str, float]]:
    """File, test and seconds, those of fixtures included, the slowest test first."""
    return sorted(_cases(path), key=lambda row: (-row[2], *row[:2]))


def _cases(path: Path) -> Iterator[tuple[str, str, float]]:
    for case in ElementTree.parse(path).iter("testcase"):
        file = case.get("classname", "").replace(".", "/") + ".py"
        yield file, case.get("name", ""), float(case.get("time", 0))


def main(source: str, target: str) -> None:
    rows = durations(Path(source))
    with Path(target).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["file", "test", "seconds"])
        writer.writerows((file, test, f"{seconds:.3f}") for file, test, seconds in rows)
    sums: Counter[str] = Counter()
    for file, _, seconds in rows:
        sums[file] += seconds  # type: ignore[assignment]
    for file, seconds in sums.most_common():
        print(f"{seconds:8.1f}  {file}")
    print(f"{sum(sums.values()):8.1f}  {len(rows)} tests")


if __name__ == "__main__":
    main(*sys.argv[1:])
