"""Tasks besides the published ones: folders in BEIR's layout, MTEB's tasks, a user's function.

Each is scored on its test data when a run ends, and on its dev data, where it has any, whenever the
checkpoint is selected on them. The function of the user is that of --evaluator.

Letters: S texts, D dimension.
"""

from collections.abc import Callable, Collection, Sequence
from typing import Any

import torch

from mtdlab.encoders.embed import Embedder
from mtdlab.encoders.loading import Encoder
from mtdlab.encoders.saved import SentenceEncoder
from mtdlab.errors import MtdlabError, TrialError, one_line, refusing
from mtdlab.evaluation.items import own_scores
from mtdlab.evaluation.mteb import MtebTask
from mtdlab.evaluation.retrieval import RetrievalTask
from mtdlab.evaluation.suite import ExternalTask, Split, TaskScore
from mtdlab.methods.user_modules import SPELLED, present_evaluator
from mtdlab.settings.tasks import BEIR, DEV, EVALUATOR, LOWER, MTEB, task_of
from mtdlab.terminal import lent_streams
from mtdlab.user_code import ended_forks

EXPECTED = "a dict of floats by name, such as {'accuracy': 0.83}"


class EvaluatorTask(ExternalTask):
    """The scores that the function returns, each named `evaluator:KEY`."""

    name = EVALUATOR

    def __init__(self, encoder: Encoder, lower: Collection[str] = ()) -> None:
        """`lower` are keys of which lower is better. Raises MtdlabError without a function."""
        if (user := present_evaluator()) is None:
            raise MtdlabError(
                f"the task evaluator needs a function; name it with --evaluator {SPELLED}"
            )
        self._user, self._encoder, self._lower = user, encoder, lower
        self.has_dev = self._user.has_dev

    def score(self, embedder: Embedder, split: Split) -> list[TaskScore]:
        """The scores that the function returns, x 100, or negated where lower is better.

        Raises MtdlabError where it fails, or what it returns is no dict of finite floats with
        items that fit them.
        """
        encode = SentenceEncoder(self._encoder, embedder).encode
        function, place = self._user.function, f"--evaluator {self._user.spec}"
        try:
            with lent_streams(), ended_forks():
                returned: Any = function(encode, split) if self.has_dev else function(encode)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # code of the user can raise any exception, and call sys.exit
            raise MtdlabError(f"{place}: {one_line(error)}") from error
        suffix = DEV if split == "dev" else ""
        with refusing(TrialError):
            scores, items = own_scores(
                returned, place, EXPECTED, self._user.sha256, unit=100, lower=self._lower
            )
        for name in scores:
            if not name or "," in name or ":" in name:
                raise MtdlabError(
                    f"{place} returned a score named {name!r}; a name is text without ':' and ','"
                )
        return [
            TaskScore(f"{EVALUATOR}:{name}{suffix}", value, n=1, items=items.get(name))
            for name, value in scores.items()
        ]


def open_tasks(names: Sequence[str], encoder: Encoder, prompt: str) -> tuple[ExternalTask, ...]:
    """The tasks of these names. Raises MtdlabError where their data cannot be read."""
    lower = [name.removeprefix(LOWER) for name in names if name.startswith(LOWER)]
    kinds: dict[str, Callable[[str], ExternalTask]] = {
        EVALUATOR: lambda _: EvaluatorTask(encoder, lower),
        MTEB: lambda name: MtebTask(name, encoder, prompt),
        BEIR: lambda name: RetrievalTask(name, encoder, prompt),
    }
    # all scores of a function are one task
    tasks = dict.fromkeys(task_of(name) if name.startswith(LOWER) else name for name in names)
    return tuple(kinds[kind](name) for name in tasks for kind in kinds if name.startswith(kind))


def score_external(embedder: Embedder, tasks: Sequence[ExternalTask]) -> list[TaskScore]:
    """The scores of each task on test data, then on its dev data if it has any."""
    both: tuple[Split, ...] = ("test", "dev")
    return [
        score
        for task in tasks
        for split in both[: 1 + task.has_dev]
        for score in score_split(embedder, task, split)
    ]


def score_split(embedder: Embedder, task: ExternalTask, split: Split) -> list[TaskScore]:
    """A task's scores on a split. Its random draws do not change those of the training."""
    with torch.random.fork_rng(), torch.no_grad():
        return task.score(embedder, split)


def find_task(name: str, tasks: Sequence[ExternalTask]) -> ExternalTask:
    """The task of a dev score, which settings name. Raises MtdlabError if it has no dev data."""
    wanted = next(task for task in tasks if task.name == task_of(name))
    if not wanted.has_dev:
        raise MtdlabError(
            f"select_on {name}: the task has no dev data; add qrels/dev.tsv to its folder, or a "
            "second argument, split, to the function of --evaluator, or select on graded pairs "
            "with trainer.select_on: dev and select_by: sts_dev"
        )
    return wanted
