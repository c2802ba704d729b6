"""What claims compare of a run beside its score: tasks, geometry, spectra, the end of training.

All are larger where a claim says that a side has more of it.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import completed_runs
from mtdlab.analysis.data.tasks import TASKS, TRANSFER
from mtdlab.analysis.statistics.curves import effective_rank, measure_distances

_LAST_HALF = 0.5


def measure_runs(study: StudyFrames, name: str) -> pd.Series:
    """A measure by the number of the run, in points or in its own unit; empty where not recorded.

    One of `MEASURES`, or a task, x 100. Raises KeyError for another name.
    """
    if name in TASKS:
        scores = study.scores[study.scores["task"] == name]
        return scores.set_index("number")["score"].dropna()
    measured = MEASURES[name](study)
    return measured[np.isfinite(measured.astype("float64"))]


def _runs(study: StudyFrames) -> pd.DataFrame:
    """The measures of completed runs, missing where they were not recorded."""
    runs = completed_runs(study.ranked_trials).set_index("number")
    return runs.reindex(columns=["score", "score_before", "alignment", "uniformity"])


def _measure_gain(study: StudyFrames) -> pd.Series:
    runs = _runs(study)
    return runs["score"].astype("float64") - runs["score_before"].astype("float64")


def _measure_transfer(study: StudyFrames) -> pd.Series:
    scores = study.scores[study.scores["task"].isin(TRANSFER)]
    return scores.groupby("number")["score"].mean()


def _measure_nearness(study: StudyFrames) -> pd.Series:
    return -measure_distances(_runs(study))["l2"]


def _measure_evenness(study: StudyFrames) -> pd.Series:
    return -_runs(study)["uniformity"].astype("float64")


def _measure_ranks(study: StudyFrames, moment: str = "after") -> pd.Series:
    spectra = study.spectra
    if spectra.empty:
        return pd.Series(dtype="float64")
    chosen = spectra[spectra.index.get_level_values(1) == moment].droplevel(1)
    values = chosen.to_numpy(dtype=np.float64)
    usable = np.isfinite(values).all(axis=1) & (values.max(axis=1, initial=0) > 0)
    ranks = [effective_rank(row) for row in values[usable]]
    return pd.Series(ranks, index=chosen.index[usable], dtype="float64")


def _measure_rank_gain(study: StudyFrames) -> pd.Series:
    return (_measure_ranks(study) - _measure_ranks(study, "before")).dropna()


def _evaluations(study: StudyFrames) -> pd.DataFrame:
    curves = study.curves[study.curves["score"].notna()]
    return curves[curves["number"].isin(_runs(study).index)].sort_values(["number", "step"])


def _measure_final(study: StudyFrames) -> pd.Series:
    return _evaluations(study).groupby("number")["score"].last()


def _measure_swing(study: StudyFrames) -> pd.Series:
    """Mean absolute change from one evaluation to the next, in the second half of the run."""
    curves = _evaluations(study)
    last = curves.groupby("number")["step"].transform("max")
    late = curves[curves["step"] > _LAST_HALF * last]
    return late.groupby("number")["score"].agg(lambda scores: scores.diff().abs().mean())


MEASURES: Mapping[str, Callable[[StudyFrames], pd.Series]] = {
    "gain": _measure_gain,
    "transfer": _measure_transfer,
    "nearness": _measure_nearness,
    "evenness": _measure_evenness,
    "rank": _measure_ranks,
    "rank_gain": _measure_rank_gain,
    "final": _measure_final,
    "swing": _measure_swing,
}
NAMES: Mapping[str, str] = {
    "gain": "score after training less that before",
    "transfer": "mean accuracy of the transfer tasks",
    "nearness": "nearness to alignment 0 and uniformity −4",
    "evenness": "uniformity with the opposite sign",
    "rank": "effective rank of the singular values",
    "rank_gain": "effective rank after training less that before",
    "final": "score of the last evaluation",
    "swing": "mean change from evaluation to evaluation",
}
"""What is measured, in words."""
