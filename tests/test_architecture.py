"""docs/contributing/architecture.md: packages import each other as it states."""

import ast
import re
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "contributing" / "architecture.md").read_text(encoding="utf-8")


def order_of_packages(first: str = "analysis") -> list[str]:
    """The line of the page that begins with a package."""
    match = re.search(rf"^{first}  .*$", TEXT, re.MULTILINE)
    assert match
    return match[0].split()


def package_of(module: str) -> str:
    """A package of mtdlab, or a module beside them."""
    return module.partition(".")[2].split(".")[0]


@cache
def parse(path: Path) -> ast.Module:
    """The syntax tree of a file, which several tests read."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports_of(path: Path) -> tuple[list[ast.Import | ast.ImportFrom], set[ast.AST]]:
    """The imports of a file, also inside functions, and those for the checker of types alone."""
    nodes = list(ast.walk(parse(path)))
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
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ClassDef)
    ]
    assert len(names) > 100
    assert sorted({name for name in names if names.count(name) > 1}) == []


DECIDED = {"topic", "outcome", "label"}
WORDS = {"kind", "verdict"}
JUDGED = {"answer", "judged", "question", "best", "verdict"}


def test_only_questions_branch_on_what_a_question_is_or_has_decided() -> None:
    """Other modules ask a question; a kind of question is added without a change to them."""
    files = [*(ROOT / "analysis").rglob("*.py"), *(ROOT / "mtdlab").rglob("*.py")]
    trees = {path: parse(path) for path in files}
    constants = {name for tree in trees.values() for name in constants_of(tree)}
    assert "METHOD" in constants
    for path, tree in trees.items():
        if "questions" not in path.relative_to(ROOT).parts:
            assert [*find_branches(tree, constants)] == [], path


def test_branches_on_what_is_decided_are_found() -> None:
    for line in (
        "answer.topic == 'methods'",
        "'shown' != context.answer.outcome.value",
        "question.label in ('flat', 'peaked')",
        "answer.outcome is Outcome.SHOWN",
        "verdict.verdict == 'flat'",
        "study.verdict().kind == 'separated'",
        "str(context.best.judged.kind) in TRENDS",
        "answer.verdict.verdict in names.TRENDS",
        "{'rising': 1} and found.topic not in [OF_MTD]",
        "match answer.outcome:\n    case 'shown': pass",
        "match answer.kind, 1:\n    case TRENDS.RISING, _: pass",
    ):
        assert len([*find_branches(ast.parse(line), {"TRENDS", "OF_MTD"})]) == 1, line


def test_other_comparisons_are_no_branches() -> None:
    for line in (
        "answer.topic is None",
        "status.kind == 'running'",
        "values.dtype.kind in 'iuf'",
        "verdict.levels > 1",
        "self.verdict == 'flat'",
        "answer.outcome.is_decided",
        "match shape:\n    case 'flat': pass",
    ):
        assert not [*find_branches(ast.parse(line), {"TRENDS"})], line
    found = set(
        constants_of(ast.parse("A = 'a'\nB: tuple = ('b', 1)\nC = {'c': 1}\nd, E = f(), 1"))
    )
    assert found == {"A", "B", "C"}


def constants_of(tree: ast.Module) -> Iterator[str]:
    """The names of a module that hold a string, or several."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value and holds_text(node.value):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def holds_text(node: ast.AST, constants: Collection[str] = ()) -> bool:
    """Whether an expression is a string, a constant that holds one, or a collection of such."""
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return any(holds_text(part, constants) for part in node.elts)
    if isinstance(node, ast.Dict):
        return any(holds_text(part, constants) for part in (*node.keys, *node.values) if part)
    if isinstance(node, ast.Attribute):
        return node.attr.isupper()
    if isinstance(node, ast.Name):
        return node.id in constants
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_decision(node: ast.AST) -> bool:
    """Whether a node is an attribute that says which question is asked, or what is decided."""
    if not isinstance(node, ast.Attribute):
        return False
    owner = node.value.func if isinstance(node.value, ast.Call) else node.value
    name = getattr(owner, "attr", getattr(owner, "id", ""))
    return node.attr in DECIDED or (node.attr in WORDS and name in JUDGED)


def find_branches(tree: ast.AST, constants: Collection[str]) -> Iterator[str]:
    """The comparisons and matches of what a question is, or has decided, with text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            with_text = any(holds_text(side, constants) for side in sides)
        elif isinstance(node, ast.Match):
            sides = [node.subject]
            patterns = [part for case in node.cases for part in ast.walk(case.pattern)]
            values = [part.value for part in patterns if isinstance(part, ast.MatchValue)]
            with_text = any(holds_text(value, constants) for value in values)
        else:
            continue
        if with_text and any(is_decision(part) for side in sides for part in ast.walk(side)):
            yield f"{node.lineno}: {ast.unparse(sides[0])}"
