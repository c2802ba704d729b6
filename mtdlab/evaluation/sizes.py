"""Published sizes of tasks: a file that is cut short is scored with a warning.

Only sizes that are known for certain: those of CR, TREC, MRPC, STS12, STSB and SICKR from
SentEval's files, those of MR and SUBJ as published (Pang and Lee).
"""

from collections.abc import Mapping

import numpy as np

from mtdlab.evaluation.labels import BINARY
from mtdlab.evaluation.pairs import Pairs
from mtdlab.evaluation.tasks import Task

BY_CLASS: Mapping[str, tuple[int, int]] = {
    "MR": (5331, 5331),
    "CR": (1368, 2407),
    "SUBJ": (5000, 5000),
}
"""Sentences of the two files of a task without a split, in the order of `BINARY`."""
BY_SPLIT: Mapping[str, tuple[int, int]] = {"TREC": (5452, 500), "MRPC": (4076, 1725)}
"""Sentences, or pairs of them, of train and test."""
PAIRS: Mapping[str, int] = {"STS12": 3108, "STSB": 1379, "SICKR": 4927}
"""Graded pairs of the test split."""


def describe_shortfall(name: str, task: Task) -> str:
    """The parts of a task that are shorter than published, each with both counts; else empty."""
    counts = [
        f"{part} has {found:,} of the {published:,} published {unit}"
        for part, found, published, unit in _counted(name, task)
        if found < published
    ]
    return "; ".join(counts)


def _counted(name: str, task: Task) -> list[tuple[str, int, int, str]]:
    """Each part with its count, the published one and their unit; none if not known."""
    if isinstance(task, Pairs):
        return [("its test split", len(task), PAIRS[name], "pairs")] if name in PAIRS else []
    if name in BY_CLASS:
        found = np.bincount(task.train.labels, minlength=2).tolist()
        files = zip(BINARY[name], found, BY_CLASS[name], strict=True)
        return [(file, count, published, "sentences") for file, count, published in files]
    if name in BY_SPLIT and task.test is not None:
        train, test = BY_SPLIT[name]
        unit = "pairs" if name == "MRPC" else "sentences"
        return [
            ("its train split", len(task.train), train, unit),
            ("its test split", len(task.test), test, unit),
        ]
    return []
