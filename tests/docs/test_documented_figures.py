"""Every figure of the documentation is of a page: `make figures` or `make gallery` copies it."""

import shutil
import subprocess
from pathlib import Path

from gallery import shown_figures
from markdown_blocks import ROOT


def test_every_figure_is_copied_from_a_page(tmp_path: Path) -> None:
    named = {path.relative_to(ROOT) for path in shown_figures()}
    assert [name for name in named if not (ROOT / name).is_file()] == []
    # the others are of pages that `make gallery` makes
    shown = {name for name in named if name.parent.name != "figures"}
    shutil.copy(ROOT / "Makefile", tmp_path)
    for name in shown:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    page = tmp_path / "reports" / "mtd" / "figures"
    page.mkdir(parents=True)
    (page / "mtd_curve.png").write_bytes(b"a figure")
    # a make that make starts, as by `make test`, would print the folder too
    command = ["make", "--no-print-directory", "figures"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    lines = made.stdout.splitlines()
    assert (made.returncode, made.stderr) == (0, "")
    assert {Path(line.split()[0]) for line in lines} == shown
    assert [line for line in lines if "left as it is" not in line] == ["reports/mtd.png"]
    assert (tmp_path / "reports" / "mtd.png").read_bytes() == b"a figure"
