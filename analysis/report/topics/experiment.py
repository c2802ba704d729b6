"""Topics: the published experiments that a study varied, one for each entry of the catalogue."""

from collections.abc import Iterable, Iterator
from functools import partial

import numpy as np
import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.published import SCORE, SOURCE
from mtdlab.analysis.data.runs import choose_evenly
from mtdlab.analysis.data.settings import format_setting
from mtdlab.analysis.experiments import (
    EXPERIMENTS,
    Comparison,
    Experiment,
    compute_experiment_tasks,
)
from mtdlab.analysis.inference.pairing import summarise_deviations
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.wording import PERCENT, clean
from mtdlab.analysis.report.cells import describe_covered, format_count, list_values, make_table
from mtdlab.analysis.report.topics.base import Contents, Draw, Drawing, StudyContext, Table, Topic


def name_rows(comparison: Comparison, table: pd.DataFrame) -> list[str]:
    """The rows of a table with the columns `by`, as text."""
    rows = table[list(comparison.experiment.by)].itertuples(index=False)
    return [clean(comparison.experiment.label(*row)) for row in rows]


def _listed(name: str, values: Iterable[object]) -> str:
    return f"{clean(name)} ({list_values(name, values)})"


def _names_of(comparison: Comparison) -> list[str]:
    return [comparison.labels.get(name, name) for name in comparison.experiment.by]


def _axis(comparison: Comparison) -> str:
    return " / ".join(_names_of(comparison))


def describe_comparison(comparison: Comparison) -> tuple[str, ...]:
    """The paragraphs above an experiment's table; empty ones are left out."""
    experiment, table = comparison.experiment, comparison.table
    texts = [
        describe_spread(comparison) if comparison.balanced else "",
        describe_conditions(comparison),
    ]
    known = int(table["published"].notna().sum())
    if experiment.match and "method" not in comparison.differs and known < len(table):
        texts.append(f"{known} of the {len(table)} values are published.")
    if "fgsm_changed" in table:
        idle = table[(table["fgsm_epsilon"] > 0) & (table["fgsm_changed"] == 0)]
        texts += (
            f"An ε of {format_setting(value)} changed no entry of the word embeddings: its trials "
            "are trials without FGSM."
            for value in idle["fgsm_epsilon"]
        )
    return tuple(filter(None, [*texts, _describe_others(comparison)]))


def describe_spread(comparison: Comparison) -> str:
    """The highest and the lowest row, over the same seeds."""
    names, paired = name_rows(comparison, comparison.table), comparison.paired
    means = paired.mean()
    of = f"values of {_axis(comparison)}"
    if len(means) < 2:
        return f"No two {of} can be compared yet: that takes two run with the same seeds."
    left = len(names) - len(means)
    if left:
        of += f" ({left:,} excluded for lack of seeds)"
    if len({f"{mean:.2f}" for mean in means}) == 1:
        return f"All {of} score the same ({means.iloc[0]:.2f})."
    rows = pd.Series(names).loc[paired.columns]
    highest, lowest = rows.iloc[int(means.argmax())], rows.iloc[int(means.argmin())]
    return (
        f"Among the {of}, {highest} has the highest mean ({means.max():.2f}) and {lowest} the "
        f"lowest ({means.min():.2f})."
    )


def describe_conditions(comparison: Comparison) -> str:
    """A sentence on how these runs differ from published ones, where there are any."""
    differs = [_listed(name, values) for name, values in comparison.differs.items()]
    if not differs or comparison.table["published"].isna().all():
        return ""
    return f"The paper's trials had {comparison.experiment.fixed}, these have {', '.join(differs)}."


def _describe_others(comparison: Comparison) -> str:
    """Sentences on the other settings: over which means are taken, and which values rows have."""
    texts = [_listed(name, comparison.runs[name].drop_duplicates()) for name in comparison.others]
    text = f"Means are over {', '.join(texts)}." if texts else ""
    if comparison.left_out:
        text += (
            f" {format_count(comparison.left_out, 'trial')} left out: not every row was run with "
            "their other settings and seed."
        )
    if comparison.kept:
        kept = (_listed(name, [value]) for name, value in comparison.kept.items())
        text += f" All rows have {', '.join(kept)}; other values were left out."
    names = name_rows(comparison, comparison.table)
    for name, of_rows in comparison.chosen.items():
        listed = (
            f"{list_values(name, values)} in {row}"
            for row, values in zip(names, of_rows, strict=True)
        )
        text += (
            f" Rows differ in {clean(name)}, which was chosen for each, so that a difference may "
            f"come from it: {'; '.join(listed)}."
        )
    return text.strip()


def warn_mixed(comparison: Comparison) -> Iterator[str]:
    if not comparison.balanced:
        others = ", ".join(clean(name) for name in comparison.others)
        yield (
            f"No seed ran any of the other settings ({others}) at every row, so the "
            f"effects of {_axis(comparison)} and of the others cannot be separated here."
        )
    if is_diagonal(comparison):
        first, second = _names_of(comparison)
        yield (
            f"Each {second} was run with one {first} only, so their effects cannot be "
            "separated here."
        )


def is_diagonal(comparison: Comparison) -> bool:
    """Whether both settings of a grid vary, but never one while the other stays."""
    by = comparison.experiment.by
    if len(by) < 2:
        return False
    seconds = comparison.table.groupby(by[1])[by[0]].nunique()
    return len(seconds) > 1 and comparison.table[by[0]].nunique() > 1 and bool((seconds == 1).all())


_MOST_ROWS = 24
_WIDE = 8
_SHADES = "darker is higher; cells 5 points or more below the highest are equally light."
_CAPTIONS = {
    "line": "A point per trial and the mean over seeds, with its {} over seeds{}.",
    "rows": "Lines are {} over seeds{}.",
    "grid": (
        "First: the score minus its seed's mean over all configurations, averaged over seeds; bars "
        f"are {{}}s over seeds, for these items. Second: mean scores; {_SHADES}"
    ),
}


def _grid(comparison: Comparison, table: pd.DataFrame, value: str) -> Draw:
    labels, named = _names_of(comparison), comparison.experiment.label
    by = comparison.experiment.by
    return lambda ax: figures.draw_grid(table, ax, by=by, value=value, labels=labels, name=named)


def _deviations(comparison: Comparison) -> Draw:
    inner, outer = comparison.experiment.by
    cells = summarise_deviations(comparison.runs, outer, inner)
    cells["second"] = cells["second"].map(comparison.experiment.label)
    second, first = _names_of(comparison)
    return lambda ax: figures.draw_interaction(cells, ax, first=first, second=second)


def _placed(comparison: Comparison, table: pd.DataFrame) -> pd.DataFrame:
    """The rows with their place on the horizontal axis: by value or logarithm, evenly for texts."""
    experiment, first = comparison.experiment, table[comparison.experiment.by[0]]
    even = np.arange(len(table), dtype=np.float64)
    numeric = pd.api.types.is_numeric_dtype(first) and not pd.api.types.is_bool_dtype(first)
    if not numeric or experiment.value_names or len(experiment.by) > 1 or first.nunique() < 2:
        return table.assign(place=even)
    values = first.to_numpy(dtype=np.float64)
    if experiment.by[0] == "ema_decay" and values.max() < 1:
        values = -np.log(1 - values)
    elif values.min() > 0 and values.max() >= _WIDE * values.min():
        values = np.log(values)
    return table.assign(place=even[-1] * (values - values.min()) / np.ptp(values))


def _curve(comparison: Comparison, score: str) -> Draw:
    """The figure of at most 24 rows, evenly chosen, over numbers or below each other."""
    table, by = choose_evenly(comparison.table, _MOST_ROWS), list(comparison.experiment.by)
    names, label = name_rows(comparison, table), _names_of(comparison)[0]
    if comparison.experiment.figure == "rows":
        stated = describe_means(table, comparison.runs, by=by)
        return lambda ax: figures.draw_rows(stated, ax, names=names, label=label, name=score)
    placed = _placed(comparison, table)
    runs = comparison.runs.merge(placed[[*by, "place"]], on=by)
    return lambda ax: figures.draw_line(placed, ax, names=names, runs=runs, label=label, name=score)


def _published(comparison: Comparison) -> Draw:
    experiment = comparison.experiment
    table = experiment.published()
    if experiment.figure == "grid":
        return _grid(comparison, table, "published")
    if experiment.figure == "line":
        table = _placed(comparison, table.sort_values(experiment.by[0]))
    names, label = name_rows(comparison, table), _names_of(comparison)[0]
    return lambda ax: figures.draw_published(table, ax, names=names, label=label, name=SCORE)


def build(context: StudyContext, experiment: Experiment) -> Contents | None:
    """The comparison; None where the study did not vary what the experiment is about.

    There is no figure of a grid without a row or column to compare.
    """
    # a score in another unit is not held against the published ones
    if (comparison := context.comparisons.get(experiment.name)) is None or not context.write.unit:
        return None
    tasks = compute_experiment_tasks(comparison, context.study.scores)
    tables, drawing = [*_show_tasks(comparison, tasks)], None
    text: tuple[str, ...] = ()
    # another section shows the levels of MTD
    if not is_curve(comparison, context):
        text = describe_comparison(comparison)
        tables.insert(0, _show(comparison))
        if not is_diagonal(comparison):
            drawing = _draw(comparison, context.score_label, " ".join(text[:2]))
    return Contents(
        csv={experiment.name: comparison.table, f"{experiment.name}_tasks": tasks},
        figures={experiment.name: drawing},
        text=text,
        warnings=warn_mixed(comparison),
        tables=tables,
    )


def is_curve(comparison: Comparison, context: StudyContext) -> bool:
    """Whether a comparison's rows are the levels of MTD, which another section shows."""
    levels = comparison.table["n"].tolist() == context.curve["n"].tolist()
    same = levels and np.allclose(comparison.table["mean"], context.curve["mean"])
    return same and set(comparison.experiment.by) <= set(PARTS)


def _draw(comparison: Comparison, score: str, alt: str) -> Drawing:
    """The experiment as the paper draws it."""
    experiment = comparison.experiment
    kind = experiment.figure
    caption = _CAPTIONS[kind].format(f"{PERCENT} CI", describe_covered(comparison.table))
    if kind == "grid":
        panels = [
            ("this study: within seeds", _deviations(comparison)),
            ("this study: means", _grid(comparison, comparison.table, "mean")),
        ]
    else:
        panels = [("this study", _curve(comparison, score))]
        if len(comparison.table) > _MOST_ROWS:
            caption += f" Drawn: {_MOST_ROWS} of {len(comparison.table)} values."
    if "method" not in comparison.differs:
        panels.append((SOURCE, _published(comparison)))
        caption += f" Last: published, {_source(experiment)}, compare its shape, not its level."
    else:
        caption += " There are no published values for this method."
    rows = max(min(len(comparison.table), _MOST_ROWS), len(experiment.published()))
    title = experiment.title.lower().replace("ema", "EMA").replace("fgsm", "FGSM")
    return Drawing(
        f"Score by {title}",
        panels,
        height=1.3 + 0.34 * rows if kind == "rows" else 3.4,
        rigid=kind == "rows",
        caption=caption,
        alt=alt,
    )


def _source(experiment: Experiment) -> str:
    return experiment.source + (f" ({experiment.fixed})" if experiment.fixed else "")


def _show(comparison: Comparison) -> Table:
    """The means with the published values; values that have a name by it, shares in percent."""
    experiment, first = comparison.experiment, comparison.experiment.by[0]
    shown = comparison.table.drop(columns="items")
    if experiment.value_names:
        shown[first] = shown[first].map(experiment.label).astype("str")
    if experiment.measured:
        shown[experiment.measured] = 100 * shown.get(experiment.measured, pd.Series(dtype=float))
    published = f"published: {_source(experiment)}, on other data and another encoder."
    if "method" in comparison.differs:
        shown = shown.drop(columns="published", errors="ignore")
        published = "no published values for this method."
    caption = (
        f"Mean score with its interval over seeds{describe_covered(comparison.table)}; {published}"
    )
    return make_table(shown, caption=caption, csv=experiment.name, labels=comparison.labels)


def _show_tasks(comparison: Comparison, tasks: pd.DataFrame) -> Iterator[Table]:
    """Means by task, each value's row followed by the published one."""
    experiment = comparison.experiment
    by, names = list(experiment.by), list(tasks.get("task", pd.Series()).unique())
    if not names:
        return
    parts = [
        tasks.pivot(index=by, columns="task", values=value)[names].assign(source=source)
        for value, source in (("mean", "this study"), ("published", "published"))
    ]
    wide = pd.concat(parts).sort_index(kind="stable").reset_index()
    yield make_table(
        wide[[*by, "source", *names]],
        caption="The same by task, Spearman x 100; published: BERT-base, Wikipedia. The CSV has "
        "trials, seeds and intervals over seeds, for these items.",
        csv=f"{experiment.name}_tasks",
        labels=comparison.labels,
    )


EXPERIMENT_TOPICS = tuple(
    Topic[StudyContext](
        experiment.name.replace("_", "-"),
        experiment.title,
        partial(build, experiment=experiment),
        csv=[experiment.name, f"{experiment.name}_tasks"],
    )
    for experiment in EXPERIMENTS
)
