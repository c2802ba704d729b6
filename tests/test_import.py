"""Importing mtdlab beside a user's own module or package called `analysis`."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = """
import analysis
from mtdlab.analysis import d_trace
print(analysis.mine, d_trace(0, 8, 1))
"""


LIGHT = """
import sys
import mtdlab.cli
# of --help
assert not {"pydantic", "sqlalchemy", "torch", "pandas"} & sys.modules.keys()
import mtdlab.commands.sweep_summary, mtdlab.sweep.run
from mtdlab.methods.registry import describe_method, make_settings
assert describe_method("mocose")["title"] == "MoCoSE"
make_settings()
print(sorted({"torch", "transformers", "pandas", "scipy"} & sys.modules.keys()))
"""


@pytest.mark.parametrize("name", ["analysis.py", "analysis/__init__.py"])
def test_a_users_own_analysis_hides_nothing(tmp_path: Path, name: str) -> None:
    """Modules of the working folder come first, as in a notebook and under `python -c`."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine = True\n")
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=tmp_path, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "True 9.0\n", "")


def test_a_complete_study_is_recognised_without_large_packages() -> None:
    """They take seconds to import."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")


HIDING = """
import json, os, signal, sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.abc import MetaPathFinder
from io import StringIO

class Hiding(MetaPathFinder):
    names = {"torch", "transformers", "safetensors", "huggingface_hub", "tokenizers", "fsspec"}
    # of a light install on Windows
    names |= {"pyarrow", "fcntl", "resource"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hiding())
del signal.SIGHUP, signal.SIGUSR1, os.fork, os.getuid

import mtdlab, mtdlab.analysis
from mtdlab.cli import main

def run(line):
    out, err = StringIO(), StringIO()
    sys.argv = ["mtdlab", *line.split()]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            code = ended.code or 0
    done.append([code, out.getvalue(), err.getvalue()])

done = []
hidden, whole = json.loads(sys.argv[1])
for line in hidden:
    run(line)
for call in (lambda: mtdlab.evaluate, mtdlab.train, lambda: mtdlab.plan("mtd")):
    try:
        call()
    except ImportError as error:
        done.append([type(error).__name__, "", str(error)])
Hiding.names.remove("pyarrow")
done.append(os.listdir("reports/runs"))
for line in whole:
    run(line)
print(json.dumps(done))
"""
PAIR = "decide runs.csv --baseline rate=1 --candidate rate=2 --session s.json"
DATABASE = f"--storage {ROOT}/docs/gallery/wiki-minilm.db"
TABLE = "report --table runs.csv"
STORED = "report --from reports/runs --out again"


def test_recorded_runs_are_analysed_without_torch_and_on_windows(tmp_path: Path) -> None:
    rows = [f"{seed},{rate},{60 + 9 * rate + rate * seed}" for seed in range(4) for rate in (1, 2)]
    (tmp_path / "runs.csv").write_text("\n".join(["seed,rate,score", *rows]))
    works = [TABLE, PAIR, PAIR, f"show wiki-minilm {DATABASE} --json"]
    works += [f"compare wiki-minilm 30 31 {DATABASE}"]
    refused = ["sweep mtd", "plan mtd", "train", "evaluate builtin", "doctor"]
    given = json.dumps([[*works, *refused, STORED], [TABLE, STORED]])
    done = subprocess.run(
        [sys.executable, "-c", HIDING, given], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    *ran, stored, evaluate, train, plan, files, table, again = json.loads(done.stdout)
    for each in (*ran[:5], table, again):
        assert each[0] == 0, each
    missing = (
        r"(mtdlab: )?training and encoders need torch and transformers, which are not installed; "
        r"in the folder of mtdlab: pip install \. \(.* --index-url https://\S+/whl/cpu, .*\)"
    )
    for code, out, err in [*ran[5:], evaluate, train, plan]:
        assert (code, out) in ((2, ""), ("MissingPackage", ""))
        assert re.fullmatch(missing, err.splitlines()[-1]), err
    assert "data" not in files
    assert stored[0] == 2
    assert stored[2].startswith("mtdlab: pyarrow is not installed, which reads and writes Parquet")


MISSING = """
import sys
from mtdlab.cli import main

for command in ("sweep a.yaml", "plan a.yaml", "train a.yaml"):
    sys.argv = ["mtdlab", *command.split()]
    try:
        main()
    except SystemExit as ended:
        print(ended.code, {"torch", "transformers"} & sys.modules.keys())
"""


def test_missing_texts_are_found_before_torch_is_imported(tmp_path: Path) -> None:
    study = "study: a\ntrainer: {corpus: no.txt, evaluation: none}\nseeds: [0, 1]\n"
    (tmp_path / "a.yaml").write_text(study)
    done = subprocess.run(
        [sys.executable, "-c", MISSING], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.stdout.splitlines()[-1] == "2 set()"
    assert done.stdout.count("2 set()") == 3
    assert done.stderr.count("corpus no.txt: cannot be read") == 2
    assert done.stderr.count("2 inputs are missing or cannot be read") == 2
