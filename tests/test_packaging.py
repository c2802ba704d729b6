"""What a wheel holds: every package, and the packaged studies without a second copy of them."""

import os
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIGURATION = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def test_every_package_is_listed() -> None:
    folders = (
        path.parent
        for name in ("analysis", "mtdlab")
        for path in (ROOT / name).rglob("__init__.py")
    )
    names = {".".join(folder.relative_to(ROOT).parts) for folder in folders}
    assert set(CONFIGURATION["packages"]) == names | {"mtdlab.studies", "mtdlab.studies.paper"}
    assert CONFIGURATION["package-dir"] == {
        "mtdlab.studies": "studies",
        "mtdlab.studies.paper": "studies/paper",
    }


def test_a_wheel_holds_the_studies_and_copies_them_by_name(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    source = tmp_path / "source"
    source.mkdir()
    for name in ("mtdlab", "analysis", "studies", "pyproject.toml", "README.md", "LICENSE"):
        (source / name).symlink_to(ROOT / name)
    code = "import sys, setuptools.build_meta as backend; print(backend.build_wheel(sys.argv[1]))"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        cwd=source,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    studies = tmp_path / "installed" / "mtdlab" / "studies"
    expected = sorted(path.relative_to(ROOT / "studies") for path in ROOT.glob("studies/**/*.yaml"))
    assert sorted(path.relative_to(studies) for path in studies.rglob("*.yaml")) == expected
    for folder in ("builtin", "builtin/encoder"):
        data = {path.name for path in (ROOT / "mtdlab" / folder).iterdir() if path.is_file()}
        held = {path.name for path in (studies.parent / folder).iterdir()}
        assert {name for name in data if not name.endswith(".py")} <= held
    ran = subprocess.run(
        [sys.executable, "-m", "mtdlab", "init", "mtd"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": str(tmp_path / "installed")},
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert (tmp_path / "mtd.yaml").read_bytes() == (ROOT / "studies" / "mtd.yaml").read_bytes()
