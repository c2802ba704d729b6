"""The claims of the papers: which rows of an experiment are compared, and what the paper states.

The file is `published/claims.yaml`. A selection of rows is a mapping of columns by meaning
(`mtdlab.analysis.data.meaning`) to values; columns that it does not name are equal on both sides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files

import pandas as pd
import yaml
from pydantic import ConfigDict, TypeAdapter, ValidationError

from mtdlab.analysis.data.meaning import PublishedFileError, is_value, load_rows
from mtdlab.analysis.data.published import METHOD
from mtdlab.analysis.data.tasks import TASKS

Value = bool | float | str
Selection = Mapping[str, Value]
SCORE = "score"
CLEAR = 1.0
"""The least printed size, in points, that equivalence may contradict.

One configuration has six printed scores, from 76.49 to 77.30: smaller sizes are within that."""
_FILE = "claims.yaml"


@dataclass(frozen=True)
class PaperClaim:
    """A statement of a paper as a comparison of rows.

    Attributes:
        name: unique in the file.
        source: paper, and its table, figure or section.
        states: the claim in a sentence.
        at: what both sides have.
        over: settings over which both sides are averaged, with the least number of their values.
        compare, against: the side that is said to score more, and each one that it is compared
            with; without any, the values of `compare` themselves are said to be above 0.
        alike: the margin in points within which the sides are said to be; None: they are not.
        least: what each difference is said to be above, in points: below 0 where the first side is
            said to lose no more than that.
        sizes: printed differences in points, one for each of `against`; empty: none is printed.
        table: the published file that they are computed from, or empty.
        measure: what is compared of a run, see `mtdlab.analysis.questions.claim`.
        decay: η of the paper's runs and its schedule where one is stated, else empty.
        study: the study in studies/paper that asks it, or empty.
        reason: why no study can test it; empty where one can.
    """

    __pydantic_config__ = ConfigDict(extra="forbid")

    name: str
    source: str
    states: str
    at: dict[str, Value] = field(default_factory=dict)
    over: dict[str, int] = field(default_factory=dict)
    compare: dict[str, Value] = field(default_factory=dict)
    against: list[dict[str, Value]] = field(default_factory=list)
    alike: float | None = None
    least: float = 0.0
    sizes: list[float] = field(default_factory=list)
    table: str = ""
    measure: str = SCORE
    decay: str = ""
    study: str = ""
    reason: str = ""

    @property
    def sides(self) -> tuple[Selection, ...]:
        """The selections with what both sides have; those of one method where they name none."""
        common = {"method": METHOD, **self.at}
        return tuple(common | side for side in (self.compare, *self.against))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns in which the sides differ."""
        named = dict.fromkeys(name for side in (self.compare, *self.against) for name in side)
        first = self.compare
        varied = [n for n in named if any(side.get(n) != first.get(n) for side in self.against)]
        return tuple(varied or named)

    @property
    def names(self) -> tuple[str, ...]:
        """All columns by which rows are selected."""
        return tuple(dict.fromkeys(name for side in self.sides for name in side))

    def find_sizes(self, tasks: Sequence[str] = ()) -> list[float]:
        """The printed sizes on the tasks of a study, where the paper prints them by task.

        Each is the mean of the table's rows on one side minus that on the other.
        """
        if not self.table or self.measure not in (SCORE, "transfer", *TASKS):
            return self.sizes
        rows = load_rows(self.table)
        wanted = [self.measure] if self.measure in TASKS else tasks
        known = [task for task in wanted if task in rows]
        values = rows[known].mean(axis=1) if known else rows["published"].astype("float64")
        first, *others = (self._mean(rows, values, side) for side in self.sides)
        return [first - other for other in others]

    def _mean(self, rows: pd.DataFrame, values: pd.Series, side: Selection) -> float:
        wanted = {"size": "base", **side}
        chosen = pd.Series(True, index=rows.index)
        for name, value in wanted.items():
            if name in rows:
                chosen &= is_value(rows[name], value)
        return float(values[chosen].mean())


_READ = TypeAdapter(list[PaperClaim])


@lru_cache(maxsize=1)
def load_claims() -> tuple[PaperClaim, ...]:
    """The claims in the order of the file. Raises PublishedFileError where it cannot be read."""
    return read_claims(files(__package__).joinpath("published", _FILE).read_text(encoding="utf-8"))


def read_claims(text: str) -> tuple[PaperClaim, ...]:
    """The claims of a file's text. Raises PublishedFileError for text that is not as it must be."""
    try:
        claims = _READ.validate_python(yaml.safe_load(text))
    except yaml.YAMLError as error:
        line = getattr(getattr(error, "problem_mark", None), "line", 0) + 1
        raise _edited(f"line {line} is no YAML") from None
    except ValidationError as error:
        [*place, key], found = error.errors()[0]["loc"] or ("all",), error.errors()[0]["msg"]
        at = f"claim {int(str(place[0])) + 1}, " if place else ""
        raise _edited(f"{at}{key}: {found[:1].lower()}{found[1:]}") from None
    names = [claim.name for claim in claims]
    for claim in claims:
        if fault := _find_fault(claim):
            raise _edited(f"{claim.name}: {fault}")
        if names.count(claim.name) > 1:
            raise _edited(f"{claim.name} stands there twice")
    return tuple(claims)


def _find_fault(claim: PaperClaim) -> str:
    """What contradicts itself in a claim, or empty."""
    if bool(claim.compare) == bool(claim.reason):
        return "needs either rows to compare, or a reason why none can be"
    if claim.sizes and len(claim.sizes) != len(claim.against):
        return f"has {len(claim.sizes)} sizes of {len(claim.against)} differences"
    if claim.alike is not None and not (claim.alike > 0 and claim.against):
        return "needs a margin above 0, and rows that are alike"
    return ""


def _edited(fault: str) -> PublishedFileError:
    return PublishedFileError(f"{_FILE}, {fault}; it was edited: install mtdlab again")
