"""What claims compare of a run beside its score: tasks, geometry, spectra, the end of training.

All are larger where a claim says that a side has more of it.
"""

from collections.abc import Callable, Mapping

import numpy as np
import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import completed_runs
from mtdlab.analysis.data.tasks import TASKS, TRANSFER
from mtdlab.analysis.statistics.curves import measure_distances, rank_spectra

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
    """The measures of completed runs by their number, NaN where they were not recorded."""
    runs = completed_runs(study.ranked_trials).set_index("number")
    measures = ["score", "score_before", "alignment", "uniformity"]
    return runs.reindex(columns=measures).astype("float64")


def _evaluations(study: StudyFrames) -> pd.DataFrame:
    curves = study.curves[study.curves["score"].notna()]
    return curves[curves["number"].isin(_runs(study).index)].sort_values(["number", "step"])


def _measure_swing(study: StudyFrames) -> pd.Series:
    """Mean absolute change from one evaluation to the next, in the second half of the run."""
    curves = _evaluations(study)
    last = curves.groupby("number")["step"].transform("max")
    late = curves[curves["step"] > _LAST_HALF * last]
    return late.groupby("number")["score"].agg(lambda scores: scores.diff().abs().mean())


MEASURES: Mapping[str, Callable[[StudyFrames], pd.Series]] = {
    "gain": lambda study: _runs(study)["score"] - _runs(study)["score_before"],
    "transfer": lambda study: (
        study.scores[study.scores["task"].isin(TRANSFER)].groupby("number")["score"].mean()
    ),
    "nearness": lambda study: -measure_distances(_runs(study))["l2"],
    "evenness": lambda study: -_runs(study)["uniformity"],
    "rank": lambda study: rank_spectra(study.spectra, "after"),
    "rank_gain": lambda study: (
        rank_spectra(study.spectra, "after") - rank_spectra(study.spectra, "before")
    ),
    "final": lambda study: _evaluations(study).groupby("number")["score"].last(),
    "swing": _measure_swing,
}
NAMES: Mapping[str, str] = {
    "gain": "score after training minus that before",
    "transfer": "mean accuracy of the transfer tasks",
    "nearness": "nearness to alignment 0 and uniformity −4",
    "evenness": "uniformity with the opposite sign",
    "rank": "effective rank of the singular values",
    "rank_gain": "effective rank after training minus that before",
    "final": "score of the last evaluation",
    "swing": "mean change from evaluation to evaluation",
}
"""What is measured, in words."""
