"""Tables of scores by block and model: both layouts, blocks that lack a score, refusals."""

from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from mtdlab.analysis.data.block_tables import BlockScores, read_block_table
from mtdlab.analysis.data.cells import TableError, read_cells
from mtdlab.analysis.data.defaults import Reading

WIDE = "task,a,b\nSTS12,0.7,0.8\nSTS13,0.6,0.5\nImdb,0.9,0.95\n"


def read(text: str, **reading: object) -> BlockScores:
    cells = read_cells(pd.read_csv(StringIO(text), dtype="str", keep_default_na=False))
    return read_block_table(cells, Path("scores.csv"), Reading(block="task", **reading))  # type: ignore[arg-type]


def long(text: str = WIDE) -> str:
    frame = pd.read_csv(StringIO(text)).melt("task", var_name="model", value_name="score")
    return frame.to_csv(index=False)


def test_both_layouts_are_the_same_scores_in_points() -> None:
    wide, rows = read(WIDE).table, read(long()).table
    assert wide.loc["STS12"].tolist() == pytest.approx([70, 80])
    assert wide.sort_index().to_numpy() == pytest.approx(rows.to_numpy())
    assert [*wide.sort_index().index, *wide] == [*rows.index, *rows]


def test_a_block_without_a_score_of_each_model_is_left_out_and_named() -> None:
    data = read(long(WIDE.replace("0.95", "NaN")))
    assert data.table.index.tolist() == ["STS12", "STS13"]
    assert data.left_out == {"Imdb": ["b"]}
    rows = long().splitlines()
    assert read("\n".join(rows[:-1])).left_out == {"Imdb": ["b"]}


def test_a_loss_is_turned_and_written_as_it_was_read() -> None:
    text = long().replace("score", "val_loss")
    data = read(text, score="val_loss", direction="minimize", margin=0.01)
    assert data.table.loc["STS12"].tolist() == pytest.approx([-0.7, -0.8])
    assert data.write.score(data.table.loc["STS12", "a"]) == "0.700"


def test_the_columns_of_models_and_scores_can_be_named() -> None:
    text = long().replace("model", "encoder").replace("score", "main_score")
    data = read(text, score="main_score", columns={"model": "encoder"}, scale="fraction")
    assert data.table.columns.tolist() == ["a", "b"]
    assert "--block task" in str(data.invocation)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (WIDE.replace("task", "dataset"), "no column task; it has dataset, a, b"),
        (long().replace("score", "main"), "no column score; it has task, model, main; state"),
        (long().replace("model", "system"), "no column model; it has task, system, score; state"),
        ("task,id,main\nx,1,2\nx,2,3\n", "an earlier row .* if one names the models, state --col"),
        ("task,id,main\nx,a,2\nx,b,3\n", "must be a score; without a column model each other"),
        (WIDE + "STS12,0.1,0.2\n", "row 4, column task: 'STS12'; an earlier row is the same"),
        (long() + "Imdb,b,0.9\n", "row 7, column task, model: 'Imdb, b'; an earlier row"),
        (WIDE + ",0.1,0.2\n", "row 4, column task: ''; each row needs a name here"),
        (WIDE.replace("0.95", "good"), "row 3, column b: 'good'; it must be a score"),
        ("task,a\nSTS12,0.7\nSTS13,0.6\n", "1 model; .* 100 can be compared; without a column"),
        ("task,a,b\nSTS12,0.7,0.8\n", "1 of 1 task with a score of all 2 models; at least 2"),
        ("task,a,b\nx,,1\ny,2,\nz,3,\n", "0 of 3 tasks with a score .* b lacks most; at least 2"),
    ],
)
def test_what_cannot_be_ranked_is_refused_in_a_sentence(text: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        read(text)


def test_what_describes_runs_is_refused() -> None:
    with pytest.raises(TableError, match="only --column model=COLUMN says what a column"):
        read(WIDE, columns={"seed": "a"})


def test_a_loss_needs_a_direction() -> None:
    with pytest.raises(TableError, match="state --direction minimize"):
        read(long().replace("score", "val_loss"), score="val_loss")
