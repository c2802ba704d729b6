"""Which tasks there are, where SentEval keeps them, and what is in them."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mtdlab.evaluation.labels import (
    BINARY,
    Labelled,
    Transfer,
    read_binary,
    read_mrpc,
    read_sst,
    read_trec,
)
from mtdlab.evaluation.pairs import STS_BENCHMARK, SUBSETS, Pairs, load_pairs, read_sick, read_year
from mtdlab.settings.tasks import BUILTIN

Task = Pairs | Transfer
_FOLDERS = {year: f"STS/{year}-en-test" for year in SUBSETS} | {
    "STSB": STS_BENCHMARK,
    "SICKR": "SICK",
    "SST2": "SST/binary",
}
"""Where SentEval keeps a task, if not in a folder of its name."""


def task_folder(name: str, data: Path | None) -> Path | None:
    """The folder of a task under a data folder; None without one."""
    return None if data is None else data / _FOLDERS.get(name, name)


def load_task(name: str, folder: Path) -> Task:
    """Read a task from its folder. Raises MtdlabError with file and line for a damaged file."""
    if name == BUILTIN:
        return load_pairs(BUILTIN, "test")
    if name in SUBSETS:
        return read_year(folder, SUBSETS[name])
    if name in BINARY:
        return read_binary(folder, name)
    if name == "STSB":
        return load_pairs(str(folder), "test")
    if name == "SICKR":
        return read_sick(folder)
    return {"SST2": read_sst, "TREC": read_trec, "MRPC": read_mrpc}[name](folder)


def parts_of(task: Task) -> Sequence[Pairs | Labelled]:
    """The splits of a task, the one that is scored last."""
    if isinstance(task, Pairs):
        return [task]
    return [part for part in (task.train, task.dev, task.test) if part is not None]


def sts_benchmark_pairs(data: Path) -> dict[str, Pairs]:
    """STS-B's pairs of all splits that are there, together, under a name that says which.

    Empty where none is there. Raises MtdlabError with file and line for a damaged file.
    """
    folder = data / _FOLDERS["STSB"]
    found = {
        split: load_pairs(str(folder), split)
        for split in ("train", "dev", "test")
        if (folder / f"sts-{split}.csv").is_file()
    }
    if not found:
        return {}
    together = Pairs(
        [text for pairs in found.values() for text in pairs.first],
        [text for pairs in found.values() for text in pairs.second],
        np.concatenate([pairs.gold for pairs in found.values()]),
    )
    return {f"STS-B {' + '.join(found)}": together}
