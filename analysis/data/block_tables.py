"""Tables of scores by block, such as a task, and model."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from mtdlab.analysis.data.cells import (
    FINITE,
    TableError,
    folder_name,
    is_missing_cell,
    read_numbers,
    refuse_first,
    tell_origin,
)
from mtdlab.analysis.data.defaults import FACTORS, MARGIN, MOST_COMPARED, Reading
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.run_tables import describe_reading, find_metric, find_scale

_NO_MODEL = (
    "; without a column model each other column is a model: if one names the models, state "
    "--column model=COLUMN"
)


@dataclass(frozen=True, eq=False)
class BlockScores:
    """Scores of models in the blocks in which all of them have one.

    Attributes:
        table: (B, M), at least 2 by 2: a row a block, a column a model. Higher is better.
        left_out: the other blocks, each with the models that lack a score in it.
        write: how scores are written.
        invocation: the command that reads it.
        origin: what tells the table from others of its name (`tell_origin`).
    """

    name: str
    block: str
    table: pd.DataFrame
    left_out: Mapping[str, list[str]]
    write: ScoreFormat
    invocation: Invocation
    origin: str = ""


def read_block_table(
    cells: pd.DataFrame, source: Path | pd.DataFrame, reading: Reading
) -> BlockScores:
    """The scores of a table with a row for each block and model, or for each block with all models.

    The column of models is called model, or as `reading.columns` says; without it every column but
    that of the blocks is a model. A block without a score of each model is left out. Raises
    TableError for a column that is missing, a pair that occurs twice, and less than two of either.
    """
    block, score = reading.block, reading.score or "score"
    model = reading.columns.get("model", "model")
    is_long = bool({model, score} & {*cells}) or "model" in reading.columns
    keys = [block, model] if is_long else [block]
    if reading.settings or {*reading.columns} - {"model"}:
        raise TableError("with --block only --column model=COLUMN says what a column holds")
    header = [*map(str, cells)]
    if missing := {*keys, *([score] if is_long else ())} - {*header}:
        stated = "; state --column model=COLUMN and --score COLUMN" if is_long else ""
        raise TableError(
            f"no column {', '.join(sorted(missing))}; it has {', '.join(header)[:200]}{stated}"
        )
    values = [score] if is_long else [name for name in header if name != block]
    hint = "" if is_long else _NO_MODEL
    is_score = replace(FINITE, rule=f"it must be a score{hint}")
    columns = {name: read_numbers(cells, name, is_score, infinite=True) for name in values}
    named = cells[keys].apply(lambda column: column.str.strip())
    unnamed = named.apply(is_missing_cell).any(axis=1)
    refuse_first(unnamed, cells, keys, "each row needs a name here")
    again = f"an earlier row is the same; average them first{hint}"
    refuse_first(named.duplicated(), cells, keys, again)
    if is_long:
        table = named.assign(**{" ": columns[score]}).pivot(index=block, columns=model, values=" ")
    else:
        table = pd.DataFrame(columns).set_axis(named[block])
    metric, holes = find_metric(score, score, reading), table.isna()
    kept, models = table[~holes.any(axis=1)], format_count(table.shape[1], "model")
    if not 2 <= table.shape[1] <= MOST_COMPARED:
        raise TableError(f"{models}; between 2 and {MOST_COMPARED} can be compared{hint}")
    if len(kept) < 2:
        rarest = f"; {holes.sum().idxmax()} lacks most" if len(kept) < len(table) else ""
        have = f"{len(kept)} of {format_count(len(table), block)} with a score of all {models}"
        raise TableError(f"{have}{rarest}; at least 2 are needed")
    scale = find_scale(score, reading, metric, kept.stack())
    write = ScoreFormat(metric, MARGIN if reading.margin is None else reading.margin, scale)
    lacking = {
        str(at): [*map(str, table.columns[row])] for at, row in holes.iterrows() if row.any()
    }
    scores = kept * FACTORS[scale] * write.as_read(1)
    path = source if isinstance(source, Path) else None
    invocation = describe_reading(path, reading) if path else NO_INVOCATION
    return BlockScores(
        folder_name(path) if path else "ranking",
        block,
        scores,
        lacking,
        write,
        invocation,
        tell_origin(source),
    )
