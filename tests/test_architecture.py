"""docs/explanation/architecture.md: packages import each other as it states."""

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")


def order_of_packages(first: str = "analysis") -> list[str]:
    """The line of the page that begins with a package."""
    match = re.search(rf"^{first}  .*$", TEXT, re.MULTILINE)
    assert match
    return match[0].split()


def package_of(module: str) -> str:
    """A package of mtdlab, or a module beside them."""
    return module.partition(".")[2].split(".")[0]


@cache
def imports_of(path: Path) -> tuple[list[ast.Import | ast.ImportFrom], set[ast.AST]]:
    """The imports of a file, also inside functions, and those for the checker of types alone."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    for_types = {
        part
        for node in nodes
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for part in ast.walk(statement)
    }
    return [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)], for_types


def imported(path: Path) -> set[str]:
    """The packages that a file imports, also inside functions."""
    found = set()
    for node in imports_of(path)[0]:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif node.module:
            found.add(node.module)
    ours = {name for name in found if name.split(".")[0] == "mtdlab"}
    return {package_of(name) for name in ours} - {""}


def test_packages_import_only_those_before_them() -> None:
    order = order_of_packages()
    free = {"errors", "files", "terminal", "data_paths", "device", "user_code"}
    folders = {
        path.name for path in (ROOT / "mtdlab").iterdir() if (path / "__init__.py").is_file()
    }
    assert set(order) == folders | {"programs"}
    for at, package in enumerate(order):
        folder = ROOT / "mtdlab" / package
        for path in [*folder.rglob("*.py")] or [folder.with_suffix(".py")]:
            allowed = {*order[: at + 1], *(free if package != "analysis" else ())}
            assert imported(path) <= allowed, path


def modules_of(path: Path, known: set[str]) -> set[str]:
    """The modules that a file imports when it runs, also inside functions."""
    imports, for_types = imports_of(path)
    found = set()
    for node in imports:
        if isinstance(node, ast.ImportFrom) and node.module and node not in for_types:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names | ({node.module} if names - known else set())
    return found & known


def imports_in(package: str) -> dict[str, set[str]]:
    """The modules of a package, with those that each imports."""
    paths = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in (ROOT / package).rglob("*.py")
    }
    return {name: modules_of(path, set(paths)) - {name} for name, path in paths.items()}


def test_modules_import_each_other_in_no_circle() -> None:
    left = imports_in("mtdlab") | imports_in("mtdlab/analysis")
    assert len(left) > 100
    # a module that imports none of the others is in no circle, and neither is one before it
    while ends := {name for name, needed in left.items() if not needed}:
        left = {name: needed - ends for name, needed in left.items() if name not in ends}
    assert not left


def test_free_modules_import_no_package() -> None:
    allowed = {"errors": set(), "files": set(), "device": {"errors", "settings"}}
    allowed |= {name: {"errors"} for name in ("terminal", "data_paths", "user_code")}
    for name, modules in allowed.items():
        assert imported(ROOT / "mtdlab" / f"{name}.py") <= modules, name


def test_all_sql_is_in_the_store() -> None:
    files = [*(ROOT / "analysis").rglob("*.py"), *(ROOT / "mtdlab").rglob("*.py")]
    naming = {path for path in files if "sqlalchemy" in path.read_text(encoding="utf-8")}
    assert naming
    assert {path.parent for path in naming} == {ROOT / "mtdlab" / "store"}


def test_packages_of_analysis_import_only_those_before_them() -> None:
    order = order_of_packages("measures")
    modules = imports_in("mtdlab/analysis")
    del modules["mtdlab.analysis"]
    assert {name.split(".")[2] for name in modules} == set(order)
    for name, others in modules.items():
        allowed = order[: order.index(name.split(".")[2]) + 1]
        assert {other.split(".")[2] for other in others} <= set(allowed), name


def test_no_two_classes_have_one_name() -> None:
    names = [
        node.name
        for folder in ("analysis", "mtdlab")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert len(names) > 100
    assert sorted({name for name in names if names.count(name) > 1}) == []
