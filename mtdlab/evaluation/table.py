"""A report on one encoder: as a table in SimCSE's order, or as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from analysis.data.tasks import STS, TRANSFER
from analysis.measures.geometry import NOTEBOOK_BATCH
from mtdlab.evaluation.processing import Flow, Processing, Whiten
from mtdlab.evaluation.suite import Space, TaskScore
from mtdlab.settings import Representation
from mtdlab.settings.representation import describe
from mtdlab.settings.tasks import BUILTIN, is_external_score
from mtdlab.terminal import in_columns

TABLES = (
    ("STS, Spearman x 100", STS),
    ("Transfer, accuracy x 100", TRANSFER),
    ("Built-in pairs, Spearman x 100", (BUILTIN,)),
)
OWN = "Other tasks, x 100"
FIELDS = ("task", "score", "reason", "n", "warning", "metric")
"""The keys of a score in JSON."""


@dataclass(frozen=True)
class ScoreReport:
    """The scores of an encoder in the tasks' order, and the geometry of its sentence vectors.

    `representation` is None for averages of word vectors; `remark` is on the sentences, or empty.
    """

    model: str
    representation: Representation | None
    processing: Processing | None
    device: str
    scores: list[TaskScore]
    spaces: list[Space]
    files: list[Path]
    remark: str = ""

    @property
    def complete(self) -> bool:
        """Whether every task whose data are there has a score."""
        return all(score.score is not None or not score.n for score in self.scores)


def average(scores: Sequence[TaskScore]) -> tuple[float | None, int]:
    """The mean of the scores that are not None, and their number; None without any."""
    there = [score.score for score in scores if score.score is not None]
    return (sum(there) / len(there) if there else None), len(there)


def tables(report: ScoreReport) -> list[tuple[str, list[TaskScore], int]]:
    """Title, scores and full size of each of the papers' tables that was chosen.

    Last the scores of other tasks, whose average has no meaning: of size 0.
    """
    split = [
        (title, [score for score in report.scores if score.task in names], len(names))
        for title, names in TABLES
    ]
    own = [score for score in report.scores if is_external_score(score.task)]
    return [table for table in [*split, (OWN, own, 0)] if table[1]]


def as_fields(report: ScoreReport) -> dict[str, Any]:
    """The report as one JSON object; `complete` where an average is over the whole table."""
    averages, processing = {}, report.processing
    for title, scores, size in tables(report):
        if not size:
            continue
        mean, count = average(scores)
        averages[title] = {"mean": mean, "n": count, "of": size, "complete": count == size}
    return {
        "model": report.model,
        **(asdict(report.representation) if report.representation else {}),
        "whiten": processing.dimensions if isinstance(processing, Whiten) else None,
        "flow": processing.model_dump() if isinstance(processing, Flow) else None,
        "remark": report.remark,
        "device": report.device,
        "tasks": [{name: getattr(score, name) for name in FIELDS} for score in report.scores],
        "averages": averages,
        "spaces": [asdict(space) for space in report.spaces],
        "files": [str(path) for path in report.files],
    }


def as_text(report: ScoreReport) -> list[str]:
    """The report as lines: SimCSE's tables, what has no score and why, the geometry."""
    kind = describe(report.representation) if report.representation else "average of word vectors"
    kept = f", {report.processing}" if report.processing else ""
    lines = [f"{report.model}, {kind}{kept}, {report.device}"]
    lines += [report.remark] if report.remark else []
    for title, scores, size in tables(report):
        lines += ["", title, *_table(scores, size)]
        lines += [f"{one.task} has no score: {one.reason}" for one in scores if one.score is None]
        lines += [f"warning: {one.task}: {one.warning}" for one in scores if one.warning]
    for space in report.spaces:
        lines += ["", *_space(space)]
    return lines + [f"wrote {path}" for path in report.files]


def _table(scores: list[TaskScore], size: int) -> list[str]:
    mean, count = average(scores)
    cells = [(one.task, _number(one.score)) for one in scores]
    if size > 1 and count == size:
        cells.append(("Avg.", _number(mean)))
    lines = in_columns(list(zip(*cells, strict=True)))
    if size > 1 and 1 < count < size:
        lines.append(f"average of {count} of {size}: {_number(mean)}")
    return lines


def _space(space: Space) -> list[str]:
    lines = [
        f"{space.name}: alignment {_number(space.alignment, 4)} ({space.positives:,} positive "
        f"pairs), uniformity {_number(space.uniformity, 4)} ({space.sentences:,} sentences)",
        f"uniformity in batches of {NOTEBOOK_BATCH}, their logarithms averaged, as the notebook of "
        f"MoCoSE's authors: {_number(space.uniformity_by_batch, 4)}; compare published values with "
        "this one",
    ]
    return lines + ([f"not all of it: {space.reason}"] if space.reason else [])


def _number(value: float | None, decimals: int = 2) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"
