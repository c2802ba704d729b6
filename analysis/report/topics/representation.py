"""Topics: alignment, uniformity, spectra (MoCoSE, figures 4 and 7); random negatives (MixCSE)."""

from functools import partial

import pandas as pd

from mtdlab.analysis import figures
from mtdlab.analysis.data.points import MOST_MARKED
from mtdlab.analysis.data.runs import choose_evenly, completed_runs
from mtdlab.analysis.measures.spherical_cap import DIMENSIONS, compute_spherical_cap
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.wording import capitalise, clean
from mtdlab.analysis.report.cells import BAND, describe_curve, make_table
from mtdlab.analysis.report.topics.base import Axes, Contents, Draw, Drawing, StudyContext, Topic
from mtdlab.analysis.statistics.curves import (
    GEOMETRY,
    compute_distances,
    compute_effective_ranks,
    compute_geometry,
    compute_spectra,
)
from mtdlab.analysis.statistics.methods import compute_paths

_TEXT = (
    "Alignment is the mean squared distance between the two sentences of a paraphrase pair; "
    "uniformity is the logarithm of how close all sentences are to each other. Both are computed "
    "on embeddings of unit length, uniformity over all pairs of sentences; lower is better for "
    "both. The paper's figure 4 averages uniformity over batches of 64, which gives other values: "
    "mtdlab evaluate prints both.",
)


def _build_geometry(context: StudyContext) -> Contents | None:
    """The measures; None where neither was recorded, or of one level beside methods."""
    runs = compute_distances(context.curve_trials)
    if not len(runs) or context.is_one_point:
        return None
    curves = compute_geometry(runs)
    described = runs.merge(context.curve_trials[["number", *PARTS, "score"]])
    # curves of few levels show what distances would
    few = curves["mtd"].nunique() <= MOST_MARKED
    means = curves.pivot(index=["mtd", "n", "seeds"], columns="measure", values="mean")
    shown = means[list(GEOMETRY)[:2] if few else list(GEOMETRY)].reset_index()
    distances = "" if few else "; L1 and L2 are the distances from the ideal point"
    caption = f"Mean of each measure by MTD{distances}. The CSV has all measures with intervals."
    drawings = {
        "alignment_uniformity": _draw_curves(
            curves,
            described,
            "Alignment and uniformity against maximum traceable distance",
            "A point per trial, a thin line per seed, the mean over seeds.",
            ("alignment", "alignment (lower is better)", "alignment"),
            ("uniformity", "uniformity (lower is better)", "uniformity"),
        )
    }
    if not few:
        drawings["distance"] = _draw_curves(
            curves,
            described,
            "Distance from the ideal point against maximum traceable distance",
            "How far each trial's (uniformity, alignment) lies from the ideal point: alignment 0, "
            "where paraphrases coincide, and uniformity −4, that of vectors spread evenly over "
            "a sphere of many dimensions. Lower is better.",
            ("l1", "L1: sum of both differences", "L1 distance"),
            ("l2", "L2: straight-line distance", "L2 distance"),
        )
    return Contents(
        csv={"trials_geometry": runs, "geometry": curves},
        figures=drawings,
        text=_TEXT,
        tables=[make_table(shown, caption=caption, csv="geometry")],
    )


def _draw_curves(
    measured: pd.DataFrame,
    runs: pd.DataFrame,
    title: str,
    caption: str,
    *panels: tuple[str, str, str],
) -> Drawing:
    """The curves of each panel: a measure, the panel's title, the axis label."""
    curves = {
        measure: measured[measured["measure"] == measure].reset_index(drop=True)
        for measure, *_ in panels
    }

    def draw(ax: Axes, measure: str, label: str) -> None:
        figures.draw_mtd_curve(curves[measure], ax, runs=runs, value=measure, name=label)
        figures.add_legend(ax)

    return Drawing(
        title,
        [(head, partial(draw, measure=measure, label=label)) for measure, head, label in panels],
        caption=f"{caption} {BAND}",
        alt=" ".join(
            describe_curve(curves[measure], f"{capitalise(label)} is", decimals=3)
            for measure, _, label in panels
        ),
    )


ALIGNMENT = Topic(
    "geometry",
    "Alignment and uniformity",
    _build_geometry,
    csv=["trials_geometry", "geometry"],
    group="Representation",
)


def _build_paths(context: StudyContext) -> Contents | None:
    """The paths of the methods; None without several, or where no curve has both measures."""
    if not context.compares_methods or not len(paths := compute_paths(context.study)):
        return None
    names = {str(name): context.name_method(name) for name in paths["method"].unique()}
    ends = paths.groupby("method").tail(1)
    text = " ".join(
        f"{clean(names[str(row.method)])} ends at alignment {row.alignment:.3f} and uniformity "
        f"{row.uniformity:.3f}."
        for row in ends.itertuples()
    )
    drawing = Drawing(
        "Alignment against uniformity over training",
        [("", lambda ax: figures.draw_paths(paths, ax, names=names))],
        caption="The mean over trials at each evaluation; a line ends in its mark. Lower is better "
        "for both.",
        alt=text,
    )
    return Contents(csv={"method_paths": paths}, figures={"method_paths": drawing})


PATHS = Topic(
    "method-geometry",
    "Alignment and uniformity by method",
    _build_paths,
    csv=["method_paths"],
    group="Representation",
)


_MOST_LINES = 24


def _build_spectra(context: StudyContext) -> Contents | None:
    """The spectra; None where no run with an MTD has one, or of one level beside methods."""
    trials, recorded = context.curve_trials, context.study.spectra
    spectra = compute_spectra(trials, recorded)
    if not len(spectra) or context.is_one_point:
        return None
    ranks = compute_effective_ranks(trials, recorded)
    before, after = (
        ranks[ranks["moment"] == moment].drop(columns="moment").reset_index(drop=True)
        for moment in ("before", "after")
    )
    text = "The effective rank before training was not recorded."
    if len(before):
        text = f"Before training the effective rank is {before['mean'].mean():.1f}."
    if len(after):
        text += " " + describe_curve(after, "After training it is", decimals=1)
    shown = after.rename(columns={"mean": "after"})
    if before["mean"].round(1).nunique() > 1:  # else the text has the one value
        shown.insert(3, "before", after["mtd"].map(before.set_index("mtd")["mean"]))
    caption = (
        "Effective rank after training, with its interval: how many equally large singular values "
        "would spread as much as these do (the exponential of their entropy)."
    )
    return Contents(
        csv={"spectra": spectra.reset_index(), "effective_rank": ranks},
        figures={"spectra": _draw_spectra(spectra, text)},
        text=[text],
        tables=[make_table(shown, caption=caption, csv="effective_rank")],
    )


def _draw_spectra(spectra: pd.DataFrame, alt: str) -> Drawing:
    before, after = (
        spectra[spectra.index.get_level_values("moment") == moment]
        for moment in ("before", "after")
    )
    drawn = choose_evenly(after, _MOST_LINES)
    caption = (
        "Singular values of the evaluation sentences' embeddings, each divided by the largest, "
        "as the mean over trials. A flatter line means that more dimensions are used."
    )
    if len(drawn) < len(after):
        caption += f" Drawn: {len(drawn)} of {len(after)} levels of MTD, evenly chosen."
    several = len(drawn) > 1
    panels: list[tuple[str, Draw]] = [
        ("spectra" if several else "", lambda ax: figures.draw_spectra(before, drawn, ax))
    ]
    if several:
        title = "after training, divided by the mean over levels"
        panels.append((title, lambda ax: figures.draw_spectrum_ratios(drawn, ax)))
    return Drawing("Singular values before and after training", panels, caption, alt)


SPECTRA = Topic(
    "spectra",
    "Spectra before and after",
    _build_spectra,
    csv=["spectra", "effective_rank"],
    group="Representation",
)


_MIXING = "mixing_weight"


def _build_cap(context: StudyContext) -> Contents | None:
    """Cosines by angle in the encoder's dimension, else in 768; None without mixed negatives."""
    runs = completed_runs(context.trials)
    if _MIXING not in runs or not runs[_MIXING].notna().any():
        return None
    dimension = max(context.width or max(DIMENSIONS), min(DIMENSIONS))
    table = compute_spherical_cap(sorted({*DIMENSIONS, dimension}))
    shown = table.loc[table["dimension"] == dimension, ["angle", "mean", "std", "mixed"]].round(3)
    drawing = Drawing(
        "Cosine of random pairs on a spherical cap",
        [("", lambda ax: figures.draw_spherical_cap(table, ax))],
        caption=(
            "Lines and bands: mean and standard deviation in closed form; crosses with bars: the "
            "same of simulated pairs; dashed: a mixed negative."
        ),
        alt=f"In {dimension:,} dimensions the standard deviation is at most "
        f"{shown['std'].max():.3f}; a mixed negative lies above the mean.",
    )
    caption = f"Mean cosine of random pairs by angle in degrees, in {dimension:,} dimensions."
    labels = {"std": "standard deviation", "mixed": "mixed negative"}
    text = (
        "A model, not a result of these trials: vectors drawn uniformly from a spherical cap of "
        "angle ω, which is narrow for similar sentences. In many dimensions their cosines hardly "
        "vary, so a random negative is almost never a hard one."
    )
    return Contents(
        csv={"spherical_cap": table},
        figures={"spherical_cap": drawing},
        text=[text],
        tables=[make_table(shown, caption=caption, csv="spherical_cap", labels=labels)],
        # what a page compares stands before a model of it
        folded=context.compares_methods,
    )


SPHERICAL_CAP = Topic(
    "spherical-cap",
    "Random and mixed negatives",
    _build_cap,
    csv=["spherical_cap"],
    group="Representation",
)
