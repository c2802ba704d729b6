"""Graded sentence pairs: the built-in world's, or STS-B's in SentEval's layout."""

import io
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mtdlab.errors import MtdlabError
from mtdlab.text.world import builtin_pairs

Split = Literal["dev", "test"]


@dataclass(frozen=True)
class Pairs:
    """Sentence pairs with a similarity in people's eyes, 0 to 5."""

    first: list[str]
    second: list[str]
    gold: NDArray[np.float64]


def load_pairs(source: str, split: Split) -> Pairs:
    """A split of `builtin`, or of a folder with STS-B's sts-dev.csv and sts-test.csv.

    STS-B is tab-separated: column 5 the score, 6 and 7 the sentences (from 1). Pairs without
    a score are left out. Raises MtdlabError with file and line where a file does not fit.
    """
    if source == "builtin":
        rows = builtin_pairs(split)
    else:
        rows = _read_sts_benchmark(Path(source) / f"sts-{split}.csv")
    return Pairs(
        [row[0] for row in rows], [row[1] for row in rows], np.array([row[2] for row in rows])
    )


def _read_sts_benchmark(path: Path) -> list[tuple[str, str, float]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise MtdlabError(
            f"evaluation {path}: cannot be read: {error}; give a folder with STS-B's files"
        ) from None
    rows = []
    # lines end where the file says so: splitlines would also break inside a sentence
    for line, row in enumerate((one.split("\t") for one in io.StringIO(text)), 1):
        if len(row) < 7:
            raise MtdlabError(f"evaluation {path}:{line}: {len(row)} columns; STS-B has 7")
        if not row[4]:
            continue
        try:
            rows.append((row[5], row[6].rstrip("\n"), _score(row[4])))
        except ValueError:
            raise MtdlabError(f"evaluation {path}:{line}: {row[4]!r} is no score") from None
    if len(rows) < 2:
        raise MtdlabError(f"evaluation {path}: {len(rows)} scored pairs; at least 2 are needed")
    return rows


def _score(text: str) -> float:
    score = float(text)
    if not math.isfinite(score):
        raise ValueError(text)
    return score
