"""`mtdlab.run_study`, `plan`, `train`, `evaluate`, `report`, `load_study`."""

import importlib.util
import inspect
import json
import subprocess
import sys
import typing
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mtdlab
from mtdlab.analysis.data.invocation import NO_INVOCATION
from mtdlab.analysis.report import MultiStudyReport, Report
from mtdlab.api.given import Given, assign
from mtdlab.errors import MtdlabError
from tests.commands.conftest import Recorded


def test_importing_the_package_imports_nothing_large_and_offers_its_functions() -> None:
    code = (
        "import sys, mtdlab; print(*(name in sys.modules for name in ('pandas', 'torch', 'typer')),"
        " *[name for name in dir(mtdlab) if name in mtdlab.__all__])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    offered = " ".join(sorted(mtdlab.__all__))
    assert (ran.stdout, ran.stderr) == (f"False False False {offered}\n", "")


@pytest.mark.parametrize("name", mtdlab.__all__)
def test_a_function_is_typed_and_documented_and_hides_no_module(name: str) -> None:
    function = inspect.unwrap(getattr(mtdlab, name))
    assert importlib.util.find_spec(f"mtdlab.{name}") is None
    assert function.__doc__
    assert "Raises" in function.__doc__ or "raises" in function.__doc__
    names = typing.get_type_hints(function, localns=_types()).keys()
    assert names == {*function.__code__.co_varnames[: _arguments(function)], "return"}


def _arguments(function: typing.Any) -> int:
    code = function.__code__
    return int(code.co_argcount + code.co_kwonlyargcount)


def _types() -> dict[str, typing.Any]:
    from mtdlab.analysis.data.frames import StudyFrames
    from mtdlab.analysis.notebook import Study
    from mtdlab.sweep.run import SweepResult

    kinds = (Study, StudyFrames, MultiStudyReport, Report, SweepResult, pd.DataFrame)
    return {kind.__name__: kind for kind in kinds}


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_frame_of_runs_made_elsewhere_has_a_page(tmp_path: Path) -> None:
    rows = [(lr, seed, 0.8 + lr + seed / 100) for lr in (0.01, 0.1) for seed in range(3)]
    frame = pd.DataFrame(rows, columns=["lr", "random_seed", "accuracy"])
    written = mtdlab.report(frame, score="accuracy", out=tmp_path, name="mine")
    assert written.page == tmp_path / "mine" / "index.html"
    assert "lr 0.1 is best. lr 0.1 minus lr 0.01:" in repr(written)
    named = mtdlab.report(frame, columns={"score": "accuracy"}, out=tmp_path)
    assert named.page == tmp_path / "runs" / "index.html"
    with pytest.raises(MtdlabError, match="the DataFrame: no column 'acuracy'; did you mean"):
        mtdlab.report(frame, score="acuracy", out=tmp_path)
    with pytest.raises(MtdlabError, match="the DataFrame: empty; it must have a row for each run"):
        mtdlab.report(pd.DataFrame(), out=tmp_path)
    frame.to_csv(tmp_path / "runs.csv", index=False)
    of_file = mtdlab.report(str(tmp_path / "runs.csv"), score="accuracy", out=tmp_path)
    assert (of_file.summary, of_file.page) == (written.summary, named.page)
    with pytest.raises(MtdlabError, match="describe runs made elsewhere; give them with a DataF"):
        mtdlab.report("a", score="accuracy")
    tasks = pd.DataFrame({"task": [*"abc"], "one": [0.1, 0.2, 0.3], "two": [0.5, 0.4, 0.6]})
    ranked = mtdlab.report(tasks, block="task", scale="fraction", out=tmp_path)
    assert ranked.page == tmp_path / "ranking" / "index.html"
    assert ranked.fields["models"][0]["model"] == "two"
    with pytest.raises(MtdlabError, match="the DataFrame: with block only columns="):
        mtdlab.report(tasks, block="task", settings=["one"], out=tmp_path)
    with pytest.raises(MtdlabError, match="block describe runs made elsewhere"):
        mtdlab.report(["a"], block="task")  # type: ignore[call-overload]


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'mtdlab' has no attribute 'run_studi'"):
        _ = mtdlab.run_studi


def test_a_study_given_as_values_runs_and_resumes(recorded: Recorded) -> None:
    assert (recorded.result.name, recorded.result.ran) == ("tiny", 4)
    again = mtdlab.run_study(
        recorded.values, storage=recorded.storage, models=recorded.models, jobs=1
    )
    assert (again.ran, again.counts) == (0, {"COMPLETE": 2, "FAIL": 2})
    study = mtdlab.load_study("tiny", str(recorded.storage))
    assert study.trials["state"].tolist() == ["COMPLETE", "FAIL"] * 2
    assert study.command == ""
    with pytest.raises(MtdlabError, match="takes no profile or overrides"):
        mtdlab.run_study(recorded.values, overrides={"trainer.steps": 5})


def test_a_study_may_hold_arrays_ranges_and_paths(recorded: Recorded, tmp_path: Path) -> None:
    values = recorded.values | {
        "trainer": recorded.values["trainer"] | {"steps": np.int64(3), "corpus": Path("text.txt")},
        "search": {"temperature": np.array([0.1, 0.2]), "learning_rate": (np.float64(0.1), 1)},
        "seeds": range(2),
    }
    found = mtdlab.plan(values, storage=str(tmp_path / "a.db"), measure=False, record=False)
    assert (found.trials, found.configurations["temperature"].tolist()[::2]) == (8, [0.1, 0.2])
    assert assign({"seeds": range(2), "trainer.steps": np.int64(5)}) == [
        "seeds=[0, 1]",
        "trainer.steps=5",
    ]
    with pytest.raises(MtdlabError, match=r"seeds: a study file cannot hold \{0\} \(set\); give"):
        mtdlab.plan(values | {"seeds": {0}}, measure=False)


def test_a_study_and_its_report_are_printed_in_a_few_lines(recorded: Recorded) -> None:
    study = mtdlab.load_study("tiny", str(recorded.storage))
    first, second = repr(study).splitlines()
    assert first == "study tiny: 2 of 4 trials complete, metric sts_test"
    assert second.startswith("rows: trials 4, curves ")
    verdict = study.verdict()
    summary = (verdict.sentence, "A warning.")
    report = Report(Path("r/a/index.html"), (), (), verdict, summary, "cannot be tested", None)
    assert repr(report).splitlines() == ["r/a/index.html", *summary]
    several = MultiStudyReport(Path("r/a+b/index.html"), (), (), {"a": report})
    assert repr(several).splitlines() == ["r/a+b/index.html", "a: r/a/index.html"]


def test_a_plan_lists_the_configurations(recorded: Recorded, tmp_path: Path) -> None:
    storage = str(tmp_path / "mtdlab.db")
    found = mtdlab.plan(recorded.values, storage=storage, measure=False, record=False)
    assert (found.study, found.trials, found.cost) == ("tiny", 4, None)
    assert found.configurations["learning_rate"].tolist() == [1e-3, 1e18]
    assert found.configurations["mtd"].tolist() == [6, 6]
    assert found.design.specification.metric == "sts_test"
    assert not Path(storage).exists()


def test_a_file_with_overrides_is_planned_trained_and_recorded_by_its_command(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # JSON is YAML, except that a number needs a sign in its exponent there
    (tmp_path / "a b.yaml").write_text(json.dumps(recorded.values))
    overrides = {"search": {"learning_rate": [1e-3]}, "seeds": [0]}
    storage = Path("own.db")
    result = mtdlab.run_study(
        "a b.yaml", overrides=overrides, jobs=1, storage=storage, models="kept"
    )
    assert result.counts == {"COMPLETE": 1}
    command = mtdlab.load_study("tiny", storage).command
    assert command.startswith("mtdlab sweep 'a b.yaml' --set 'search={")
    assert command.endswith(" --set 'seeds=[0]' --storage own.db --models kept")
    row = mtdlab.train("a b.yaml", overrides={"trainer.learning_rate": 1e-3}, out="model")
    assert row["sts_test"] == result.best.score if result.best else False
    assert (tmp_path / "model" / "modules.json").is_file()


def test_the_recorded_command_has_every_option() -> None:
    given = Given("a b.yaml", "two", ["seeds=[0]"], ["own.py", "other"], "e:f", "o:g")
    assert str(given.invocation(artifacts="file:///runs")) == (
        "mtdlab sweep 'a b.yaml' --profile two --set 'seeds=[0]' --import own.py --import other "
        "--evaluator e:f --objective o:g --artifacts file:///runs"
    )
    assert Given(study={"study": "values"}, profile="two").invocation() == NO_INVOCATION


@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_report_is_written_of_names_and_of_frames(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = str(recorded.storage)
    one = mtdlab.report("tiny", storage=recorded.storage, out=tmp_path, generated="today")
    assert one.page == tmp_path / "tiny" / "index.html"
    assert "today" in one.page.read_text(encoding="utf-8")
    study = mtdlab.load_study("tiny", storage)
    monkeypatch.setattr(
        "mtdlab.analysis.report.write_multi_study",
        lambda studies, out, *, name, generated, **_: (studies, out / name, generated),
    )
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    several: typing.Any = mtdlab.report([study, "tiny"], storage=storage, out=tmp_path)
    assert [frames.name for frames in several[0]] == ["tiny", "tiny"]
    assert several[1:] == (tmp_path / "tiny+tiny", "1970-01-01 00:00 UTC")
    for given in ("tiny", ["tiny"]):
        with pytest.raises(MtdlabError, match="not a name that a folder can have"):
            mtdlab.report(given, storage=storage, out=tmp_path, name="a/b")


def test_an_evaluation_returns_its_scores(tiny_encoder: Path) -> None:
    found = mtdlab.evaluate(str(tiny_encoder), tasks="builtin", pooling="mean")
    (score,) = found.scores
    assert (score.task, score.n, found.representation.pooling) == ("builtin", 1500, "mean")
    assert score.score is not None
    assert -100 < score.score < 100
