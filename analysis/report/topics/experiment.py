"""Topics: the published experiments that a study varied, one for each entry of the catalogue."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis import figures
from analysis.data.points import describe_means
from analysis.data.published import SCORE, SOURCE
from analysis.data.runs import choose_evenly
from analysis.data.settings import format_setting, format_value
from analysis.experiments.catalogue import EXPERIMENTS, Experiment
from analysis.experiments.compare import (
    PUBLISHED_ERROR,
    Comparison,
    Gap,
    compare,
    compute_experiment_tasks,
    find_top,
)
from analysis.inference.intervals import Estimate
from analysis.inference.pairing import compute_deviations
from analysis.measures.trace import PARTS
from analysis.report.cells import PERCENT, clean, count, make_table, thin_rows
from analysis.report.context import StudyContext
from analysis.report.drawing import Draw, Drawing
from analysis.report.page import Table
from analysis.report.topics.base import Topic

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_MOST_VALUES = 8


def name_rows(comparison: Comparison, table: pd.DataFrame) -> list[str]:
    """The rows of a table with the columns `by`, as text."""
    rows = table[list(comparison.experiment.by)].itertuples(index=False)
    return [clean(comparison.experiment.label(*row)) for row in rows]


def _listed(name: str, values: Iterable[object]) -> str:
    """A setting with its values, many of them as their number."""
    texts = [clean(format_value(name, value)) for value in sorted(values, key=_order)]
    many = len(texts) > _MOST_VALUES
    return f"{clean(name)} ({f'{len(texts):,} values' if many else ', '.join(texts)})"


def _axis(comparison: Comparison) -> str:
    return " / ".join(comparison.labels.get(name, name) for name in comparison.experiment.by)


def _interval(estimate: Estimate) -> str:
    return f"{PERCENT} CI {estimate.low:.2f} to {estimate.high:.2f}"


def _clear(gap: Gap) -> bool:
    return gap.size.low > 0


def _equal(means: pd.Series) -> bool:
    """Whether means are the same as they are printed."""
    return len({f"{mean:.2f}" for mean in means}) == 1


def describe_spread(comparison: Comparison) -> str:
    """The best and the lowest row, and whether they differ significantly over seeds."""
    names, means = name_rows(comparison, comparison.table), comparison.paired.mean()
    of = f"Of {_axis(comparison)}"
    if len(means) < 2:
        return f"{of}, no two can be compared yet: that takes two run with the same seeds."
    left = len(names) - len(means)
    if left:
        of += f", {left:,} excluded for lack of seeds,"
    if _equal(means):
        return f"{of}, all score the same ({means.iloc[0]:.2f})."
    best, worst = find_top(means), find_top(-means)
    text = (
        f"{of} {names[best]} is best ({means[best]:.2f}) and {names[worst]} lowest "
        f"({means[worst]:.2f})"
    )
    gap = comparison.spread
    if gap is None:
        return f"{text}; not tested, which takes two seeds at both."
    size = f"{gap.size.mean:.2f} points ({_interval(gap.size)}, adjusted for all pairs)"
    significant = "statistically significant" if _clear(gap) else "not significant"
    return f"{text}; {significant}: paired difference {size}."


def describe_paper(comparison: Comparison) -> str:
    """Whether the best value and the direction are the paper's; nothing without its values."""
    names, paired = name_rows(comparison, comparison.table), comparison.paired
    known = comparison.table["published"][paired.columns].dropna()
    means = paired.mean()[known.index]
    if comparison.differs:
        return _describe_differing(comparison)
    if len(known) < 2 or _equal(means):
        return ""
    here, there = find_top(means), find_top(known)
    gap = comparison.paper_gap
    shared = f"Of the {len(known)} rows that the paper has too"
    if here == there:
        text = f"{shared}, {names[there]} has the highest mean both there and here."
    else:
        text = f"{shared}, {names[there]} is best there and {names[here]} here; "
        doubt = f" ({_interval(gap.size)})" if gap is not None else ""
        if gap is not None and _clear(gap):
            text += f"here the first is lower by {gap.size.mean:.2f} points{doubt}."
        else:
            text += f"the difference is not significant{doubt}."
    return f"{text} {_describe_slope(comparison.slope)}".strip()


def _describe_differing(comparison: Comparison) -> str:
    """How the runs differ from the published ones; nothing without published values."""
    if not comparison.table["published"].notna().any():
        return ""
    here = [_listed(name, values) for name, values in comparison.differs.items()]
    return (
        f"The published trials had {comparison.experiment.fixed}, these {', '.join(here)}: their "
        "order is not compared with the paper's."
    )


def _describe_slope(slope: Estimate | None) -> str:
    if slope is None or not math.isfinite(slope.low):
        return ""
    per = (
        f"{slope.mean:+.2f} points here per point there, {_interval(slope)}, published scores "
        f"taken to have a standard error of {PUBLISHED_ERROR:g} points"
    )
    if slope.low > 0:
        return f"Rows higher in the paper are higher here ({per})."
    if slope.high < 0:
        return f"The direction is opposite: rows higher in the paper are lower here ({per})."
    return f"Whether the rows rank as in the paper is not settled ({per})."


def describe_others(comparison: Comparison) -> str:
    """What else varied between these runs, over which the means are taken."""
    texts = [_listed(name, comparison.runs[name].drop_duplicates()) for name in comparison.others]
    text = f"Means are over {', '.join(texts)}." if texts else ""
    if comparison.left_out:
        text += (
            f" {count(comparison.left_out, 'trial')} excluded, whose seed did not run their "
            "other settings at every row."
        )
    return text.strip()


def _order(value: object) -> tuple[float, str]:
    if isinstance(value, int | float | np.number) and math.isfinite(value):
        return (float(value), "")
    return (math.inf, str(value))


def warn_mixed(comparison: Comparison) -> tuple[str, ...]:
    """Why the rows cannot be compared with each other."""
    warnings = []
    if not comparison.balanced:
        others = ", ".join(clean(name) for name in comparison.others)
        warnings.append(
            f"No seed ran any of the other settings ({others}) at every row, so the "
            f"effects of {_axis(comparison)} and of the others cannot be separated here."
        )
    if is_diagonal(comparison):
        first, second = (comparison.labels.get(name, name) for name in comparison.experiment.by)
        warnings.append(
            f"Each {second} was run with one {first} only, so their effects cannot be "
            "separated here."
        )
    return tuple(warnings)


def is_diagonal(comparison: Comparison) -> bool:
    """Whether both settings of a grid vary, but never one while the other stays."""
    by = comparison.experiment.by
    if len(by) < 2:
        return False
    seconds = comparison.table.groupby(by[1])[by[0]].nunique()
    return len(seconds) > 1 and comparison.table[by[0]].nunique() > 1 and bool((seconds == 1).all())


def describe_idle(comparison: Comparison) -> tuple[str, ...]:
    """The FGSM steps that changed no entry of the word embeddings: they did nothing."""
    table = comparison.table
    if "fgsm_changed" not in table:
        return ()
    idle = table[(table["fgsm_epsilon"] > 0) & (table["fgsm_changed"] == 0)]
    return tuple(
        f"An ε of {format_setting(value)} changed no entry of the word embeddings: its trials are "
        "trials without FGSM."
        for value in idle["fgsm_epsilon"]
    )


def _describe_widths(comparison: Comparison) -> Iterator[str]:
    """Whose dimension the published widths are shares of."""
    width = comparison.experiment.encoder_width
    if width and not comparison.table["published"].notna().any():
        yield f"The paper's widths are of an encoder {width} wide: none is one of these."
    elif width:
        yield f"Published widths are taken as shares of the encoder's, there {width}."


def describe_comparison(comparison: Comparison) -> tuple[str, ...]:
    """The paragraphs above an experiment's table."""
    texts = (
        describe_spread(comparison) if comparison.balanced else "",
        describe_paper(comparison),
        *_describe_widths(comparison),
        *describe_idle(comparison),
        describe_others(comparison),
    )
    return tuple(text for text in texts if text)


_MOST_ROWS = 24
_WIDE = 8
_SHADES = "darker is higher; cells 5 points or more below the highest are equally light."
_CAPTIONS = {
    "line": "A point per trial and the mean over seeds, with its {} t interval.",
    "rows": "Lines are {} t intervals over seeds.",
    "grid": f"Mean scores; {_SHADES}",
    "seeds": (
        "First: a point per seed, its score less its mean over all configurations, so that only "
        "differences within a seed are left; the line is their mean. Second: mean scores; "
        f"{_SHADES}"
    ),
}


def draw_experiment(comparison: Comparison, label: str) -> Drawing:
    """One experiment as the paper draws it. label  of the study's scores."""
    experiment = comparison.experiment
    panels = _panels(comparison, label)
    rows = max(len(_drawn(comparison)), len(experiment.published()))
    by_rows = experiment.figure == "rows"
    height, columns = (1.3 + 0.34 * rows, 1) if by_rows else (3.4, 2)
    title = experiment.title.lower().replace("ema", "EMA").replace("fgsm", "FGSM")
    return Drawing(
        f"Score by {title}",
        panels,
        height=height * -(-len(panels) // columns),
        columns=min(columns, len(panels)),
        rigid=by_rows,
        caption=_caption(comparison),
        alt=" ".join(describe_comparison(comparison)[:2]),
    )


def _caption(comparison: Comparison) -> str:
    experiment = comparison.experiment
    caption = f"{_CAPTIONS[experiment.figure].format(PERCENT)} "
    if len(comparison.table) > _MOST_ROWS and experiment.figure in ("line", "rows"):
        caption += f"Drawn: {_MOST_ROWS} of {len(comparison.table)} values. "
    if not comparison.same_method:
        return caption + "There are no published values for this method."
    common = f" ({experiment.fixed})" if experiment.fixed else ""
    return (
        caption + f"Last: published, {experiment.source}{common}, compare its shape, not its level."
    )


def _panels(comparison: Comparison, label: str) -> Sequence[tuple[str, Draw]]:
    kind = comparison.experiment.figure
    if kind == "line":
        panels = [("this study", _line(comparison, label))]
    elif kind == "rows":
        panels = [("this study", _rows(comparison, label))]
    elif kind == "grid":
        panels = [("this study", _grid(comparison, comparison.table, "mean"))]
    else:
        panels = [
            ("this study: within seeds", _seeds(comparison)),
            ("this study: means", _grid(comparison, comparison.table, "mean")),
        ]
    return [*panels, (SOURCE, _published(comparison))] if comparison.same_method else panels


def _drawn(comparison: Comparison) -> pd.DataFrame:
    """At most 24 rows, evenly chosen: more cannot be named in a figure."""
    return choose_evenly(comparison.table, _MOST_ROWS)


def _labels(comparison: Comparison) -> list[str]:
    experiment = comparison.experiment
    return [
        experiment.axis_labels.get(name, comparison.labels.get(name, name))
        for name in experiment.by
    ]


def _grid(comparison: Comparison, table: pd.DataFrame, value: str) -> Draw:
    by, labels, names = comparison.experiment.by, _labels(comparison), _names(comparison, table)

    return lambda ax: figures.draw_grid(table, ax, by=by, value=value, labels=labels, names=names)


def _seeds(comparison: Comparison) -> Draw:
    by, labels = comparison.experiment.by, _labels(comparison)
    seeds = compute_deviations(comparison.runs, by)
    names = _names(comparison, seeds)

    return lambda ax: figures.draw_seeds(seeds, ax, by=by, labels=labels, names=names)


def _names(comparison: Comparison, table: pd.DataFrame) -> list[str]:
    """The values of the first setting, in rising order."""
    experiment = comparison.experiment
    return [experiment.label(value) for value in sorted(table[experiment.by[0]].unique())]


def _placed(comparison: Comparison, table: pd.DataFrame) -> pd.DataFrame:
    """The rows with their place on the horizontal axis: by value; evenly for categories.

    The EMA decay stands by the logarithm of 1 − η, other numbers by their logarithm where they
    span a factor of 8 or more. The ends are 0 and one less than the number of rows.
    """
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


def _line(comparison: Comparison, score: str) -> Draw:
    table = _placed(comparison, _drawn(comparison))
    by = list(comparison.experiment.by)
    runs = comparison.runs.merge(table[[*by, "place"]], on=by)
    names, label = name_rows(comparison, table), _labels(comparison)[0]

    return lambda ax: figures.draw_line(table, ax, names=names, runs=runs, label=label, name=score)


def _rows(comparison: Comparison, score: str) -> Draw:
    table, by = _drawn(comparison), list(comparison.experiment.by)
    names, label = name_rows(comparison, table), _labels(comparison)[0]
    labels = describe_means(table, comparison.runs, by=by)

    return lambda ax: figures.draw_rows(
        table, ax, names=names, label=label, name=score, labels=labels
    )


def _published(comparison: Comparison) -> Draw:
    experiment = comparison.experiment
    table = experiment.published()
    if experiment.figure in ("grid", "seeds"):
        return _grid(comparison, table, "published")
    rows = experiment.figure == "rows"
    if not rows:
        table = _placed(comparison, table.sort_values(experiment.by[0]))
    names, label = name_rows(comparison, table), _labels(comparison)[0]

    def panel(ax: "Axes") -> None:
        draw = figures.draw_published_rows if rows else figures.draw_published_line
        draw(table, ax, names=names, label=label, name=SCORE)

    return panel


@dataclass(frozen=True)
class ExperimentInfo:
    """comparison: with the published values; tasks: `compute_experiment_tasks`.

    Attributes:
        label: of scores.
        is_curve: whether its rows are the levels of MTD, whose means another section has.
    """

    comparison: Comparison
    tasks: pd.DataFrame
    label: str
    is_curve: bool


def compute(context: StudyContext, experiment: Experiment) -> ExperimentInfo | None:
    """None where the study did not vary what the experiment is about."""
    study = context.study
    comparison = compare(
        study.trials, experiment, study.settings, curves=study.curves, width=context.width
    )
    if comparison is None:
        return None
    tasks = compute_experiment_tasks(comparison, study.scores)
    levels = comparison.table["n"].tolist() == context.curve["n"].tolist()
    same = levels and np.allclose(comparison.table["mean"], context.curve["mean"])
    is_curve = same and set(experiment.by) <= set(PARTS)
    return ExperimentInfo(comparison, tasks, context.score_label, is_curve)


def draw(info: ExperimentInfo) -> Drawing | None:
    """The experiment's figure; none of a grid without a row or a column to compare."""
    diagonal = is_diagonal(info.comparison)
    return None if diagonal else draw_experiment(info.comparison, info.label)


def show(info: ExperimentInfo) -> tuple[Table, ...]:
    """Means with the published values, and the same by task where there are such."""
    return (*_table(info), *_table_tasks(info))


def _readable(comparison: Comparison) -> pd.DataFrame:
    """The table with named values where they have a name, and shares in percent."""
    experiment, first = comparison.experiment, comparison.experiment.by[0]
    table = comparison.table
    shown = table.copy()
    if experiment.value_names:
        shown[first] = pd.Series(
            [experiment.label(value) for value in table[first]], index=table.index, dtype="str"
        )
    if experiment.measured:
        shown[experiment.measured] = 100 * shown.get(experiment.measured, pd.Series(dtype=float))
    return shown


def _table(info: ExperimentInfo) -> Iterator[Table]:
    comparison = info.comparison
    experiment = comparison.experiment
    shown = _readable(comparison)
    if not comparison.same_method:
        shown = shown.drop(columns="published", errors="ignore")
    if info.is_curve:
        # the section on MTD has the means
        if "published" not in shown or shown["published"].isna().all():
            return
        yield make_table(
            shown[[*experiment.by, "published"]],
            caption=f"Published values at the levels of this study: {experiment.source}.",
            csv=experiment.name,
            labels=comparison.labels,
        )
        return
    rows, remark = thin_rows(shown, "rows")
    common = f" ({experiment.fixed})" if experiment.fixed else ""
    published = f"published: {experiment.source}{common}, on other data and another encoder."
    if not comparison.same_method:
        published = "no published values for this method."
    yield make_table(
        rows,
        caption=f"Mean score with its interval over seeds; {published}{remark}",
        csv=experiment.name,
        labels=comparison.labels,
    )


def _table_tasks(info: ExperimentInfo) -> tuple[Table, ...]:
    """Means by task, each value's row followed by the published one."""
    experiment, tasks = info.comparison.experiment, info.tasks
    if not len(tasks):
        return ()
    by = list(experiment.by)
    names = list(tasks["task"].unique())
    parts = [
        tasks.pivot(index=by, columns="task", values=value)[names].assign(source=source)
        for value, source in (("mean", "this study"), ("published", "published"))
    ]
    wide = pd.concat(parts).sort_index(kind="stable").reset_index()
    caption = (
        "The same by task, Spearman x 100; published: BERT-base, Wikipedia. The CSV has trials, "
        "seeds and intervals."
    )
    return (
        make_table(
            wide[[*by, "source", *names]],
            caption=caption,
            csv=f"{experiment.name}_tasks",
            labels=info.comparison.labels,
        ),
    )


def make_topic(experiment: Experiment) -> Topic[StudyContext, ExperimentInfo]:
    """The topic of one entry of the catalogue."""
    return Topic(
        name=experiment.anchor,
        title=experiment.title,
        compute=lambda context: compute(context, experiment),
        csv={
            experiment.name: lambda info: info.comparison.table,
            f"{experiment.name}_tasks": lambda info: info.tasks,
        },
        figures={experiment.name: draw},
        text=lambda info: describe_comparison(info.comparison),
        warnings=lambda info: warn_mixed(info.comparison),
        tables=show,
    )


EXPERIMENT_TOPICS = tuple(make_topic(experiment) for experiment in EXPERIMENTS)
