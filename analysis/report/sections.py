"""The sections of a report: which there are, and what stands in each."""

import pandas as pd

from analysis.report import pictures
from analysis.report.cells import make_table
from analysis.report.page import Section, Table
from analysis.report.results import Results
from analysis.report.wording import PERCENT, count, describe_curve
from analysis.tasks import STS

_MOST_ROWS = 400
_MOST_LEVELS = 100
_MOST_REASONS = 20
_SHOWN = (
    "number",
    "state",
    "seed",
    "ema_decay",
    "queue_size",
    "batch_size",
    "initial_queue_size",
    "mtd",
    "score",
    "alignment",
    "uniformity",
    "reason",
)
_OPTIONAL = ("method", "queue_slice")


def _thin_rows(frame: pd.DataFrame, what: str) -> tuple[pd.DataFrame, str]:
    """At most 100 rows at even steps, and a remark if that left some out."""
    if len(frame) <= _MOST_LEVELS:
        return frame, ""
    step = -(-len(frame) // _MOST_LEVELS)
    return frame.iloc[::step], f" One in {step} of the {len(frame):,} {what}; the CSV has all."


def _section_score(results: Results, tables: dict[str, pd.DataFrame]) -> Section:
    title = "Score against maximum traceable distance"
    if not len(results.curve):
        return Section("score", title, ("No completed run has a score, so there is no curve.",))
    curve, remark = _thin_rows(tables["mtd_curve"].drop(columns="level"), "levels")
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


def _section_batches(results: Results) -> Section | None:
    if not len(results.batches):
        return None
    text = tuple(
        f"Batch size {size}. {verdict.sentence}" for size, verdict in results.batch_verdicts.items()
    )
    rows, remark = _thin_rows(results.batches, "rows")
    table = make_table(
        rows, caption=f"Mean score by batch size and MTD.{remark}", csv="mtd_by_batch"
    )
    picture = pictures.picture_batches(results)
    return Section("batches", "By batch size", text, pictures=(picture,), tables=(table,))


def _section_geometry(results: Results) -> Section | None:
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
    rows, remark = _thin_rows(means[columns].reset_index(), "levels")
    table = make_table(
        rows,
        caption=(
            "Mean of each measure by MTD; L1 and L2 are the distances from the ideal point. "
            f"The CSV also has their intervals.{remark}"
        ),
        csv="geometry",
    )
    return Section("geometry", "Alignment and uniformity", text, pictures=drawn, tables=(table,))


def _section_spectra(results: Results) -> Section | None:
    if not len(results.spectra):
        return None
    picture = pictures.picture_spectra(results)
    ranks = results.ranks
    before = ranks[ranks["moment"] == "before"].set_index("mtd")["mean"]
    after = ranks[ranks["moment"] == "after"].drop(columns="moment").reset_index(drop=True)
    after.insert(3, "before", after["mtd"].map(before))
    rows, remark = _thin_rows(after.rename(columns={"mean": "after"}), "levels")
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


def _section_tasks(results: Results) -> Section | None:
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
    rows, remark = _thin_rows(wide.reset_index(), "levels")
    shown = make_table(
        rows,
        caption=(
            "Mean score of each task by MTD, x 100: Spearman for STS, accuracy for transfer "
            f"tasks. {average} The CSV has runs, seeds and intervals.{remark}"
        ),
        csv="tasks",
    )
    return Section("tasks", "Scores by task", tables=(shown,))


def _section_initial_queue(results: Results) -> Section | None:
    table = results.initial_queue
    if not len(table):
        return None
    rows, remark = _thin_rows(table, "rows")
    shown = make_table(
        rows,
        caption=(
            "Score by share of the queue that starts as random vectors and by queue size; "
            f"published: the paper's table 7, on other data.{remark}"
        ),
        csv="initial_queue",
    )
    if (table.groupby("queue_size")["share"].nunique() == 1).all():
        warning = (
            "Each queue size was run with one share only, so what the share does and what the "
            "queue size does cannot be told apart here."
        )
        return Section("initial-queue", "Initial queue", warnings=(warning,), tables=(shown,))
    picture = pictures.picture_initial_queue(results)
    return Section(
        "initial-queue", "Initial queue", (picture.alt,), pictures=(picture,), tables=(shown,)
    )


def _section_slices(results: Results) -> Section | None:
    if not len(results.slices):
        return None
    picture = pictures.picture_slices(results)
    table = make_table(
        results.slices,
        caption=(
            "Score by the positions of the queue that enter the loss; published: the paper's "
            "table 8, on other data."
        ),
        csv="queue_slices",
    )
    return Section("slices", "Queue slices", (picture.alt,), pictures=(picture,), tables=(table,))


def _table_reasons(trials: pd.DataFrame) -> tuple[Table, ...]:
    """Why trials failed or were stopped, the commonest reason first."""
    ended = trials[trials["state"].isin(["FAIL", "PRUNED"])]
    if not len(ended):
        return ()
    reasons = ended.assign(reason=ended["reason"].replace("", "not recorded"))
    counts = reasons.groupby(["state", "reason"])["number"].agg(["size", "min"])
    counts = counts.sort_values(["size", "min"], ascending=[False, True]).reset_index()
    counts.columns = pd.Index(["state", "reason", "n", "first trial"])
    caption = "Why trials ended without a result."
    if len(counts) > _MOST_REASONS:
        caption += f" The {_MOST_REASONS} commonest of {len(counts):,} reasons."
    shown = counts.head(_MOST_REASONS)[["n", "state", "reason", "first trial"]]
    return (make_table(shown, caption=caption, csv="trials"),)


def _choose_trials(trials: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """All trials, or of many the best half of the rows and the last half."""
    if len(trials) <= _MOST_ROWS:
        return trials, f"{count(len(trials), 'trial')}."
    half = _MOST_ROWS // 2
    done = trials[trials["state"] == "COMPLETE"]
    best = done.nlargest(half, "score").index
    chosen = best.union(trials.index.difference(best)[-half:])
    caption = (
        f"{len(chosen)} of {len(trials):,} trials: the {len(best)} best and the "
        f"{len(chosen) - len(best)} last of the others. The CSV has all."
    )
    return trials.loc[chosen], caption


def _section_trials(results: Results) -> Section:
    trials = results.trials
    if not len(trials):
        return Section("trials", "All trials", ("No trial has been started.",))
    chosen, caption = _choose_trials(trials)
    extra = [name for name in _OPTIONAL if name in trials and trials[name].nunique() > 1]
    shown = chosen[[*_SHOWN[:-1], *extra, _SHOWN[-1]]]
    table = make_table(shown, caption=caption, csv="trials", sortable=True)
    return Section("trials", "All trials", tables=(*_table_reasons(trials), table))


def build_sections(results: Results, tables: dict[str, pd.DataFrame]) -> tuple[Section, ...]:
    """The sections that the study has something to say in, in their order on the page.

    tables  `tabulate(results)`.
    """
    sections = (
        _section_score(results, tables),
        _section_batches(results),
        _section_tasks(results),
        _section_geometry(results),
        _section_spectra(results),
        _section_initial_queue(results),
        _section_slices(results),
        _section_trials(results),
    )
    return tuple(section for section in sections if section is not None)
