"""The sections that read a study against MTD."""

import pandas as pd

from analysis.report import pictures
from analysis.report.cells import make_table
from analysis.report.page import Section
from analysis.report.results import Results
from analysis.report.wording import PERCENT, describe_curve
from analysis.tasks import STS

_MOST_LEVELS = 100


def thin_rows(frame: pd.DataFrame, what: str) -> tuple[pd.DataFrame, str]:
    """At most 100 rows at even steps, and a remark if that left some out."""
    if len(frame) <= _MOST_LEVELS:
        return frame, ""
    step = -(-len(frame) // _MOST_LEVELS)
    return frame.iloc[::step], f" One in {step} of the {len(frame):,} {what}; the CSV has all."


def section_score(results: Results, tables: dict[str, pd.DataFrame]) -> Section:
    """The score against MTD. tables  `tabulate(results)`."""
    title = "Score against maximum traceable distance"
    if not len(results.curve):
        why = "SimCSE has no queue" if len(results.simcse) else "No completed run has a score"
        return Section("score", title, (f"{why}, so there is no curve.",))
    curve, remark = thin_rows(tables["mtd_curve"].drop(columns="level"), "levels")
    paired = [name for name in ("paired_seeds",) if name in curve]
    table = make_table(
        curve.drop(columns=paired),
        caption=(
            f"Mean score at each MTD with its {PERCENT} interval over seeds, and the same after "
            f"each seed's own mean is taken away.{remark}"
        ),
        csv="mtd_curve",
    )
    picture = pictures.picture_mtd_curve(results)
    text = (describe_curve(results.curve, "The mean score is"),)
    return Section("score", title, text, pictures=(picture,), tables=(table,))


def section_batches(results: Results) -> Section | None:
    """The same by batch size, where there are several."""
    if not len(results.batches):
        return None
    text = tuple(
        f"Batch size {size}. {verdict.sentence}" for size, verdict in results.batch_verdicts.items()
    )
    rows, remark = thin_rows(results.batches, "rows")
    table = make_table(
        rows, caption=f"Mean score by batch size and MTD.{remark}", csv="mtd_by_batch"
    )
    picture = pictures.picture_batches(results)
    return Section("batches", "By batch size", text, pictures=(picture,), tables=(table,))


def section_geometry(results: Results) -> Section | None:
    """Alignment, uniformity and their distance from the ideal, where they were measured."""
    if not len(results.distances):
        return None
    text = (
        "Alignment is the mean squared distance between the two sentences of a paraphrase "
        "pair; uniformity is the logarithm of how close all sentences are to each other. Both "
        "are taken of vectors of length 1, and of both less is better.",
    )
    drawn = (
        pictures.picture_geometry(results),
        pictures.picture_plane(results),
        pictures.picture_distance(results),
    )
    means = results.geometry.pivot(index=["mtd", "n", "seeds"], columns="measure", values="mean")
    columns = ["alignment", "uniformity", "l1", "l2"]
    rows, remark = thin_rows(means[columns].reset_index(), "levels")
    table = make_table(
        rows,
        caption=(
            "Mean of each measure by MTD; L1 and L2 are the distances from the ideal point. "
            f"The CSV also has their intervals.{remark}"
        ),
        csv="geometry",
    )
    return Section("geometry", "Alignment and uniformity", text, pictures=drawn, tables=(table,))


def section_spectra(results: Results) -> Section | None:
    """Singular values before and after training, where they were kept."""
    if not len(results.spectra):
        return None
    picture = pictures.picture_spectra(results)
    ranks = results.ranks
    before = ranks[ranks["moment"] == "before"].set_index("mtd")["mean"]
    after = ranks[ranks["moment"] == "after"].drop(columns="moment").reset_index(drop=True)
    after.insert(3, "before", after["mtd"].map(before))
    rows, remark = thin_rows(after.rename(columns={"mean": "after"}), "levels")
    table = make_table(
        rows,
        caption=(
            "Effective rank: the number of equally large singular values that would spread as "
            "much as these do (the exponential of their entropy). The interval is that of the "
            f"rank after training.{remark}"
        ),
        csv="effective_rank",
    )
    return Section(
        "spectra", "Spectra before and after", (picture.alt,), pictures=(picture,), tables=(table,)
    )


def section_tasks(results: Results) -> Section | None:
    """The tasks of the published tables, where any was scored."""
    table = results.tasks
    if not len(table):
        return None
    wide = table.pivot(index="mtd", columns="task", values="mean")[list(table["task"].unique())]
    missing = [name for name in STS if name not in wide]
    if missing:
        average = f"No average: the study was not scored on {', '.join(missing)}."
    else:
        wide.insert(7, "STS average", wide[list(STS)].mean(axis=1))
        average = "The average is that of the seven STS tasks."
    rows, remark = thin_rows(wide.reset_index(), "levels")
    shown = make_table(
        rows,
        caption=(
            "Mean score of each task by MTD, x 100: Spearman for STS, accuracy for transfer "
            f"tasks. {average} The CSV has runs, seeds and intervals.{remark}"
        ),
        csv="tasks",
    )
    return Section("tasks", "Scores by task", tables=(shown,))
