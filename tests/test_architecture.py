"""docs/explanation/architecture.md: packages import each other as it states."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def order_of_packages() -> list[str]:
    """The line of the page that begins with analysis."""
    match = re.search(r"^analysis  .*$", TEXT, re.MULTILINE)
    assert match
    return match[0].split()


def package_of(module: str) -> str:
    """analysis, a package of mtdlab, or a module beside them."""
    first, _, rest = module.partition(".")
    return "analysis" if first == "analysis" else rest.split(".")[0]


def imported(path: Path) -> set[str]:
    """The packages that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    ours = {name for name in found if name.split(".")[0] in ("analysis", "mtdlab")}
    return {package_of(name) for name in ours} - {""}


def test_packages_import_only_those_before_them() -> None:
    order = order_of_packages()
    free = {"errors", "files", "terminal", "data_paths", "device", "packaged", "user_code"}
    folders = {
        path.name for path in (ROOT / "mtdlab").iterdir() if (path / "__init__.py").is_file()
    }
    assert set(order) == folders | {"analysis"}
    for at, package in enumerate(order):
        folder = ROOT / package if package == "analysis" else ROOT / "mtdlab" / package
        for path in folder.rglob("*.py"):
            allowed = {*order[: at + 1], *(free if package != "analysis" else ())}
            assert imported(path) <= allowed, path


def test_free_modules_import_no_package() -> None:
    allowed = {"errors": set(), "files": set(), "terminal": {"errors"}}
    allowed |= {
        "data_paths": {"errors"},
        "user_code": {"errors"},
        "packaged": {"errors"},
        "device": {"errors", "settings"},
    }
    for name, modules in allowed.items():
        assert imported(ROOT / "mtdlab" / f"{name}.py") <= modules, name
