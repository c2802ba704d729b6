"""Custom methods from a file and from an installed package, in a sweep and on a page."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template
from textwrap import indent
from typing import Any

import pytest
from forked_commands import ForkedCommand
from typer.testing import CliRunner

from mtdlab import load_study, user_code
from mtdlab.cli import app
from mtdlab.errors import MtdlabError
from mtdlab.methods import registry, user_modules
from mtdlab.methods.registry import BUILTIN, find_method, method_names
from mtdlab.methods.user_modules import ensure_imported, import_modules, list_modules
from mtdlab.store.owner import this_process
from mtdlab.store.store import Store
from mtdlab.store.urls import storage_url
from mtdlab.testing import check_method
from mtdlab.training import inputs
from mtdlab.trial import worker
from mtdlab.user_code import UserModule

METHOD = '''
"""SimCSE with its loss scaled."""

from mtdlab.methods.base import Step
from mtdlab.methods.simcse import SimCSE, SimCSESettings
from mtdlab.settings import setting


class ToySettings(SimCSESettings):
    """SimCSE's, and a factor."""

    factor: float = setting(2.0, "factor of the loss", gt=0)


class Toy(SimCSE):
    """SimCSE with its loss scaled."""

    name = "NAME"
    title = "Toy contrast"
    source = "this test"
    Settings = ToySettings

    def forward(self, step, views):
        return Step(super().forward(step, views).loss * self.settings.factor)
'''
STUDY = """
study: toys
description: a method from outside
metric: sts_dev
trainer:
  encoder: $encoder
  corpus: $corpus
  evaluation: $evaluation
  batch_size: 8
  steps: 4
  evaluate_every: 2
  max_length: 16
  learning_rate: 1e-3
search: {method: [toy, simcse], factor: [1.0, 2.0]}
seeds: [0, 1]
"""


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """An empty registry, restored afterwards."""
    monkeypatch.setattr(registry, "_imported", {})
    monkeypatch.delenv(user_modules.IMPORT_VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    yield
    forget()


def forget() -> None:
    """As in a new process."""
    registry._imported.clear()
    user_modules._import_once.cache_clear()
    user_code.execute.cache_clear()
    worker.open_in_process.cache_clear()
    inputs._load.cache_clear()
    for name in [name for name in sys.modules if name.startswith("toy_")]:
        del sys.modules[name]


@pytest.fixture
def study(tiny_inputs: dict[str, Any], tmp_path: Path) -> Path:
    path = tmp_path / "study.yaml"
    path.write_text(Template(STUDY).substitute(tiny_inputs))
    return path


def write_method(path: Path, name: str = "toy") -> Path:
    path.write_text(METHOD.replace("NAME", name))
    return path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output + str(result.exception or "")


@pytest.mark.slow
@pytest.mark.usefixtures("figures_not_drawn", "few_simulated_tables")
def test_a_single_file_reaches_workers_database_and_page(study: Path, tmp_path: Path) -> None:
    """A sweep with two worker processes, then a report without the file."""
    file, path = write_method(tmp_path / "toy_file.py"), str(study)
    words = ["sweep", path, "--import", "toy_file", "--jobs", "2"]
    process = ForkedCommand(words, tmp_path, {}, merged=True)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed
    frames = load_study("toys", str(tmp_path / "mtdlab.db"))
    by_method = frames.trials.groupby("method")["factor"].agg(["size", "nunique"])
    assert by_method.to_dict("index") == {
        "toy": {"size": 4, "nunique": 2},
        # it has no setting factor, so both points are one configuration
        "simcse": {"size": 2, "nunique": 0},
    }
    assert set(frames.trials["state"]) == {"COMPLETE"}
    assert frames.methods == {"toy": "Toy contrast", "simcse": "SimCSE"}
    assert frames.settings["factor"].description == "factor of the loss"

    file.unlink()
    assert run("report", "--study", "toys")[0] == 0
    page = (tmp_path / "reports" / "toys" / "index.html").read_text()
    assert "Toy contrast" in page
    assert "a method from outside" in page


def test_a_sweep_with_a_changed_file_is_refused(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the command, in a separate process."""
    monkeypatch.setattr("mtdlab.sweep.supervisor.Supervisor.run", lambda _: None)
    file, path = write_method(tmp_path / "toy_file.py"), str(study)
    assert run("sweep", path, "--import", "toy_file.py", "--jobs", "1")[0] == 0
    assert Store(storage_url(None), study_id=1).claim(this_process())
    file.write_text("# other content\n" + file.read_text())
    forget()
    code, output = run("sweep", path, "--import", "toy_file.py", "--jobs", "1")
    assert code != 0
    assert "study toys was begun with another file (imports.toy_file: was" in output


EVALUATOR = """
import numpy as np
CALLS = []

def score(encode):
    vectors = encode(["a dog runs", "the cat", "a bird"])
    return {"spread": float(np.std(vectors))}
"""


MISTAKES = {
    "toy_file.py": ("return Step(", "if self.settings.factor == 2: raise ValueError('wrong')"),
    # of a trained encoder alone: the function is tried with the untrained one before a sweep
    "toy_metric.py": (
        "return {",
        "CALLS.append(vectors)\nif (CALLS[0] != vectors).any(): raise ValueError('wrong')",
    ),
}


@pytest.mark.parametrize(("name", "failed"), [("toy_file.py", 1), ("toy_metric.py", 2)])
def test_failed_trials_run_again_with_a_mended_method_or_metric(
    study: Path, tmp_path: Path, name: str, failed: int
) -> None:
    """A complete trial of another method stays as it is, and each records its code."""
    write_method(tmp_path / "toy_file.py")
    (tmp_path / "toy_metric.py").write_text(EVALUATOR)
    whole, (place, mistake) = (tmp_path / name).read_text(), MISTAKES[name]
    margin = re.search(f"^ +(?={re.escape(place)})", whole, re.MULTILINE)[0]
    broken = whole.replace(f"{margin}{place}", f"{indent(mistake, margin)}\n{margin}{place}")
    (tmp_path / name).write_text(broken)
    text = study.read_text().partition("search:")[0] + "search: {method: [simcse, toy]}\nseeds: [0]"
    text = text.replace("metric: sts_dev", "metric: evaluator:spread\nselect_by: sts_dev")
    study.write_text(text.replace("  steps: 4", "  factor: 2.0\n  steps: 2"))
    named = ["--import", "toy_file.py", "--evaluator", "toy_metric.py:score"]
    line = ["sweep", str(study), *named, "--jobs", "1"]
    code, output = run(*line)
    assert (code, f"{2 - failed} of 2 trials done ({failed} fail)" in output) == (3, True), output
    (tmp_path / name).write_text(whole)
    forget()
    code, output = run(*line, "--retry-failed", "--changed-code")
    assert (code, f"2 of 2 trials done; {failed} run now" in output) == (0, True), output
    code = load_study("toys").environment["code"]
    assert code.nunique() == 3 - failed
    assert code.str.fullmatch(r"toy_file \w{12}, evaluator score \w{12}").all()


def test_a_file_that_changed_since_this_process_imported_it_is_refused(tmp_path: Path) -> None:
    path = write_method(tmp_path / "toy_three.py")
    assert import_modules([str(path)]) == import_modules([str(path)])
    path.write_text(path.read_text() + "# changed\n")
    with pytest.raises(MtdlabError, match=r"toy_three.py changed since this process imported it"):
        import_modules([str(path)])


def test_a_file_that_changes_during_a_sweep_is_noticed(tmp_path: Path) -> None:
    (module,) = import_modules([str(write_method(tmp_path / "toy_two.py"))])
    ensure_imported([module])
    changed = UserModule(module.name, module.spec, "0" * 64)
    with pytest.raises(MtdlabError, match=r"toy_two\.py: changed while the sweep was running"):
        ensure_imported([changed])


def test_a_method_of_an_installed_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tiny_inputs: dict[str, Any]
) -> None:
    """A module and a dist-info with an entry point, as installed by pip."""
    write_method(tmp_path / "toy_package.py", "toy-packaged")
    info = tmp_path / "toy_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[mtdlab.methods]\ntoy-packaged = toy_package:Toy\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert method_names()[-1] == "toy-packaged"
    method = find_method("toy-packaged")
    assert method.title == "Toy contrast"
    check_method(method, **tiny_inputs)
    (info / "entry_points.txt").write_text("[mtdlab.methods]\nbroken = toy_package:Missing\n")
    with pytest.raises(MtdlabError, match="method broken: toy_package:Missing cannot be imported"):
        find_method("broken")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("x = 1\n", "defines no method"),
        ("raise ValueError('no\\nway')\n", "ValueError: no way"),
        (METHOD.replace("NAME", "mocose"), "the name is taken by a built-in method"),
        ("import no_such_module_at_all\n", "ModuleNotFoundError"),
    ],
)
def test_an_invalid_module_file_is_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "toy_bad.py"
    path.write_text(content)
    with pytest.raises(MtdlabError, match=message):
        import_modules([str(path)])


def test_names_come_from_the_option_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(user_modules.IMPORT_VARIABLE, "b, c.py,,a")
    assert list_modules(["a"]) == ("a", "b", "c.py")
    with pytest.raises(MtdlabError, match=r"--import c.py: no such file"):
        import_modules(["c.py"])
    with pytest.raises(MtdlabError, match=r"no_such_module: no file no_such_module\.py in"):
        import_modules(["no_such_module"])


def test_a_study_file_alone_executes_nothing(study: Path, tmp_path: Path) -> None:
    (tmp_path / "toy.py").write_text("raise SystemExit('executed')\n")
    code, output = run("plan", str(study), "--no-measure")
    assert code != 0
    assert "method 'toy' is not known" in output
    assert "executed" not in output


def test_the_commands_list_an_imported_method(tmp_path: Path) -> None:
    write_method(tmp_path / "toy_listed.py")
    code, output = run("methods", "--import", "toy_listed", "--json")
    assert code == 0
    found: dict[str, Any] = json.loads(output)["methods"]
    assert list(found) == [*BUILTIN, "toy"]
    assert found["toy"]["settings"]["factor"] == {
        "default": 2.0,
        "description": "factor of the loss",
    }
    assert "factor" in run("schema", "--import", "toy_listed")[1]


def test_a_module_whose_import_failed_is_not_found_as_if_it_were_whole(tmp_path: Path) -> None:
    (file := tmp_path / "broken_in_half.py").write_text("first = 1\nraise ValueError('half')\n")
    with pytest.raises(MtdlabError, match="half"):
        user_code.execute(str(file), "--import broken_in_half.py")
    assert "broken_in_half" not in sys.modules
