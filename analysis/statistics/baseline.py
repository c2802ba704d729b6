"""A study's baseline compared with the configurations of its search: mean, paired differences.

The recommended configuration was chosen by the same scores. The intervals of the differences are
therefore simultaneous over all configurations (many-to-one comparisons, Dunnett 1955, with seeds as
blocks and the critical value of `mtdlab.analysis.inference.simultaneous`): they hold for whichever
is chosen. Letters: S seeds, C configurations.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL, MOST_COMPARED
from mtdlab.analysis.data.frames import DIFFERENCE, StudyFrames
from mtdlab.analysis.data.runs import CONFIGURATION, completed_runs, free_settings
from mtdlab.analysis.inference.blocks import Fit, connected_table
from mtdlab.analysis.inference.pairing import (
    Mean,
    cell_covariance,
    estimate_mean,
    select_configuration,
)
from mtdlab.analysis.inference.simultaneous import Families, compare_own
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.statistics.configurations import name_configuration, rank_configurations

_OWN = -1
"""The column of the baseline, beside the numbers of the configurations."""


@dataclass(frozen=True)
class AgainstBaseline:
    """The baseline, and how much it is above each configuration of the search.

    Attributes:
        mean: the mean of its complete trials.
        table: a row per configuration, the highest mean first (at most 100): number (its first
            trial), the settings that varied, n, seeds (those that it shares with the baseline),
            mean, and `DIFFERENCE`: the baseline minus the configuration, in points. Bounds are NaN
            where the two share fewer than two seeds with the others.
        compared: over how many configurations the intervals are simultaneous; 0 without any.
        items: evaluation items whose sampling they cover; 0: they cover seeds alone.
        row: the baseline as a row of a table of configurations, without a difference.
    """

    mean: Mean
    row: Mapping[str, Any]
    table: pd.DataFrame
    compared: int
    items: int

    def find(self, study: StudyFrames, number: int) -> pd.Series | None:
        """The row of the configuration of a complete trial; None where it has none."""
        runs = completed_runs(study.trials)
        first = select_configuration(runs, study.settings, number)["number"].min()
        rows = self.table[self.table["number"] == first]
        return rows.iloc[0] if len(rows) else None


def compare_with_baseline(study: StudyFrames) -> AgainstBaseline | None:
    """The comparison of a study's baseline; None where no trial of a baseline has a score yet."""
    if study.baseline is None or not len(own := completed_runs(study.baseline.trials)):
        return None
    runs = completed_runs(study.trials)
    varied = free_settings(runs, study.settings)
    runs, ranked = rank_configurations(runs, varied)
    ranked = ranked.head(MOST_COMPARED)
    both = pd.concat([runs, own.assign(**{CONFIGURATION: _OWN})])[
        ["number", "seed", "score", CONFIGURATION]
    ]
    scores = both.pivot_table(index="seed", columns=CONFIGURATION, values="score")
    scores = scores.reindex(columns=[_OWN, *ranked[CONFIGURATION]])
    paired = scores.rsub(scores[_OWN], axis="index").drop(columns=_OWN)
    differences = pd.DataFrame(index=paired.columns, columns=DIFFERENCE, dtype="float64")
    differences["difference"] = paired.mean()
    seeds, columns = connected_table(scores.to_numpy(dtype=np.float64))
    compared, items = 0, 0
    if columns[0]:
        table = scores.loc[seeds, columns]
        covariance, items = cell_covariance(both, table, CONFIGURATION, study.items)
        family, fit = compare_first(table.to_numpy(dtype=np.float64), covariance)
        estimate, width = family.intervals(fit, 1 - LEVEL)
        bounds = np.column_stack([estimate, estimate - width, estimate + width])
        differences.loc[table.columns[1:], DIFFERENCE] = bounds
        compared = len(estimate)
    differences["seeds"] = paired.notna().sum()
    shown = ranked.drop(columns=["seeds", "low", "high"]).merge(
        differences, left_on=CONFIGURATION, right_index=True
    )
    order = ["number", *varied, "n", "seeds", "mean", *DIFFERENCE]
    mean = estimate_mean(own, study.items)
    row: dict[Any, Any] = own.sort_values("number").iloc[0].to_dict() | vars(mean.estimate)
    row |= {"n": len(own), "seeds": mean.seeds, "seconds": own["wall_seconds"].mean()}
    return AgainstBaseline(mean, row, shown[order], compared, items)


def add_baseline(table: pd.DataFrame, against: AgainstBaseline | None, **also: Any) -> pd.DataFrame:
    """A table of configurations with the row of the baseline, and `also`, in the order of means.

    The configurations stay in their order, which may be adjusted for missing seeds.
    """
    if against is None:
        return table
    row = pd.DataFrame([{**against.row, **also}]).reindex(columns=table.columns)
    at = int((table["mean"] > against.mean.estimate.mean).cummin().sum())
    parts = [part.astype("object") for part in (table.iloc[:at], row, table.iloc[at:])]
    return pd.concat(parts, ignore_index=True).infer_objects()


def compare_first(scores: Floats, items: Floats | None) -> tuple[Families, Fit]:
    """The first column of a table (S, 1 + C) minus each other one, and the table's fit.

    Seeds may differ in what sets the baseline apart from all configurations alike, since it is
    another method: critical values that allow for such differences hold in all designs tried.
    """
    columns = np.eye(scores.shape[1])
    rows = columns[:1] - columns[1:]
    return compare_own(scores, rows, items, own=rows.mean(axis=0, keepdims=True))


def name_baseline(study: StudyFrames) -> str:
    """The settings that the study file gives the baseline, as text: SimCSE without a queue."""
    if study.baseline is None:
        return ""
    values, named = dict(study.baseline.values), []
    if (method := values.pop("method", None)) is not None:
        named.append(study.methods.get(str(method), str(method)))
    if values:
        named.append(name_configuration(pd.Series(values, dtype="object")))
    text = ", ".join(named)
    has_queue, own = (
        trials["queue_size"].astype("float64").gt(0)
        for trials in (study.trials, study.baseline.trials)
    )
    lacks = method is not None and has_queue.any() and len(own) and not own.any()
    return f"{text} without a queue" if lacks else text
