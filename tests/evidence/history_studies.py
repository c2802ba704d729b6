"""What the studies on history can find: power of their designs, simulated before they were run.

- `age-or-number`: 5 slices by 2 EMA decays by 2 branches, 6 seeds. The first slice, one EMA decay
  or one branch scores less: shares of studies in which the interval of that pair of values excludes
  0, of all pairs simultaneously.
- `ema-rule`: two studies of 7 levels and 5 seeds, whose scores are parabolas in log 1/(1 - EMA
  decay) and whose best averages are the same number of steps, or of sentences with batches 8 times
  as large: shares of comparisons in which the interval of the ratio of the best levels contains 1
  in the unit of the truth, and excludes it in the other unit.
- `wiki-minilm`: levels without any difference, 4 to 10 seeds: shares that are flat within 0.5
  points for the pairs at hand.

Errors are independent; their standard deviations in points span those of `queue-or-batch`, 0.6 to
3.8, and for `wiki-minilm` those of its former runs.
"""

from itertools import product

import numpy as np
import pandas as pd
from joblib import Parallel, delayed

from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.inference.shapes import design_tests
from mtdlab.analysis.inference.simultaneous import compare_own
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.statistics.configurations import effect_contrasts
from mtdlab.analysis.statistics.multi_study import Levels, compare_levels

ALPHA, MARGIN = 0.05, 0.5
_HORIZONS = 2.0 ** np.arange(7)
"""Steps of the averages of `ema-rule`; its queue adds 4 to each MTD."""
_MINILM = np.array([3, 5.33, 9.69, 18.7, 33.3])
Cell = dict[str, float | str]


def _effects(setting: int, effect: float, deviation: float, datasets: int, seed: int) -> Cell:
    design = np.array(list(product(range(5), range(2), range(2))))
    rng = np.random.default_rng([seed, setting])
    rows = [effect_contrasts(pd.Series(values)) for values in design.T]
    # the first pair of values of the setting: its first value minus its second
    place = sum(len(contrasts) for contrasts in rows[:setting])
    scores = deviation * rng.standard_normal((datasets, 6, len(design)))
    scores -= effect * (design[:, setting] == 0)
    fit = Blocks(np.ones((6, len(design)), dtype=bool)).fit(scores)
    family, _ = compare_own(scores[0], np.vstack(rows), None)
    estimates, widths = family.intervals(fit, ALPHA)
    share = float((np.abs(estimates[:, place]) > widths[:, place]).mean())
    names = ("slices", "EMA decay", "branch")
    return _cell("age-or-number", names[setting], effect, deviation, share, datasets)


def _parabola(best: float, height: float) -> Floats:
    """Scores of the levels, the highest at `best` steps of history, `height` less at 8 times it."""
    return -height * (np.log2(_HORIZONS / best) / 3) ** 2


def _ratios(truth: str, height: float, deviation: float, datasets: int, seed: int) -> list[Cell]:
    rng = np.random.default_rng([seed, 7])
    large = 8.0 if truth == "steps" else 1.0
    curves = [_parabola(8.0, height), _parabola(large, height)]
    right = wrong = 0
    for _ in range(datasets):
        tables = [
            LevelScores(
                pd.DataFrame(curve + deviation * rng.standard_normal((5, 7)), columns=_HORIZONS + 4)
            )
            for curve in curves
        ]
        same = {
            unit: compare_levels(
                unit, Levels("", tables[0], _HORIZONS), Levels("", tables[1], _HORIZONS * scale)
            ).same_best
            for unit, scale in (("steps", 1.0), ("sentences", 8.0))
        }
        right += same.pop(truth)
        wrong += not any(same.values())
    return [
        _cell("ema-rule", f"{truth}: {name}", height, deviation, count / datasets, datasets)
        for name, count in (("its ratio contains 1", right), ("the other excludes 1", wrong))
    ]


def _flat(seeds: int, deviation: float, datasets: int, seed: int) -> Cell:
    rng = np.random.default_rng([seed, seeds])
    tests = design_tests(np.ones((seeds, len(_MINILM)), dtype=bool), _MINILM)
    fit = tests.fit(deviation * rng.standard_normal((datasets, seeds, len(_MINILM))))
    share = float((tests.classify(fit, ALPHA, MARGIN).shape == "flat").mean())
    return _cell("wiki-minilm", f"flat, {seeds} seeds", 0.0, deviation, share, datasets)


def _cell(study: str, what: str, effect: float, deviation: float, share: float, n: int) -> Cell:
    return {
        "study": study,
        "what": what,
        "effect": effect,
        "sd": deviation,
        "share": share,
        "n": n,
    }


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell: study, what is found, effect and standard deviation in points, share, n."""
    effects = [
        delayed(_effects)(setting, effect, deviation, datasets, seed)
        for setting in range(3)
        for effect in (1.0, 2.0, 4.0)
        for deviation in (1.0, 2.5)
    ]
    ratios = [
        delayed(_ratios)(truth, height, deviation, datasets, seed)
        for truth in ("steps", "sentences")
        for height in (5.0, 10.0, 20.0)
        for deviation in (1.0, 2.5)
    ]
    flat = [
        delayed(_flat)(seeds, deviation, datasets, seed)
        for seeds in (4, 6, 10)
        for deviation in (0.1, 0.2, 0.4)
    ]
    run = Parallel(n_jobs=-1)
    cells = [*run(effects), *(cell for pair in run(ratios) for cell in pair), *run(flat)]
    return pd.DataFrame(cells)
