"""What varies in a study: choices and ranges, the grid that they span, and what it leaves out.

The search section of a study file has plain lists, the spellings of W&B and Optuna, and strata of
MTD: configurations with one MTD and different EMA and queue.

Letters: d MTD, eta EMA decay, K queue size, N batch size; d = 1/(1 - eta) + K/N.
"""

import hashlib
import itertools
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, Field

from mtdlab.analysis.measures.trace import COMPONENTS, trace_limit
from mtdlab.config.source import KeyPath, Source
from mtdlab.settings import Setting
from mtdlab.settings.limits import POINTS, is_number


@dataclass(frozen=True)
class Choices:
    """A setting takes one of `values`; with `relative_to`, that many times another setting."""

    values: tuple[Any, ...]
    relative_to: str | None = None


@dataclass(frozen=True)
class Range:
    """A setting lies in [low, high], linear or log, whole numbers or steps where asked."""

    low: float
    high: float
    log: bool = False
    step: float | None = None
    integer: bool = False
    relative_to: ClassVar[None] = None


_MOST_LETTERS = 40
"""The longest name of a configuration, which a figure has room for."""
Dimension = Choices | Range
Partial = dict[str, tuple[Any, ...]]
"""A partial point: some of the parameters, each with the values that it may have."""


def parameter_name(setting: str, dimension: Dimension) -> str:
    """The name of the parameter in Optuna: `queue_size`, or `queue_size/batch_size`."""
    return f"{setting}/{dimension.relative_to}" if dimension.relative_to else setting


def resolve(
    search: Mapping[str, Dimension],
    parameters: Mapping[str, Any],
    given: Mapping[str, Any],
    default: Callable[[str, Mapping[str, Any]], Any],
) -> dict[str, Any]:
    """Trainer settings from a point of the search: `given`, plus `parameters` made absolute.

    A searched setting that `parameters` lack, because the point's method has no such setting,
    is left out. `default` gives the value of one that neither has, beside those that they have.
    """
    settings, bases = dict(given), dict[str, str]()
    for setting, dimension in search.items():
        name = parameter_name(setting, dimension)
        if name in parameters and dimension.relative_to:
            bases[setting] = dimension.relative_to
        elif name in parameters:
            settings[setting] = parameters[name]
    # a base before the settings that are multiples of it
    for setting, base in sorted(bases.items(), key=lambda item: item[1] in bases):
        factor = parameters[f"{setting}/{base}"]
        value = settings[base] if base in settings else default(base, settings)
        settings[setting] = round(factor * value)
    return settings


def grid(search: Mapping[str, Dimension], skip: Sequence[Partial] = ()) -> Iterator[dict[str, Any]]:
    """Every point of a search over choices that no partial point of `skip` matches.

    The last setting moves fastest. Raises ValueError for a range without a step, which has no grid,
    naming the setting, and for a grid of more than POINTS points.
    """
    names = [parameter_name(setting, dimension) for setting, dimension in search.items()]
    columns = [grid_values(setting, dimension) for setting, dimension in search.items()]
    if (count := math.prod(len(column) for column in columns)) > POINTS:
        raise ValueError(f"the grid has {count} points; it may have {POINTS}")
    skipped = {
        values
        for partial in skip
        for values in itertools.product(*map(partial.get, names, columns))
    }
    for values in itertools.product(*columns):
        if values not in skipped:
            yield dict(zip(names, values, strict=True))


def grid_values(setting: str, dimension: Dimension) -> tuple[Any, ...]:
    """The values a grid visits along one setting."""
    if isinstance(dimension, Choices):
        return dimension.values
    step = dimension.step or (1 if dimension.integer else None)
    if step is None or dimension.log:
        raise ValueError(f"{setting}: a grid needs a list of values, or low, high and step")
    steps = (dimension.high - dimension.low) / step
    if steps >= POINTS:
        raise ValueError(f"{setting}: a grid of more than {POINTS} values; raise its step")
    count = math.floor(steps + 1e-9) + 1
    values = tuple(dimension.low + index * step for index in range(count))
    return tuple(int(value) for value in values) if dimension.integer else values


def fingerprint(settings: Mapping[str, Any]) -> str:
    """A short name for a setting, the same for the same values in any order."""
    text = json.dumps(dict(settings), sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_dimension(source: Source, setting: Setting, value: Any) -> Dimension:
    """One entry of the search section. Raises SpecError at its place."""
    path = ("search", setting.name)
    if isinstance(value, list):
        return Choices(_read_list(source, path, value))
    if not isinstance(value, dict):
        raise source.error(path, f"{value!r}: write a list, or values:, or low: and high:")
    if "times" in value or "share_of" in value:
        return _read_multiples(source, path, setting, value)
    plain: dict[Any, Any] = {_SPELLINGS.get(key, key): item for key, item in value.items()}
    if "distribution" in plain:
        name = plain.pop("distribution")
        if not isinstance(name, str) or name not in _WANDB:
            message = f"{name!r}; choose from {', '.join(_WANDB)}; bounds are values, no exponents"
            raise source.error((*path, "distribution"), message)
        plain |= {} if _WANDB[name] is None else {"log": _WANDB[name]}
    for key in plain.keys() - set(_DIMENSION_KEYS):
        raise source.unknown((*path, key), _DIMENSION_KEYS)
    for only in ("value", "values"):
        if only in plain:
            for key in plain.keys() - {only}:
                raise source.error((*path, key), f"does not go with {only}; keep one of the two")
            listed = [plain[only]] if only == "value" else plain[only]
            return Choices(_read_list(source, path, listed))
    return _read_range(source, path, setting, plain)


def _read_list(source: Source, path: KeyPath, values: Any) -> tuple[Any, ...]:
    if not isinstance(values, list) or not values:
        raise source.error(path, "needs at least one value, as in [0.75, 0.85]")
    for value in values:
        if not isinstance(value, str | int | float | None):
            raise source.error(path, f"{value!r} is not a single value")
    return source.distinct(path, values)


def _read_multiples(
    source: Source, path: KeyPath, setting: Setting, value: dict[str, Any]
) -> Choices:
    keyword = "times" if "times" in value else "share_of"
    base = setting.relative_to
    if value[keyword] != base:
        allowed = f"{keyword}: {base}" if base else "plain values, since it is no multiple"
        raise source.error((*path, keyword), f"{value[keyword]!r}; allowed is {allowed}")
    for key in value.keys() - {keyword, "values"}:
        raise source.unknown((*path, key), [keyword, "values"])
    factors = _read_list(source, (*path, "values"), value.get("values"))
    for factor in factors:
        if not is_number(factor) or factor < 0 or (keyword == "share_of" and factor > 1):
            rule = "a share lies in 0 to 1" if keyword == "share_of" else "a multiple is 0 or more"
            raise source.error((*path, "values"), f"{factor!r}: {rule}")
    return Choices(factors, relative_to=base)


_WANDB = {
    **dict.fromkeys(("uniform", "q_uniform", "int_uniform"), False),
    "log_uniform_values": True,
    **dict.fromkeys(("categorical", "constant")),
}
"""The distributions of W&B, and whether each is logarithmic; None where it is no range."""
_SPELLINGS = {"min": "low", "max": "high", "q": "step", "choices": "values"}
_DIMENSION_KEYS = [
    *("values", "value", "low", "high", "log", "step", "distribution", "times", "share_of"),
    *_SPELLINGS,
]


def _read_range(source: Source, path: KeyPath, setting: Setting, plain: dict[str, Any]) -> Range:
    low, high = plain.get("low"), plain.get("high")
    step, log = plain.get("step"), plain.get("log", False)
    if not is_number(low) or not is_number(high) or low > high:
        raise source.error(path, f"needs low and high with low <= high, got {low} and {high}")
    if step is not None and (not is_number(step) or step <= 0):
        raise source.error((*path, "step"), f"{step!r}: a step is above 0")
    if step is not None and setting.is_integer and step != int(step):
        raise source.error((*path, "step"), f"{step!r}: {setting.name} takes whole numbers")
    if not isinstance(log, bool):
        raise source.error((*path, "log"), f"{log!r}: write true or false")
    if log and (low <= 0 or step is not None):
        raise source.error(path, "a log range begins above 0 and has no step")
    return Range(low, high, log, step, setting.is_integer)


def read_skip(
    source: Source, entries: list[Any], search: Mapping[str, Dimension], sampler: str
) -> tuple[Partial, ...]:
    """The `skip:` section: mappings of searched settings to a value or a list of values.

    Raises SpecError at its place, for an entry that no point of the grid can match, and for a
    sampler that has no grid.
    """
    if not entries:
        return ()
    if sampler != "grid":
        raise source.error(("skip",), f"only a grid has points to leave out, {sampler} has none")
    partials = _read_partials(
        source, {("skip", at): entry for at, entry in enumerate(entries)}, search
    )
    # each once, however often it stands there
    return tuple({str(partial): partial for partial in partials}.values())


def _read_partials(
    source: Source, entries: Mapping[KeyPath, Any], search: Mapping[str, Dimension]
) -> list[Partial]:
    """The partial points of a grid that stand at places of a file. Raises SpecError."""
    columns = {}
    for name, dimension in search.items():
        try:
            values = grid_values(name, dimension)
        except ValueError as error:
            raise source.error(("search",), str(error)) from None
        columns[name] = {_same_number(value): value for value in values}
    return [_read_partial(source, path, entry, search, columns) for path, entry in entries.items()]


def fits(written: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    """Whether a partial point, as a file has it, fits a configuration with these parameters.

    A setting that the configuration's method lacks fits with any value.
    """
    own = {name.partition("/")[0]: _same_number(value) for name, value in parameters.items()}
    return all(
        own[name] in map(_same_number, given if isinstance(given, list) else [given])
        for name, given in written.items()
        if name in own
    )


def read_names(
    source: Source,
    entries: Mapping[str, Any],
    search: Mapping[str, Dimension],
    points: Callable[[], Mapping[str, Mapping[str, Any]]],
    sampler: str,
) -> dict[str, str]:
    """The `names:` section by the key of the configuration in `points`; mistakes are added."""
    if sampler != "grid":
        source.add(("names",), f"needs sampler: grid; {sampler} has no configurations to name")
        return {}
    configurations, named = points(), dict[str, str]()
    for name, written in entries.items():
        path: KeyPath = ("names", name)
        if not 0 < len(name) <= _MOST_LETTERS or name != name.strip() or not name.isprintable():
            rule = f"a name has 1 to {_MOST_LETTERS} letters on one line, and no blanks at its ends"
            source.add(path, rule)
        elif source.try_read(partial(_read_partials, source, {path: written}, search)):
            fitting = {key: point for key, point in configurations.items() if fits(written, point)}
            if len(fitting) != 1:
                source.add(path, _describe_fit([*fitting.values()]))
            elif (other := named.setdefault(next(iter(fitting)), name)) != name:
                source.add(path, f"names the configuration that is called {other}; keep one")
    return named


def _describe_fit(fitting: Sequence[Mapping[str, Any]]) -> str:
    """Why a name is refused that fits these configurations, none or several."""
    if not fitting:
        return "fits no configuration of the search"
    differ = [
        name.partition("/")[0]
        for name in dict.fromkeys(name for point in fitting for name in point)
        if len({str(point.get(name)) for point in fitting}) > 1
    ]
    return f"fits {len(fitting)} configurations, which differ in {', '.join(differ)}; name one"


def _same_number(value: Any) -> Any:
    """The same key for numbers that differ in their last bits, as 0.1 + 0.2 from 0.3."""
    return float(f"{value:.9g}") if isinstance(value, int | float) else value


def _read_partial(
    source: Source,
    path: KeyPath,
    entry: Any,
    search: Mapping[str, Dimension],
    columns: Mapping[str, dict[Any, Any]],
) -> Partial:
    if not isinstance(entry, dict) or not entry:
        raise source.error(path, f"{entry!r}: write searched settings, as in {{ema_decay: 0.95}}")
    point = {}
    for setting, given in entry.items():
        if setting not in search:
            raise source.unknown((*path, setting), search)
        listed = given if isinstance(given, list) else [given]
        values, known = _read_list(source, (*path, setting), listed), columns[setting]
        for value in values:
            if _same_number(value) not in known:
                shown = ", ".join(map(str, [*known.values()][:20]))
                message = f"{value!r} matches no point of the grid; search has {shown}"
                raise source.error((*path, setting), message)
        name = parameter_name(setting, search[setting])
        point[name] = tuple(known[_same_number(value)] for value in values)
    return point


STRATA = "mtd"
STRATA_FIX = COMPONENTS
"""The settings in which the configurations of a stratum differ."""

LEAST_DECAY = 0.5
STRATA_TOLERANCE = 2e-4


def draw_stratum(mtd: float, count: int) -> list[tuple[float, int]]:
    """At most `count` pairs (eta, K/N) with this MTD, by K/N.

    K/N is a whole number, spaced evenly in logarithms from 1 to the largest that leaves eta at 0.5
    or more; queue sizes that round to the same number are one. eta follows from the formula, with
    as few decimals as give the MTD to within 0.0002 steps.
    """
    most = math.floor(mtd - 1 / (1 - LEAST_DECAY))
    ratios = sorted({round(most ** (place / (count - 1))) for place in range(count)})
    return [(_decay(mtd - ratio), ratio) for ratio in ratios]


def _decay(trace: float) -> float:
    """The EMA decay with 1/(1 - eta) = trace."""
    exact = 1 - 1 / trace
    for digits in range(2, 16):
        eta = round(exact, digits)
        if eta < 1 and abs(trace_limit(eta) - trace) <= STRATA_TOLERANCE:
            return eta
    return exact


class StrataSection(BaseModel, frozen=True, extra="forbid", strict=True, allow_inf_nan=False):
    """The keys of `search: mtd`."""

    # 1 / (1 - LEAST_DECAY) + 2, of the smallest queues that give several configurations
    strata: list[Annotated[float, Field(ge=4)]] = Field(min_length=1)
    per_stratum: int = Field(ge=2, le=1000)


def read_strata(
    source: Source, given: StrataSection
) -> tuple[dict[str, Dimension], tuple[Partial, ...]]:
    """The dimensions of both settings, and points to leave out. Raises SpecError for too many."""
    path, strata, count = ("search", STRATA), given.strata, given.per_stratum
    if len(strata) * count > POINTS:
        message = f"{len(strata)} strata of {count} are more than {POINTS} configurations"
        raise source.error(path, message)
    pairs = {pair: None for mtd in dict.fromkeys(strata) for pair in draw_stratum(mtd, count)}
    ratios = tuple(sorted({ratio for _, ratio in pairs}))
    decays = tuple(dict.fromkeys(eta for eta, _ in pairs))
    if (points := len(ratios) * len(decays)) > POINTS:
        raise source.error(path, f"gives a grid of {points} points; it may have {POINTS}")
    queue = Choices(ratios, relative_to="batch_size")
    skipped = {eta: tuple(ratio for ratio in ratios if (eta, ratio) not in pairs) for eta in decays}
    return {"ema_decay": Choices(decays), "queue_size": queue}, tuple(
        {"ema_decay": (eta,), parameter_name("queue_size", queue): others}
        for eta, others in skipped.items()
        if others
    )
