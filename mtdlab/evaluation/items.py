"""The items that a score is computed from: similarities of pairs, queries, examples.

Letters: P items.
"""

import hashlib
import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtdlab.analysis.data.metric import negated
from mtdlab.errors import TrialError
from mtdlab.settings.limits import FURTHEST, is_number, too_far

PER_ITEM = "per_item"
"""The key by which a program or evaluator of the user returns the items of its scores."""
MOST = 1_000_000
"""The most items of a score of the user's own."""
TOLERANCE = 0.1
"""The most points between a user's score, which may be rounded, and the mean of its items."""


@dataclass(frozen=True, eq=False)
class Items:
    """The items of one score.

    Attributes:
        kind: spearman: values (P,) are similarities, and gold (P,) what they are compared with;
            mean: the score is the mean of values, in points, and gold None.
        digest: SHA-256 of the items: only scores with the same one are compared item by item.
    """

    kind: Literal["spearman", "mean"]
    values: NDArray[np.float32]
    digest: str
    gold: NDArray[np.float64] | None = None


def similarities(values: ArrayLike, gold: ArrayLike, digest: str) -> Items:
    """The items of a rank correlation of `values` (P,) and `gold` (P,)."""
    # gold scores as they are: rounded ones could be equal, and the correlation another
    expected = np.asarray(gold, dtype=np.float64)
    return Items("spearman", np.asarray(values, dtype=np.float32), digest, expected)


def values_in_points(values: ArrayLike, digest: str) -> Items:
    """The items of a mean of `values` (P,), in points."""
    return Items("mean", np.asarray(values, dtype=np.float32), digest)


def digest_of(*parts: Any) -> str:
    """The SHA-256 of values that JSON can hold."""
    sha256 = hashlib.sha256()
    for part in parts:
        sha256.update(json.dumps(part).encode())
    return sha256.hexdigest()


def own_scores(
    returned: Any,
    place: str,
    expected: str,
    origin: str,
    *,
    metric: str | None = None,
    unit: float = 1.0,
    lower: Collection[str] = (),
) -> tuple[dict[str, float], dict[str, Items]]:
    """The scores that a user's function returned by name, and the items of those that have any.

    Those of which lower is better are negated, in their own unit, and so are their names.

    Args:
        returned: scores by name; the key `per_item` has a sequence of numbers whose mean is the
            metric, or the only score, or such sequences by score.
        place: begins messages, with what was `expected`.
        origin: SHA-256 of the function's module: with the name and the number of items the digest.
        unit: what 1 in other scores and their items counts, such as 100 points.
        lower: the scores of which lower is better.

    Raises:
        TrialError: for anything but finite numbers that can be recorded, with items that fit them.
    """
    if not isinstance(returned, Mapping):
        raise TrialError(f"{place} returned {_kind(returned)}; expected {expected}")
    scores = {}
    for name, value in returned.items():
        if name == PER_ITEM:
            continue
        if not isinstance(name, str) or not is_number(value):
            raise TrialError(f"{place} returned {name!r}: {_kind(value)}; expected {expected}")
        if problem := too_far(f"{place} returned {name!r}, which", value):
            raise TrialError(problem)
        scores[name] = float(value)
        if not math.isfinite(scores[name]):
            problem = f"{place} returned {name} {scores[name]}; expected a finite number"
            raise TrialError(problem, "nan_loss")
    if not scores:
        raise TrialError(f"{place} returned no score; expected {expected}")
    sole = next(iter(scores)) if len(scores) == 1 else metric
    units = {name: -1.0 if name in lower else unit for name in scores}
    try:
        items = _items(returned.get(PER_ITEM), scores, sole, origin, units)
    except ValueError as error:
        raise TrialError(f"{place}: {error}") from None
    named = {name: negated(name) if name in lower else name for name in scores}
    values = {named[name]: units[name] * value for name, value in scores.items()}
    return values, {named[name]: of_score for name, of_score in items.items()}


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def _items(
    given: object,
    scores: Mapping[str, float],
    sole: str | None,
    origin: str,
    units: Mapping[str, float],
) -> dict[str, Items]:
    """The items by score, times its unit; a plain sequence is of `sole`. Raises ValueError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        if sole is None:
            raise ValueError(
                f"{PER_ITEM} does not say of which score; return {{{next(iter(scores))!r}: [...]}}"
            )
        given = {sole: given}
    items = {}
    for name, values in given.items():
        if name not in scores:
            listed = ", ".join(scores)
            raise ValueError(f"{PER_ITEM} has items of {name!r}; the returned scores are {listed}")
        unit = units[name]
        points = unit * _numbers(name, values)
        score, mean = unit * scores[name], float(points.mean())
        if abs(mean - score) > TOLERANCE:
            raise ValueError(
                f"the items of {name} in {PER_ITEM} have mean {mean / unit:g}, and the score is "
                f"{scores[name]:g}; return items whose mean is the score, or none"
            )
        items[name] = values_in_points(points, digest_of(origin, name, len(points)))
    return items


def _numbers(name: object, values: object) -> NDArray[np.float64]:
    """A column (P,) of finite numbers. Raises ValueError for anything else."""
    what = f"the items of {name} in {PER_ITEM}"
    try:
        array = np.asarray(values)
    except Exception:
        # objects of other packages raise what they like
        array = np.array(None)
    if array.ndim != 1 or array.dtype.kind not in "buif":
        raise ValueError(f"{what} are no sequence of numbers; return a list or an array (P,)")
    if not 2 <= len(array) <= MOST:
        raise ValueError(f"{what} are {len(array):,}; return from 2 to {MOST:,}")
    column = array.astype(np.float64)
    # not true of NaN either
    stored = np.abs(column) <= FURTHEST
    if not stored.all():
        at = int(np.argmin(stored))
        raise ValueError(
            f"item {at + 1} of {name} in {PER_ITEM} is {column[at]}; expected a number within "
            f"{FURTHEST:g} of 0"
        )
    return column
