"""Tables as text for a paper: Markdown and LaTeX."""

import math
from collections.abc import Mapping

import pandas as pd

from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.markdown import markdown_table
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.questions.best import NAME
from mtdlab.analysis.questions.wording import PERCENT
from mtdlab.analysis.report.cells import describe_covered
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.page import Table
from mtdlab.analysis.report.topics.references import choose_lines
from mtdlab.analysis.statistics.baseline import add_baseline, name_baseline

_SYMBOLS = {"η": "eta", "τ": "tau", "ε": "varepsilon", "α": "alpha", "ρ": "rho", "×": "times"}
_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "{}$&#%_"},
        **{letter: rf"$\{name}$" for letter, name in _SYMBOLS.items()},
        "\\": r"\textbackslash{}",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "–": "--",
        "−": r"$-$",
        "²": r"$^2$",
        "“": "``",
        "”": "''",
        "…": r"\ldots{}",
        "`": r"\textasciigrave{}",
    }
)
_MARKDOWN = str.maketrans({**{mark: f"\\{mark}" for mark in "\\|*`"}, "<": "&lt;"})


def to_markdown(table: Table) -> str:
    """A pipe table, its caption above it; numbers are aligned to the right."""
    rule = ["---:" if column.numeric else "---" for column in table.columns]
    labels = [column.label for column in table.columns]
    head, *rows = ([_escape(cell, _MARKDOWN) for cell in row] for row in (labels, *table.rows))
    caption = _escape(table.caption, _MARKDOWN)
    return f"{caption}\n\n{markdown_table(head, rows, rule)}\n"


def to_latex(table: Table) -> str:
    r"""A `table` environment in the style of booktabs; it needs `\usepackage{booktabs}`."""
    labels = [column.label for column in table.columns]
    head, *rows = ([_escape(cell, _LATEX) for cell in row] for row in (labels, *table.rows))
    caption = _escape(table.caption, _LATEX)
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    frame = pd.DataFrame(rows, columns=head)
    return frame.to_latex(index=False, caption=caption, column_format=columns)


def _escape(text: str, table: Mapping[int, str]) -> str:
    """Text on one line, with LaTeX's special characters escaped."""
    return " ".join(text.split()).translate(table)


TEXT_TABLES = {"md": to_markdown, "tex": to_latex}
"""How a table is written, by the ending of the file's name."""
_MOST_ROWS = 20


def write_results(context: StudyContext) -> str:
    """The scores of a study as papers print them: a `tabular` in the style of booktabs.

    Its rows are scores without training, then configurations and baseline, the best first: means
    with half of their 95 % CI. The best is bold only where it is shown to be better than all others
    that are compared. Empty without a score, and without seeds, over which the means would be.
    """
    best, write = context.best, context.write
    if not len(best.table) or not context.study.has_seeds:
        return ""
    is_separated = not best.basis.explores and best.judged.is_separated
    named = {NAME: f"{name_baseline(context.study)} (baseline)"}
    table = add_baseline(best.ranked.head(_MOST_ROWS), context.against_baseline, **named)
    leading = str(best.ranked[NAME].iloc[0]) if is_separated else None
    untrained = [
        [_escape(name, _LATEX), write.score(score)] for name, score in choose_lines(context).items()
    ]
    names, again = table[NAME].astype("str"), table[NAME].duplicated(keep=False)
    if again.any() and "mtd" in table:
        # a table of runs that lacks the parts of MTD names settings alone
        names = names.mask(again, names + ", MTD " + table["mtd"].map(format_mtd))
    bold = (table[NAME] == leading) & ~table[NAME].duplicated()
    trained = [
        [_escape(name, _LATEX), _state(mean, high - mean, write, is_best=is_best)]
        for name, mean, high, is_best in zip(names, table["mean"], table["high"], bold, strict=True)
    ]
    body = [*untrained, [r"\midrule"], *trained] if untrained else trained
    lines = [" & ".join(cells) + (r" \\" if len(cells) > 1 else "") for cells in body]
    fewest, most = int(table["seeds"].min()), int(table["seeds"].max())
    seeds = (f"{fewest} to " if fewest < most else "") + format_count(most, "seed")
    note = f"% Means of {seeds}, too few for a CI."
    if table["high"].notna().any():
        covered = describe_covered(table)
        note = f"% Means of {seeds}; +- is half of the {PERCENT} CI over seeds{covered}."
    if is_separated:
        note += f" Bold: better than all others ({best.confidence} simultaneous)."
    head = [r"\begin{tabular}{lr}", r"\toprule", rf" & {_escape(context.score_label, _LATEX)} \\"]
    tail = [r"\bottomrule", r"\end{tabular}"]
    return "\n".join([note, *head, r"\midrule", *lines, *tail])


def _state(mean: float, half: float, write: ScoreFormat, *, is_best: bool) -> str:
    score = write.score(mean)
    score = rf"\textbf{{{score}}}" if is_best else score
    return score if math.isnan(half) else rf"{score} $\pm$ {half:.{write.decimals}f}"
