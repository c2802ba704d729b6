"""How trials were trained: loss and dev scores over the steps, and collapse by structure.

Source of the collapse: MoCoSE, figures 5 and 6: a symmetric structure, whose target is a copy of
the online branch (EMA decay 0), with and without a predictor.
"""

from collections.abc import Collection

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import Settings, StudyFrames
from mtdlab.analysis.data.published import METHOD
from mtdlab.analysis.data.runs import choose_evenly, completed_runs, has_mtd
from mtdlab.analysis.data.settings import with_defaults
from mtdlab.analysis.data.tasks import DEV, LAST, STS
from mtdlab.analysis.inference.intervals import summarise

MOST_TRIALS = 40
"""The most trials whose curves are shown; of more, evenly chosen ones."""
MOST_POINTS = 50
"""The most points of a trial's loss, each the mean over its part of the steps."""


def choose_curves(trials: pd.DataFrame) -> Collection[int]:
    """The numbers of the trials whose curves are shown: evenly chosen in the order of their MTD.

    Trials that have ended count, completed or not.
    """
    ended = trials[trials["state"].isin(["COMPLETE", "FAIL", "PRUNED"])]
    distance = ended["mtd"].astype("float64").where(has_mtd(ended), 0.0)
    ordered = ended.assign(distance=distance).sort_values(["distance", "seed"], kind="stable")
    return [int(number) for number in choose_evenly(ordered, MOST_TRIALS)["number"]]


def count_best_at_end(trials: pd.DataFrame) -> tuple[int, int]:
    """How many completed trials were best at their last evaluation, and of how many this is known.

    The last evaluation is that of the last step; (0, 0) where best step or steps are not recorded.
    Trials that were evaluated once, or whose checkpoint is always that of the last step, do not
    count.
    """
    if not {"best_step", "steps"} <= set(trials):
        return 0, 0
    runs = completed_runs(trials)
    if "select_on" in runs:
        runs = runs[runs["select_on"] != LAST]
    if "evaluate_every" in runs:
        runs = runs[~(runs["evaluate_every"] >= runs["steps"])]
    known = runs[runs["best_step"].notna() & runs["steps"].notna()]
    return int((known["best_step"] == known["steps"]).sum()), len(known)


def compute_training(study: StudyFrames) -> pd.DataFrame:
    """The curves of at most 40 trials: number, step, loss, score.

    A row stands for several steps, at most 50 rows a trial: step is their last, loss their mean,
    score that of the pairs that choose the checkpoint, NaN where the steps have no evaluation.
    """
    chosen = choose_curves(study.trials)
    curves = study.curves[study.curves["number"].isin(list(chosen))]
    columns = ["number", "step", "loss", "score"]
    if not len(curves):
        return pd.DataFrame(columns=columns, dtype="float64")
    steps = curves.groupby("number")["step"].transform("max")
    part = np.ceil(curves["step"] * steps.clip(upper=MOST_POINTS) / steps)
    groups = curves.assign(part=part).groupby(["number", "part"])
    table = groups.agg(step=("step", "max"), loss=("loss", "mean")).reset_index()
    scored = curves.loc[curves["score"].notna(), ["number", "step", "score"]]
    merged = table.merge(scored, on=["number", "step"], how="outer")
    return merged.sort_values(["number", "step"], ignore_index=True)[columns]


def compute_training_means(curves: pd.DataFrame, *, value: str) -> pd.DataFrame:
    """The mean of a column of `compute_training` over the seeds of each group, at each step.

    The means are over the trials that reached the last step of their group, so that none changes
    because a trial failed or was pruned. Columns: group (in the order of `curves`), step, n, seeds,
    mean, low, high; the interval covers seeds, for these items.
    """
    known = curves[curves[value].notna()]
    last = known.groupby("number")["step"].transform("max")
    whole = known[last == known.groupby("group")["step"].transform("max")]
    means = summarise(whole, by=["group", "step"], value=value)
    order = {group: place for place, group in enumerate(curves["group"].unique())}
    placed = means.assign(place=means["group"].map(order))
    return placed.sort_values(["place", "step"], ignore_index=True).drop(columns="place")


STRUCTURE = ["ema_decay", "prediction_layers"]
_OF_STRUCTURE = ["state", "number", "seed", "score_before", *STRUCTURE]
COLLAPSE_SHARE = 0.5
"""A score below this share of the highest score so far, if that is above 0, counts as collapsed."""
COLLAPSE_COSINE = 0.99
"""Above this mean cosine of random sentence pairs, rounding errors dominate the scores."""
_COLLAPSED = r"^(?:no \S+: )?collapsed"
_SPEARMAN = {DEV, "sts_test", "sts_average", *STS}


def can_collapse(trials: pd.DataFrame, settings: Settings) -> bool:
    """Whether the runs that started allow a comparison with a symmetric structure.

    They vary the EMA decay or the prediction layers, and one of the values is 0.
    """
    runs = _runs_of(trials, settings)
    return any((runs[name] == 0).any() and runs[name].nunique() > 1 for name in STRUCTURE)


def _runs_of(trials: pd.DataFrame, settings: Settings) -> pd.DataFrame:
    """The runs that started, failed ones included, since a collapse can end a run."""
    started = (trials["state"] != "WAITING") & trials["ema_decay"].notna()
    runs = with_defaults(trials[started], settings)
    if "method" in runs:
        runs = runs[runs["method"] == METHOD]
    return runs if set(STRUCTURE) <= set(runs) else runs.iloc[:0].reindex(columns=_OF_STRUCTURE)


def _evaluations(study: StudyFrames) -> pd.DataFrame:
    """A row per evaluation of a completed run: number, step, score, mean_cosine; the run's own."""
    runs = _runs_of(study.trials, study.settings)
    runs = runs.loc[runs["state"] == "COMPLETE", _OF_STRUCTURE[1:]]
    seen = study.curves[["score", "uniformity", "mean_cosine"]].notna().any(axis=1)
    columns = ["number", "step", "score", "mean_cosine"]
    return study.curves.loc[seen, columns].merge(runs, on="number")


def compute_collapse(study: StudyFrames) -> pd.DataFrame:
    """Mean score at each evaluation, on the pairs that select the checkpoint, by structure.

    Columns: ema_decay, prediction_layers, step, n, seeds, mean, low, high and mean_cosine, that of
    random pairs of sentences, which is 1 after a complete collapse. A run whose score at a step is
    undefined, because all cosines are equal, is not in the mean of that step. No rows unless
    `can_collapse`.
    """
    seen = _evaluations(study)
    if not can_collapse(study.trials, study.settings):
        seen = seen.iloc[:0]
    keys = [*STRUCTURE, "step"]
    scored = seen[np.isfinite(seen["score"].astype("float64"))]
    cosines = seen.groupby(keys)["mean_cosine"].mean().reset_index()
    return summarise(scored, by=keys).merge(cosines, on=keys, how="left")


def _first_collapsed(run: pd.DataFrame, start: float) -> float:
    """The first step from which on every evaluation shows a collapse, or NaN."""
    scores = run["score"].to_numpy(dtype=np.float64)
    highest = np.fmax.accumulate(np.append(start, scores))[1:]
    fallen = (highest > 0) & (scores < COLLAPSE_SHARE * highest)
    coincide = run["mean_cosine"].to_numpy(dtype=np.float64) > COLLAPSE_COSINE
    # a score is undefined where all cosines are equal
    sound = np.flatnonzero(~(np.isnan(scores) | fallen | coincide))
    at = int(sound[-1]) + 1 if len(sound) else 0
    return float(run["step"].iloc[at]) if at < len(run) else np.nan


def _detect(study: StudyFrames) -> pd.Series:
    """The step of the collapse of each completed run with evaluations, or NaN, by its number."""
    correlated = study.metric in _SPEARMAN
    steps = {
        number: _first_collapsed(run, float(run["score_before"].iloc[0]) if correlated else np.nan)
        for number, run in _evaluations(study).sort_values("step").groupby("number")
    }
    return pd.Series(steps, dtype="float64")


def _ended(trials: pd.DataFrame) -> pd.Series:
    """Whether each trial failed because it had collapsed."""
    return (trials["state"] == "FAIL") & trials["reason"].astype("str").str.contains(_COLLAPSED)


def assess_collapse(study: StudyFrames) -> pd.Series:
    """Whether each trial collapsed, by its number: those that ended by it, or whose curve was read.

    Of a completed trial whose curve was not read it is not known; it is left out.
    """
    known = dict.fromkeys(study.trials.loc[_ended(study.trials), "number"].astype(int), True)
    # a program of the user reports scores alone
    if "mean_cosine" in study.curves and study.curves["mean_cosine"].notna().any():
        known |= _detect(study).notna().to_dict()
    return pd.Series(known, dtype="bool")


def detect_collapse(study: StudyFrames) -> pd.DataFrame:
    """In how many runs of each structure a collapse was detected, and from which step on.

    A run that failed because it had collapsed counts, without a step.

    Columns: ema_decay, prediction_layers, n (runs that can be classified: completed with
    evaluations, or failed by collapse), collapsed, failed (for other reasons) and pruned (neither
    is in n), first and last (the earliest and the latest such step, NaN for none). No rows unless
    `can_collapse`, or without runs.
    """
    counted = ["n", "collapsed", "failed", "pruned"]
    if not can_collapse(study.trials, study.settings):
        return pd.DataFrame(columns=[*STRUCTURE, *counted, "first", "last"])
    runs, steps = _runs_of(study.trials, study.settings), _detect(study)
    ended = _ended(runs)
    runs = runs.assign(
        step=runs["number"].map(steps),
        n=runs["number"].isin(steps.index) | ended,
        failed=(runs["state"] == "FAIL") & ~ended,
        pruned=runs["state"] == "PRUNED",
    )
    runs["collapsed"] = runs["step"].notna() | ended
    groups = runs[runs[["n", "failed", "pruned"]].any(axis=1)].groupby(STRUCTURE)
    first_and_last = groups["step"].agg(first="min", last="max")
    return groups[counted].sum().join(first_and_last).reset_index()
