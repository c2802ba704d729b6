"""Topic: all trials, and why trials failed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from analysis.data.frames import TRIAL_COLUMNS
from analysis.data.runs import varied_settings
from analysis.report.cells import clean, count, make_table
from analysis.report.context import StudyContext
from analysis.report.page import Table, trial_anchor
from analysis.report.topics.base import Topic
from analysis.statistics.best_trial import DEV, find_scores

FIRST_COLUMNS = (
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
"""First columns of the table of trials, in this order."""
_MOST_ROWS = 1_000
_MOST_REASONS = 20


@dataclass(frozen=True)
class Trials:
    """table: `compute_trials_table`; labels: of the columns that are settings.

    Attributes:
        ranking: the column of the score that ranks the trials.
        columns: those on the page.
    """

    table: pd.DataFrame
    labels: Mapping[str, str]
    ranking: str
    columns: tuple[str, ...]


def compute(context: StudyContext) -> Trials:
    """The trials of any study, also an empty one, with their dev score and the one that ranks."""
    study, trials, ranking = context.study, context.trials, "score"
    names = {DEV, study.select_by} - {"", study.metric}
    added = {name: find_scores(trials, study.scores, name) for name in sorted(names)}
    trials = trials.assign(**{name: value for name, value in added.items() if value.notna().any()})
    if study.select_by in trials and study.select_by in names:
        ranking = study.select_by
    varied = varied_settings(trials, study.settings)
    columns = _choose_columns(trials, varied, [name for name in added if name in trials])
    return Trials(compute_trials_table(trials), context.labels, ranking, columns)


def compute_trials_table(trials: pd.DataFrame) -> pd.DataFrame:
    """All trials by number: `FIRST_COLUMNS`, then other `TRIAL_COLUMNS`, then other settings."""
    known = [name for name in TRIAL_COLUMNS if name in trials and name not in FIRST_COLUMNS]
    rest = [name for name in trials if name not in FIRST_COLUMNS and name not in known]
    return trials[[*FIRST_COLUMNS, *known, *rest]].sort_values("number", ignore_index=True)


def _choose_columns(
    trials: pd.DataFrame, varied: Sequence[str], scores: Sequence[str]
) -> tuple[str, ...]:
    """Score and state, every setting that varied, and what was measured where any trial has it."""
    measured = ["mtd", *scores, "best_step", "wall_seconds", "alignment", "uniformity"]
    known = [name for name in measured if name in trials and trials[name].notna().any()]
    texts = [name for name in ("reason", "note") if name in trials and (trials[name] != "").any()]
    return ("number", "score", "state", "seed", *varied, *known, *texts)


def describe(info: Trials) -> tuple[str, ...]:
    """That there is none."""
    return () if len(info.table) else ("No trial has been started.",)


def show(info: Trials) -> tuple[Table, ...]:
    """Why trials ended without a result, then the trials."""
    trials = info.table
    if not len(trials):
        return ()
    chosen, caption = _choose(trials, info.ranking)
    shown = chosen[list(info.columns)].rename(columns={"wall_seconds": "wall time, s"})
    table = make_table(shown, caption=caption, csv="trials", sortable=True, labels=info.labels)
    anchors = tuple(trial_anchor(int(number)) for number in chosen["number"])
    return (*_reasons(trials), replace(table, anchors=anchors))


def _reasons(trials: pd.DataFrame) -> tuple[Table, ...]:
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
    return (replace(make_table(shown, caption=caption, csv="trials"), name="failures"),)


def _choose(trials: pd.DataFrame, ranking: str) -> tuple[pd.DataFrame, str]:
    """All trials, the best first, or of many the best half of the rows and the last half.

    Returns:
        them with the caption. Trials without a score follow in the order of their numbers.
    """
    done = trials[(trials["state"] == "COMPLETE") & trials[ranking].notna()]
    best = done.sort_values([ranking, "number"], ascending=[False, True]).index
    rest = trials.index.difference(best)
    order = f"best first by {clean(ranking)}"
    if len(trials) <= _MOST_ROWS:
        return trials.loc[[*best, *rest]], f"{count(len(trials), 'trial')}, {order}."
    half = _MOST_ROWS // 2
    others = trials.index.difference(best[:half])[-half:]
    chosen = [*best[:half], *others]
    caption = (
        f"{len(chosen):,} of {len(trials):,} trials: the {min(half, len(best)):,} best, {order}, "
        f"and the {len(others):,} last of the others. The page shows at most {_MOST_ROWS:,} rows; "
        "the CSV has all."
    )
    return trials.loc[chosen], caption


TOPIC = Topic(
    name="trials",
    title="All trials",
    group="Trials",
    compute=compute,
    csv={"trials": lambda info: info.table},
    text=describe,
    tables=show,
    keep_empty=True,
)
