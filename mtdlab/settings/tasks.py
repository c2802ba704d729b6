"""Evaluation of a run: the graded pairs that every run uses, and the tasks that it is scored on.

A task is published (`STS12`), a folder in BEIR's layout (`beir:FOLDER`), one of MTEB's
(`mteb:TASK`), or the function of --evaluator (`evaluator`). A score has the name of its task; of a
folder the last part counts, and a function returns several, `evaluator:KEY`. The score on a task's
dev data ends in `:dev`. Of a score of which lower is better the negated one is compared; its task
is `evaluator:-KEY`, and so is its name.
"""

from pathlib import PurePath

from mtdlab.analysis.data.defaults import BUILT_IN
from mtdlab.analysis.data.tasks import LAST, STS, TASKS, TRANSFER

BUILTIN = BUILT_IN
KNOWN = (*TASKS, BUILTIN)
"""The tasks of graded pairs and labels in the order of SimCSE's tables; `builtin` needs no data."""
PAIR_SCORES = ("sts_dev", "sts_test")
"""Scores on the graded pairs of the setting `evaluation`; every run has them."""
AVERAGES = {"sts_average": STS, "transfer_average": TRANSFER}
METRICS = (*PAIR_SCORES, *AVERAGES, *KNOWN)
BEIR, MTEB, EVALUATOR = "beir:", "mteb:", "evaluator"
LOWER = f"{EVALUATOR}:-"
"""What the name of an evaluator's score begins with of which lower is better."""
DEV = ":dev"
SELECTIONS = ("dev", "test", "sts_average", LAST)
"""The graded pairs on which a checkpoint may be selected; `last`: on none."""
KINDS = "beir:FOLDER, mteb:TASK or evaluator"


def parse_tasks(text: str) -> tuple[str, ...]:
    """Task names separated by commas, `sts` or `transfer` for all tasks of a table.

    In the order of `KNOWN`, others behind in the given order; none for an empty text. Raises
    ValueError for an unknown name, or two folders of the same name.
    """
    chosen: dict[str, None] = {}
    for name in (part.strip() for part in text.split(",") if text.strip()):
        group = {"sts": STS, "transfer": TRANSFER}.get(name, (name,))
        if not (set(group) <= set(KNOWN) or is_external(name)):
            raise ValueError(
                f"task {name!r}: not known; write sts, transfer or any of {', '.join(KNOWN)}, or "
                f"{KINDS}"
            )
        chosen.update(dict.fromkeys(group))
    external = [name for name in chosen if is_external(name)]
    names = [score_name(name) for name in external]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{name} is the name of two tasks' scores; rename one of the folders")
    return (*(name for name in KNOWN if name in chosen), *external)


def is_external(task: str) -> bool:
    """Whether a task is a folder in BEIR's layout, MTEB's, or the evaluator."""
    kinds = (BEIR, MTEB, LOWER)
    return task == EVALUATOR or any(task.startswith(kind) and task != kind for kind in kinds)


def published_tasks(text: str) -> tuple[str, ...]:
    """The tasks of graded pairs and labels among those of `parse_tasks`."""
    return tuple(name for name in parse_tasks(text) if not is_external(name))


def external_tasks(text: str) -> tuple[str, ...]:
    """The tasks of `parse_tasks` that are not of graded pairs or labels."""
    return tuple(name for name in parse_tasks(text) if is_external(name))


def score_name(name: str) -> str:
    """The name of the score of an external task or metric; for a folder, its last part."""
    if not name.startswith(BEIR):
        return name
    folder, dev = name.removeprefix(BEIR).removesuffix(DEV), name.endswith(DEV)
    return f"{BEIR}{PurePath(folder).name}{DEV if dev else ''}"


def task_of(score: str) -> str:
    """The task of a score, by the name of the task's score: `evaluator` of `evaluator:KEY`."""
    return EVALUATOR if score.startswith(f"{EVALUATOR}:") else score.removesuffix(DEV)


def is_external_score(name: str) -> bool:
    """Whether a metric is a score of an external task."""
    if name.startswith(f"{EVALUATOR}:"):
        return len(name.removesuffix(DEV)) > len(EVALUATOR) + 1
    return name != EVALUATOR and is_external(name.removesuffix(DEV))


def check_selection(value: str) -> str:
    """The value of `select_on`. Raises ValueError for one that is not allowed."""
    if value in SELECTIONS:
        return value
    if is_external_score(value) and value.endswith(DEV) and not value.startswith(MTEB):
        return score_name(value)
    raise ValueError(
        f"unknown select_on {value!r}; choose from {', '.join(SELECTIONS)}, or write the dev score "
        "of a task, beir:FOLDER:dev or evaluator:KEY:dev"
    )


def score_of_selection(select_on: str) -> str:
    """The name of the score of each evaluation: on the data that `select_on` names, or on dev."""
    if select_on == LAST:
        return "sts_dev"
    return select_on if select_on.endswith(DEV) else f"sts_{select_on.removeprefix('sts_')}"


def needed(metric: str) -> tuple[str, ...]:
    """The scores that a metric is the mean of; none for the scores on graded pairs."""
    return () if metric in PAIR_SCORES else AVERAGES.get(metric, (metric,))
