"""Collapse: the score over steps by structure, and where the watch saw it fall.

Source: MoCoSE, figures 5 and 6: a symmetric structure, whose target is a copy of the online
branch (EMA decay 0), with and without a predictor.
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.experiments.settings import with_unrecorded
from analysis.frames import StudyFrames
from analysis.intervals import summarise
from analysis.tasks import STS

STRUCTURE = ["ema_decay", "prediction_layers"]
COLLAPSE_SHARE = 0.5
"""Of the highest score until then: a run whose score stays below this has collapsed."""
_SPEARMAN = {"sts_dev", "sts_test", "sts_average", *STS}


def can_collapse(trials: pd.DataFrame) -> bool:
    """Whether the completed runs set a symmetric structure beside another.

    They vary the EMA decay or the prediction layers, with 0 among their values.
    """
    runs = _runs_of(trials)
    return any((runs[name] == 0).any() and runs[name].nunique() > 1 for name in STRUCTURE)


def _runs_of(trials: pd.DataFrame) -> pd.DataFrame:
    runs = with_unrecorded(trials[trials["state"] == "COMPLETE"])
    return runs[runs["method"] == "mocose"]


def _evaluations(study: StudyFrames) -> pd.DataFrame:
    """A row per evaluation of a run: structure, number, seed, step, score, mean_cosine."""
    runs = _runs_of(study.trials)[["number", "seed", "score_before", *STRUCTURE]]
    seen = study.curves[["score", "uniformity", "mean_cosine"]].notna().any(axis=1)
    columns = ["number", "step", "score", "uniformity", "mean_cosine"]
    return study.curves.loc[seen, columns].merge(runs, on="number")


def compute_collapse(study: StudyFrames, *, level: float = 0.95) -> pd.DataFrame:
    """Mean score on the pairs that choose the checkpoint at each evaluation, by structure.

    Returns ema_decay, prediction_layers, step, n, seeds, mean, low, high (see `summarise`) and
    mean_cosine, that of random pairs of sentences, which goes to 1 as they all coincide. A run
    without a score at a step, because all cosines are the same, is not in its mean. No rows
    unless the study sets a symmetric structure beside another. Raises ValueError for a level
    outside (0, 1).
    """
    seen = _evaluations(study)
    if not can_collapse(study.trials):
        seen = seen.iloc[:0]
    keys = [*STRUCTURE, "step"]
    scored = seen[np.isfinite(seen["score"].astype("float64"))]
    cosines = seen.groupby(keys)["mean_cosine"].mean().reset_index()
    return summarise(scored, by=keys, level=level).merge(cosines, on=keys, how="left")


def _first_collapsed(scores: NDArray[np.float64], start: float) -> int | None:
    """The first evaluation from which on the score is missing or under half of its highest."""
    highest = np.fmax.accumulate(np.append(start, scores))[1:]
    fallen = np.isnan(scores) | (scores < COLLAPSE_SHARE * highest)
    if not fallen[-1]:
        return None
    sound = np.flatnonzero(~fallen)
    return int(sound[-1]) + 1 if len(sound) else 0


def compute_collapse_watch(study: StudyFrames) -> pd.DataFrame:
    """In how many runs of each structure the watch saw a collapse, and from which step on.

    A run has collapsed from the first evaluation from which on, to its end, its score is
    missing (every cosine the same) or under half of the highest until then. The highest starts
    with the score of the untrained encoder where the study's metric is a correlation too.

    Returns ema_decay, prediction_layers, n, collapsed (runs), first and last (the earliest and
    the latest such step, NaN for none). No rows unless the study sets a symmetric structure
    beside another and its evaluations were kept.
    """
    seen = _evaluations(study).sort_values(["number", "step"])
    rows = []
    if can_collapse(study.trials):
        for (decay, layers, _), run in seen.groupby([*STRUCTURE, "number"]):
            before = float(run["score_before"].iloc[0]) if study.metric in _SPEARMAN else np.nan
            at = _first_collapsed(run["score"].to_numpy(dtype=np.float64), before)
            rows.append((decay, layers, np.nan if at is None else float(run["step"].iloc[at])))
    steps = pd.DataFrame(rows, columns=[*STRUCTURE, "step"])
    steps_of = steps.groupby(STRUCTURE)["step"]
    found = steps_of.agg(n="size", collapsed="count", first="min", last="max")
    return found.reset_index()
