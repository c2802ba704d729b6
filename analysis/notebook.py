"""A study for a notebook: its frames with a verdict, a summary, a figure and a view as HTML.

What computes these is imported when one of them is asked for: statistics take a second to import,
which commands that only read a study do without.
"""

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from analysis.data.cells import Scale, naming, read_cells
from analysis.data.defaults import BEYOND_RUN, BeyondRun
from analysis.data.frames import StudyFrames
from analysis.data.run_tables import build_study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from analysis.inference.level_means import LevelMeans
    from analysis.inference.verdict import Verdict


class Study(StudyFrames):
    """A study's frames, with the verdict, summary and figure of its page."""

    @classmethod
    def of(cls, frames: StudyFrames) -> "Study":
        """The study of frames that were read."""
        return cls(**{field.name: getattr(frames, field.name) for field in fields(frames)})

    def verdict(self) -> "Verdict":
        """The verdict on the score against MTD, as on the study's page."""
        from analysis.report.context import StudyContext

        return StudyContext(self).verdict

    def summary(self) -> str:
        """What the study shows, in the sentence that its page begins with."""
        from analysis.report.summary import find_summary

        return find_summary(self)

    def plot(self) -> "Figure":
        """The main figure of the study's page: by default its score against MTD.

        Raises ValueError where no trial has completed with a score.
        """
        from analysis.report.summary import draw_study

        return draw_study(self)

    def __repr__(self) -> str:
        """A summary of the study, and the names of its properties."""
        return f"{super().__repr__()}; see also summary(), verdict(), plot()"

    def _repr_html_(self) -> str:
        """A small table for a notebook: question, status, finding, what varied."""
        from analysis.report.summary import write_html

        return write_html(self)


def read_run_table(
    path: Path | str,
    *,
    score: str = "score",
    columns: Mapping[str, str] | None = None,
    scale: Scale | None = None,
    beyond_run: BeyondRun = BEYOND_RUN,
) -> Study:
    """The runs of a CSV or Parquet file as a study, a row per run.

    Columns: score, seed, and mtd or (ema_decay, queue_size, batch_size); optional are state,
    reason, alignment, uniformity, mean_cosine, wall_seconds, peak_memory, and a column for each
    task. Others are settings if their values repeat over seeds. Raises TableError, which is a
    ValueError, with the file, row, column and value.

    Args:
        score: the column with the metric, higher is better.
        columns: mtdlab's name of a column -> the file's, such as ema_decay -> moco_m, if different.
        scale: "fraction" for scores from -1 to 1, which are multiplied by 100; "percent" for scores
            x 100. By default they are fractions if all of them lie between -1 and 1.
        beyond_run: "keep" for a verdict that compares levels of MTD beyond the run too: of which
            more than 10 % of the initial weights remain, or whose K/N exceeds half of the steps. A
            table that has no column steps tells of none.
    """
    with naming(path := Path(path)):
        cells = read_cells(path)
        return Study.of(build_study(cells, path, score, columns or {}, scale, beyond_run))


def open_table(
    path: Path,
    *,
    score: str = "score",
    columns: Mapping[str, str] | None = None,
    scale: Scale | None = None,
    beyond_run: BeyondRun = BEYOND_RUN,
) -> "Study | LevelMeans":
    """The runs of a file, or level means if it has columns mtd, mean, low, high and no score.

    Arguments and errors as for `read_run_table`.
    """
    from analysis.inference.level_means import is_level_means, read_level_means

    with naming(path):
        if is_level_means(cells := read_cells(path)):
            return read_level_means(cells, path, scale)
        return Study.of(build_study(cells, path, score, columns or {}, scale, beyond_run))
