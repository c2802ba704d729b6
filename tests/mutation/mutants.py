"""Mutants of a group of modules: small changes of the code that a test should notice.

Cosmic-ray makes the changes. A mutant is named by the statement before and after the change, not
by its line: the name stays when code is moved, formatted or split into other files, so a sample
drawn by the hash of the names stays too, and two versions of the project can be compared.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path

from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator

# One replacement for each kind of operator: all pairs would make a sample of little else.
OPERATORS = [
    *("AddNot", "ExceptionReplacer", "NumberReplacer", "RemoveDecorator", "ZeroIterationForLoop"),
    *("ReplaceAndWithOr", "ReplaceOrWithAnd", "ReplaceTrueWithFalse", "ReplaceFalseWithTrue"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak"),
    *(f"ReplaceUnaryOperator_{pair}" for pair in ("Delete_Not", "Delete_Invert", "USub_UAdd")),
    *(
        f"ReplaceBinaryOperator_{pair}"
        for pair in ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Mul", "Mod_Mul")
    ),
    *(f"ReplaceBinaryOperator_{pair}" for pair in ("Pow_Mul", "BitAnd_BitOr", "BitOr_BitAnd")),
    *(
        f"ReplaceComparisonOperator_{pair}"
        for pair in ("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")
    ),
    *(f"ReplaceComparisonOperator_{pair}" for pair in ("Is_IsNot", "IsNot_Is")),
]


@dataclass(frozen=True)
class Mutant:
    """A changed module. `code` is its whole text; `nth` tells equal changes in a group apart."""

    group: str
    module: str
    line: int
    before: str
    after: str
    nth: int
    code: str

    @property
    def key(self) -> tuple[str, str, str, int]:
        """What identifies it in any version of the project."""
        return self.group, self.before, self.after, self.nth


class _Normal(ast.NodeTransformer):
    """Removes what a change cannot alter or what is only worded: strings and annotations."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        return ast.Constant("") if isinstance(node.value, str) else node

    def visit_JoinedStr(self, _node: ast.JoinedStr) -> ast.Constant:
        return ast.Constant("")

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AnnAssign:
        node.annotation = ast.Name("T")
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        node.returns = None
        return self.generic_visit(node)  # type: ignore[return-value]

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.annotation = None
        return node


def _statements(code: str) -> list[str]:
    """One line for each statement, whatever the formatting."""
    tree = ast.fix_missing_locations(_Normal().visit(ast.parse(code)))
    return [line.strip() for line in ast.unparse(tree).splitlines()]


def _changed(before: Sequence[str], code: str) -> tuple[str, str] | None:
    """The statements that differ; None for a change of an annotation, or one that is no Python."""
    try:
        after = _statements(code)
    except SyntaxError:  # `not x := y`
        return None
    pairs = enumerate(zip(before, after, strict=False))
    first = next((at for at, pair in pairs if pair[0] != pair[1]), None)
    if first is None:
        return None
    statement = after[first] if len(after) == len(before) else ""
    # `not not x` is also made by removing the one `not`; `*` is no product among parameters;
    # a dataclass that is not frozen behaves as before
    product = "/, " in statement and statement.startswith("def ")
    if product or "not not " in statement or "frozen=" in statement:
        return None
    return before[first], statement


def _line(before: str, after: str) -> int:
    """The number of the first line that differs."""
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    return next(number for number, pair in enumerate(pairs, 1) if pair[0] != pair[1])


def _mutants_of(
    group: str, root: Path, module: str, seen: Counter[tuple[str, str]]
) -> list[Mutant]:
    code = (root / module).read_text(encoding="utf-8")
    statements = _statements(code)
    found = []
    for name in OPERATORS:
        operator = get_operator(f"core/{name}")()
        occurrence = 0
        while (changed := mutate_code(code, operator, occurrence)) is not None:
            occurrence += 1
            if pair := _changed(statements, changed):
                found.append((_line(code, changed), *pair, changed))
    mutants = []
    for line, before, after, changed in sorted(found):
        seen[before, after] += 1
        nth = seen[before, after]
        mutants.append(Mutant(group, module, line, before, after, nth, changed))
    return mutants


def find(group: str, root: Path, modules: Sequence[str]) -> list[Mutant]:
    """Every mutant of a group's modules."""
    seen: Counter[tuple[str, str]] = Counter()
    return [mutant for module in modules for mutant in _mutants_of(group, root, module, seen)]


def sample(mutants: Sequence[Mutant], size: int) -> list[Mutant]:
    """`size` mutants, as many from each group as it has, in an order that their keys decide."""
    ordered = sorted(mutants, key=lambda one: hashlib.sha256(repr(one.key).encode()).digest())
    rank: Counter[str] = Counter()
    ranked = []
    for mutant in ordered:
        ranked.append((rank[mutant.group], mutant))
        rank[mutant.group] += 1
    return [mutant for _, mutant in sorted(ranked, key=lambda pair: pair[0])[:size]]


def match(
    keys: Sequence[tuple[str, str, str, int]], mutants: Sequence[Mutant]
) -> Iterator[Mutant | None]:
    """For each key of another version the mutant with the same or the most similar change."""
    by_key = {mutant.key: mutant for mutant in mutants}
    left = [mutant for mutant in mutants if mutant.key not in set(keys)]
    for key in keys:
        if key in by_key:
            yield by_key[key]
            continue
        text = f"{key[1]} -> {key[2]}"
        ratios = [
            (SequenceMatcher(None, text, f"{one.before} -> {one.after}").ratio(), at)
            for at, one in enumerate(left)
            if one.group == key[0]
        ]
        ratio, at = max(ratios, default=(0.0, 0))
        yield left.pop(at) if ratio >= 0.85 else None
