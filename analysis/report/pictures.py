"""The figures of a report: what they hold, and the words that go with them."""

import pandas as pd
from matplotlib.axes import Axes

from analysis import figures
from analysis.curves import format_mtd
from analysis.published import load_published
from analysis.report.drawing import Draw, make_picture
from analysis.report.page import Picture
from analysis.report.results import Results
from analysis.report.wording import PERCENT, describe_curve

_BAND = f"The band is the {PERCENT} t interval over seeds."


def _load_curve(name: str) -> pd.DataFrame:
    """A published curve with the columns of a study's own."""
    names = {"correlation": "mean", "band_low": "low", "band_high": "high"}
    return load_published(name).rename(columns=names)


def picture_mtd_curve(results: Results) -> Picture:
    """Score against MTD: every run, seed by seed, and the paper's curve."""

    def draw_study(ax: Axes) -> None:
        figures.draw_mtd_curve(
            results.curve, ax, runs=results.runs, value="score", name="score x 100"
        )
        figures.draw_simcse(results.simcse, ax)
        ax.legend(ncols=3, loc="lower right", bbox_to_anchor=(1, 1))

    def draw_published(ax: Axes) -> None:
        figures.draw_published_curve(_load_curve("figure2_mtd"), ax)

    panels: list[tuple[str, Draw]] = [("this study: every run, and the mean", draw_study)]
    if results.verdict.seeds > 1 and results.verdict.levels > 1:
        heading = "this study, seed effect removed"
        panels.append((heading, lambda ax: figures.draw_paired_curve(results.paired, ax)))
    panels.append((figures.PAPER, draw_published))
    return make_picture(
        "mtd_curve",
        "Score against maximum traceable distance",
        panels,
        height=2.9 * len(panels),
        caption=(
            "Top: a point per run, a thin line per seed, and the mean over seeds. Where there "
            "are several seeds, the panel below it shows each seed less its own mean, which "
            "removes what a seed adds to all its runs; the verdict rests on it. Bottom: the "
            f"paper's figure 2, for its shape only. {_BAND}"
        ),
        alt=f"{describe_curve(results.curve, 'The mean score is')} {results.verdict.sentence}",
        note=results.note,
    )


def picture_batches(results: Results) -> Picture:
    """Score against MTD by batch size, and the paper's curves."""
    published = _load_curve("figure3_mtd_by_batch")
    verdicts = [
        f"Batch size {size}: {verdict.shape}, best at MTD {format_mtd(verdict.peak.mtd)}."
        for size, verdict in results.batch_verdicts.items()
    ]

    def draw(curves: pd.DataFrame, name: str) -> Draw:
        return lambda ax: figures.draw_batch_curves(curves, ax, name=name)

    return make_picture(
        "mtd_by_batch",
        "Score against maximum traceable distance, by batch size",
        [
            ("this study", draw(results.batches, "score x 100")),
            (
                "this study, seed effect removed",
                draw(results.paired_batches, "points from the\nseed's own mean"),
            ),
            (figures.PAPER, draw(published, "Spearman x 100")),
        ],
        height=8.7,
        caption=(
            "Top: mean over seeds. Middle: each seed less its own mean at that batch size. "
            f"Bottom: the paper's figure 3, for its shape only. {_BAND}"
        ),
        alt=" ".join(verdicts),
        note=results.note,
    )


def _measure(results: Results, name: str) -> pd.DataFrame:
    return results.geometry[results.geometry["measure"] == name].reset_index(drop=True)


def _draw_measure(results: Results, name: str, label: str) -> Draw:
    def draw(ax: Axes) -> None:
        curve = _measure(results, name)
        figures.draw_mtd_curve(curve, ax, runs=results.distances, value=name, name=label)

    return draw


def _describe_measure(results: Results, name: str, label: str) -> str:
    return describe_curve(_measure(results, name), f"{label} is", decimals=3)


def picture_geometry(results: Results) -> Picture:
    """Alignment and uniformity against MTD."""
    alt = " ".join(
        _describe_measure(results, name, label)
        for name, label in (("alignment", "Alignment"), ("uniformity", "Uniformity"))
    )
    return make_picture(
        "alignment_uniformity",
        "Alignment and uniformity against maximum traceable distance",
        [
            (
                "alignment: lower, paraphrases closer",
                _draw_measure(results, "alignment", "alignment"),
            ),
            (
                "uniformity: lower, more spread out",
                _draw_measure(results, "uniformity", "uniformity"),
            ),
        ],
        height=5.8,
        caption=f"A point per run, a thin line per seed, the mean over seeds. {_BAND}",
        alt=alt,
        note=results.note,
    )


def picture_plane(results: Results) -> Picture:
    """Alignment and uniformity of each run as a plane."""
    nearest = results.distances.iloc[int(results.distances["l2"].argmin())]
    return make_picture(
        "alignment_uniformity_plane",
        "Alignment and uniformity of each run",
        [("", lambda ax: figures.draw_plane(results.distances, ax))],
        height=4.2,
        caption=(
            "A point per run, coloured by MTD. The star is the ideal: alignment 0, uniformity −4."
        ),
        alt=(
            f"The run nearest the ideal has MTD {format_mtd(nearest['mtd'])}, alignment "
            f"{nearest['alignment']:.3f} and uniformity {nearest['uniformity']:.3f}."
        ),
        note=results.note,
    )


def picture_distance(results: Results) -> Picture:
    """Distance of (alignment, uniformity) from the ideal point against MTD."""
    alt = " ".join(
        _describe_measure(results, name, f"The {name.upper()} distance") for name in ("l1", "l2")
    )
    return make_picture(
        "distance",
        "Distance from the ideal point against maximum traceable distance",
        [
            ("L1: sum of both differences", _draw_measure(results, "l1", "L1 distance")),
            ("L2: straight-line distance", _draw_measure(results, "l2", "L2 distance")),
        ],
        height=5.8,
        caption=(
            "How far each run's (uniformity, alignment) lies from the ideal point: alignment 0, "
            "where paraphrases coincide, and uniformity −4, that of vectors spread evenly over "
            f"a sphere of many dimensions. Lower is better. {_BAND}"
        ),
        alt=alt,
        note=results.note,
    )


def picture_spectra(results: Results) -> Picture:
    """Singular values before and after training."""
    after = results.ranks[results.ranks["moment"] == "after"]
    before = results.ranks[results.ranks["moment"] == "before"]["mean"]
    caption = (
        "Singular values of the evaluation sentences' embeddings, each divided by the largest, "
        "as the mean over runs. A flatter line means that more dimensions are used."
    )
    drawn = len(figures.spectra_drawn(results.spectra))
    if drawn < len(after):
        caption += f" Drawn: {drawn} of {len(after)} levels of MTD, evenly chosen."
    alt = "The effective rank before training was not recorded."
    if len(before):
        alt = f"Before training the effective rank is {before.mean():.1f}."
    if len(after):
        alt += " " + describe_curve(after, "After training it is", decimals=1)
    return make_picture(
        "spectra",
        "Singular values before and after training",
        [("", lambda ax: figures.draw_spectra(results.spectra, ax))],
        height=4.2,
        caption=caption,
        alt=alt,
        note=results.note,
    )
