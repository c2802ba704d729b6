"""Importing mtdlab beside a user's own module or package called `analysis`."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
import analysis
from mtdlab.analysis import d_trace
print(analysis.mine, d_trace(0, 8, 1))
"""


LIGHT = """
import sys
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
