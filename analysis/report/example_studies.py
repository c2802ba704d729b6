"""Small studies made from formulas, one or more for most topics of a page.

The generated reference reads from them which columns the tables have.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from analysis.frames import LOOK_COLUMNS, Setting, StudyFrames
from analysis.trace import d_trace

_SETTINGS = {
    setting.name: setting
    for setting in (
        Setting("method", default="mocose"),
        Setting("ema_decay", "η"),
        Setting("queue_size", "K"),
        Setting("batch_size", "N"),
        Setting("initial_queue_size"),
        Setting("queue_slice"),
        Setting("prediction_layers", default=2),
        Setting("learning_rate"),
        Setting("steps"),
    )
}
_LAGS = (1, 2, 4, 8)


def example_studies() -> tuple[StudyFrames, ...]:
    """Studies of η and K; of η, N and learning rates; of a symmetric structure; of methods; of
    settings beside MTD."""
    return (
        _study(ema_decay=[0.75, 0.9, 0.97], queue_size=[64, 512]),
        _study(ema_decay=[0.75, 0.9, 0.97], batch_size=[32, 64], learning_rate=[3e-4, 1e-3]),
        _study(ema_decay=[0.0, 0.85], prediction_layers=[0, 2]),
        _study(method=["mocose", "simcse", "mixcse"]),
        _study(learning_rate=[3e-4, 1e-3], steps=[20, 40]),
    )


def _study(**varied: Sequence[Any]) -> StudyFrames:
    trials = _trials(varied)
    return StudyFrames(
        name="example",
        metric="sts_test",
        planned=len(trials),
        trials=trials,
        curves=_curves(trials),
        spectra=_spectra(trials),
        scores=_scores(trials),
        probes=_probes(trials),
        looks=_looks(trials),
        settings=_SETTINGS,
        methods={"mocose": "MoCoSE", "simcse": "SimCSE", "mixcse": "MixCSE"},
        select_by="sts_dev",
    )


def _trials(varied: dict[str, Sequence[Any]]) -> pd.DataFrame:
    """Three seeds of every combination; the score falls with the MTD."""
    fixed = {"method": "mocose", "ema_decay": 0.85, "queue_size": 512, "batch_size": 64}
    rows = [
        fixed | {"learning_rate": 1e-3, "steps": 40, "prediction_layers": 2, "seed": seed} | values
        for seed in range(3)
        for values in (dict(zip(varied, each, strict=True)) for each in product(*varied.values()))
    ]
    trials = pd.DataFrame(rows)
    trials.insert(0, "number", np.arange(len(trials)))
    history = trials["method"] == "mocose"
    names = ("ema_decay", "queue_size", "batch_size")
    trials["mtd"] = d_trace(*(trials[name].to_numpy(float) for name in names))
    trials.loc[~history, [*names[:2], "mtd"]] = np.nan
    noise = np.random.default_rng(0).normal(scale=0.2, size=len(trials))
    trials["score"] = 40 + trials["seed"] - np.log(trials["mtd"].fillna(1)) + noise
    return trials.assign(
        state="COMPLETE",
        reason="",
        initial_queue_size=32,
        queue_slice="all",
        alignment=0.2 + 0.01 * noise,
        uniformity=-2.0 + 0.01 * noise,
        mean_cosine=0.1,
        score_before=30.0,
        best_step=20.0,
        wall_seconds=10.0,
        peak_memory=6e8,
    )


def _curves(trials: pd.DataFrame) -> pd.DataFrame:
    measured = ("number", "ema_decay", "score", "alignment", "uniformity", "mean_cosine")
    steps = [trials[list(measured)].assign(step=step, loss=1.0 / (step + 1)) for step in (0, 20)]
    return pd.concat(steps).assign(queue_fill=512.0, fgsm_changed=0.1)


def _scores(trials: pd.DataFrame) -> pd.DataFrame:
    tasks = ("sts_dev", "sts_test", "STS12", "STSB")
    parts = [trials[["number", "score"]].assign(task=task) for task in tasks]
    return pd.concat(parts)[["number", "task", "score"]]


def _spectra(trials: pd.DataFrame) -> pd.DataFrame:
    values = np.arange(1, 9.0)
    rows = {
        (number, moment): values**-power
        for number in trials["number"]
        for moment, power in (("before", 1.5), ("after", 0.5))
    }
    frame = pd.DataFrame.from_dict(rows, orient="index")
    frame.index = pd.MultiIndex.from_tuples(list(rows), names=["number", "moment"])
    return frame


def _probes(trials: pd.DataFrame) -> pd.DataFrame:
    rows = [
        {"number": number, "step": 20, "lag": lag, "cosine": 0.9**lag, "baseline": 0.1}
        for number in trials["number"]
        for lag in _LAGS
    ]
    return pd.DataFrame(rows)


def _looks(trials: pd.DataFrame) -> pd.DataFrame:
    numbers = tuple(int(number) for number in trials["number"])
    values = (1, 3, len(numbers), 0.05, 0.05, 0.2, "inconclusive", "max_seeds", 0, numbers)
    return pd.DataFrame([dict(zip(LOOK_COLUMNS, values, strict=True))])
