"""The sections of the papers' experiments that a study varied."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from analysis.experiments import Comparison
from analysis.experiments.collapse import COLLAPSE_COSINE
from analysis.report.cells import make_table
from analysis.report.curve_sections import thin_rows
from analysis.report.experiment_pictures import picture_collapse, picture_experiment
from analysis.report.experiment_words import describe_comparison, is_diagonal, warn_mixed
from analysis.report.page import Section, Table
from analysis.report.results import Results
from analysis.report.wording import count

_WATCH = (
    "A run counts as collapsed from the first evaluation from which on, to its end, each "
    "evaluation shows one of these: the score is missing because every cosine is the same; the "
    "score lies under half of the highest until then, if that is above 0 (the untrained encoder's "
    "counts where the study's metric is a correlation too); or the mean cosine of random pairs "
    f"is above {COLLAPSE_COSINE:g}, so that all vectors coincide and a score orders rounding "
    "errors. A run that failed because it had collapsed counts, without a step. Runs that were "
    "pruned or failed otherwise are not watched."
)


def _show(comparison: Comparison, table: pd.DataFrame) -> pd.DataFrame:
    """The table as it is read: values in words where they have some, shares in percent."""
    experiment, first = comparison.experiment, comparison.experiment.by[0]
    shown = table.copy()
    if experiment.words:
        shown[first] = pd.Series(
            [experiment.label(value) for value in table[first]], index=table.index, dtype="str"
        )
    if experiment.measured:
        shown[experiment.measured] = 100 * shown.get(experiment.measured, pd.Series(dtype=float))
    return shown


def _table(comparison: Comparison) -> Table:
    experiment = comparison.experiment
    rows, remark = thin_rows(_show(comparison, comparison.table), "rows")
    common = f" ({experiment.fixed})" if experiment.fixed else ""
    published = f"published: {experiment.source}{common}, on other data and another encoder."
    if "method" in comparison.differs:
        published = "nothing of the kind is published for this method."
    return make_table(
        rows,
        caption=f"Mean score with its interval over seeds; {published}{remark}",
        csv=experiment.name,
    )


def _table_tasks(comparison: Comparison, tasks: pd.DataFrame) -> tuple[Table, ...]:
    """Means by task, each value's row followed by the published one."""
    if not len(tasks):
        return ()
    by = list(comparison.experiment.by)
    names = list(tasks["task"].unique())
    parts = [
        tasks.pivot(index=by, columns="task", values=value)[names].assign(source=source)
        for value, source in (("mean", "this study"), ("published", "published"))
    ]
    wide = pd.concat(parts).sort_index(kind="stable").reset_index()
    caption = (
        "The same by task, Spearman x 100; published: BERT-base, Wikipedia. The CSV has runs, "
        "seeds and intervals."
    )
    csv = f"{comparison.experiment.name}_tasks"
    return (make_table(wide[[*by, "source", *names]], caption=caption, csv=csv),)


def _section(results: Results, comparison: Comparison) -> Section:
    experiment = comparison.experiment
    # Without a row or a column to compare, a grid is nothing but its table.
    drawn = () if is_diagonal(comparison) else (picture_experiment(comparison, results.note),)
    tasks = results.experiment_tasks[experiment.name]
    return Section(
        experiment.anchor,
        experiment.title,
        describe_comparison(comparison),
        warnings=warn_mixed(comparison),
        pictures=drawn,
        tables=(_table(comparison), *_table_tasks(comparison, tasks)),
    )


def _name_structure(table: pd.DataFrame) -> pd.Series:
    """η and the predictor of each row, in words."""
    names = [
        f"η {decay:g}, " + (count(int(layers), "prediction layer") if layers else "no predictor")
        for decay, layers in zip(table["ema_decay"], table["prediction_layers"], strict=True)
    ]
    return pd.Series(names, index=table.index, dtype="str")


def describe_watch(watch: pd.DataFrame) -> Iterator[str]:
    """A sentence for each structure of `compute_collapse_watch`."""
    columns = ["n", "collapsed", "failed", "pruned", "first", "last"]
    numbers = watch[columns].to_numpy(dtype=np.float64)
    for name, row in zip(_name_structure(watch), numbers, strict=True):
        n, fallen, failed, pruned, first, last = row
        seen = f"collapse seen in {fallen:.0f}" if fallen else "no collapse seen"
        text = f"{name}: {seen} {'of' if fallen else 'in'} {count(int(n), 'run')}"
        if np.isfinite(first):
            text += f", the first at step {first:,.0f}"
        if first < last:
            text += f", the last at step {last:,.0f}"
        others = ((failed, "failed"), (pruned, "pruned"))
        ends = [f"{runs:.0f} {how}" for runs, how in others if runs]
        yield f"{text}; {', '.join(ends)}, not watched." if ends else f"{text}."


def section_collapse(results: Results) -> Section | None:
    """The score over steps of symmetric structures beside others, where a study has them."""
    if not len(results.collapse_watch):
        return None
    said = tuple(describe_watch(results.collapse_watch))
    curve = results.collapse.assign(structure=_name_structure(results.collapse))
    pictures = (picture_collapse(results, curve, " ".join(said)),) if len(curve) else ()
    table = make_table(
        results.collapse_watch.rename(columns={"first": "first step", "last": "last step"}),
        caption="What the collapse watch saw. " + _WATCH,
        csv="collapse_watch",
    )
    return Section("collapse", "Collapse", said, pictures=pictures, tables=(table,))


def build_experiments(results: Results) -> tuple[Section, ...]:
    """A section for each experiment that the study varied, in the order of the paper's tables."""
    collapse = section_collapse(results)
    sections = [_section(results, comparison) for comparison in results.experiments]
    return (*sections, collapse) if collapse else tuple(sections)
