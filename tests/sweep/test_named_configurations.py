"""Names of configurations, from a study file through its database to page, tables and commands."""

import json
from pathlib import Path

import pandas as pd
import pytest

from mtdlab import load_study
from mtdlab.analysis.data.stored_frames import from_parquet
from mtdlab.analysis.report.writer import write_report
from mtdlab.commands.show import show
from mtdlab.manage.exchange import export_study, import_study
from mtdlab.settings import TrainerSettings
from mtdlab.sweep import run
from mtdlab.trial import worker
from tests.conftest import Written
from tests.sweep.conftest import Scored

pytestmark = pytest.mark.usefixtures("few_simulated_tables", "figures_not_rendered")
PLAIN = """\
study: a
trainer: {steps: 4}
search: {method: [simcse, mocose], projection_layers: [0, 1]}
seeds: [0, 1, 2]
"""
NAMED = (
    PLAIN
    + """\
names:
  SimCSE: {method: simcse}
  with <b>keys</b>: {method: mocose, projection_layers: 0}
"""
)
ASKED = NAMED + "questions: [additions: [SimCSE, with <b>keys</b>]]\n"


def score(settings: TrainerSettings) -> float:
    added = settings.model_dump().get("projection_layers", -1)
    return 40.0 + settings.seed + 3 * added + 0.01 * (settings.seed == 1) * added


def sweep(written: Written, url: str, text: str) -> run.SweepResult:
    worker.open_in_process.cache_clear()
    return run.sweep(written(text), url, run.Execution(jobs=1))


def test_names_and_their_question_come_to_a_study_that_has_run(
    scored: Scored,
    written: Written,
    url: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    scored(score)
    sweep(written, url, PLAIN)
    assert load_study("a", url).names == {}
    assert sweep(written, url, ASKED).ran == 0
    study = load_study("a", url)
    assert study.names == {"SimCSE": (0, 3, 6), "with <b>keys</b>": (1, 4, 7)}
    write_report(study, tmp_path / "page", generated="now", version="1")
    page = (tmp_path / "page" / "index.html").read_text()
    assert "What does each addition to SimCSE change in" in page
    assert "Exploratory: the question was declared after 9 trials had started." in page
    # escaped
    assert "with &lt;b&gt;keys&lt;/b&gt; minus SimCSE" in page
    assert "with <b>keys" not in page
    tables = tmp_path / "page" / "tables"
    methods = pd.read_csv(tables / "methods.csv").set_index("number")
    assert methods["configuration"].fillna("").to_dict() == {
        0: "SimCSE",
        1: "with <b>keys</b>",
        2: "",
    }
    assert {"method", "projection_layers"} <= {*methods}
    assert "SimCSE" in (tables / "methods.tex").read_text()
    trials = pd.read_csv(tables / "trials.csv").set_index("number")
    assert trials.loc[[0, 4], "configuration"].tolist() == ["SimCSE", "with <b>keys</b>"]
    properties = pd.read_csv(tables / "method_properties.csv")
    assert {"SimCSE", "with <b>keys</b>"} <= {*properties["configuration"]}
    # the page's data and an export have them too
    assert from_parquet(tmp_path / "page")[0].names == study.names
    export_study("a", url, tmp_path / "a.db")
    copied = f"sqlite:///{tmp_path / 'copied.db'}"
    import_study(tmp_path / "a.db", copied)
    assert load_study("a", copied).names == study.names
    show("a", 4, storage=url)
    assert ["configuration", "with", "<b>keys</b>"] in [
        line.split() for line in capsys.readouterr().out.splitlines()
    ]
    show("a", 8, storage=url, as_json=True)
    assert "configuration" not in json.loads(capsys.readouterr().out)


def test_a_plan_records_what_its_questions_call_by_a_name(
    scored: Scored, written: Written, url: str
) -> None:
    scored(score)
    sweep(written, url, ASKED)
    swapped = ASKED.replace("layers: 0}", "layers: 1}")
    assert sweep(written, url, swapped).ran == 0
    first, later = load_study("a", url).plans
    assert first.values["named"]["SimCSE"] == {"method": "simcse"}
    layers = [plan.values["named"]["with <b>keys</b>"] for plan in (first, later)]
    assert [point["projection_layers"] for point in layers] == [0, 1]
    assert later.trials == 9


def test_the_page_follows_the_names_that_are_recorded_last(
    scored: Scored, written: Written, url: str
) -> None:
    scored(score)
    sweep(written, url, NAMED)
    renamed = NAMED.replace("SimCSE:", "none:")
    assert sweep(written, url, renamed).ran == 0
    assert [*load_study("a", url).names] == ["none", "with <b>keys</b>"]
    sweep(written, url, PLAIN)
    assert load_study("a", url).names == {}


def test_trials_that_choose_a_nuisance_value_are_of_the_named_configuration(
    scored: Scored, written: Written, url: str, tmp_path: Path
) -> None:
    scored(score)
    sweep(written, url, NAMED + "nuisance: {learning_rate: [1e-4, 1e-3], seeds: [900]}\n")
    study = load_study("a", url)
    assert study.names["SimCSE"][:3] == (0, 1, 6)
    write_report(study, tmp_path, generated="now", version="1")
    tuning = pd.read_csv(tmp_path / "tables" / "tuning.csv")
    assert tuning["group"].tolist()[:4] == ["SimCSE"] * 2 + ["with <b>keys</b>"] * 2
    page = (tmp_path / "index.html").read_text()
    assert "with &lt;b&gt;keys&lt;/b&gt;" in page
