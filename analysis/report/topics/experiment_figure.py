"""The figures of the experiments: the study above, the paper below on axes of its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from analysis.deviations import compute_deviations
from analysis.experiments import Comparison
from analysis.points import describe_means
from analysis.published import SCORE, SOURCE
from analysis.report.drawing import Draw, Drawing, choose_evenly
from analysis.report.text import PERCENT
from analysis.report.topics.experiment_text import describe_comparison, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_grid(table, ax, by=by, value=value, labels=labels, names=names)

    return panel


def _seeds(comparison: Comparison) -> Draw:
    by, labels = comparison.experiment.by, _labels(comparison)
    seeds = compute_deviations(comparison.runs, by)
    names = _names(comparison, seeds)

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_seeds(seeds, ax, by=by, labels=labels, names=names)

    return panel


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

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_line(table, ax, names=names, runs=runs, label=label, name=score)

    return panel


def _rows(comparison: Comparison, score: str) -> Draw:
    table, by = _drawn(comparison), list(comparison.experiment.by)
    names, label = name_rows(comparison, table), _labels(comparison)[0]
    labels = describe_means(table, comparison.runs, by=by)

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_rows(table, ax, names=names, label=label, name=score, labels=labels)

    return panel


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
        from analysis import figures

        draw = figures.draw_published_rows if rows else figures.draw_published_line
        draw(table, ax, names=names, label=label, name=SCORE)

    return panel
