"""How often the default study has each verdict.

The verdict is computed for sets of seeds from recorded runs of the study's configurations
(`docs/explanation/evidence/default_study_runs.csv`; none of its own seeds is among them): those by
which the design was chosen, and fresh ones. A set has as many seeds as the study. Drawn sets are
drawn without replacement; disjoint sets share no seed. The verdict is that for the study's
evaluation pairs and, as the study's is, for pairs like them. The covariance of the levels' effects
due to the pairs (`default_study_items.csv`) is that of runs of the study's configurations.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import numpy as np
import pandas as pd
from sequential import Plan, run_until

from mtdlab.analysis.inference.shapes import Shape
from mtdlab.analysis.measures import Floats
from mtdlab.config.reader import read_study

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs" / "explanation" / "evidence"
VERDICTS: tuple[str, ...] = get_args(Shape)


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """The shares of the verdicts among drawn and among disjoint sets of seeds."""
    spec = read_study(ROOT / "studies" / "mtd.yaml")
    units = [unit.parameters or {} for unit in spec.search_trials()]
    mtd = {values["ema_decay"]: spec.settings(values, seed=0).mtd for values in units}
    runs = pd.read_csv(RECORDED / "default_study_runs.csv")
    items = pd.read_csv(RECORDED / "default_study_items.csv").drop(columns="mtd").to_numpy()
    table = runs.pivot(index=["part", "seed"], columns="ema_decay", values="score")
    assert set(mtd) <= set(table.columns), "no runs of one of the configurations are recorded"
    # the recorded runs also have a level that the study leaves out
    studied = table.columns.isin(mtd)
    table, items = table.loc[:, studied], items[np.ix_(studied, studied)]
    size = len(spec.seeds)
    plan = Plan(tuple(mtd[decay] for decay in table.columns), (size,))
    parts = {str(part): scores.to_numpy() for part, scores in table.groupby("part")}
    parts["all"] = table.to_numpy()
    random = np.random.default_rng(seed)
    found = []
    for part, scores in parts.items():
        drawn = [scores[random.permutation(len(scores))[:size]] for _ in range(datasets)]
        starts = range(0, len(scores) - size + 1, size)
        disjoint = [scores[start : start + size] for start in starts]
        for sets, chosen in (("drawn", drawn), ("disjoint", disjoint)):
            for pairs, shares in _shares(np.array(chosen), plan, items):
                row = {"part": part, "seeds": len(scores), "sets": sets, "number": len(chosen)}
                found.append(row | {"pairs": pairs} | shares)
    return pd.DataFrame(found)


def _shares(scores: Floats, plan: Plan, items: Floats) -> Iterator[tuple[str, dict[str, float]]]:
    """For the study's pairs, and for pairs like them: the shares of the verdicts, (B, S, L)."""
    for pairs, covariance in (("these", None), ("like these", items)):
        verdicts = run_until(scores, plan, items=covariance).verdict
        yield pairs, {name: float((verdicts == name).mean()) for name in VERDICTS}
