"""What a wheel holds: every package, and the packaged studies without a second copy of them."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
CONFIGURATION = PROJECT["tool"]["setuptools"]


def test_every_package_is_listed() -> None:
    # the folder of mtdlab.analysis is a link, which a search of mtdlab does not follow
    files = [
        *(ROOT / "mtdlab").rglob("__init__.py"),
        *(ROOT / "mtdlab/analysis").rglob("__init__.py"),
    ]
    names = {".".join(file.parent.relative_to(ROOT).parts) for file in files}
    assert set(CONFIGURATION["packages"]) == names | {"mtdlab.studies", "mtdlab.studies.paper"}
    assert CONFIGURATION["package-dir"] == {
        "mtdlab.studies": "studies",
        "mtdlab.studies.paper": "studies/paper",
    }


def test_the_light_install_has_the_versions_of_the_plain_one_and_leaves_out_what_trains() -> None:
    lines = (ROOT / "analysis" / "requirements.txt").read_text().splitlines()
    light = {line for line in lines if not line.startswith("#")}
    plain = set(PROJECT["project"]["dependencies"])
    assert light < plain
    left_out = {re.split("[<>=]", line)[0] for line in plain - light}
    trains = {"torch", "transformers", "safetensors", "fsspec"}
    # the last two come with optuna and scikit-learn
    assert left_out == trains | {"pyarrow", "alembic", "joblib"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel built from links to the files, so that the build writes nothing beside them."""
    pytest.importorskip("setuptools", minversion="77")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    source.mkdir()
    for name in ("mtdlab", "analysis", "studies", "pyproject.toml", "README.md", "LICENSE"):
        (source / name).symlink_to(ROOT / name)
    code = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"
    run([sys.executable, "-c", code, str(folder)], source)
    (built,) = folder.glob("*.whl")
    return built


def run(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command that succeeds, in a folder."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=1200,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def files_in(folder: Path) -> set[Path]:
    """The files of a folder but bytecode, by their paths in it; those behind links are not."""
    paths = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder) for path in paths}


@pytest.mark.slow
def test_a_wheel_holds_the_package_alone_and_copies_studies_by_name(
    wheel: Path, tmp_path: Path
) -> None:
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    # nothing beside the package: `analysis` is a name that many a folder has
    assert {path.name.split("-")[0] for path in installed.iterdir()} == {"mtdlab"}
    within = {"mtdlab": "", "analysis": "analysis", "studies": "studies"}
    expected = {into / path for source, into in within.items() for path in files_in(ROOT / source)}
    assert files_in(installed / "mtdlab") == expected
    init = [sys.executable, "-m", "mtdlab", "init", "mtd"]
    assert run(init, tmp_path, PYTHONPATH=str(installed)).stderr == ""
    assert (tmp_path / "mtd.yaml").read_bytes() == (ROOT / "studies" / "mtd.yaml").read_bytes()


@pytest.mark.slow
def test_a_wheel_alone_runs_the_default_study(wheel: Path, tmp_path: Path) -> None:
    """In an environment that has nothing else, outside of the repository, with few steps."""
    python = tmp_path / "venv" / "bin" / "python"
    run([sys.executable, "-m", "venv", str(tmp_path / "venv")], tmp_path)
    pip = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt")]
    # torch alone first, so that pip takes the build that the constraints name
    for packages in (["torch"], [str(wheel)], ["twine"]):
        fetched = subprocess.run([*pip, *packages], capture_output=True, text=True, cwd=tmp_path)
        if fetched.returncode:
            pytest.skip(f"pip cannot fetch {packages[0]}: {fetched.stderr[-200:]}")
    run([str(python), "-m", "twine", "check", "--strict", str(wheel)], tmp_path)
    mtdlab = [str(python.with_name("mtdlab"))]
    run([*mtdlab, "init", "mtd"], tmp_path)
    small = ["--set", "trainer.steps=8", "--set", "trainer.evaluate_every=8"]
    small += ["--set", "seeds=[0, 1]", "--set", "search.ema_decay=[0, 0.5]"]
    run([*mtdlab, "sweep", "mtd.yaml", *small], tmp_path)
    run([*mtdlab, "report", "--study", "mtd"], tmp_path)
    assert "mtdlab report" in (tmp_path / "reports/mtd/index.html").read_text(encoding="utf-8")
    code = "from mtdlab.analysis import d_trace; import mtdlab; print(mtdlab.__version__)"
    printed = run([str(python), "-c", code], tmp_path).stdout.strip()
    assert printed == wheel.name.split("-")[1]
