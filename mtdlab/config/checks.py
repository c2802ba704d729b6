"""The checks of a study file's sections: each yields its mistakes, with what is allowed."""

from collections.abc import Iterator, Mapping, Sequence

from pydantic import ValidationError

from mtdlab.config import strata
from mtdlab.config.mistakes import Mistakes
from mtdlab.config.own_metric import check_external
from mtdlab.config.search import Choices, Dimension, Range
from mtdlab.config.source import Source, SpecError, nearest_or_program
from mtdlab.config.study import section
from mtdlab.config.study_file import StudyFile, lacking, point_at
from mtdlab.methods.registry import BUILTIN, settings_class
from mtdlab.settings import Setting
from mtdlab.settings.messages import describe_rule
from mtdlab.settings.tasks import (
    DEV,
    METRICS,
    is_external_score,
    needed,
    parse_tasks,
    score_name,
    task_of,
)

OWN = "write beir:FOLDER, mteb:TASK or evaluator:KEY for a metric of your own"


def check_top_level(source: Source, top: StudyFile, mistakes: Mistakes) -> None:
    """The rules of keys at the top level, as far as the keys that they read are sound."""
    if mistakes.sound(("sampler",), ("trials",), ("select_by",)):
        mistakes.collect(check_sampler(source, top))
        mistakes.collect(_check_tpe(source, top))
    for key, name in (("metric", top.metric), ("select_by", top.select_by)):
        if mistakes.sound((key,)) and is_external_score(name):
            mistakes.collect(check_external(source, key, name))
        elif mistakes.sound((key,)) and name not in METRICS:
            message = f"{name!r} is not known; {nearest_or_program(name, METRICS)}; or {OWN}"
            mistakes.collect([source.error((key,), message)])


def check_sampler(source: Source, top: StudyFile) -> Iterator[SpecError]:
    """Whether the number of trials goes with the sampler."""
    if top.sampler != "grid" and top.trials is None:
        yield source.error(
            ("sampler",), f"{top.sampler} needs trials: how many configurations to draw"
        )
    if top.sampler == "grid" and top.trials is not None:
        yield source.error(("trials",), "a grid has as many trials as points; leave it out")


def _check_tpe(source: Source, top: StudyFile) -> Iterator[SpecError]:
    if top.sampler == "tpe" and top.select_by != "sts_dev" and not top.select_by.endswith(DEV):
        yield source.error(
            ("sampler",), "tpe would fit its choices to the test split; use select_by: sts_dev"
        )


def check_trainer(
    source: Source, top: StudyFile, methods: tuple[str, ...], known: Mapping[str, Setting]
) -> Iterator[SpecError]:
    """The keys and values of the section `trainer`, and the rules between them."""
    if "seed" in top.trainer:
        yield source.error(("trainer", "seed"), "a study takes its seeds from seeds: [0, 1, 2]")
    for name in top.trainer:
        if len(methods) > 1 and name not in known:
            yield source.unknown_setting(("trainer", name), known)
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
            yield from point_at(source, ("trainer",), model, error)


def check_tasks(source: Source, top: StudyFile, methods: tuple[str, ...]) -> Iterator[SpecError]:
    """Whether the tasks of metric and select_by are scored; both and the trainer are sound."""
    tasks = parse_tasks(section(methods[0], top.trainer, among=methods).tasks)
    scored = [score_name(task) for task in tasks]
    for key, name in (("metric", top.metric), ("select_by", top.select_by)):
        if missing := [task for task in map(task_of, needed(name)) if task not in scored]:
            message = f"{name} needs tasks that trainer.tasks lacks: {', '.join(missing)}"
            yield source.error((key,), message)


def check_searched(
    source: Source, name: str, top: StudyFile, known: Mapping[str, Setting]
) -> Iterator[SpecError]:
    """Whether a setting can be searched, whatever its values."""
    where = ("search", name)
    if name == "seed":
        yield source.error(where, "the seed is not searched; list it under seeds:")
    elif name == strata.KEY:
        yield from check_strata(source, top, known)
    elif name not in known:
        others = [each for each in BUILTIN if name in settings_class(each).model_fields]
        yield lacking(source, where, others) if others else source.unknown_setting(where, known)
    elif name == "preset":
        yield source.error(
            where,
            "is not searched, since it only gives values to settings that a file leaves open; "
            "write a study of its own for each, or a profile",
        )
    elif name in top.trainer:
        yield source.error(where, "also fixed under trainer; keep one of the two")


def check_strata(
    source: Source, top: StudyFile, known: Mapping[str, Setting]
) -> Iterator[SpecError]:
    """Refuse strata of MTD where something else decides over the EMA decay or the queue size."""
    where = ("search", strata.KEY)
    if top.sampler != "grid":
        yield source.error(where, f"strata are points of a grid, {top.sampler} has none")
    for name in strata.FIXES:
        if name not in known:
            yield source.error(where, f"the study's method has no {name}, so it has no MTD")
            return
        for section_name, given in (("search", top.search), ("trainer", top.trainer)):
            if name in given:
                message = f"also given by the strata of search.{strata.KEY}; keep one of the two"
                yield source.error((section_name, name), message)


def check_values(
    source: Source, setting: Setting, dimension: Dimension, methods: Sequence[str]
) -> Iterator[SpecError]:
    """Refuse the searched values that the setting cannot have."""
    if isinstance(dimension, Choices) and dimension.relative_to:
        return
    path = ("search", setting.name)
    edges = dimension.values if isinstance(dimension, Choices) else (dimension.low, dimension.high)
    if isinstance(dimension, Range) and not setting.is_number:
        yield source.error(path, "is no number; list its values instead")
        return
    models = [settings_class(method) for method in methods]
    for value in edges:
        try:
            for model in models:
                if setting.name in model.model_fields:
                    model.partial({setting.name: value})
        except ValidationError as error:
            yield source.error(path, describe_rule(error.errors()[0]))
