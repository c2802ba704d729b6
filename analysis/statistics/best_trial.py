"""The best trial of a study, and the optimism of its score.

The highest of n scores is high partly by chance: its expectation exceeds the true mean of its
configuration (selection bias), for a dev score too (Cawley and Talbot, JMLR 11, 2010). Variation
that the dev and the test score of a run share, such as that of its seed, also biases the test score
of the best run.
Letters: n runs, S seeds.
"""

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import log_ndtr

from mtdlab.analysis.data.frames import Settings, StudyFrames
from mtdlab.analysis.data.runs import completed_runs, varied_settings
from mtdlab.analysis.data.tasks import DEV as DEV
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.blocks import parts_of
from mtdlab.analysis.measures import Floats

_STEPS = 1000
_PRECISION = 1e-9
_REACH = 10.0
_POINTS = 401
_MIN_RUN_SHARE = 0.02


_COLUMNS = (
    *("chosen_by", "number", "seed", "mtd", "value", "score", "configuration_mean"),
    *("configuration_trials", "n", "seed_sd", "trial_sd", "optimism", "slope", "score_optimism"),
)


def find_scores(trials: pd.DataFrame, scores: pd.DataFrame, name: str) -> pd.Series:
    """The score called `name` of each trial, NaN where it has none.

    `scores` has number, task, score: a row per trial and task.
    """
    named = scores[scores["task"] == name].drop_duplicates("number").set_index("number")
    return trials["number"].map(named["score"]).astype("float64")


def compute_choices(study: StudyFrames) -> pd.DataFrame:
    """The best trial by `select_by`, by the metric and by the dev score, and its selection bias.

    The trials of a baseline count like the others.

    The first is the best by the score that ranks the study's trials. A score that no completed run
    has is left out.

    Returns:
        A row per score, NaN where a value is not known. chosen_by: the name of the score that
        selects the run, value: that score, score: its metric. configuration_mean: mean metric over
        its configuration's trials, configuration_trials: how many. seed_sd, trial_sd:
        `estimate_spread` of the selecting score. optimism: selection bias of the selecting score:
        its `expected_maximum` over n runs with equal true means, minus that mean; where the true
        means differ, the bias is smaller. slope: least-squares slope of the metric on the selecting
        score within configurations. score_optimism: the selection bias of the metric, slope times
        optimism.
    """
    runs = completed_runs(study.ranked_trials)
    names, choices = [], []
    for name in dict.fromkeys((study.select_by or study.metric, study.metric, DEV)):
        known = name == study.metric
        ranking = runs["score"] if known else find_scores(runs, study.scores, name)
        ranked = runs.assign(ranking=ranking.astype("float64"))
        ranked = ranked[np.isfinite(ranked["ranking"])]
        if len(ranked):
            names.append(name)
            choices.append(_choose(ranked, study.settings))
    table = pd.DataFrame(choices, columns=_COLUMNS[1:-1])
    # as objects: a name that a user gave may hold what is no UTF-8
    table.insert(0, _COLUMNS[0], pd.Series(names, dtype="object"))
    return table.assign(score_optimism=table["slope"] * table["optimism"])


def _choose(runs: pd.DataFrame, settings: Settings) -> dict[str, object]:
    """The best of the runs by their column `ranking`; the first of equal ones."""
    best = runs.sort_values(["ranking", "number"], ascending=[False, True]).iloc[0]
    configuration = number_configurations(runs, varied_settings(runs, settings)).to_numpy()
    values, scores = (runs[name].to_numpy(dtype=np.float64) for name in ("ranking", "score"))
    siblings = scores[configuration == configuration[runs.index.get_loc(best.name)]]
    spread = estimate_spread(values, configuration, runs["seed"].to_numpy())
    x, y = _centre(values, configuration), _centre(scores, configuration)
    square = float(x @ x)
    return best[["number", "seed", "mtd", "score"]].to_dict() | {
        "value": best["ranking"],
        "configuration_mean": float(siblings.mean()),
        "configuration_trials": len(siblings),
        "n": len(runs),
        "seed_sd": spread[0],
        "trial_sd": spread[1],
        "optimism": expected_maximum(runs["seed"].value_counts().tolist(), *spread),
        "slope": float(x @ y) / square if square > 0 else math.nan,
    }


def estimate_spread(
    values: Floats, configurations: NDArray[np.int64], seeds: NDArray[np.int64]
) -> tuple[float, float]:
    """Standard deviations of values (n,) within configurations: between seeds, and the rest.

    Two-way additive model without interaction, by mean squares (Searle, Casella and McCulloch,
    Variance Components, 1992, chapter 5); runs may be missing. Where seeds and the rest cannot
    be separated, the first is 0. Both are NaN where no configuration has two runs.
    """
    row, column = (np.unique(labels, return_inverse=True)[1] for labels in (configurations, seeds))
    within = _centre(values, row)
    degrees = len(values) - row.max() - 1
    if degrees == 0:
        return np.nan, np.nan
    total = float(within @ within) / degrees
    residual, free = _residual(within, row, column)
    if free == 0:
        return 0.0, math.sqrt(total)
    run = float(residual @ residual) / free
    return math.sqrt(max(total - run, 0.0)), math.sqrt(run)


def _residual(
    within: Floats, row: NDArray[np.int64], column: NDArray[np.int64]
) -> tuple[Floats, int]:
    """The residuals after effects of configurations (rows) and seeds (columns); their freedom."""
    residual = within
    for _ in range(_STEPS):
        # alternating projections; one step is enough where no run is missing
        before, residual = residual, _centre(_centre(residual, column), row)
        if np.abs(residual - before).max() <= _PRECISION * np.abs(within).max():
            break
    present = np.zeros((row.max() + 1, column.max() + 1), dtype=bool)
    present[row, column] = True
    return residual, len(within) - sum(present.shape) + parts_of(present).max() + 1


def _centre(values: Floats, group: NDArray[np.int64]) -> Floats:
    means = np.bincount(group, weights=values) / np.bincount(group)
    return np.asarray(values - means[group], dtype=np.float64)


def expected_maximum(counts: Sequence[int], of_seed: float, of_run: float) -> float:
    """Expected maximum of normal values of mean 0 with a random effect of the seed.

    The mean of the largest of n draws (Tippett, Biometrika 17, 1925), E = b - integral of G from -b
    to b, where G is the distribution function of the maximum: the product over seeds of the
    expected value, over the seed's effect z, of Phi((x - z) / run) to the power of its count. By
    the trapezoidal rule, b ten standard deviations. NaN if a standard deviation is NaN. `counts`
    are how many values each seed has.
    """
    deviation = math.hypot(of_seed, of_run)
    if not math.isfinite(deviation) or deviation == 0:
        return deviation
    # with a residual of 0 the integrand would be a step function, which the grid cannot resolve
    run = max(of_run, _MIN_RUN_SHARE * deviation) / deviation
    seed = math.sqrt(max(1 - run**2, 0.0))
    effects = np.linspace(-_REACH, _REACH, _POINTS)
    weights = np.exp(-(effects**2) / 2)
    x = np.linspace(-_REACH, _REACH, 2 * _POINTS)
    logs = log_ndtr((x[:, None] - seed * effects) / run)
    largest = np.ones_like(x)
    for count, seeds in Counter(counts).items():
        largest *= (np.exp(count * logs) @ weights / weights.sum()) ** seeds
    return float(deviation * (_REACH - np.trapezoid(largest, x)))
