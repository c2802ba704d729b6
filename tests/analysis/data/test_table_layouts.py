"""Tables as they come: separators, decimal commas, ledgers, and all obstacles at once."""

import re
from pathlib import Path

import pandas as pd
import pytest

from mtdlab.analysis import read_run_table
from mtdlab.analysis.data.cells import TableError
from mtdlab.analysis.data.defaults import Reading
from mtdlab.analysis.inference.level_means import LevelMeans
from mtdlab.analysis.notebook import open_table

HEADER = ("note", "score", "seed", "lr")
ROWS = (("a, b; c", 0.805, 0, 0.1), ("d", 0.81, 1, 0.1), ("e", 0.7, 0, 0.25), ("f", 0.72, 1, 0.25))
LEDGER = """commit\tval_bpb\tmemory_gb\tstatus\tdescription
0012345\t0.9979\t44.0\tkeep\tbaseline
12e4567\t0.9932\t44.2\tdiscard\ta, "wider" model
7654321\t0.0000\t0.0\tcrash\tdouble width
"""


@pytest.mark.parametrize(
    ("separator", "decimal"), [(",", "."), ("\t", "."), (";", "."), ("\t", ","), (";", ",")]
)
def test_separators_and_decimal_commas(tmp_path: Path, separator: str, decimal: str) -> None:
    frame = pd.DataFrame(ROWS, columns=pd.Index(HEADER))
    path = tmp_path / "runs.txt"
    frame.to_csv(path, index=False, sep=separator, decimal=decimal)
    trials = read_run_table(path).trials
    assert trials["score"].tolist() == pytest.approx([80.5, 81, 70, 72])
    assert trials["lr"].tolist() == [0.1, 0.1, 0.25, 0.25]
    assert trials["note"].tolist() == ["a, b; c", "d", "e", "f"]


@pytest.mark.parametrize(
    "text",
    [
        "lr|seed|score\n0.1|0|70\n",
        "lr seed  score\n0.1 0 70\n",
        "lr seed score\n0,1 0 70,5\n",
        "| lr | seed | score |\n|---|---|---|\n| 0.1 | 0 | 70 |\n",
    ],
    ids=["bars", "blanks", "decimal commas", "Markdown"],
)
def test_separators_that_are_not_read_are_told(tmp_path: Path, text: str) -> None:
    path = tmp_path / "runs.txt"
    path.write_text(text)
    seen = re.escape(repr(text.splitlines()[0]))
    with pytest.raises(TableError, match=f"one column, {seen}; .* commas, tabs or semicolons"):
        read_run_table(path)
    # one column whose name has two words is one
    path.write_text("test score\n70\n71\n")
    stated = {"columns": {"seed": "none"}, "scale": "percent"}
    assert len(read_run_table(path, score="test score", **stated).trials) == 2


def test_level_means_with_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "means.csv"
    path.write_text("mtd;mean;low;high\n5;30,5;30;31\n7,5;31,2;31;32\n9;30,1;29;31\n")
    means = open_table(path, Reading())
    assert isinstance(means, LevelMeans)
    assert means.frame["mtd"].tolist() == [5, 7.5, 9]


@pytest.mark.parametrize("scores", [("71,234", "70,125"), ("0,71", "0.70"), ("1,234,5", "2")])
def test_a_comma_that_may_separate_thousands_is_asked_about(
    tmp_path: Path, scores: tuple[str, str]
) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("score;seed\n" + "".join(f"{score};0\n" for score in scores))
    with pytest.raises(TableError, match=r"row 1, column score.* write decimals with a point, and"):
        read_run_table(path)


def test_a_list_in_a_cell_is_no_number(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("score,seed,layers\n" + '80,0,"1,2"\n81,1,"1,2"\n79,0,"3,4"\n78,1,"3,4"\n')
    assert read_run_table(path).trials["layers"].tolist() == ["1,2", "1,2", "3,4", "3,4"]
    path.write_text("score,seed,lr\n0,80,0,0.1\n")
    with pytest.raises(TableError, match=r"has 4 cells.* and write decimals with a point"):
        read_run_table(path)


def test_a_ledger_is_read_as_one_run_each(tmp_path: Path) -> None:
    path = tmp_path / "results.tsv"
    path.write_text(LEDGER)
    study = read_run_table(path, score="val_bpb", direction="minimize", margin=0.002)
    assert [*study.settings] == ["commit", "description"]
    assert study.trials["commit"].tolist() == ["0012345", "12e4567", "7654321"]
    assert study.trials["state"].tolist() == ["COMPLETE", "COMPLETE", "FAIL"]
    # the crash's 0 is a placeholder
    assert study.trials["score"].count() == 2
    assert not study.has_seeds
    assert "no difference is tested" in study.summary()
    # a loop whose first change has crashed
    path.write_text("\n".join(LEDGER.splitlines()[:1] + LEDGER.splitlines()[3:]))
    assert not read_run_table(path, score="val_bpb", direction="minimize", margin=0.002).has_seeds
    # once runs are repeated with seeds, the ledger is a table like others
    rows = LEDGER.splitlines()
    again = [f"{row}\t{seed}" for row in rows[1:3] for seed in range(3)]
    path.write_text("\n".join([f"{rows[0]}\tseed", *again]) + "\n")
    assert read_run_table(path, score="val_bpb", direction="minimize", margin=0.002).has_seeds


def test_runs_without_a_seed_are_read_where_that_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("score,lr\n80,0.1\n81,0.1\n79,0.2\n")
    with pytest.raises(TableError, match="where none was recorded, --column seed=none describes"):
        read_run_table(path)
    study = read_run_table(path, columns={"seed": "none"})
    assert [*study.settings] == ["lr"]
    assert not study.has_seeds
    assert study.trials["seed"].nunique() == 3


def test_all_obstacles_are_in_one_message(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    path.write_text("val_loss;mtd;status\n0,8;12;ended\nx;0,5;complete\n")
    with pytest.raises(TableError, match="5 obstacles") as error:
        read_run_table(path, columns={"wall_seconds": "hours"})
    title, *each = str(error.value).splitlines()
    assert title == f"{path}: 5 obstacles:"
    for text, told in zip(
        each,
        (
            "no column 'hours'",
            "--score val_loss --direction minimize",
            "where none was recorded, --column seed=none",
            "row 1, column status: 'ended'; a state must be one of complete",
            "row 2, column mtd: '0,5'",
        ),
        strict=True,
    ):
        assert told in text
    with pytest.raises(TableError, match=r"(?s)6 obstacles:.*--direction minimize.*val_loss: 'x'"):
        read_run_table(path, score="val_loss", columns={"score": "val_loss"})
