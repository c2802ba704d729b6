"""Tests hold on every machine: they compare no computed floats exactly and assert no duration.

Statistics differ in their last bits between machines; durations are benchmarks. A wait that ends
at a deadline (`clock < deadline`) is no duration, a difference of two clocks is one.
"""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
STATISTICS = {"mean", "median", "std", "var", "sem", "low", "high", "slope", "p_value", "quantile"}
CLOCKS = {"perf_counter", "process_time", "monotonic", "time", "times", "thread_time"}


def test_no_test_depends_on_last_bits_or_on_speed() -> None:
    files = [path for path in TESTS.rglob("*.py") if path.parent.name != "benchmarks"]
    assert len(files) > 200
    assert [f"{path}:{found}" for path in files for found in violations(path.read_text())] == []


@pytest.mark.parametrize(
    "line",
    [
        "assert (spread.above, spread.below, spread.size.mean) == (2, 0, 3)",
        'assert table["mean"].tolist() == [67, 67]',
        "assert values.std() != 0.5",
        "assert found.p_value == alone.p_value",
        "assert time.process_time() - started < 1",
        "started = time.perf_counter() - 2\nassert 5 > started",
        "seconds.append(processor() - before)\nassert min(seconds) < 0.5"
        "\ndef processor():\n    return sum(os.times())",
    ],
)
def test_what_depends_on_them_is_found(line: str) -> None:
    assert len(list(violations(line))) == 1


@pytest.mark.parametrize(
    "line",
    [
        "assert found.mean == pytest.approx(3)",
        'assert (row["n"], row["verdict"], model.pooling) == (2, "peaked", "mean")',
        "assert (one.slope, one.n) == (None, 2)",
        "assert len(table.low) == 2",
        "deadline = time.monotonic() + 30\nassert time.monotonic() < deadline",
        "assert end - begin < 5",
    ],
)
def test_other_comparisons_are_not_found(line: str) -> None:
    assert list(violations(line)) == []


def violations(source: str) -> Iterator[str]:
    """The lines of a file that compare statistics exactly, or assert durations."""
    tree = ast.parse(source)
    clocks = clocks_of(tree)
    for statement in ast.walk(tree):
        if not isinstance(statement, ast.Assert):
            continue
        for node in ast.walk(statement.test):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            if any(isinstance(kind, ast.Eq | ast.NotEq) for kind in node.ops):
                if any(is_exact(*pair) for pair in pairs(sides)):
                    yield f"{node.lineno}: compare a statistic with pytest.approx"
            elif any(is_duration(side, clocks) for side in sides):
                yield f"{node.lineno}: measure a duration in tests/benchmarks"


def pairs(sides: Sequence[ast.expr]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Neighbouring sides; of two tuples, their elements."""
    for left, right in pairwise(sides):
        if isinstance(left, ast.Tuple) and isinstance(right, ast.Tuple):
            yield from zip(left.elts, right.elts, strict=True)
        else:
            yield left, right


def is_exact(left: ast.expr, right: ast.expr) -> bool:
    """Whether a statistic is compared with a number that is written out, or with another one."""
    if any(name_of(part) == "approx" for side in (left, right) for part in ast.walk(side)):
        return False
    statistics = is_statistic(left) + is_statistic(right)
    return statistics == 2 or (statistics == 1 and (has_number(left) or has_number(right)))


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what it is computed from, but not through a length or a truth value."""
    if isinstance(node, ast.Compare):
        return
    if isinstance(node, ast.Call) and name_of(node.func) in ("len", "isna", "notna"):
        return
    yield node
    for child in ast.iter_child_nodes(node):
        yield from parts(child)


def name_of(node: ast.AST) -> str:
    """The last word of a name, an attribute or a call's function."""
    return getattr(node, "attr", getattr(node, "id", ""))


def is_statistic(node: ast.AST) -> bool:
    """Whether an attribute, a method or a column of a value has the name of a statistic."""
    for part in parts(node):
        if isinstance(part, ast.Attribute) and part.attr in STATISTICS:
            return True
        if isinstance(part, ast.Subscript):
            words = (key.value for key in ast.walk(part.slice) if isinstance(key, ast.Constant))
            if any(word in STATISTICS for word in words):
                return True
    return False


def has_number(node: ast.AST) -> bool:
    """Whether a value contains a number that is written out."""
    return any(
        isinstance(part, ast.Constant) and type(part.value) in (int, float) for part in parts(node)
    )


@dataclass
class Clocks:
    """Names and functions of a file: readings of a clock, and differences of readings."""

    readings: set[str]
    differences: set[str]


def clocks_of(tree: ast.Module) -> Clocks:
    """What the names and functions of a file are computed from."""
    clocks = Clocks(set(CLOCKS), set())
    called = {name_of(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    if called.isdisjoint(CLOCKS):
        return clocks
    # twice: a function may stand below its first caller
    for name, value in [*bindings(tree)] * 2:
        if is_duration(value, clocks):
            clocks.differences.add(name)
        elif any(name_of(part) in clocks.readings for part in ast.walk(value)):
            clocks.readings.add(name)
    return clocks


def bindings(tree: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Every name with a value that it is given, that is appended to it or that it returns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((target.id, node.value) for target in targets if hasattr(target, "id"))
        elif isinstance(node, ast.Call) and name_of(node.func) == "append":
            yield name_of(node.func.value), node.args[0]
        elif isinstance(node, ast.FunctionDef):
            returned = (found for found in ast.walk(node) if isinstance(found, ast.Return))
            yield from ((node.name, found.value) for found in returned if found.value)


def is_duration(value: ast.AST, clocks: Clocks) -> bool:
    """Whether a value is computed from a difference of a clock's readings."""
    for part in ast.walk(value):
        if name_of(part) in clocks.differences:
            return True
        is_difference = isinstance(part, ast.BinOp) and isinstance(part.op, ast.Sub)
        if is_difference and any(name_of(inner) in clocks.readings for inner in ast.walk(part)):
            return True
    return False
