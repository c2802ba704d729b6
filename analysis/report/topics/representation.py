"""Topics: alignment, uniformity, spectra (MoCoSE, figures 4 and 7); random negatives (MixCSE)."""

from dataclasses import dataclass

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import MOST_LOOKS
from mtdlab.analysis.data.runs import choose_evenly, completed_runs, format_mtd
from mtdlab.analysis.measures.spherical_cap import (
    DIMENSIONS,
    compute_spherical_cap,
    describe_spherical_cap,
)
from mtdlab.analysis.report.cells import BAND, describe_curve, make_table
from mtdlab.analysis.report.topics.base import Axes, Draw, Drawing, StudyContext, Table, Topic
from mtdlab.analysis.statistics.curves import (
    CONFIGURATION,
    GEOMETRY,
    compute_distances,
    compute_effective_ranks,
    compute_geometry,
    compute_spectra,
)

_TEXT = (
    "Alignment is the mean squared distance between the two sentences of a paraphrase pair; "
    "uniformity is the logarithm of how close all sentences are to each other. Both are computed "
    "on embeddings of unit length, uniformity over all pairs of sentences; lower is better for "
    "both. The paper's figure 4 averages uniformity over batches of 64, which gives other values: "
    "mtdlab evaluate prints both.",
)


@dataclass(frozen=True)
class Geometry:
    """The results `compute_distances` and `compute_geometry`, and the runs with their settings."""

    runs: pd.DataFrame
    curves: pd.DataFrame
    described: pd.DataFrame


def _find_geometry(context: StudyContext) -> Geometry | None:
    """The measures; None where neither was recorded, or of one level beside methods."""
    runs = compute_distances(context.curve_trials)
    if not len(runs) or context.is_one_point:
        return None
    known = context.curve_trials[["number", *CONFIGURATION[1:], "score"]]
    return Geometry(runs, compute_geometry(runs), runs.merge(known, on="number"))


def _show_geometry(info: Geometry) -> tuple[Table, ...]:
    means = info.curves.pivot(index=["mtd", "n", "seeds"], columns="measure", values="mean")
    few = _few(info)
    table = means[list(GEOMETRY)[:2] if few else list(GEOMETRY)].reset_index()
    distances = "" if few else "; L1 and L2 are the distances from the ideal point"
    caption = f"Mean of each measure by MTD{distances}. The CSV has all measures with intervals."
    return (make_table(table, caption=caption, csv="geometry", many="levels"),)


def _draw_measures(info: Geometry) -> Drawing:
    return _draw_curves(
        info,
        "Alignment and uniformity against maximum traceable distance",
        "A point per trial, a thin line per seed, the mean over seeds.",
        ("alignment", "alignment (lower is better)", "alignment", "Alignment"),
        ("uniformity", "uniformity (lower is better)", "uniformity", "Uniformity"),
    )


def _draw_distance(info: Geometry) -> Drawing | None:
    """The distances from the ideal; None for a few levels, whose means the table states."""
    if _few(info):
        return None
    return _draw_curves(
        info,
        "Distance from the ideal point against maximum traceable distance",
        "How far each trial's (uniformity, alignment) lies from the ideal point: alignment 0, "
        "where paraphrases coincide, and uniformity −4, that of vectors spread evenly over "
        "a sphere of many dimensions. Lower is better.",
        ("l1", "L1: sum of both differences", "L1 distance", "The L1 distance"),
        ("l2", "L2: straight-line distance", "L2 distance", "The L2 distance"),
    )


def _draw_curves(
    info: Geometry, title: str, caption: str, *panels: tuple[str, str, str, str]
) -> Drawing:
    """The curves of each panel: a measure, the panel's title, the axis label, the name in text."""
    curves = {
        measure: info.curves[info.curves["measure"] == measure].reset_index(drop=True)
        for measure, *_ in panels
    }

    def draw(measure: str, label: str) -> Draw:
        def panel(ax: Axes) -> None:
            curve, runs = curves[measure], info.described
            figures.draw_mtd_curve(curve, ax, runs=runs, value=measure, name=label)
            figures.add_legend(ax)

        return panel

    return Drawing(
        title,
        [(head, draw(measure, label)) for measure, head, label, _ in panels],
        height=3.9,
        columns=2,
        caption=f"{caption} {BAND}",
        alt=" ".join(
            describe_curve(curves[key], f"{name} is", decimals=3) for key, *_, name in panels
        ),
    )


def _few(info: Geometry) -> bool:
    """Whether there are so few levels that the curves show what distances and a plane would."""
    return bool(info.curves["mtd"].nunique() <= MOST_LOOKS)


def _draw_plane(info: Geometry) -> Drawing | None:
    if _few(info):
        return None
    nearest = info.runs.iloc[int(info.runs["l2"].argmin())]
    return Drawing(
        "Alignment and uniformity of each trial",
        [("", lambda ax: figures.draw_plane(info.described, ax))],
        height=4.2,
        caption="A point per trial. The ideal point, alignment 0 and uniformity −4, lies outside.",
        alt=(
            f"The trial nearest the ideal has MTD {format_mtd(nearest['mtd'])}, alignment "
            f"{nearest['alignment']:.3f} and uniformity {nearest['uniformity']:.3f}."
        ),
    )


ALIGNMENT = Topic(
    name="geometry",
    title="Alignment and uniformity",
    group="Representation",
    compute=_find_geometry,
    csv={"trials_geometry": lambda info: info.runs, "geometry": lambda info: info.curves},
    figures={
        "alignment_uniformity": _draw_measures,
        "alignment_uniformity_plane": _draw_plane,
        "distance": _draw_distance,
    },
    text=lambda _: _TEXT,
    tables=_show_geometry,
)


_MOST_LINES = 24


@dataclass(frozen=True)
class Spectra:
    """The results: `spectra` is `compute_spectra`, `ranks` is `compute_effective_ranks`."""

    spectra: pd.DataFrame
    ranks: pd.DataFrame

    def moment(self, name: str) -> pd.DataFrame:
        """The ranks before or after training."""
        return self.ranks[self.ranks["moment"] == name]


def _find_spectra(context: StudyContext) -> Spectra | None:
    """The spectra; None where no run with an MTD has one, or of one level beside methods."""
    trials, recorded = context.curve_trials, context.study.spectra
    spectra = compute_spectra(trials, recorded)
    if not len(spectra) or context.is_one_point:
        return None
    return Spectra(spectra, compute_effective_ranks(trials, recorded))


def _show_ranks(info: Spectra) -> tuple[Table, ...]:
    before = info.moment("before").set_index("mtd")["mean"]
    after = info.moment("after").drop(columns="moment").reset_index(drop=True)
    if before.reindex(after["mtd"]).round(1).nunique() > 1:  # else the text has the one value
        after.insert(3, "before", after["mtd"].map(before))
    caption = (
        "Effective rank after training, with its interval: how many equally large singular values "
        "would spread as much as these do (the exponential of their entropy)."
    )
    shown = after.rename(columns={"mean": "after"})
    return (make_table(shown, caption=caption, csv="effective_rank", many="levels"),)


def _describe_ranks(info: Spectra) -> tuple[str, ...]:
    before, after = info.moment("before")["mean"], info.moment("after")
    text = "The effective rank before training was not recorded."
    if len(before):
        text = f"Before training the effective rank is {before.mean():.1f}."
    if len(after):
        text += " " + describe_curve(after, "After training it is", decimals=1)
    return (text,)


def _draw_spectra(info: Spectra) -> Drawing:
    caption = (
        "Singular values of the evaluation sentences' embeddings, each divided by the largest, "
        "as the mean over trials. A flatter line means that more dimensions are used."
    )
    levels, drawn = len(info.moment("after")), len(_drawn(info))
    if drawn < levels:
        caption += f" Drawn: {drawn} of {levels} levels of MTD, evenly chosen."

    def panel(ax: Axes) -> None:
        before = info.spectra[info.spectra.index.get_level_values("moment") == "before"]
        figures.draw_spectra(before, _drawn(info), ax)

    panels: list[tuple[str, Draw]] = [("spectra" if drawn > 1 else "", panel)]
    if drawn > 1:
        title = "after training, divided by the mean over levels"
        panels.append((title, lambda ax: figures.draw_spectrum_ratios(_drawn(info), ax)))
    return Drawing(
        "Singular values before and after training",
        panels,
        height=3.8,
        columns=len(panels),
        caption=caption,
        alt=_describe_ranks(info)[0],
    )


def _drawn(info: Spectra) -> pd.DataFrame:
    after = info.spectra[info.spectra.index.get_level_values("moment") == "after"]
    return choose_evenly(after, _MOST_LINES)


SPECTRA = Topic(
    name="spectra",
    title="Spectra before and after",
    group="Representation",
    compute=_find_spectra,
    csv={
        "spectra": lambda info: info.spectra.reset_index(),
        "effective_rank": lambda info: info.ranks,
    },
    figures={"spectra": _draw_spectra},
    text=_describe_ranks,
    tables=_show_ranks,
)


MIXING = "mixing_weight"
_DECIMALS = 3
_MODEL = (
    "A model of the study's methods, not a result of its trials: sentence vectors drawn uniformly "
    "from a spherical cap of angle ω, which is wide before training and narrow for a group of "
    "similar sentences. In many dimensions the cosines of random pairs hardly vary, so a random "
    "negative is almost never a hard one."
)


def _find_cap(context: StudyContext) -> pd.DataFrame | None:
    """The table of `compute_spherical_cap`, with the encoder's dimension; None without mixing."""
    runs = completed_runs(context.trials)
    if MIXING not in runs or not runs[MIXING].notna().any():
        return None
    width = context.width or 0
    return compute_spherical_cap(sorted({*DIMENSIONS, max(width, min(DIMENSIONS))}))


def _draw_cap(frame: pd.DataFrame) -> Drawing:
    return Drawing(
        "Cosine of random pairs on a spherical cap",
        [("", lambda ax: figures.draw_spherical_cap(frame, ax))],
        height=4.2,
        caption=(
            "Lines and bands: mean and standard deviation in closed form; crosses with bars: the "
            "same of simulated pairs; dashed: a mixed negative."
        ),
        alt=describe_spherical_cap(frame),
    )


def _show_cap(frame: pd.DataFrame) -> tuple[Table, ...]:
    pairs = int(frame["pairs"].iloc[0])
    caption = (
        "Cosine of random pairs by angle (degrees) and dimension, in closed form and of "
        f"{pairs:,} simulated pairs each; and of a mixed negative."
    )
    labels = {
        "std": "standard deviation",
        "simulated_mean": "simulated mean",
        "simulated_std": "simulated standard deviation",
        "mixed": "mixed negative",
    }
    shown = frame.drop(columns="pairs").round(_DECIMALS)
    return (make_table(shown, caption=caption, csv="spherical_cap", labels=labels),)


SPHERICAL_CAP = Topic(
    name="spherical-cap",
    title="Random and mixed negatives",
    group="Representation",
    compute=_find_cap,
    csv={"spherical_cap": lambda frame: frame},
    figures={"spherical_cap": _draw_cap},
    text=lambda frame: (_MODEL, describe_spherical_cap(frame)),
    tables=_show_cap,
)
