"""Tables as Markdown and LaTeX."""

from mtdlab.analysis.report.page import Column, Table
from mtdlab.analysis.report.text_tables import to_latex, to_markdown

TABLE = Table(
    "Means of η, 95 %.",
    (Column("name_1", numeric=False), Column("score", numeric=True)),
    (("a|b & <c> \\ $x", "1.50"), ("line\nbreak", "–")),
)


def test_markdown_is_a_pipe_table() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "Means of η, 95 %.",
        "",
        "| name_1 | score |",
        "| --- | ---: |",
        "| a\\|b & &lt;c> \\\\ $x | 1.50 |",
        "| line break | – |",
    ]


def test_latex_is_escaped() -> None:
    assert to_latex(TABLE).splitlines() == [
        r"\begin{table}",
        r"\caption{Means of $\eta$, 95 \%.}",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"name\_1 & score \\",
        r"\midrule",
        r"a\textbar{}b \& \textless{}c\textgreater{} \textbackslash{} \$x & 1.50 \\",
        r"line break & -- \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
