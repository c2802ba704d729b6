"""A study for a notebook: its frames with a verdict, a summary, a figure and a view as HTML.

What computes these is imported when one of them is asked for: statistics take a second to import,
which commands that only read a study do without.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from mtdlab.analysis.data.cells import naming, read_cells
from mtdlab.analysis.data.defaults import BEYOND_RUN, BeyondRun, Direction, Reading, Scale
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.run_tables import build_study

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from mtdlab.analysis.data.block_tables import BlockScores
    from mtdlab.analysis.inference.level_means import LevelMeans
    from mtdlab.analysis.inference.verdict import Judgement


class Study(StudyFrames):
    """A study's frames, with the verdict, summary and figure of its page."""

    @classmethod
    def of(cls, frames: StudyFrames) -> "Study":
        """The study of frames that were read."""
        return cls(**{field.name: getattr(frames, field.name) for field in fields(frames)})

    def verdict(self) -> "Judgement":
        """The numbers of the answer on the study's page, with that as their sentence.

        Of a question on MTD it is a `Verdict`, of one for the best a `BestVerdict`, of one on named
        differences `Differences`; all have verdict, p_value, seeds, items, confidence and margin.
        """
        from mtdlab.analysis.questions.study import StudyQuestions

        return StudyQuestions(self).answer.verdict

    def summary(self) -> str:
        """What the study shows: the sentences of `verdict`, with its numbers."""
        return self.verdict().sentence

    def plot(self) -> "Figure":
        """The main figure of the study's page: its score against MTD, or what it compares else.

        Raises ValueError where no trial has completed with a score.
        """
        from mtdlab.analysis.report.summary import draw_study

        return draw_study(self)

    def __repr__(self) -> str:
        """A summary of the study, and the names of its properties."""
        return f"{super().__repr__()}; see also summary(), verdict(), plot()"

    def _repr_html_(self) -> str:
        """A small table for a notebook: question, status, finding, what varied."""
        from mtdlab.analysis.report.summary import write_html

        return write_html(self)


def read_run_table(
    table: "Path | str | pd.DataFrame",
    *,
    score: str = "",
    columns: Mapping[str, str] | None = None,
    settings: Sequence[str] = (),
    scale: Scale | None = None,
    direction: Direction | None = None,
    margin: float | None = None,
    beyond_run: BeyondRun = BEYOND_RUN,
    name: str = "",
) -> Study:
    """The runs of a DataFrame, or of a CSV, TSV, Parquet or JSON file, as a study, a row per run.

    A run needs a score and, but in a ledger of commits, a seed; optional are state, evaluator, mtd
    or (ema_decay, queue_size, batch_size), reason, alignment, uniformity, mean_cosine,
    wall_seconds, peak_memory, and a column for each task. Others are settings if their values
    repeat over seeds. Exports of MLflow, Optuna, Weights & Biases and trackio are recognised by
    their names. Raises TableError, which is a ValueError, with the table and all that is wrong with
    its columns, each with the first row and value.

    Args:
        score: the column with the metric, with or without a tracker's prefix; by default the column
            score, Optuna's value, or the only metric of a tracker's table.
        columns: mtdlab's name of a column -> the table's, if different: ema_decay -> moco_m; seed
            -> none where none was recorded: each run has its own then, and nothing is tested.
        settings: the columns that are settings, if other than those found.
        scale: "fraction" for scores from -1 to 1, which are multiplied by 100; "percent" for scores
            x 100; "own" for any other unit, such as perplexity. By default it follows from the
            score's name: a correlation or a share, such as an accuracy, is a fraction if all values
            lie between -1 and 1, any other score has a unit of its own.
        direction: "minimize" where lower scores are better; in the frames they are negated, and so
            is the metric's name: -val_loss. Required of a score that is a loss by its name.
        margin: the difference that counts as none, in points or the score's own unit, of which it
            is required; by default 0.5 points.
        beyond_run: "keep" for a verdict that compares levels of MTD beyond the run too: of which
            more than 10 % of the initial weights remain, or whose K/N exceeds half of the steps. A
            table that has no column steps tells of none.
        name: of the study; by default the file's, and "runs" for a DataFrame.
    """
    source = Path(table) if isinstance(table, str) else table
    with naming(source):
        reading = Reading(score, columns or {}, settings, scale, direction, margin, beyond_run)
        return Study.of(build_study(read_cells(source), source, reading, name))


def open_table(path: Path, reading: Reading, name: str = "") -> "Study | LevelMeans | BlockScores":
    """The runs of a file, or level means if it has columns mtd, mean, low, high and no score.

    Of MTEB's folder of results, and with `reading.block`, scores by block and model. `name` is that
    of a study. Errors as for `read_run_table`.
    """
    from mtdlab.analysis.inference.level_means import is_level_means, read_level_means

    if reading.block or path.is_dir():
        return open_blocks(path, reading)
    with naming(path):
        cells = read_cells(path)
        if is_level_means(cells):
            return read_level_means(cells, path, reading.scale)
        return Study.of(build_study(cells, path, reading, name))


def open_blocks(table: "Path | pd.DataFrame", reading: Reading) -> "BlockScores":
    """The scores of a table by block and model; MTEB's folder of results has them by task.

    Errors as for `read_run_table`.
    """
    from mtdlab.analysis.data.block_tables import read_block_table

    if isinstance(table, Path) and table.is_dir():
        reading = replace(reading, block=reading.block or "task", scale=reading.scale or "fraction")
    with naming(table):
        return read_block_table(read_cells(table), table, reading)
