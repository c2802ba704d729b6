"""Tables of a page as Markdown and as LaTeX, with the numbers as the page rounds them."""

from analysis.report.page import Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "–": "--",
    "−": r"$-$",
    "η": r"$\eta$",
    "τ": r"$\tau$",
    "ε": r"$\varepsilon$",
    "α": r"$\alpha$",
    "²": r"$^2$",
    "“": "``",
    "”": "''",
    "…": r"\ldots{}",
}


def to_markdown(table: Table) -> str:
    """A pipe table, its caption above it; numbers are aligned to the right."""
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    rows = [[column.label for column in table.columns], rules, *table.rows]
    lines = [f"| {' | '.join(_escape_markdown(cell) for cell in row)} |" for row in rows]
    return "\n".join([table.caption, "", *lines, ""])


def to_latex(table: Table) -> str:
    r"""A `table` environment in the style of booktabs; it needs `\usepackage{booktabs}`."""
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    head = _latex_row([column.label for column in table.columns])
    return "\n".join(
        [
            r"\begin{table}",
            rf"\caption{{{_escape_latex(table.caption)}}}",
            rf"\begin{{tabular}}{{{columns}}}",
            r"\toprule",
            head,
            r"\midrule",
            *(_latex_row(row) for row in table.rows),
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_row(cells: tuple[str, ...] | list[str]) -> str:
    return f"{' & '.join(_escape_latex(cell) for cell in cells)} \\\\"


def _escape_latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in " ".join(text.split()))


def _escape_markdown(text: str) -> str:
    return " ".join(text.split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
