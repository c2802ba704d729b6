"""Figures with the maximum traceable distance (MTD) on the horizontal axis.

`name` is the label of the vertical axis.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from mtdlab.analysis.data.points import MOST_MARKED, describe_means, format_component
from mtdlab.analysis.data.runs import varied_parts
from mtdlab.analysis.figures import style
from mtdlab.analysis.figures.spots import add_run_spots, add_spots, is_heavy
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.measures.trace import PARTS

_MOST_SEED_LINES = 12
_MOST_NAME = 16
"""The most letters of a baseline's name in a figure."""
_MOST_BAND = 1.5
_MARGIN = 0.05
# what an axis of MTD shows beyond its ends, as a factor
_BEYOND = 1.1
_MOST_STRETCH = 2.0


def scatter_runs(
    runs: pd.DataFrame, ax: Axes, x: pd.Series, y: pd.Series, *, value: str, zorder: float = 1
) -> None:
    """A grey point per run at (x, y), which states the run's `value`."""
    options: dict[str, Any] = {"s": 14, "color": style.RUN, "alpha": 0.55, "linewidths": 0}
    ax.scatter(x, y, label="one trial", zorder=zorder, rasterized=is_heavy(len(runs)), **options)
    add_run_spots(ax, runs, x, y, value=value)


def scatter_by_mtd(
    runs: pd.DataFrame,
    ax: Axes,
    x: str,
    y: str,
    marks: style.LevelMarks,
    *,
    value: str,
    marker: str = "",
) -> None:
    """A point per run at its columns x and y, in the mark of its MTD, which states its `value`.

    `marker` stands in place of those of the levels.
    """
    colours = [marks.mark_of(float(mtd))[0] for mtd in runs["mtd"]]
    groups = runs["mtd"] if marks.few else pd.Series(0.0, index=runs.index)
    options: dict[str, Any] = {"s": 28, "linewidths": 0.4, "edgecolors": "white"}
    options["rasterized"] = is_heavy(len(runs))
    for mtd, at in groups.groupby(groups).indices.items():
        rows, (_, own) = runs.iloc[at], marks.mark_of(float(str(mtd)))
        ax.scatter(rows[x], rows[y], c=[colours[i] for i in at], marker=marker or own, **options)
    add_run_spots(ax, runs, runs[x], runs[y], value=value)


def draw_runs(runs: pd.DataFrame, ax: Axes, *, value: str) -> None:
    """A point per run, and a thin line per seed where there are few seeds.

    `runs` have number, mtd, seed and `value`.
    """
    scatter_runs(runs, ax, runs["mtd"], runs[value], value=value, zorder=2)
    if runs["seed"].nunique() > _MOST_SEED_LINES:
        return
    for _, seed in runs.groupby("seed"):
        means = seed.groupby("mtd")[value].mean()
        ax.plot(means.index, means, color=style.RUN, alpha=0.4, linewidth=0.8, zorder=1)


def draw_curve(
    curve: pd.DataFrame,
    ax: Axes,
    *,
    label: str = "mean over seeds",
    mark: tuple[str, str] = (style.ACCENT, "o"),
) -> None:
    """A line through the means (mtd, mean, low, high), and a band over the intervals if any.

    `mark` is the colour and the marker.
    """
    colour, marker = mark
    size = 5 if len(curve) <= style.MOST_MARKERS else 0
    marked: dict[str, Any] = {"marker": marker, "markersize": size, "zorder": 4}
    ax.plot(curve["mtd"], curve["mean"], label=label, color=colour, **marked)
    known = curve[np.isfinite(curve["low"].astype("float64"))]
    if len(known):
        band: dict[str, Any] = {"color": colour, "alpha": 0.16, "linewidth": 0, "zorder": 0}
        ax.fill_between(known["mtd"], known["low"], known["high"], label=style.BAND, **band)
    add_spots(ax, curve["mtd"], curve["mean"], curve)


def keep_points_in_view(curve: pd.DataFrame, points: pd.Series, ax: Axes) -> None:
    """Leave out intervals that are far wider than the points; the legend states their limits.

    Two seeds give intervals of six times their distance, beside which the points would all
    coincide.
    """
    reach = float(curve["low"].min()), float(curve["high"].max())
    low, high = float(points.min()), float(points.max())
    margin = _MOST_BAND * (high - low)
    if not margin or not np.isfinite(reach).all():
        return
    if reach[0] >= low - margin and reach[1] <= high + margin:
        return
    ax.set_ylim(low - margin / 3, high + margin / 3)
    for band in [area for area in ax.collections if area.get_label() == style.BAND]:
        band.remove()
    ax.plot([], [], " ", label=f"{style.BAND} {reach[0]:.3g} to {reach[1]:.3g}, not drawn")


def draw_mtd_curve(
    curve: pd.DataFrame,
    ax: Axes,
    *,
    runs: pd.DataFrame,
    value: str,
    name: str,
    beyond: Collection[float] = (),
) -> None:
    """The mean at each MTD with its interval, `compute_mtd_curve`, and the `value` of every run.

    `beyond` are levels to be marked as beyond the run.
    """
    draw_runs(runs, ax, value=value)
    if not is_heavy(len(curve)):
        curve = describe_means(curve, runs, value=value, write=style.score_format())
    draw_curve(curve, ax)
    marked = curve[curve["mtd"].isin(beyond)]
    if len(marked):
        cross: dict[str, Any] = {"marker": "x", "s": 90, "linewidths": 2, "zorder": 6}
        ax.scatter(marked["mtd"], marked["mean"], label="beyond the run", color=style.INK, **cross)
    keep_points_in_view(curve, runs[value], ax)
    style.label_mtd_axis(ax, curve["mtd"])
    style.label_score(ax, name, is_score=value == "score")


def draw_component_axis(cells: pd.DataFrame, ax: Axes) -> None:
    """Draw the only component that varies as a second axis above, once the limits are known.

    `cells` has mtd and the components, a row per configuration; nothing is drawn for several.
    """
    varied = varied_parts(cells)
    if len(varied) != 1 or cells["mtd"].nunique() < len(cells):
        return
    fixed = [
        f"{symbol} = {format_component(float(cells[name].iloc[0]))}"
        for name, symbol in PARTS.items()
        if name in cells and name not in varied and np.isfinite(cells[name].iloc[0])
    ]
    texts = [format_component(float(value)) for value in cells[varied[0]]]
    name = f"{PARTS[varied[0]]} ({', '.join(fixed)})" if fixed else PARTS[varied[0]]
    style.add_top_axis(ax, cells["mtd"].tolist(), texts, name)


def draw_configurations(cells: pd.DataFrame, ax: Axes) -> None:
    """The mean of each configuration: colour by the first component, marker by the second.

    `cells` have mtd, the components and mean, a row per configuration, of which two vary.
    """
    first, second = varied_parts(cells)
    values = sorted(cells[first].unique())
    colours = dict(zip(values, style.COLOURS(np.linspace(0, 1, len(values))), strict=True))
    markers = dict(zip(sorted(cells[second].unique()), style.MARKERS, strict=False))
    for row in cells.to_dict("records"):
        marker, colour = markers[row[second]], colours[row[first]]
        ax.plot(row["mtd"], row["mean"], marker, color=colour, markersize=6.5, zorder=5)
    add_spots(ax, cells["mtd"], cells["mean"], cells)

    for value, colour in colours.items():
        name = f"{PARTS[first]} {format_component(value)}"
        ax.plot([], [], color=colour, linewidth=5, label=name)
    for value, marker in markers.items():
        ax.plot([], [], marker, color=style.INK, label=f"{PARTS[second]} {format_component(value)}")


def draw_untraced(methods: Mapping[str, pd.DataFrame], ax: Axes) -> None:
    """The mean of the runs of each method without an MTD, as a horizontal line.

    Call it after the curve: its limits are extended to the lines. A method, by its label, has at
    least one run with a score.
    """
    for place, (label, runs) in enumerate(methods.items()):
        mean = pd.DataFrame({"method": [label], "mean": runs["score"].mean()})
        mean = mean.assign(mtd=np.nan, low=np.nan, high=np.nan, seeds=runs["seed"].nunique())
        named, written = runs.assign(method=label, mtd=np.nan), style.score_format()
        mean = describe_means(mean, named, by=["method"], write=written, before=f"{label}. ")
        # the curve has the first mark
        mark, line = style.mark_of(place + 1), style.line_of(place)
        _draw_means(mean, ax, label=style.printable(label), mark=mark, line=line)
    extend_to([float(runs["score"].mean()) for runs in methods.values()], ax)


def draw_baseline(name: str, score: Estimate, ax: Axes) -> None:
    """The mean of a study's baseline as a line with its name, its interval as a band.

    Call it after the curve: its limits are extended to the line, and to the band where that is not
    wider than they are.
    """
    extend_to([score.mean], ax)
    low, high = ax.get_ylim()
    if np.isfinite(score.low):
        if score.high - score.low <= high - low:
            extend_to([score.low, score.high], ax)
        ax.axhspan(score.low, score.high, color=style.OTHER, alpha=0.13, linewidth=0, zorder=0)
    ax.axhline(score.mean, color=style.OTHER, linewidth=1.4, zorder=3)
    # above the line, not on it
    text: dict[str, Any] = {"xytext": (0, 2), "textcoords": "offset points", "zorder": 5}
    text |= {"ha": "right", "va": "bottom", "color": style.OTHER}
    # a longer one would leave the axes; the page names it beside the figure
    named = f", {style.printable(name)}" if len(name) <= _MOST_NAME else ""
    label = f"baseline{named}: {style.score_format().score(score.mean)}"
    ax.annotate(label, (0.99, score.mean), xycoords=ax.get_yaxis_transform(), **text)


def draw_references(scores: Mapping[str, float], ax: Axes, *, across: bool = False) -> None:
    """Scores without training, by name, as dotted lines; vertical ones where it is `across`.

    Call it after the data: limits are extended to at most twice what they are, and a score farther
    away is stated in the legend alone.
    """
    low, high = ax.get_xlim() if across else ax.get_ylim()
    most = _MOST_STRETCH * (high - low)
    for place, (name, score) in enumerate(scores.items()):
        low, high = ax.get_xlim() if across else ax.get_ylim()
        written, style_of = style.score_format(), (0, (1, 1 + place))
        label = f"{style.printable(name)} {written.score(score)}"
        if max(high, score) - min(low, score) > most:
            side = written.say("below" if score < low else "above")
            ax.plot([], [], " ", label=f"{label}, {side} the axis")
            continue
        line: dict[str, Any] = {"color": style.INK, "linestyle": style_of, "linewidth": 1.3}
        (ax.axvline if across else ax.axhline)(score, label=label, zorder=1, **line)
        extend_to([score], ax, across=across)


def extend_to(values: Sequence[float], ax: Axes, *, across: bool = False) -> None:
    """Extend the limits of the axis of scores where values lie outside them, with a margin."""
    if not len(values):
        return
    low, high = ax.get_xlim() if across else ax.get_ylim()
    lowest, highest = min(values), max(values)
    margin = _MARGIN * (max(high, highest) - min(low, lowest))
    (ax.set_xlim if across else ax.set_ylim)(
        lowest - margin if lowest < low + margin else low,
        highest + margin if highest > high - margin else high,
    )


def draw_paired_curve(
    curve: pd.DataFrame,
    ax: Axes,
    *,
    smooth: pd.DataFrame,
    optimal: Sequence[float],
    levels: pd.Series | None = None,
    limits: tuple[float, float] | None = None,
    explained: bool = True,
) -> None:
    """Difference from the mean over levels at each MTD, with the smooth curve through them.

    The tables are `compute_paired_curve` and `compute_smooth`, which may have no rows; `optimal`
    are the levels to mark as indistinguishable from the best. Where several axes share them,
    `levels` are the MTDs of the horizontal axis and `limits` those of the vertical one; one is
    `explained` by a legend.
    """
    ax.axhline(0, color=style.RUN, linewidth=1)
    if len(smooth):
        draw_curve(smooth, ax, label="smooth curve", mark=(style.ACCENT, ""))
    ax.vlines(curve["mtd"], curve["low"], curve["high"], color=style.ACCENT, label=style.BAND)
    point: dict[str, Any] = {"color": style.ACCENT, "markersize": 5, "zorder": 4}
    ax.plot(curve["mtd"], curve["mean"], "o", label="level", **point)
    best = curve[curve["mtd"].isin(optimal)]
    ring: dict[str, Any] = {"s": 110, "facecolors": "none", "edgecolors": style.ACCENT, "zorder": 5}
    ax.scatter(best["mtd"], best["mean"], label="indistinguishable from the best", **ring)
    add_spots(ax, curve["mtd"], curve["mean"], curve)
    style.label_mtd_axis(ax, curve["mtd"] if levels is None else levels)
    if levels is not None:
        ax.set_xlim(levels.min() / _BEYOND, levels.max() * _BEYOND)
    if limits is None:
        keep_points_in_view(curve, curve["mean"], ax)
        style.keep_span(ax)
    else:
        ax.set_ylim(limits)
    style.label_deviation(ax, "difference from the\nmean over levels")
    if explained:
        style.add_legend(ax)


def draw_divisions(cells: pd.DataFrame, ax: Axes, *, name: str) -> None:
    """A line over MTD for each EMA decay, with its name at the right.

    Of more than six decays the colours follow their order. `cells` have ema_decay, mtd, mean,
    within_low, within_high, a row per configuration.
    """
    ends, count = [], cells["ema_decay"].nunique()
    marks = [style.mark_of(place) for place in range(count)]
    if count > MOST_MARKED:
        marks = [(colour, style.MARKERS[0]) for colour in style.COLOURS(np.linspace(0, 1, count))]
    for (decay, rows), (colour, marker) in zip(cells.groupby("ema_decay"), marks, strict=True):
        line = rows.sort_values("mtd")
        ax.plot(line["mtd"], line["mean"], color=colour, marker=marker, markersize=5)
        ax.vlines(line["mtd"], line["within_low"], line["within_high"], color=colour, linewidth=1)
        ends.append((float(line["mean"].iloc[-1]), f"η {decay:g}", colour))
    add_spots(ax, cells["mtd"], cells["mean"], cells)
    style.label_mtd_axis(ax, cells["mtd"])
    style.label_score(ax, name)
    style.name_ends(ax, ends)


def _label_axes(ax: Axes, levels: pd.Series, name: str) -> None:
    if len(levels):
        style.label_mtd_axis(ax, levels)
    style.label_score(ax, name)
    style.add_legend(ax)


def draw_conditions(
    curves: Mapping[str, pd.DataFrame],
    ax: Axes,
    *,
    name: str,
    distance: str = "",
    order: Sequence[str] = (),
) -> None:
    """A line and a band for each condition, by its label: mtd, mean, low, high.

    `distance` is the name of the horizontal axis, if MTD is not in steps; `order` are the labels of
    all panels of a figure, in which a condition has one colour.
    """
    for label, curve in curves.items():
        draw_curve(curve, ax, label=label, mark=style.mark_of([*(order or curves)].index(label)))
    every = pd.concat(list(curves.values()))
    keep_points_in_view(every, every["mean"], ax)
    _label_axes(ax, every["mtd"], name)
    if distance:
        ax.set_xlabel(distance)


def _draw_means(
    means: pd.DataFrame,
    ax: Axes,
    *,
    label: str,
    mark: tuple[str, str],
    line: Any,
    untraced: str = "",
) -> None:
    """A curve through the means with an MTD, and a horizontal line for each without, `untraced`."""
    colour, marker = mark
    curve, levels = means[means["mtd"] > 0], means[~(means["mtd"] > 0)]
    if len(curve):
        draw_curve(curve, ax, label=label, mark=mark)
        ax.vlines(curve["mtd"], curve["low"], curve["high"], color=colour, linewidth=1)
        label = f"{label}: {untraced}"
    edge, name = ax.get_yaxis_transform(), f"{label} (no MTD)".strip()
    for place, row in enumerate(levels.to_dict("records")):
        score = row["mean"]
        ax.axhline(score, color=colour, linestyle=line, linewidth=1.4, label=name, zorder=3)
        ax.plot(1, score, marker, color=colour, transform=edge, clip_on=False)
        add_spots(ax, [1.0], [score], levels.iloc[[place]], transform=edge)
        if np.isfinite(row["low"]):
            ax.axhspan(row["low"], row["high"], color=colour, alpha=0.1, linewidth=0)


def draw_studies(
    curves: pd.DataFrame,
    ax: Axes,
    *,
    studies: Sequence[str],
    untraced: Mapping[str, str],
    name: str,
) -> None:
    """A line and a band per study, and a horizontal line for runs without an MTD.

    `curves` is `compute_curves` of one metric, with href where the means state something. `studies`
    are the names of all studies of the page: a study has its colour in every figure, and its
    methods differ in marker and line. `untraced` are the methods of a study's runs without an MTD.
    """
    parts: dict[str, int] = {}
    for text, study in curves.groupby("study", sort=False):
        # the curve of one of a study's methods is called STUDY: METHOD
        owner = str(text) if text in studies else str(text).rpartition(": ")[0]
        place, part = studies.index(owner), parts.setdefault(owner, 0)
        parts[owner] += 1
        mark, line = (style.mark_of(place)[0], style.mark_of(place + part)[1]), style.line_of(part)
        label, method = style.printable(str(text)), untraced.get(str(text), "")
        _draw_means(study, ax, label=label, mark=mark, line=line, untraced=method)
    _label_axes(ax, curves.loc[curves["mtd"] > 0, "mtd"], name)
