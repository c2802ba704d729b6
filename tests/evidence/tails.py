"""Error rates of the verdict for skewed errors, and for curves that neither rise nor peak once.

The cells are those of `verdict.py`: seeds whose slopes are skewed, one level with skewed errors,
and true curves with two peaks, a valley, or a dip.
"""

from collections.abc import Iterator

import numpy as np
import pandas as pd
from errors import SKEWED
from joblib import Parallel, delayed
from verdict import Truth, measure, with_bounds

SEEDS, LEVELS = (3, 5, 10, 20), (5, 9)
_CURVES = {
    "two equal peaks": (0, 3, 0, 3, 0),
    "two peaks, the second higher": (0, 2, 0, 3, 0),
    "valley": (3, 1.5, 0, 1.5, 3),
    "valley, one end higher": (2, 1, 0, 1.5, 3),
    "rises with a dip": (0, 2, 1, 2, 4),
    "plateau between cliffs": (0, 4, 4, 4, 0),
}
_ERRORS = ("independent", "AR(1) 0.5", "slopes of 1")


def list_truths(levels: int) -> Iterator[Truth]:
    """The truths of the table, for a number of levels."""
    place = np.linspace(0, 1, levels)
    cliff = np.zeros(levels)
    cliff[-1] = -15.0
    for errors in SKEWED:
        for name, scores in (
            ("flat", 0 * place),
            ("saturated", 5 * np.minimum(4 * place, 1)),
            ("cliff", cliff),
        ):
            yield Truth(name, scores, errors)
        yield Truth("peak of 5", 5 * (1 - np.abs(2 * place - 1)), errors)
    for name, heights in _CURVES.items():
        scores = np.interp(place, np.linspace(0, 1, len(heights)), heights)
        for errors in _ERRORS:
            yield Truth(name, scores, errors)


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, as those of `verdict.py`."""
    cells = [
        delayed(measure)(truth, seeds, datasets, seed)
        for levels in LEVELS
        for seeds in SEEDS
        for truth in list_truths(levels)
    ]
    return with_bounds(pd.DataFrame(Parallel(n_jobs=-1)(cells)))
