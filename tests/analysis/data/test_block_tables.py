"""Tables of scores by block and model: both layouts, blocks that lack a score, refusals."""

import json
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest

from mtdlab.analysis.data.block_tables import BlockScores, read_block_table
from mtdlab.analysis.data.cells import TableError, read_cells
from mtdlab.analysis.data.defaults import Reading
from mtdlab.analysis.notebook import open_table

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


def test_a_matrix_without_block_is_told_of_it(tmp_path: Path) -> None:
    path = tmp_path / "matrix.csv"
    for text, told in ((WIDE, True), (long().replace("score", "main"), False)):
        path.write_text(text)
        with pytest.raises(TableError, match="no column score among task") as refused:
            open_table(path, Reading())
        assert ("are models, mtdlab report --block task ranks" in str(refused.value)) is told


def _write_result(folder: Path, model: str, task: str, parts: list[float]) -> Path:
    """A result with the keys that mteb 2.10 writes, and the description of its model."""
    place = folder / model / "0a1b2c3"
    place.mkdir(parents=True, exist_ok=True)
    (place / "model_meta.json").write_text('{"name": "x"}')
    rows = [
        {"main_score": part, "hf_subset": f"{at}", "languages": ["eng-Latn"]}
        for at, part in enumerate(parts)
    ]
    result = {"dataset_revision": "d", "task_name": task, "mteb_version": "2.10.3"}
    result |= {"scores": {"test": rows}, "evaluation_time": 1.5, "kg_co2_emissions": None}
    path = place / f"{task}.json"
    path.write_text(json.dumps(result))
    return path


def test_the_results_of_mteb_are_a_table_with_the_mean_over_subsets(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    for model, tasks in {"org__small": [[0.5, 0.7], [0.4]], "base": [[0.8], [0.6]]}.items():
        for task, parts in zip(("STS22", "STS12"), tasks, strict=True):
            path = _write_result(folder, model, task, parts)
    data = open_table(folder, Reading())
    assert isinstance(data, BlockScores)
    assert data.table.loc["STS22", ["org/small", "base"]].tolist() == pytest.approx([60, 80])
    assert data.table.loc["STS12", ["org/small", "base"]].tolist() == pytest.approx([40, 60])
    assert str(data.invocation).startswith(f"mtdlab report --table {folder} --block task")
    other = path.parents[1] / "1"
    other.mkdir()
    (other / path.name).write_text(path.read_text())
    with pytest.raises(TableError, match=r"0a1b2c3/STS12.json and .* are two results of one model"):
        open_table(folder, Reading())
    (other / path.name).write_text('{"task_name": "STS12", "scores": {"test": []}}')
    with pytest.raises(TableError, match=r"1/STS12.json is no result of MTEB: it has no task_name"):
        open_table(folder, Reading())
    with pytest.raises(TableError, match=r"no MODEL/REVISION/TASK.json in it; name the folder"):
        open_table(tmp_path, Reading())
