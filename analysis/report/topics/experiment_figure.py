"""The figures of the experiments: the study above, the paper below on axes of its own."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pandas as pd

from analysis.experiments import Comparison
from analysis.published import SOURCE
from analysis.report.drawing import Draw, Drawing, choose_evenly
from analysis.report.text import PERCENT
from analysis.report.topics.experiment_text import describe_comparison, name_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_ROWS = 24
_SHADES = "darker is higher; cells 5 points or more below the highest are equally light."
_CAPTIONS = {
    "line": "A point per run and the mean over seeds, with its {} t interval.",
    "rows": "Lines are {} t intervals over seeds.",
    "grid": f"Mean scores; {_SHADES}",
    "boxes": (
        "A box from the lower to the upper quartile of the seeds, its line at the median, "
        "whiskers to the furthest seed within 1.5 times that width; a point per seed. Below it "
        f"the mean scores; {_SHADES}"
    ),
}


def draw_experiment(comparison: Comparison) -> Drawing:
    """One experiment as the paper draws it."""
    experiment = comparison.experiment
    panels = _panels(comparison)
    rows = max(len(_drawn(comparison)), len(experiment.published()))
    height = 1.1 + 0.3 * rows if experiment.figure == "rows" else 2.8
    title = experiment.title.lower().replace("ema", "EMA").replace("fgsm", "FGSM")
    return Drawing(
        f"Score by {title}",
        panels,
        height=height * len(panels),
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
        caption
        + f"Bottom: published, {experiment.source}{common}, compare its shape, not its level."
    )


def _panels(comparison: Comparison) -> Sequence[tuple[str, Draw]]:
    kind = comparison.experiment.figure
    if kind == "line":
        panels = [("this study", _line(comparison))]
    elif kind == "rows":
        panels = [("this study", _rows(comparison))]
    elif kind == "grid":
        panels = [("this study", _grid(comparison, comparison.table, "mean"))]
    else:
        panels = [
            ("this study: seeds", _boxes(comparison)),
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


def _boxes(comparison: Comparison) -> Draw:
    runs, by, labels = comparison.runs, comparison.experiment.by, _labels(comparison)
    names = _names(comparison, runs)

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_boxes(runs, ax, by=by, labels=labels, names=names)

    return panel


def _names(comparison: Comparison, table: pd.DataFrame) -> list[str]:
    """The values of the first setting, in rising order."""
    experiment = comparison.experiment
    return [experiment.label(value) for value in sorted(table[experiment.by[0]].unique())]


def _line(comparison: Comparison) -> Draw:
    table = _drawn(comparison).reset_index(drop=True)
    by = list(comparison.experiment.by)
    runs = comparison.runs.merge(table[by].reset_index(names="place"), on=by)
    names, label = name_rows(comparison, table), _labels(comparison)[0]

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_line(table, ax, names=names, runs=runs, label=label)

    return panel


def _rows(comparison: Comparison) -> Draw:
    table = _drawn(comparison)
    names, label = name_rows(comparison, table), _labels(comparison)[0]

    def panel(ax: "Axes") -> None:
        from analysis import figures

        figures.draw_rows(table, ax, names=names, label=label)

    return panel


def _published(comparison: Comparison) -> Draw:
    experiment = comparison.experiment
    table = experiment.published()
    if experiment.figure in ("grid", "boxes"):
        return _grid(comparison, table, "published")
    rows = experiment.figure == "rows"
    if not rows:
        table = table.sort_values(experiment.by[0])
    names, label = name_rows(comparison, table), _labels(comparison)[0]

    def panel(ax: "Axes") -> None:
        from analysis import figures

        draw = figures.draw_published_rows if rows else figures.draw_published_line
        draw(table, ax, names=names, label=label)

    return panel
