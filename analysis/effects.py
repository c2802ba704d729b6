"""Effects of the settings of a factorial design on the score, and their interactions.

Every combination of the settings' values was run, each with the same seeds or nearly so. Seeds are
blocks (`analysis.blocks`). Letters: S seeds, C configurations, K contrasts.
"""

from collections.abc import Collection
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
import pandas as pd

from analysis.blocks import Floats, connected_table
from analysis.importances import independent_settings
from analysis.inference import ShapeTests, column_tests
from analysis.intervals import check_level
from analysis.items import ItemScores
from analysis.pairing import cell_covariance
from analysis.runs import completed_runs

MOST_CONFIGURATIONS = 64


@dataclass(frozen=True)
class Effects:
    """Main effects and interactions.

    settings      setting, best, worst (values), difference, low, high: the mean score with the best
                  value less that with the worst, over all values of the other settings, in points;
                  the interval is simultaneous over all pairs of the setting's values. The largest
                  difference first.
    interactions  first, second, p_value: whether the effect of one setting differs between the
                  values of another, the largest of all such differences of differences.
    """

    settings: pd.DataFrame
    interactions: pd.DataFrame


def compute_effects(
    trials: pd.DataFrame,
    settings: Collection[str],
    *,
    items: ItemScores | None = None,
    level: float = 0.95,
) -> Effects | None:
    """The effects of the settings of a study that ran every combination of their values.

    trials  `StudyFrames.trials`; settings: which columns are settings; items: `StudyFrames.items`.

    None unless two settings or more varied independently, in at most 64 configurations that all
    share seeds. Raises ValueError for a level outside (0, 1).
    """
    alpha = 1 - check_level(level)
    runs = completed_runs(trials)
    names = independent_settings(runs, settings)
    count = prod(int(runs[name].nunique()) for name in names)
    if len(names) < 2 or count > MOST_CONFIGURATIONS:
        return None
    runs = runs.assign(configuration=runs.groupby(names).ngroup())
    scores = runs.pivot_table(index="seed", columns="configuration", values="score")
    seeds, columns = connected_table(scores.to_numpy(dtype=np.float64))
    if int(columns.sum()) < count:
        return None
    table = scores.loc[seeds]
    tests = column_tests(table.to_numpy(), cell_covariance(runs, table, "configuration", items))
    values = runs.drop_duplicates("configuration").set_index("configuration")[names].sort_index()
    found = [_main_effect(tests, table.to_numpy(), values[name], alpha) for name in names]
    pairs = [
        (first, second, _interaction(tests, table.to_numpy(), values[first], values[second]))
        for first, second in combinations(names, 2)
    ]
    return Effects(
        pd.DataFrame(found).sort_values("difference", ascending=False, ignore_index=True),
        pd.DataFrame(pairs, columns=["first", "second", "p_value"]),
    )


def _main_effect(
    tests: ShapeTests, scores: Floats, values: pd.Series, alpha: float
) -> dict[str, object]:
    """The best value of a setting less the worst; values: of each configuration, (C,)."""
    means = _shares(values)
    family = tests.simultaneous(np.array([one - two for one, two in combinations(means, 2)]))
    comparison = family.compare(tests.fit(scores))
    at = int(np.abs(comparison.estimate).argmax())
    width = float(comparison.half_width(family.critical(alpha))[at])
    first, second = list(combinations(values.unique(), 2))[at]
    difference = float(comparison.estimate[at])
    best, worst = (first, second) if difference > 0 else (second, first)
    size = abs(difference)
    return {
        "setting": values.name,
        "best": best,
        "worst": worst,
        "difference": size,
        "low": size - width,
        "high": size + width,
    }


def _interaction(tests: ShapeTests, scores: Floats, first: pd.Series, second: pd.Series) -> float:
    """p value of the largest difference of differences between two settings."""
    rows = []
    for one, other in combinations(_shares(first) > 0, 2):
        for low, high in combinations(_shares(second) > 0, 2):
            signs = (one.astype(float) - other) * (low.astype(float) - high)
            rows.append(signs / np.abs(signs).sum() * 4)
    family = tests.simultaneous(np.array(rows))
    largest = np.abs(family.compare(tests.fit(scores)).scores()).max()
    return float(family.p_value(largest))


def _shares(values: pd.Series) -> Floats:
    """For each value of a setting, the weights of its configurations in their mean, (V, C)."""
    same = np.array([values == value for value in values.unique()], dtype=np.float64)
    return np.asarray(same / same.sum(axis=1, keepdims=True))
