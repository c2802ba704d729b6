"""The task `evaluator`: a user's function of the encoder, named by --evaluator.

Letters: S texts, D dimension.
"""

import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mtdlab.encoders.embed import Vectors
from mtdlab.encoders.loading import Encoder
from mtdlab.errors import MtdlabError, one_line
from mtdlab.evaluation.embedder import Embedder
from mtdlab.evaluation.items import PER_ITEM, Items, own_items
from mtdlab.evaluation.retrieval import Split
from mtdlab.evaluation.suite import TaskScore
from mtdlab.evaluation.text_encoder import TextEncoder
from mtdlab.methods.user_evaluator import find_evaluator
from mtdlab.settings.tasks import DEV, EVALUATOR

EXPECTED = "it must return a dict of floats by name, such as {'accuracy': 0.83}"


class EvaluatorTask:
    """The scores that the function returns, each named `evaluator:KEY`."""

    name = EVALUATOR

    def __init__(self, encoder: Encoder) -> None:
        """Raises MtdlabError where no function is named."""
        self._user, self._encode = find_evaluator(), TextEncoder(encoder)

    @property
    def has_dev(self) -> bool:
        """Whether the function takes a split."""
        return self._user.has_dev

    def score(self, embedder: Embedder, split: Split) -> list[TaskScore]:
        """What the function returns, x 100.

        Raises MtdlabError where it fails, does not return a dict of finite floats, or returns items
        that do not fit them.
        """

        def encode(texts: Sequence[str]) -> Vectors:
            return self._encode(embedder, texts)

        function, place = self._user.function, f"--evaluator {self._user.spec}"
        try:
            found: Any = function(encode, split) if self.has_dev else function(encode)
        except Exception as error:
            # code of the user can raise any exception
            raise MtdlabError(f"{place}: {one_line(error)}") from error
        suffix = DEV if split == "dev" else ""
        scores, items = _checked(found, self._user.sha256, place)
        return [
            TaskScore(f"{EVALUATOR}:{name}{suffix}", 100 * value, n=1, items=items.get(name))
            for name, value in scores.items()
        ]

    def tokens(self, split: Split) -> int:  # noqa: ARG002
        """Not known: 0."""
        return 0


def _checked(found: Any, sha256: str, place: str) -> tuple[dict[str, float], dict[str, Items]]:
    """Scores and their items by name. Raises MtdlabError for anything else."""
    if not isinstance(found, Mapping) or not found.keys() - {PER_ITEM}:
        what = "an empty dict" if isinstance(found, Mapping) else f"{type(found).__name__}"
        raise MtdlabError(f"{place}: returned {what}; {EXPECTED}")
    scores = {name: value for name, value in found.items() if name != PER_ITEM}
    for name, value in scores.items():
        if not isinstance(name, str) or not name or "," in name or ":" in name:
            raise MtdlabError(
                f"{place}: returned a score named {name!r}; a name is text without ':' and ','"
            )
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise MtdlabError(f"{place}: returned {type(value).__name__} as {name!r}; {EXPECTED}")
        if not np.isfinite(float(value)):
            raise MtdlabError(f"{place}: returned {float(value)} as {name!r}; {EXPECTED}")
    sole = next(iter(scores)) if len(scores) == 1 else None
    try:
        items = own_items(found.get(PER_ITEM), scores, sole, sha256, unit=100)
    except ValueError as error:
        raise MtdlabError(f"{place}: {error}") from None
    return {name: float(value) for name, value in scores.items()}, items
