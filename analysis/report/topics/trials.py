"""Topic: all trials, and why trials failed."""

from dataclasses import dataclass, replace

import pandas as pd

from analysis.data.frames import TRIAL_COLUMNS
from analysis.data.runs import varied_settings
from analysis.report.cells import clean, count, make_table
from analysis.report.page import trial_anchor
from analysis.report.topics.base import StudyContext, Table, Topic
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
    """The table of all trials, its columns of scores beside the metric, and the one that ranks."""

    context: StudyContext
    table: pd.DataFrame
    scores: tuple[str, ...]
    ranking: str


def compute(context: StudyContext) -> Trials:
    """The trials of any study, also an empty one."""
    study, trials = context.study, context.trials
    names = {DEV, study.select_by} - {"", study.metric}
    scores = {name: find_scores(trials, study.scores, name) for name in sorted(names)}
    known = {name: values for name, values in scores.items() if values.notna().any()}
    table = compute_trials_table(trials.assign(**known))
    ranking = study.select_by if study.select_by in known else "score"
    return Trials(context, table, tuple(known), ranking)


def compute_trials_table(trials: pd.DataFrame) -> pd.DataFrame:
    """All trials by number: `FIRST_COLUMNS`, then other `TRIAL_COLUMNS`, then other settings."""
    known = [name for name in TRIAL_COLUMNS if name in trials and name not in FIRST_COLUMNS]
    rest = [name for name in trials if name not in FIRST_COLUMNS and name not in known]
    return trials[[*FIRST_COLUMNS, *known, *rest]].sort_values("number", ignore_index=True)


def show(info: Trials) -> tuple[Table, ...]:
    """The tables of the reasons of failures and of all trials.

    The latter has scores and states, every setting that varied, and each measure that any trial
    has.
    """
    trials, study = info.table, info.context.study
    measured = ["mtd", *info.scores, "best_step", "wall_seconds", "alignment", "uniformity"]
    known = [name for name in measured if name in trials and trials[name].notna().any()]
    known += [name for name in ("reason", "note") if name in trials and (trials[name] != "").any()]
    varied = varied_settings(trials, study.settings)
    chosen, caption = _choose(trials, info.ranking)
    shown = chosen[["number", "score", "state", "seed", *varied, *known]]
    table = make_table(
        shown.rename(columns={"wall_seconds": "wall time, s"}),
        caption=caption,
        csv="trials",
        sortable=True,
        labels=info.context.labels,
    )
    anchors = tuple(trial_anchor(int(number)) for number in chosen["number"])
    return _show_reasons(trials), replace(table, anchors=anchors)


def _show_reasons(trials: pd.DataFrame) -> Table:
    """The table of why trials failed or were stopped, the commonest reason first."""
    ended = trials[trials["state"].isin(["FAIL", "PRUNED"])]
    reasons = ended.assign(reason=ended["reason"].replace("", "not recorded"))
    counts = reasons.groupby(["state", "reason"], as_index=False)["number"].agg(["size", "min"])
    counts = counts.sort_values(["size", "min"], ascending=[False, True])
    caption = "Why trials ended without a result."
    if len(counts) > _MOST_REASONS:
        caption += f" The {_MOST_REASONS} commonest of {len(counts):,} reasons."
    shown = counts.head(_MOST_REASONS)[["size", "state", "reason", "min"]]
    named = shown.rename(columns={"size": "n", "min": "first trial"})
    return replace(make_table(named, caption=caption, csv="trials"), name="failures")


def _choose(trials: pd.DataFrame, ranking: str) -> tuple[pd.DataFrame, str]:
    """All trials, the best first, or of many the best half of the rows and the last half.

    Returns:
        The trials with the caption. Trials without a score follow in the order of their numbers.
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
    text=lambda info: () if len(info.table) else ("No trial has been started.",),
    tables=show,
    keep_empty=True,
    folded=lambda _: True,
)
