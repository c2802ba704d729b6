"""A study file, read and checked: every mistake is found before anything runs."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mtdlab.config.dimensions import read_dimension
from mtdlab.config.presets import DECIDE_OTHERS
from mtdlab.config.profiles import laid_over, profile_names
from mtdlab.config.search import Choices, Dimension, Range, grid
from mtdlab.config.settings import TrainerSection, TrainerSettings, is_number, rule_broken
from mtdlab.config.skip import read_skip
from mtdlab.config.source import KeyPath, Source, SpecError, nearest, read
from mtdlab.config.study import STUDY_NAME, Pruner, Sampler, StudySpec
from mtdlab.config.tasks import METRICS, needed, parse_tasks

Model = TypeVar("Model", bound=BaseModel)


class _StudyFile(BaseModel):
    """The top level of a study file; sections are checked one by one afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    study: str = Field(pattern=f"^{STUDY_NAME}$")
    metric: str = "sts_test"
    trainer: dict[str, Any] = Field(default_factory=dict)
    search: dict[str, Any] = Field(default_factory=dict)
    seeds: list[int] = Field(default=[0], min_length=1)
    sampler: Sampler = "grid"
    pruner: Pruner = "none"
    trials: int | None = Field(default=None, ge=1, le=1_000_000)
    skip: list[Any] = Field(default_factory=list)
    profiles: dict[str, Any] = Field(default_factory=dict)


def read_study(path: Path, overrides: Sequence[str] = (), profile: str | None = None) -> StudySpec:
    """Read and check a study file, with one of its profiles laid over it where one is named.

    `overrides` are `key=value`, applied after both. Raises SpecError with file, line, column,
    the value, what is allowed and the nearest key.
    """
    return _study(_over(laid_over(_read(path), profile), overrides))


def read_settings(
    path: Path | None, overrides: Sequence[str] = (), profile: str | None = None
) -> TrainerSettings:
    """The settings of a single run: a study file's trainer section, or defaults, overridden."""
    if path is None and profile is not None:
        raise SpecError(f"--profile {profile}: name the study file that it stands in")
    source = _read(path) if path else Source("--set", "", {})
    source = _over(laid_over(source, profile), overrides)
    for key in source.values:
        if key not in _StudyFile.model_fields:
            raise _unknown(source, (key,), _StudyFile)
    values = source.values.get("trainer") or {}
    return _checked(source, ("trainer",), TrainerSettings, values)


def _read(path: Path) -> Source:
    """A file's values. One with profiles is checked whole: a mistake in any is found at once."""
    source = read(path)
    if not isinstance(source.values, dict):
        raise SpecError(f"{path}: a study file is a mapping that begins with study: NAME")
    if names := profile_names(source):
        for name in (None, *names):
            _study(laid_over(source, name))
    return source


def _over(source: Source, overrides: Sequence[str]) -> Source:
    for assignment in overrides:
        source.override(assignment)
    if "profiles" in source.values:
        message = "--set comes after the profile; set the key itself, such as trainer.steps=50"
        raise source.error(("profiles",), message)
    return source


def _study(source: Source) -> StudySpec:
    top = _checked(source, (), _StudyFile, source.values)
    _check_sections(source, top)
    search = {name: read_dimension(source, name, value) for name, value in top.search.items()}
    for setting, dimension in search.items():
        _check_values(source, setting, dimension)
    try:
        skip = read_skip(source, top.skip, search, top.sampler)
        spec = StudySpec(
            top.study,
            top.metric,
            top.trainer,
            search,
            tuple(dict.fromkeys(top.seeds)),
            top.sampler,
            top.pruner,
            top.trials,
            source.text,
            skip,
        )
        _check_points(source, spec)
    except ValueError as error:
        # a search that has no grid
        raise source.error(("search",), str(error)) from None
    return spec


def _checked(source: Source, path: KeyPath, model: type[Model], values: Any) -> Model:
    if not isinstance(values, dict):
        raise source.error(path, f"{values!r} is not a section of keys and values")
    try:
        return model(**values)
    except ValidationError as error:
        raise _pointed(source, path, model, error) from None


def _pointed(
    source: Source, path: KeyPath, model: type[BaseModel], error: ValidationError
) -> SpecError:
    errors = error.errors()
    # a misspelt key explains the missing one
    first = next((one for one in errors if one["type"] == "extra_forbidden"), errors[0])
    where = (*path, *first["loc"])
    if first["type"] == "extra_forbidden":
        return _unknown(source, where, model)
    if first["type"] == "missing":
        return source.error(where, "this key is missing")
    message = rule_broken(error)
    shown = "" if isinstance(first["input"], dict) else f"{first['input']!r}: "
    return source.error(where, shown + message[0].lower() + message[1:])


def _unknown(source: Source, where: KeyPath, model: type[BaseModel]) -> SpecError:
    if model is _StudyFile and where[0] in TrainerSection.model_fields:
        return source.error(where, f"unknown key; did you mean trainer.{where[0]}?")
    return source.unknown(where, model.model_fields)


def _check_sections(source: Source, top: _StudyFile) -> None:
    together = {"batch_size", "queue_size", "initial_queue_size", "queue_slice"}
    model = TrainerSettings if together.isdisjoint(top.search) else TrainerSection
    _checked(source, ("trainer",), model, top.trainer)
    if "seed" in top.trainer:
        raise source.error(("trainer", "seed"), "a study takes its seeds from seeds: [0, 1, 2]")
    if "seed" in top.search:
        raise source.error(("search", "seed"), "the seed is not searched; list it under seeds:")
    for index, seed in enumerate(top.seeds):
        if seed < 0:
            raise source.error(("seeds", index), f"{seed}: a seed is 0 or more")
    for name in top.search:
        if name not in TrainerSettings.model_fields:
            raise source.unknown(("search", name), TrainerSettings.model_fields)
        if name in DECIDE_OTHERS:
            raise source.error(
                ("search", name),
                "is not searched, since it only fills in what a file leaves open; write a study "
                "of its own for each, or a profile",
            )
        if name in top.trainer:
            raise source.error(("search", name), "also fixed under trainer; keep one of the two")
    if top.sampler != "grid" and top.trials is None:
        raise source.error(("sampler",), f"{top.sampler} needs trials: how many settings to draw")
    if top.sampler == "grid" and top.trials is not None:
        raise source.error(("trials",), "a grid has as many trials as points; leave it out")
    if top.sampler == "tpe" and top.metric != "sts_dev":
        raise source.error(
            ("sampler",), "tpe would fit its choices to the test split; use metric: sts_dev"
        )
    _check_metric(source, top.metric, top.trainer)


def _check_metric(source: Source, metric: str, trainer: dict[str, Any]) -> None:
    if metric not in METRICS:
        raise source.error(("metric",), f"{metric!r} is not known; {nearest(metric, METRICS)}")
    scored = parse_tasks(TrainerSection(**trainer).tasks)
    if missing := [task for task in needed(metric) if task not in scored]:
        raise source.error(
            ("metric",), f"{metric} needs tasks that trainer.tasks lacks: {', '.join(missing)}"
        )


def _check_points(source: Source, spec: StudySpec) -> None:
    """Refuse, before anything runs, a grid with a point that cannot be trained, or with none."""
    if spec.sampler != "grid":
        return
    points = list(grid(spec.search, spec.skip))
    if not points:
        raise source.error(("skip",), "leaves no point of the grid to run; take an entry out")
    for point in points:
        try:
            spec.settings(point, seed=0)
        except ValidationError as error:
            raise source.error(("search",), f"{point}: {rule_broken(error)}") from None


def _check_values(source: Source, setting: str, dimension: Dimension) -> None:
    if isinstance(dimension, Choices) and dimension.relative_to:
        return
    edges = dimension.values if isinstance(dimension, Choices) else (dimension.low, dimension.high)
    numeric = is_number(setting, int) or is_number(setting, float)
    if isinstance(dimension, Range) and not numeric:
        raise source.error(("search", setting), "is no number; list its values instead")
    for value in edges:
        try:
            TrainerSection(**{setting: value})
        except ValidationError as error:
            message = f"{value!r}: {rule_broken(error)}"
            raise source.error(("search", setting), message) from None
