"""Importing mtdlab beside a user's own module or package called `analysis`."""

import subprocess
import sys
from pathlib import Path

import pytest

CODE = "import mtdlab, analysis; print(analysis.__file__)"


LIGHT = """
import sys
import mtdlab.commands.sweep_summary, mtdlab.sweep.run
from mtdlab.methods.registry import describe_method, make_settings
assert describe_method("mocose")["title"] == "MoCoSE"
make_settings()
print(sorted({"torch", "transformers", "pandas", "scipy"} & sys.modules.keys()))
"""


def start(folder: Path) -> subprocess.CompletedProcess[str]:
    """Python in a folder, whose modules come first: as in a notebook and under `python -c`."""
    return subprocess.run(
        [sys.executable, "-c", CODE], cwd=folder, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", ["analysis.py", "analysis/__init__.py"])
def test_a_module_that_hides_ours_is_named_in_one_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine = True\n")
    done = start(tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: {path} hides mtdlab's own package `analysis`; rename it, or start Python "
        "in another folder"
    )


def test_other_files_do_not_matter(tmp_path: Path) -> None:
    (tmp_path / "analyses.py").write_text("mine = True\n")
    done = start(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()).parts[-2:] == ("analysis", "__init__.py")
    assert tmp_path not in Path(done.stdout.strip()).parents


def test_a_folder_of_the_name_is_named_where_it_hides_ours(tmp_path: Path) -> None:
    """It hides an editable installation, not one in site-packages."""
    (tmp_path / "analysis").mkdir()
    done = start(tmp_path)
    if done.returncode:
        assert f"ImportError: {tmp_path / 'analysis'} hides mtdlab's own package" in done.stderr
    else:
        assert Path(done.stdout.strip()).parts[-2:] == ("analysis", "__init__.py")


def test_a_complete_study_is_recognised_without_large_packages() -> None:
    """They take seconds to import."""
    done = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True, timeout=60)
    assert (done.stdout, done.stderr) == ("[]\n", "")
