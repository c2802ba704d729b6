"""The looks and the candidates of a session of `decide`, kept in a file.

Of all candidates that are not better than their baseline at most the share alpha of sessions keeps
one: each candidate has its part of alpha.
"""

import math
import os
import re
from collections import ChainMap
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field, replace
from pathlib import Path
from typing import Annotated, get_args

import numpy as np
import pandas as pd
from filelock import FileLock
from pydantic import ConfigDict, Field, PositiveFloat, TypeAdapter
from pydantic.dataclasses import dataclass as checked

from mtdlab.analysis.data.defaults import Scale
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.runs import round_scores

_SCALE = re.compile(rf", scale ({'|'.join(get_args(Scale))})(?=, margin [^,]*, alpha )")
"""How scores are read, in the terms of a session."""


@checked(config=ConfigDict(extra="forbid"))
class SessionComparison:
    """What a session keeps of a candidate and the baseline that it is compared with.

    Attributes:
        terms: study, score, how a table's scores are read, margin and alpha, which are those of
            all comparisons.
        level: the error that a false keep may have here, a part of alpha.
        seen: the differences in points by seed that each look added.
        kept_at: how many candidates there were when a look kept this one; the next one that is
            named gets its `level` too.
    """

    terms: str
    baseline: str
    candidate: str
    level: PositiveFloat
    seen: list[Annotated[dict[int, float], Field(min_length=1)]] = field(default_factory=list)
    kept_at: int | None = None

    def look(self, differences: pd.Series, scores: pd.Series, write: ScoreFormat) -> None:
        """Add a look at differences of scores, indexed by seed; the same ones are no new look.

        Raises ValueError where one that was looked at is missing now, or has changed.
        """
        added = dict(zip(differences.index.tolist(), differences.tolist(), strict=True))
        for seed, before in ChainMap(*self.seen).items():
            now = added.pop(seed, math.nan)
            if round_scores(np.array(now - before), scores) != 0:
                shown = f"is {write.as_read(now):.6g} now"
                shown = "is missing now" if math.isnan(now) else shown
                raise ValueError(
                    f"{self.candidate} minus {self.baseline} was {write.as_read(before):.6g} with "
                    f"seed {seed} at an earlier look and {shown}; scores that were looked at must "
                    "stay as they were"
                )
        self.seen += [added] if added else []


def find_comparison(
    session: list[SessionComparison], terms: str, baseline: str, candidate: str, alpha: float
) -> SessionComparison:
    """The comparison of these two in a session; a new one is added, with its part of alpha.

    Number j gets alpha / (j (j + 1)), which sums to alpha however many follow, and the parts of
    those that were kept since, which no false keep has used (the fallback procedure, Wiens and
    Dmitrienko 2005; for hypotheses in turn Tian and Ramdas 2021).
    """
    for known in session:
        if (known.baseline, known.candidate) == (baseline, candidate):
            return known
    count = len(session)
    level = alpha / ((count + 1) * (count + 2))
    level += sum(known.level for known in session if known.kept_at == count)
    session.append(SessionComparison(terms, baseline, candidate, level))
    return session[-1]


def _follows(session: list[SessionComparison], terms: str, alpha: float) -> bool:
    """Whether the levels of a session are those that `find_comparison` gave, one after another.

    Each of its comparisons has looks too, in which a seed occurs once.
    """
    again: list[SessionComparison] = []
    for place, known in enumerate(session):
        found = find_comparison(again, terms, known.baseline, known.candidate, alpha)
        found.kept_at = known.kept_at
        seeds = [seed for look in known.seen for seed in look]
        if not seeds or len({*seeds}) < len(seeds):
            return False
        has_place = len(again) == place + 1 and place < (known.kept_at or len(session))
        if not has_place or not math.isclose(found.level, known.level, rel_tol=1e-9):
            return False
    return all((known.kept_at or 0) <= len(session) for known in session)


_FORMAT = TypeAdapter(Annotated[list[SessionComparison], Field(min_length=1)])


def find_session_scale(file: Path) -> Scale | None:
    """How the scores of a session were read at its first look; None where no file says it."""
    with suppress(OSError, ValueError):
        if found := _SCALE.search(_FORMAT.validate_json(file.read_bytes())[0].terms):
            return next(scale for scale in get_args(Scale) if scale == found[1])
    return None


@contextmanager
def open_session(
    file: Path, terms: str, alpha: float, has_runs: Callable[[list[SessionComparison]], bool]
) -> Iterator[list[SessionComparison]]:
    """The session in a file, or a new one; it is written when the block ends without an error.

    Other processes wait, also those that reach it through another link; the file is replaced by a
    whole one. A study of another name goes on with it where it `has_runs` of the session. Raises
    ValueError for a damaged or edited file or one of other terms, OSError where it cannot be read
    or written.
    """
    named, file = file, Path(os.path.realpath(file))
    # the lock would make a folder that is missing
    file.parent.stat()
    with FileLock(file.with_name(f".{file.name}.lock")):
        session: list[SessionComparison] = []
        if file.exists():
            try:
                session = _FORMAT.validate_json(file.read_bytes())
            except ValueError:
                raise ValueError(
                    f"session {named} is damaged, or is no session; move it away to begin anew"
                ) from None
        if session and (was := session[0].terms) != terms:
            # sessions of before 1.0 do not say how scores were read
            now = terms if _SCALE.search(was) else _SCALE.sub("", terms)
            rest, now = (text.partition(", score ")[2] for text in (was, now))
            if rest != now or not has_runs(session):
                raise ValueError(f"session {named} is of {was}, not {terms}; give another file")
            session = [replace(known, terms=terms) for known in session]
        if not _follows(session, terms, alpha):
            raise ValueError(
                f"session {named} was edited: its candidates do not have the parts of the error "
                "that follow from their order and from what was kept, or lack their looks; move it "
                "away to begin anew"
            )
        yield session
        unfinished = file.with_name(f".{file.name}.partial")
        with unfinished.open("wb", buffering=0) as stream:
            stream.write(_FORMAT.dump_json(session, indent=1))
            os.fsync(stream.fileno())
        unfinished.replace(file)
