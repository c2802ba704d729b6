"""The keys of a study file, and how a section is checked against a model of its keys."""

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, Field, ValidationError

from mtdlab.analysis.data.defaults import BEYOND_RUN, BeyondRun, Direction
from mtdlab.config.source import OF_PROGRAM, KeyPath, Source, SpecError
from mtdlab.config.study import Pruner, Sampler, UntilSection, VerdictSection
from mtdlab.methods.registry import BUILTIN, settings_class
from mtdlab.settings import TrainerSettings
from mtdlab.settings.limits import TRIALS
from mtdlab.settings.messages import STUDY_NAME, describe_rule

Model = TypeVar("Model", bound=BaseModel)
Count = Annotated[int, Field(ge=0)]


class StudyFile(BaseModel, frozen=True, extra="forbid", strict=True):
    """The top level of a study file; sections are checked one by one afterwards."""

    study: str = Field(pattern=f"^{STUDY_NAME}$", description="name of the study")
    description: str = Field("", max_length=2000, description="shown on the report's page")
    metric: str = Field(
        "sts_test",
        description="score that is reported; `sts_test`: Spearman × 100 on the test pairs of "
        "`trainer.evaluation`",
    )
    select_by: str = Field(
        "sts_dev",
        description="score that ranks trials, for the sampler and for the kept model; `sts_dev`: "
        "Spearman × 100 on the dev pairs of `trainer.evaluation`",
    )
    direction: Direction | None = Field(
        None,
        description="of a program's or an evaluator's scores: `minimize` where lower is better, as "
        "of a loss, else `maximize`; to be stated of a loss and of a score in a unit of its own",
    )
    trainer: dict[str, Any] = Field(
        default_factory=dict, description="settings that every trial shares"
    )
    search: dict[str, Any] = Field(default_factory=dict, description="settings that vary")
    seeds: list[Count] = Field(default=[0], min_length=1, description="each is run everywhere")
    sampler: Sampler = Field("grid", description="how configurations are chosen")
    pruner: Pruner = Field("none", description="which trials are stopped early")
    trials: int | None = Field(
        default=None, ge=1, le=TRIALS, description="configurations that a sampler draws"
    )
    skip: list[Any] = Field(default_factory=list, description="points of the grid left out")
    names: dict[str, Any] = Field(
        default_factory=dict,
        description="what configurations are called, each with a point that it alone fits: "
        "`{SimCSE: {method: simcse}}`",
    )
    baseline: dict[str, Any] | None = Field(
        default=None,
        description="settings of one configuration outside the search, run with the same seeds: "
        "`{method: simcse}`",
    )
    nuisance: dict[str, Any] | None = Field(
        default=None,
        description="settings whose value is chosen for each configuration on dev data before it "
        "is compared, with `seeds` of their own: `{learning_rate: [3e-4, 1e-3, 3e-3]}`; `per: "
        "batch_size` chooses for each value of that setting",
    )
    until: UntilSection | None = Field(
        default=None, description="add seeds until the verdict is decided: `decided`, `max_seeds`"
    )
    questions: list[Any] = Field(
        default_factory=list,
        description="what the study asks, the main question first: `- shape: mtd`; without any it "
        "follows from what varies",
    )
    verdict: VerdictSection = Field(
        VerdictSection(),
        description="`margin` (in points, or the score's own unit) and `alpha` of the verdict",
    )
    beyond_run: BeyondRun = Field(
        BEYOND_RUN,
        description="levels of MTD beyond the run, of which more than 10 % of the initial weights "
        "remain (η^steps) or whose K/N exceeds half of the steps: `leave-out` of the verdict, or "
        "`keep`",
    )
    tracking: Literal["none", "tensorboard"] = Field(
        "none",
        description="`tensorboard` writes each trial's training curves as event files to "
        "`tensorboard/STUDY` (extra `tensorboard`)",
    )
    profiles: dict[str, Any] = Field(
        default_factory=dict, description="partial studies that --profile lays over the file"
    )


def top_level(source: Source) -> StudyFile:
    """The top level, with defaults in place of the keys that have a mistake."""
    try:
        return StudyFile(**source.values)
    except ValidationError as error:
        source.collect(point_at(source, (), StudyFile, error))
        wrong = {broken["loc"][0] for broken in error.errors()}
    rest = {key: value for key, value in source.values.items() if key not in wrong}
    return StudyFile(**{"study": "unnamed"} | rest)


def check_section(source: Source, path: KeyPath, model: type[Model], values: Any) -> Model:
    """A section's values as a `model`. Raises SpecError with everything that the model refuses."""
    if not isinstance(values, dict):
        raise source.error(path, f"{values!r} is not a section of keys and values")
    try:
        return model(**values)
    except ValidationError as error:
        mistakes = tuple(point_at(source, path, model, error))
        raise SpecError(str(mistakes[0]), mistakes=mistakes) from None


def point_at(
    source: Source, path: KeyPath, model: type[BaseModel], error: ValidationError
) -> Iterator[SpecError]:
    """The mistakes that pydantic found, each at its place; `path` is that of the section."""
    broken = error.errors()
    # a misspelt key explains the missing one
    misspelt = any(problem["type"] == "extra_forbidden" for problem in broken)
    for problem in broken:
        where = (*path, *problem["loc"])
        if problem["type"] == "extra_forbidden":
            yield unknown_key(source, where, model)
        elif problem["type"] == "missing":
            if not misspelt:
                yield source.error(where, "this key is missing")
        else:
            yield source.error(where, describe_rule(problem))


def unknown_key(source: Source, where: KeyPath, model: type[BaseModel]) -> SpecError:
    """The error for a key that `model` lacks: the nearest it has, or where the key belongs."""
    key = str(where[-1])
    if model is StudyFile and len(where) > 1:
        section: type[BaseModel] = UntilSection if where[0] == "until" else VerdictSection
        return source.unknown(where, section.model_fields)
    # seed is a setting of the trainer, and at the top of a file it is seeds
    if model is StudyFile and methods_with(key) and f"{key}s" not in model.model_fields:
        return source.error(where, f"unknown key; did you mean trainer.{key}?")
    if issubclass(model, TrainerSettings):
        return unknown_setting(source, where, model.model_fields)
    return source.unknown(where, model.model_fields)


def methods_with(setting: str) -> list[str]:
    """The methods that come with mtdlab and have a setting."""
    return [name for name in BUILTIN if setting in settings_class(name).model_fields]


def unknown_setting(source: Source, where: KeyPath, known: Iterable[str]) -> SpecError:
    """The error for a setting that a method lacks: whose it is, or the nearest that is known."""
    if others := methods_with(str(where[-1])):
        listed = ", ".join(others)
        return source.error(where, f"the method has no such setting; it belongs to {listed}")
    return source.unknown(where, known, OF_PROGRAM)
