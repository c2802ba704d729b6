"""`mtdlab report` of a table and of published means: exit codes, sentences, JSON."""

import json
import re
import time
import webbrowser
from pathlib import Path

import pandas as pd
import pytest

from mtdlab.analysis import compute_verdict
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.inference.verdict import OverLooks, Verdict
from mtdlab.analysis.questions.answer import list_numbers
from mtdlab.analysis.questions.shape import list_shape
from mtdlab.api.report import report
from mtdlab.commands.printing import print_json
from mtdlab.commands.report import PAUSE, write_on_changes
from mtdlab.errors import MtdlabError
from tests.commands.conftest import Command

FIELDS = {
    *(
        "verdict",
        "sentence",
        "peak_excluded",
        "bounds",
        "peak_mtd",
        "peak_interval",
        "optimal_range",
    ),
    *("runner_up", "worst", "p_value", "p_trend", "history", "p_over_looks", "confidence"),
    *("mtd_sufficient", "seeds_for_power", "items_for_power", "items", "left_out"),
    "baseline",
}
ASKED = {"question", "outcome"}
RATES = (0.1, 0.2, 0.4)
TABLE = "score,seed,mtd\n" + "\n".join(
    f"{score + 0.1 * seed + 0.03 * (seed * mtd % 7)},{seed},{mtd}"
    for seed in range(5)
    for mtd, score in ((5, 30), (8, 32), (12, 33), (20, 31), (40, 29))
)


@pytest.fixture
def run(command: Command, folder: Path) -> Command:
    (folder / "runs.csv").write_text(TABLE, encoding="utf-8")
    return command


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_table_has_a_page_and_its_verdict_as_fields(run: Command, tmp_path: Path) -> None:
    written = json.loads(run("report --table runs.csv --json")[0])
    ranking = {"metric", "direction", "select_by", "best"}
    assert set(written) == FIELDS | ASKED | {"page", "figures", "tables", "table"} | ranking
    assert written["table"]["seed"] == "column seed"
    # a table names no score that ranked its runs
    assert written["select_by"] == written["metric"]
    assert written["best"]["score"] == written["best"]["select_by_score"]
    assert (written["verdict"], written["mtd_sufficient"]) == ("peaked", "cannot be tested")
    assert written["peak_mtd"] == 12
    # the scores of seed 0 to 4 differ by 0.03 (7 seed mod 7) between levels at most
    assert (written["runner_up"]["mtd"], written["worst"]["mtd"]) == (8, 40)
    lowest = written["worst"]
    assert lowest["low"] < lowest["mean"] < lowest["high"]
    for name in ("runner_up", "worst"):
        numbers = "{mean:.2f} points (95 % CI {low:.2f} to {high:.2f})"
        assert numbers.format(**written[name]) in written["sentence"]
    assert written["page"] == "reports/runs/index.html"
    page = (tmp_path / written["page"]).read_text(encoding="utf-8")
    assert "Runs read from runs.csv, not made by mtdlab." in page
    # the large number is the height of the peak above the higher end, of 30 points
    assert re.search(r"<b>\+3\.\d\d</b> <span>points <i>95 % <abbr", page)
    assert "MTD 12, the highest mean, minus MTD 5, the first level" in page
    text, _ = run("report --table runs.csv --name mine")
    assert text.endswith("The page: reports/mine/index.html\n")


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_levels_are_stated_as_the_table_has_them(run: Command, tmp_path: Path) -> None:
    """14.67 is the MTD of MoCoSE's optimum; rounded for people it would be 14.7, another level."""
    table = TABLE.replace(",12\n", ",14.67\n")
    (tmp_path / "optimum.csv").write_text(table, encoding="utf-8")
    written = json.loads(run("report --table optimum.csv --json")[0])
    levels = [written["peak_mtd"], *written["peak_interval"], *written["optimal_range"]]
    assert (written["verdict"], set(levels)) == ("peaked", {14.67})
    assert written["best"]["mtd"] == 14.67


@pytest.mark.usefixtures("figures_not_rendered", "few_simulated_tables")
def test_the_data_beside_a_page_makes_the_page_again(
    run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    run("report --table runs.csv")
    first = tmp_path / "reports" / "runs"
    text, _ = run("report --from reports/runs/data/study.parquet --out again --open")
    assert text.endswith("The page: again/runs/index.html\n")
    assert opened == [(tmp_path / "again" / "runs" / "index.html").as_uri()]
    again = tmp_path / "again" / "runs"
    files = {path.relative_to(first) for path in first.rglob("*") if path.is_file()}
    assert Path("data/study.parquet") in files
    assert files == {path.relative_to(again) for path in again.rglob("*") if path.is_file()}
    for path in files:
        assert (first / path).read_bytes() == (again / path).read_bytes(), path


def test_watching_writes_when_trials_change_and_ends_with_the_study(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trials = pd.DataFrame({"state": ["COMPLETE", "RUNNING"], "reason": ["", ""]})
    trials = trials.assign(score=1.0, wall_seconds=1.0)
    ended = trials.assign(state="COMPLETE")
    readings = iter([trials, trials, ended])
    writings, pauses = [], []
    monkeypatch.setattr(
        "mtdlab.store.frames.load_frames",
        lambda name, *_, **__: StudyFrames(name, "sts_test", 2, next(readings)),
    )
    monkeypatch.setattr(time, "sleep", pauses.append)
    write_on_changes(["toy"], None, lambda: writings.append(len(writings)))
    assert writings == [0, 1]
    assert pauses == [PAUSE, PAUSE]


@pytest.mark.usefixtures("figures_not_drawn")
def test_published_means_have_a_page(run: Command, tmp_path: Path) -> None:
    written = json.loads(run("report --published figure2 --json")[0])
    assert set(written) == FIELDS | {"page", "figures", "tables"}
    assert (written["verdict"], written["peak_mtd"]) == ("falling, start open", 14.667)
    assert written["p_trend"] < 0.05 < written["p_value"]
    assert (tmp_path / "reports" / "figure2" / "index.html").is_file()
    text, _ = run("report --published figure2")
    assert "without MTD 21, on which this rests most, it has p = 0.15." in text


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_table_of_means_takes_the_same_way(run: Command, tmp_path: Path) -> None:
    rows = ["5,30,29.9,30.1", "8,33,32.9,33.1", "20,29,28.9,29.1"]
    (tmp_path / "means.csv").write_text("\n".join(["mtd,mean,low,high", *rows]), encoding="utf-8")
    written = json.loads(run("report --table means.csv --json")[0])
    assert (written["verdict"], written["optimal_range"]) == ("peaked", [8])
    assert "Level means read from means.csv." in (tmp_path / written["page"]).read_text()


@pytest.mark.usefixtures("few_simulated_tables")
def test_models_are_ranked_over_tasks(run: Command, tmp_path: Path) -> None:
    rows = [
        f"task{at},{60 + at % 7},{64 + at % 7 + 0.2 * (at % 3)},{64 + at % 7}" for at in range(9)
    ]
    (tmp_path / "scores.csv").write_text("\n".join(["evalTask,low,<b>,high", *rows, "x,,1,2"]))
    written = json.loads(run("report --table scores.csv --block evalTask --json")[0])
    assert [model["model"] for model in written["models"]] == ["<b>", "high", "low"]
    assert [model["may_be_best"] for model in written["models"]] == [True, False, False]
    assert written["left_out"] == {"x": ["low"]}
    assert written["sentence"].startswith("<b> is best over evalTasks like these 9. <b> minus high")
    page = (tmp_path / written["page"]).read_text()
    assert "<h1>&lt;b&gt; is best over evalTasks like these 9</h1>" in page
    assert "Left out for lack of a score of each model: 1 evalTask, x (no low)." in page
    assert "mtdlab report --table scores.csv --block evalTask" in page
    assert "EvalTasks count as independent." in page
    assert {Path(path).name for path in written["tables"]} == {"ranking.csv", "scores.csv"}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("report --study a --block task", "and --beyond-run describe a table; use them with"),
        ("report runs.csv", "runs.csv is a file; write --table before one with runs"),
        ("report --table runs.csv --block task", "no column model, task; it has score, seed"),
        ("report", "the name of a STUDY, --table, --from and --published; given: none of them"),
        ("report a --study b --table runs.csv", "given: STUDY and --table"),
        ("report --table runs.csv --watch", "--watch reads a database again; use it with"),
        ("report --from none.parquet", "--from none.parquet: no such file"),
        ("report --from runs.csv", "--from runs.csv: not a Parquet file that can be read"),
        ("report --table none.csv", "none.csv: no such file"),
        (
            "report --table runs.csv --score dev",
            "runs.csv: no column 'dev'; choose from score, seed",
        ),
        (
            "report --table runs.csv --setting lr",
            "runs.csv: no column 'lr'; choose from",
        ),
        ("report --table runs.csv --column seed", "--column 'seed': must be NAME=COLUMN"),
        ("report --table runs.csv --name a/b", "--name 'a/b': not a name that a folder can have"),
        ("report --published figure2 --name ../x", "--name '../x': not a name that a folder can"),
        ("report --study a --scale percent", "and --beyond-run describe a table; use them with"),
        ("report --study a --beyond-run keep", "and --beyond-run describe a table; use them with"),
        ("report --published figure3", "unknown published means 'figure3'; choose from figure2"),
        ("report --table runs.csv --scale fraction", "row 1, column score: '30.0'; with --scale"),
    ],
)
def test_a_mistake_is_one_sentence(run: Command, folder: Path, line: str, sentence: str) -> None:
    out, error = run(line, 2)
    assert sentence in error
    assert (out, len(error.splitlines())) == ("", 1)
    assert not (folder / "reports").exists()


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_the_verdict_of_runs_without_an_mtd_is_on_their_configurations(
    run: Command, tmp_path: Path
) -> None:
    rows = (
        f"{rate},{seed},{80 * rate + seed * rate % 0.07}" for seed in range(6) for rate in RATES
    )
    (tmp_path / "rates.csv").write_text("\n".join(["lr,seed,score", *rows]), encoding="utf-8")
    written = json.loads(run("report --table rates.csv --json")[0])
    assert (written["verdict"], written["ranked"], written["may_be_best"]) == (
        "separated",
        [2, 1, 0],
        [2],
    )
    assert written["sentence"].startswith(
        "lr 0.4 is best. lr 0.4 minus lr 0.2, the runner-up: +16.00 points"
    )
    assert "peak_mtd" not in written


def test_a_verdict_without_a_score_is_valid_json(capsys: pytest.CaptureFixture[str]) -> None:
    empty = pd.DataFrame({"mtd": [], "score": [], "seed": []}, dtype="float64")
    verdict = compute_verdict(empty, ())
    print_json({**list_numbers(verdict), **list_shape(verdict)})
    fields = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert set(fields) == FIELDS - {
        "mtd_sufficient",
        "seeds_for_power",
        "items_for_power",
        "baseline",
    }
    assert fields["verdict"] == "inconclusive"
    assert fields["peak_mtd"] is fields["p_value"] is fields["p_over_looks"] is None
    # level is that of the look
    looks = OverLooks(planned=4, taken=3, confidence=0.95, p_value=0.031, is_early=True)
    fields = list_numbers(Verdict("inconclusive", level=0.982, over_looks=looks))
    assert (fields["p_over_looks"], fields["confidence"]) == (0.031, 0.95)


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_transfer_compares_the_first_study_with_the_others(run: Command) -> None:
    for name in ("small", "large"):
        run(f"report --table runs.csv --name {name}")
    stored = [f"--from reports/{name}/data/study.parquet" for name in ("small", "large")]
    line = f"report {' '.join(stored)} --transfer"
    printed = run(line)[0].splitlines()
    assert printed[2].startswith("large, MTD in steps: the order of 5 common levels agrees with")
    [found] = json.loads(run(f"{line} --json")[0])["transfer"]
    assert (found["study"], found["unit"], found["levels"]) == ("large", "steps", 5)
    assert (found["tau"], found["ratio"]) == pytest.approx((1, 1))
    assert found["same_best"] is True
    error = run(f"report {stored[0]} --transfer", 2)[1]
    assert "--transfer compares a study with others; name two or more" in error


RUNS = "seed,rate,score\n" + "\n".join(
    f"{seed},{rate},{60 + 3 * rate + seed / 7}" for seed in (1, 2) for rate in (1, 2)
)
RANKED = "task,score,model\n" + "\n".join(
    f"{task},{0.6 + 0.01 * task * len(model)},{model}" for task in range(4) for model in ("a", "bb")
)
MEANS = "mtd,mean,low,high\n" + "\n".join(f"{mtd},{mtd},{mtd - 1},{mtd + 1}" for mtd in (5, 8, 20))


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
@pytest.mark.parametrize(
    ("table", "other", "options"),
    [
        # the runs have the same seeds and scores, at other rates
        (RUNS, RUNS.replace(",2,", ",4,").replace(",1,", ",3,"), ""),
        (RUNS, RUNS.replace("rate", "K"), ""),
        (RANKED, RANKED.replace("bb", "cc"), "--block task"),
        (MEANS, MEANS.replace("20", "21"), ""),
    ],
    ids=["other values", "other settings", "ranking", "means"],
)
def test_the_page_of_a_table_is_not_replaced_by_that_of_another(
    run: Command,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    table: str,
    other: str,
    options: str,
) -> None:
    """Two files of one relative path, in two folders, with one --out; a file may change."""
    for name, text in (("first", table), ("second", other)):
        (folder / name).mkdir()
        (folder / name / "same.csv").write_text(text, encoding="utf-8")
    line, page = f"report --table same.csv --out ../pages {options}", folder / "pages" / "same"
    monkeypatch.chdir(folder / "first")
    run(line)
    before = (page / "index.html").read_bytes()
    monkeypatch.chdir(folder / "second")
    refused = "holds a page that is not known to be of this table; name this one with --name, or"
    assert refused in run(line, 2)[1]
    assert (page / "index.html").read_bytes() == before
    run(f"{line} --name other")
    monkeypatch.chdir(folder / "first")
    Path("same.csv").write_text(other, encoding="utf-8")
    run(line)
    assert (page / "index.html").read_bytes() != before


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_table_that_was_moved_has_its_page_made_again_where_its_data_tell(
    run: Command, folder: Path
) -> None:
    """In the light install a page has no data: a moved table is then told to have another name."""
    (folder / "moved").mkdir()
    for name in ("same.csv", "moved/same.csv"):
        (folder / name).write_text(RUNS, encoding="utf-8")
    run("report --table same.csv")
    run("report --table moved/same.csv")
    for path in (folder / "reports" / "same" / "data").iterdir():
        path.unlink()
    assert "not known to be of this table" in run("report --table same.csv", 2)[1]
    run("report --table moved/same.csv")


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_pages_of_a_dataframe_and_of_a_file_do_not_replace_each_other(run: Command) -> None:
    frame = pd.DataFrame({"seed": [1, 2], "score": [61.0, 62.5]})
    report(frame, name="same")
    report(frame.assign(score=[63.0, 64.5]), name="same")
    refused = "not known to be of this table"
    assert refused in run("report --table runs.csv --name same", 2)[1]
    run("report --table runs.csv")
    with pytest.raises(MtdlabError, match=refused):
        report(frame, name="runs")
