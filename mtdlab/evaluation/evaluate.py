"""An encoder evaluated on the chosen tasks; its scores as a table in SimCSE's order, or as JSON."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.progress import TaskID

from mtdlab.analysis.data.tasks import STS, TRANSFER
from mtdlab.analysis.measures.geometry import NOTEBOOK_BATCH
from mtdlab.data_paths import VARIABLE
from mtdlab.encoders.embed import Vectors
from mtdlab.encoders.saved import load_encoder, other_pooling
from mtdlab.errors import MtdlabError, one_line, refusing
from mtdlab.evaluation.external import open_tasks, score_external
from mtdlab.evaluation.mteb import write_mteb
from mtdlab.evaluation.pairs import Split, read_table, sts_benchmark_pairs
from mtdlab.evaluation.processing import Flow, Processing, Whiten
from mtdlab.evaluation.suite import Advance, Space, Suite, T, TaskScore
from mtdlab.evaluation.word_vectors import PREFIX, WordAverages
from mtdlab.methods.user_modules import import_evaluator
from mtdlab.settings import Representation
from mtdlab.settings.representation import describe
from mtdlab.settings.tasks import (
    BUILTIN,
    EVALUATOR,
    KNOWN,
    external_tasks,
    is_external_score,
    parse_tasks,
    published_tasks,
)
from mtdlab.settings.trainer import name_with_layers
from mtdlab.terminal import begin_phase, in_columns, progress_bar

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

    `representation` is None for averages of word vectors; `remark` is on the sentences, or on
    the pooling, or empty; `layers` of the encoder were kept, None: all; `max_length` is the most
    tokens of a sentence that were read.
    """

    model: str
    representation: Representation | None
    processing: Processing | None
    device: str
    scores: list[TaskScore]
    spaces: list[Space]
    files: list[Path]
    remark: str = ""
    layers: int | None = None
    max_length: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every task whose data are there has a score."""
        return all(score.score is not None or not score.n for score in self.scores)


def average(scores: Sequence[TaskScore]) -> tuple[float | None, int]:
    """The mean of the scores that are not None, and their number; None without any."""
    there = [score.score for score in scores if score.score is not None]
    return (sum(there) / len(there) if there else None), len(there)


def tables(report: ScoreReport) -> list[tuple[str, list[TaskScore], int]]:
    """Title, scores and full size of the chosen tables; last, of size 0, those of other tasks."""
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
        "encoder_layers": report.layers,
        **(asdict(report.representation) if report.representation else {}),
        "whiten": processing.dimensions if isinstance(processing, Whiten) else None,
        "flow": processing.model_dump() if isinstance(processing, Flow) else None,
        "max_length": report.max_length,
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
    name = name_with_layers(report.model, report.layers)
    read = f", up to {report.max_length} tokens" if report.max_length else ""
    lines = [f"{name}, {kind}{read}{kept}, {report.device}"]
    lines += [report.remark] if report.remark else []
    for title, scores, size in tables(report):
        lines += ["", title, *_table(scores, size)]
        lines += [f"{one.task} has no score: {one.reason}" for one in scores if one.score is None]
        lines += [f"warning: {one.task}: {one.warning}" for one in scores if one.warning]
    for space in report.spaces:
        lines += [
            "",
            f"{space.name}: alignment {_number(space.alignment, 4)} ({space.positives:,} positive "
            f"pairs), uniformity {_number(space.uniformity, 4)} ({space.sentences:,} sentences)",
            f"uniformity in batches of {NOTEBOOK_BATCH}, their logarithms averaged, as the "
            f"notebook of MoCoSE's authors: {_number(space.uniformity_by_batch, 4)}; compare "
            "published values with this one",
            *([f"not all of it: {space.reason}"] if space.reason else []),
        ]
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


def _number(value: float | None, decimals: int = 2) -> str:
    return "-" if value is None else f"{value:.{decimals}f}"


def evaluate(
    model: str = "builtin",
    *,
    tasks: str | None = None,
    data: str | Path | None = None,
    pooling: str | None = None,
    precision: str | None = None,
    encoder_layers: int | None = None,
    whiten: int | None = None,
    flow: int | Flow | None = None,
    pairs: str | Path | None = None,
    mteb: str | Path | None = None,
    evaluator: str | None = None,
) -> ScoreReport:
    """Score an encoder, as `mtdlab evaluate`.

    Args:
        model: `builtin`, a folder, a Hugging Face name, or `vectors:FILE`, averages of word
            vectors.
        pooling, precision, encoder_layers: of an encoder, as in `mtdlab.load_encoder`.
        tasks: names separated by commas, `sts`, `transfer`, or tasks besides the published ones
            (`beir:FOLDER`, `mteb:TASK`, `evaluator`); None: all published, or without data
            `builtin`.
        data: a folder in SentEval's layout; None: MTDLAB_DATA, if it is set, or the folder
            `senteval` in it.
        whiten: dimensions kept by whitening; None: none.
        flow: settings of a flow (BERT-flow), or its seed alone; None: none.
        pairs: a tab-separated file of first, second, score, for alignment and uniformity.
        mteb: a folder for MTEB's tree of results.
        evaluator: MODULE:FUNCTION, by default that of MTDLAB_EVALUATOR; without tasks it alone
            scores.

    Raises:
        MtdlabError: for what is unknown, damaged or cannot be loaded, and where no task's data are
            there.
    """
    if import_evaluator(evaluator) and not tasks:
        tasks = EVALUATOR
    with refusing(ValueError):
        tasks = ",".join(parse_tasks(tasks)) if tasks else None
    if whiten is not None and flow is not None:
        raise MtdlabError("whitening and a flow cannot be combined; give --whiten or --flow")
    processing: Processing | None = Flow(seed=flow) if isinstance(flow, int) else flow
    if whiten is not None:
        processing = Whiten(whiten)
    words = model.startswith(PREFIX)
    if words and (pooling or precision or mteb or encoder_layers is not None):
        raise MtdlabError(
            f"{model}: word vectors have no --pooling, --precision, --encoder-layers and --mteb; "
            "remove them"
        )
    if (words or processing) and external_tasks(tasks or ""):
        raise MtdlabError(
            f"{', '.join(external_tasks(tasks or ''))}: scored for an encoder as it is; remove "
            "--whiten and --flow, and name an encoder"
        )
    with _progress() as advance:
        if words:
            file = Path(model.removeprefix(PREFIX))
            averages = _open(lambda texts: WordAverages(texts, file), tasks, data, pairs, advance)
            measured = _score(averages, averages.sentences.vectors, processing)
            remark = averages.sentences.remark
            return ScoreReport(model, None, processing, "cpu", *measured, [], remark)
        begin_phase(f"loading encoder {model}")
        loaded = load_encoder(
            model, pooling=pooling, precision=precision, encoder_layers=encoder_layers
        )
        encoder, embedder, how = loaded.encoder, loaded.embedder, loaded.representation
        try:
            suite = _open(
                lambda texts: encoder.sentences(texts, how.prompt), tasks, data, pairs, advance
            )
            begin_phase(f"encoding {len(suite.sentences):,} sentences")
            vectors = suite.embed(embedder)
        except MtdlabError:
            raise
        except Exception as error:
            # of a library, where a file of the encoder has a value that does not fit the others
            why = f"cannot encode these texts ({one_line(error)})"
            raise MtdlabError(f"encoder {model}: {why}; its files may be damaged") from error
        begin_phase("scoring")
        scores, spaces = _score(suite, vectors, processing)
        external = open_tasks(external_tasks(tasks or ""), encoder, how.prompt)
        scores += score_external(embedder, external)
        files = write_mteb(Path(mteb), model, encoder.model, scores, encoder_layers) if mteb else []
        device, remark = str(embedder.device), other_pooling(model, how.pooling)
        return ScoreReport(
            *(model, how, processing, device, scores, spaces, files, remark),
            layers=encoder_layers,
            max_length=loaded.max_length,
        )


def _open(
    collect: Callable[[Iterable[str]], T],
    tasks: str | None,
    data: str | Path | None,
    pairs: str | Path | None,
    advance: Advance,
) -> Suite[T]:
    """The tasks and sets of pairs. Raises MtdlabError where no task's data are there."""
    folder = senteval_folder(data)
    everything = KNOWN if folder else (BUILTIN,)
    chosen = published_tasks(tasks) if tasks else everything
    # without the whole table no more is encoded than is scored
    splits: tuple[Split, ...] = ("train", "dev", "test") if {*STS} <= {*chosen} else ("test",)
    spaces = sts_benchmark_pairs(folder, splits) if folder and "STSB" in chosen else {}
    if pairs is not None:
        spaces[str(pairs)] = read_table(Path(pairs))
    suite = Suite(chosen, folder, collect, spaces, advance)
    named = data is not None or bool(tasks)
    if suite.missing and (not suite.loaded or (named and suite.loaded.keys() == {BUILTIN})):
        name, reason = next(iter(suite.missing.items()))
        raise MtdlabError(
            f"evaluate: no task's data are there ({name}: {reason}); give SentEval's folder by "
            "--data or MTDLAB_DATA, or take --tasks builtin"
        )
    return suite


def _score(
    suite: Suite[T], vectors: Vectors, processing: Processing | None
) -> tuple[list[TaskScore], list[Space]]:
    spaces = [suite.space(name, vectors, processing) for name in suite.spaces]
    return suite.score_all(vectors, processing), spaces


def senteval_folder(data: str | Path | None) -> Path | None:
    """SentEval's folder: `data`, else MTDLAB_DATA or the folder `senteval` in it; else None."""
    named, place = ("--data", data) if data else (VARIABLE, os.environ.get(VARIABLE))
    if not place:
        return None
    if not (folder := Path(place)).is_dir():
        raise MtdlabError(f"{named} {folder}: no such folder; give one in SentEval's layout")
    inside = folder / "senteval"
    return inside if named == VARIABLE and inside.is_dir() else folder


@contextmanager
def _progress() -> Iterator[Advance]:
    """An `Advance` that shows a bar for each name it is called with."""
    with progress_bar() as bar:
        rows: dict[str, TaskID] = {}

        def advance(what: str, done: int, total: int) -> None:
            if what not in rows:
                rows[what] = bar.add_task(what, total=total)
            bar.update(rows[what], completed=done)

        yield advance
