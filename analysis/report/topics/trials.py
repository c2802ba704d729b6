"""Topic: all trials, and why trials failed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import pandas as pd

from analysis.best_trial import find_scores
from analysis.report.cells import make_table
from analysis.report.context import StudyContext
from analysis.report.page import Table
from analysis.report.text import count
from analysis.report.topics.base import Topic
from analysis.report.trial_links import trial_anchor
from analysis.runs import varied_settings
from analysis.tables import FIRST_COLUMNS, compute_trials_table

_MOST_ROWS = 400
_MOST_REASONS = 20
_IF_VARIED = ("method", "queue_slice")


@dataclass(frozen=True)
class Trials:
    """table: `compute_trials_table`; labels: of the columns that are settings.

    ranking  the column of the score that ranks the trials.
    """

    table: pd.DataFrame
    labels: Mapping[str, str]
    ranking: str


def compute(context: StudyContext) -> Trials:
    """The trials of any study, also an empty one, with the score that ranks them."""
    study, trials, ranking = context.study, context.trials, "score"
    if study.select_by not in ("", study.metric):
        ranking = study.select_by
        trials = trials.assign(**{ranking: find_scores(trials, study.scores, ranking)})
    return Trials(compute_trials_table(trials), context.labels, ranking)


def describe(info: Trials) -> tuple[str, ...]:
    """That there is none."""
    return () if len(info.table) else ("No trial has been started.",)


def show(info: Trials) -> tuple[Table, ...]:
    """Why trials ended without a result, then the trials."""
    trials = info.table
    if not len(trials):
        return ()
    chosen, caption = _choose(trials, info.ranking)
    varied = varied_settings(trials, _IF_VARIED)
    extra = [name for name in _IF_VARIED if name in varied]
    columns = [*FIRST_COLUMNS[:-1], *extra, FIRST_COLUMNS[-1]]
    if info.ranking not in columns:
        columns.insert(columns.index("score") + 1, info.ranking)
    notes = ["note"] if "note" in trials else []
    shown = chosen[[*columns, *notes]]
    table = make_table(shown, caption=caption, csv="trials", sortable=True, labels=info.labels)
    anchors = tuple(trial_anchor(int(number)) for number in shown["number"])
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
    return (make_table(shown, caption=caption, csv="trials"),)


def _choose(trials: pd.DataFrame, ranking: str) -> tuple[pd.DataFrame, str]:
    """All trials, or of many the best half of the rows and the last half; and the caption."""
    if len(trials) <= _MOST_ROWS:
        return trials, f"{count(len(trials), 'trial')}."
    half = _MOST_ROWS // 2
    done = trials[trials["state"] == "COMPLETE"]
    best = done.nlargest(half, ranking).index
    chosen = best.union(trials.index.difference(best)[-half:])
    caption = (
        f"{len(chosen)} of {len(trials):,} trials: the {len(best)} best and the "
        f"{len(chosen) - len(best)} last of the others. The CSV has all."
    )
    return trials.loc[chosen], caption


TOPIC = Topic(
    name="trials",
    title="All trials",
    compute=compute,
    csv={"trials": lambda info: info.table},
    text=describe,
    tables=show,
    keep_empty=True,
)
