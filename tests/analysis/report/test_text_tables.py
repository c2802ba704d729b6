"""Tables as Markdown and LaTeX."""

import pandas as pd

from mtdlab.analysis import read_run_table
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.page import Column, Table
from mtdlab.analysis.report.text_tables import to_latex, to_markdown, write_results
from tests.analysis.conftest import make_trials

TABLE = Table(
    "Means of η, 95 %.",
    (Column("name_1", numeric=False), Column("score", numeric=True)),
    (("a|b & <c> \\ $x", "1.50"), ("line\n*break*", "–"), ("`x`", "0")),
)


def test_markdown_is_a_pipe_table() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "Means of η, 95 %.",
        "",
        "| name_1 | score |",
        "| --- | ---: |",
        "| a\\|b & &lt;c> \\\\ $x | 1.50 |",
        "| line \\*break\\* | – |",
        "| \\`x\\` | 0 |",
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
        r"line *break* & -- \\",
        r"\textasciigrave{}x\textasciigrave{} & 0 \\",
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]


def test_rows_of_the_results_that_differ_in_mtd_alone_have_it() -> None:
    trials = make_trials(times=(8,), decays=(0.5, 0.75, 0.9))[["mtd", "seed", "score"]]
    both = pd.concat([trials.assign(rate=0.1), trials.assign(rate=0.2, score=trials["score"] - 9)])
    lines = write_results(StudyContext(read_run_table(both.iloc[1:]))).splitlines()
    named = [line.partition(" & ")[0] for line in lines if line.startswith("rate")]
    assert sorted(named) == [f"rate 0.{at}, MTD {mtd}" for at in (1, 2) for mtd in (10, 12, 18)]
    assert lines[0].startswith("% Means of 2 to 3 seeds")
