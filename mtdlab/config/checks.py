"""The checks of a study file: each error points at its place, with what is allowed."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mtdlab.config import strata
from mtdlab.config.search import Choices, Dimension, Range, grid
from mtdlab.config.source import KeyPath, Source, SpecError
from mtdlab.config.study import STUDY_NAME, Pruner, Sampler, StudySpec, section
from mtdlab.errors import nearest
from mtdlab.methods.registry import BUILTIN, settings_class
from mtdlab.settings import Setting, first_error
from mtdlab.settings.tasks import METRICS, needed, parse_tasks

Model = TypeVar("Model", bound=BaseModel)


class StudyFile(BaseModel):
    """The top level of a study file; sections are checked one by one afterwards."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    study: str = Field(pattern=f"^{STUDY_NAME}$", description="name of the study")
    description: str = Field("", max_length=2000, description="shown on the report's page")
    metric: str = Field("sts_test", description="score that is reported")
    select_by: str = Field(
        "sts_dev", description="score that ranks trials: for the sampler and for the kept model"
    )
    trainer: dict[str, Any] = Field(
        default_factory=dict, description="settings that every trial shares"
    )
    search: dict[str, Any] = Field(default_factory=dict, description="settings that vary")
    seeds: list[int] = Field(default=[0], min_length=1, description="each is run everywhere")
    sampler: Sampler = Field("grid", description="how configurations are chosen")
    pruner: Pruner = Field("none", description="which trials are stopped early")
    trials: int | None = Field(
        default=None, ge=1, le=1_000_000, description="configurations that a sampler draws"
    )
    skip: list[Any] = Field(default_factory=list, description="points of the grid left out")
    until: dict[str, Any] | None = Field(
        default=None, description="add seeds until the verdict is decided: `decided`, `max_seeds`"
    )
    verdict: dict[str, Any] = Field(
        default_factory=dict, description="`margin` (0.5 points) and `alpha` (0.05) of the verdict"
    )
    profiles: dict[str, Any] = Field(
        default_factory=dict, description="partial studies that --profile lays over the file"
    )


def checked(source: Source, path: KeyPath, model: type[Model], values: Any) -> Model:
    """A section's values as `model`. Raises SpecError at the first that it refuses."""
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
        return unknown_key(source, where, model)
    if first["type"] == "missing":
        return source.error(where, "this key is missing")
    message = first_error(error)
    shown = "" if isinstance(first["input"], dict) else f"{first['input']!r}: "
    return source.error(where, shown + message[0].lower() + message[1:])


def unknown_key(source: Source, where: KeyPath, model: type[BaseModel]) -> SpecError:
    """The error for a key that `model` lacks: the nearest it has, or where the key belongs."""
    key = str(where[-1])
    others = [name for name in BUILTIN if key in settings_class(name).model_fields]
    if model is StudyFile and others:
        return source.error(where, f"unknown key; did you mean trainer.{key}?")
    if model is not StudyFile and others:
        return _lacking(source, where, others)
    return source.unknown(where, model.model_fields)


def _lacking(source: Source, where: KeyPath, others: Sequence[str]) -> SpecError:
    return source.error(
        where, f"the study's method has no such setting; it belongs to {', '.join(others)}"
    )


def check_trainer(
    source: Source, top: StudyFile, methods: tuple[str, ...], known: Mapping[str, Setting]
) -> None:
    """The sections' keys and values, and the rules between the top level's keys."""
    _check_section(source, top, methods, known)
    if "seed" in top.trainer:
        raise source.error(("trainer", "seed"), "a study takes its seeds from seeds: [0, 1, 2]")
    if "seed" in top.search:
        raise source.error(("search", "seed"), "the seed is not searched; list it under seeds:")
    for index, seed in enumerate(top.seeds):
        if seed < 0:
            raise source.error(("seeds", index), f"{seed}: a seed is 0 or more")
    for name in top.search:
        if name == strata.KEY:
            _check_strata(source, top, known)
        else:
            _check_searched(source, name, top.trainer, known)
    _check_sampler(source, top)
    tasks = section(methods[0], top.trainer, among=methods).tasks
    _check_score(source, "metric", top.metric, tasks)
    _check_score(source, "select_by", top.select_by, tasks)


def _check_section(
    source: Source, top: StudyFile, methods: tuple[str, ...], known: Mapping[str, Setting]
) -> None:
    for name in top.trainer:
        if len(methods) > 1 and name not in known:
            raise source.unknown(("trainer", name), known)
    # what is searched may decide whether the fixed values go together
    interacting = {"method", "batch_size", strata.KEY, *(name for name in known if "queue" in name)}
    whole = interacting.isdisjoint(top.search)
    for method in methods:
        model = settings_class(method)
        try:
            if whole:
                model(**top.trainer)
            else:
                section(method, top.trainer, among=methods)
        except ValidationError as error:
            raise _pointed(source, ("trainer",), model, error) from None


def _check_searched(
    source: Source, name: str, trainer: Mapping[str, Any], known: Mapping[str, Setting]
) -> None:
    where = ("search", name)
    if name not in known:
        others = [each for each in BUILTIN if name in settings_class(each).model_fields]
        raise _lacking(source, where, others) if others else source.unknown(where, known)
    if name == "preset":
        raise source.error(
            where,
            "is not searched, since it only gives values to settings that a file leaves open; "
            "write a study of its own for each, or a profile",
        )
    if name in trainer:
        raise source.error(where, "also fixed under trainer; keep one of the two")


def _check_strata(source: Source, top: StudyFile, known: Mapping[str, Setting]) -> None:
    """Refuse strata of MTD where something else decides over the EMA decay or the queue size."""
    where = ("search", strata.KEY)
    if top.sampler != "grid":
        raise source.error(where, f"strata are points of a grid, {top.sampler} has none")
    for name in strata.FIXES:
        if name not in known:
            raise source.error(where, f"the study's method has no {name}, so it has no MTD")
        for section_name, given in (("search", top.search), ("trainer", top.trainer)):
            if name in given:
                message = f"also given by the strata of search.{strata.KEY}; keep one of the two"
                raise source.error((section_name, name), message)


def _check_sampler(source: Source, top: StudyFile) -> None:
    if top.sampler != "grid" and top.trials is None:
        raise source.error(
            ("sampler",), f"{top.sampler} needs trials: how many configurations to draw"
        )
    if top.sampler == "grid" and top.trials is not None:
        raise source.error(("trials",), "a grid has as many trials as points; leave it out")
    if top.sampler == "tpe" and top.select_by != "sts_dev":
        raise source.error(
            ("sampler",), "tpe would fit its choices to the test split; use select_by: sts_dev"
        )


def _check_score(source: Source, key: str, name: str, tasks: str) -> None:
    if name not in METRICS:
        raise source.error((key,), f"{name!r} is not known; {nearest(name, METRICS)}")
    scored = parse_tasks(tasks)
    if missing := [task for task in needed(name) if task not in scored]:
        raise source.error(
            (key,), f"{name} needs tasks that trainer.tasks lacks: {', '.join(missing)}"
        )


def check_pruner(source: Source, spec: StudySpec) -> None:
    """Refuse a pruner that would compare test scores in a study that is ranked by dev scores.

    A pruner sees the scores of the pairs on which the checkpoint is chosen.
    """
    searched = spec.search.get("select_on")
    splits = {spec.fixed(method).select_on for method in spec.methods}
    if isinstance(searched, Choices):
        splits = set(searched.values)
    if spec.pruner != "none" and "test" in splits and spec.select_by == "sts_dev":
        raise source.error(
            ("pruner",),
            "a pruner compares scores on the pairs that select_on names, here the test pairs; "
            "use select_on: dev, or rank by the test pairs too, with select_by: sts_test",
        )


def check_points(source: Source, spec: StudySpec) -> None:
    """Refuse, before anything runs, a grid with a point that cannot be trained, or with none."""
    if spec.sampler != "grid":
        return
    points = list(grid(spec.search, spec.skip))
    if not points:
        raise source.error(("skip",), "leaves no point of the grid to run; take an entry out")
    for point in points:
        try:
            spec.settings(spec.parameters_of(point), seed=0)
        except ValidationError as error:
            raise source.error(("search",), f"{point}: {first_error(error)}") from None


def check_until(source: Source, spec: StudySpec) -> None:
    """Refuse `until` in a study whose verdict cannot be decided by more seeds, or is biased."""
    if spec.until is None:
        return
    where = ("until",)
    if spec.sampler != "grid":
        raise source.error(where, f"needs sampler: grid; {spec.sampler} has no fixed levels")
    if spec.pruner != "none":
        raise source.error(where, f"needs every trial; take pruner: {spec.pruner} out")
    if "method" in spec.search:
        raise source.error(where, "needs one method; the verdict is about MTD")
    units = spec.first_units()
    levels = {spec.settings(unit.parameters or {}, unit.seed).mtd for unit in units} - {None}
    if len(levels) < 2:
        raise source.error(where, "needs two levels of MTD or more to compare")


def check_strata_kept(source: Source, spec: StudySpec, mtds: Sequence[float]) -> None:
    """Refuse strata whose configurations have another MTD, under a schedule of the EMA decay."""
    for point in grid(spec.search, spec.skip):
        found = spec.settings(spec.parameters_of(point), seed=0).mtd
        if found is None or all(abs(found - mtd) > strata.TOLERANCE for mtd in mtds):
            message = (
                f"{point} has an MTD of {found}; strata need a constant EMA decay and the whole "
                "queue"
            )
            raise source.error(("search", strata.KEY), message)


def check_values(
    source: Source, setting: Setting, dimension: Dimension, methods: Sequence[str]
) -> None:
    """Refuse a searched value that the setting cannot have."""
    if isinstance(dimension, Choices) and dimension.relative_to:
        return
    path = ("search", setting.name)
    edges = dimension.values if isinstance(dimension, Choices) else (dimension.low, dimension.high)
    if isinstance(dimension, Range) and not setting.is_number:
        raise source.error(path, "is no number; list its values instead")
    models = [settings_class(method) for method in methods]
    for value in edges:
        try:
            for model in models:
                if setting.name in model.model_fields:
                    model.partial({setting.name: value})
        except ValidationError as error:
            raise source.error(path, f"{value!r}: {first_error(error)}") from None
