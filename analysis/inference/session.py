"""The file of a session: the candidates that were compared in turn, and the looks at each."""

import fcntl
import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pandas as pd


@dataclass
class Comparison:
    """A candidate and the baseline that it is compared with, by their names.

    Attributes:
        level: the error that a false keep may have here, a part of the session's.
        looks: the numbers of seeds of the looks so far, in rising order.
        differences: by seed, in points, at the last look.
        kept: whether a look kept the candidate; passed_on: whether a later one got its `level`.
    """

    baseline: str
    candidate: str
    level: float
    looks: list[int] = field(default_factory=list)
    differences: dict[str, float] = field(default_factory=dict)
    kept: bool = False
    passed_on: bool = False

    def look(self, differences: pd.Series) -> None:
        """Add a look at differences by seed, unless these were looked at before.

        Raises ValueError where one that was is missing now, or has changed.
        """
        now = {str(seed): float(value) for seed, value in differences.items()}
        for seed, before in self.differences.items():
            if not math.isclose(now.get(seed, math.nan), before, rel_tol=1e-9, abs_tol=1e-9):
                raise ValueError(
                    f"{self.candidate} less {self.baseline} was {before:.6g} points with seed "
                    f"{seed} at the last look and is {now.get(seed, math.nan):.6g} now; scores "
                    "that were looked at must stay as they were"
                )
        if len(now) > len(self.differences):
            self.looks.append(len(now))
            self.differences = now


def find_comparison(
    comparisons: list[Comparison], baseline: str, candidate: str, alpha: float
) -> Comparison:
    """The comparison of these two in a session; a new one is added, with its part of alpha.

    Number j gets alpha / (j (j + 1)), which sums to alpha however many follow, and the parts of
    those that were kept since, which no false keep has used (the fallback procedure, Wiens and
    Dmitrienko 2005; for hypotheses in turn Tian and Ramdas 2021).
    """
    for known in comparisons:
        if (known.baseline, known.candidate) == (baseline, candidate):
            return known
    level = alpha / ((len(comparisons) + 1) * (len(comparisons) + 2))
    for known in comparisons:
        if known.kept and not known.passed_on:
            known.passed_on, level = True, level + known.level
    comparisons.append(Comparison(baseline, candidate, level))
    return comparisons[-1]


@contextmanager
def open_session(
    file: Path | str | None, shared: Mapping[str, object]
) -> Iterator[list[Comparison]]:
    """The comparisons in a file, none in a new one, written when the block ends without an error.

    Other processes wait; the file is replaced by a whole one. Without a path there is no file.
    `shared` is the same for all: study, score, margin, alpha. Raises ValueError for a damaged file
    or one that shares other values, OSError where it cannot be read or written.
    """
    if file is None:
        yield []
        return
    path, shared = Path(file), {"version": 1, **shared}
    with path.with_name(f".{path.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        comparisons = _read(path, shared) if path.exists() else []
        yield comparisons
        partial = path.with_name(f".{path.name}.partial")
        with partial.open("w", encoding="utf-8") as stream:
            json.dump({**shared, "comparisons": [*map(asdict, comparisons)]}, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)


def _read(path: Path, shared: Mapping[str, object]) -> list[Comparison]:
    damaged = ValueError(f"session {path} is damaged, or is no session; move it away to begin anew")
    try:
        fields = json.loads(path.read_text(encoding="utf-8"))
        comparisons = [Comparison(**each) for each in fields["comparisons"]]
        for each in comparisons:
            is_rising = each.looks == sorted({*each.looks} - {0, 1})
            is_whole = len(each.differences) == each.looks[-1]
            values = all(isinstance(value, float) for value in each.differences.values())
            if not (is_rising and is_whole and values and each.level > 0):
                raise damaged
    except (ValueError, LookupError, TypeError, AttributeError):
        raise damaged from None
    for name, value in shared.items():
        if fields.get(name) != value:
            raise ValueError(
                f"session {path} is of {name} {fields.get(name)}, not {value}; give another file"
            )
    return comparisons
