"""What follows from a metric that is a task besides the published ones.

`metric: beir:FOLDER` alone adds the task to `trainer.tasks`, and where the task has dev data it
selects checkpoints and ranks trials on these: what selects is never what is reported.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from mtdlab.config.source import Source, SpecError
from mtdlab.config.study_file import StudyFile
from mtdlab.methods.user_evaluator import SPELLED, present_evaluator
from mtdlab.settings.tasks import (
    BEIR,
    DEV,
    EVALUATOR,
    external_tasks,
    is_external_score,
    score_name,
    task_of,
)
from mtdlab.user_code import UserModule


def completed(top: StudyFile) -> StudyFile:
    """The top level with the task of its metric, and its selection, where the file leaves it open.

    Unchanged where the metric is no external score, or reports dev data, which is a mistake.
    """
    metric = score_name(top.metric)
    if not is_external_score(metric) or metric.endswith(DEV):
        return top
    trainer: dict[str, Any] = dict(top.trainer)
    try:
        listed = _listed(trainer)
        names = [score_name(task) for task in external_tasks(listed)]
    except ValueError:
        # a mistake of trainer.tasks, which its own check reports
        return top
    if task_of(metric) not in names:
        task = EVALUATOR if task_of(metric) == EVALUATOR else top.metric
        trainer["tasks"] = ",".join(filter(None, (listed, task)))
    updates: dict[str, Any] = {"metric": metric, "trainer": trainer}
    if _has_dev(metric):
        if "select_on" not in top.search:
            trainer.setdefault("select_on", metric + DEV)
        if "select_by" not in top.model_fields_set:
            updates["select_by"] = metric + DEV
    if "select_by" in top.model_fields_set:
        updates["select_by"] = score_name(top.select_by)
    return top.model_copy(update=updates)


def _has_dev(metric: str) -> bool:
    if task_of(metric) == EVALUATOR:
        evaluator = present_evaluator()
        return evaluator is not None and evaluator.has_dev
    return metric.startswith(BEIR)


def with_evaluator(
    modules: tuple[UserModule, ...], trainer: Mapping[str, Any]
) -> tuple[UserModule, ...]:
    """The modules of a study and, where its tasks have one, the evaluator of this process."""
    evaluator = present_evaluator()
    used = EVALUATOR in external_tasks(_listed(trainer))
    return (*modules, evaluator) if evaluator and used else modules


def _listed(trainer: Mapping[str, Any]) -> str:
    """The tasks of a trainer section, joined by commas."""
    given = trainer.get("tasks", "")
    return ",".join(map(str, given)) if isinstance(given, list) else str(given)


def check_external(source: Source, key: str, name: str) -> Iterator[SpecError]:
    """Whether an external score may be the metric or rank the trials: dev data never are reported.

    key  metric or select_by.
    """
    if task_of(name) == EVALUATOR and present_evaluator() is None:
        yield source.error((key,), f"{name} needs a function; name it with --evaluator {SPELLED}")
    if key == "metric" and name.endswith(DEV):
        reported = score_name(name).removesuffix(DEV)
        yield source.error((key,), f"dev data select; report {reported}, on test data")
    if key == "select_by" and not name.endswith(DEV):
        yield source.error(
            (key,), f"{name} is what is reported; rank by sts_dev, or a score that ends in {DEV}"
        )
