"""How often the default study gives the verdict "peaked", and the runs that it takes.

Its levels and looks are applied to sets of seeds that are drawn from recorded runs of its
configurations (`docs/explanation/evidence/default_study_runs.csv`; none of its own seeds is among
them): those by which the design was chosen, and fresh ones. A set has the most seeds of a study, is
drawn without replacement, and is judged as a sweep does it (`sequential.run_until`), for the
study's evaluation pairs and, as its verdict is, for pairs like them. The covariance of the levels'
effects due to the pairs (`default_study_items.csv`) is that of the study's own runs.
"""

from pathlib import Path

import numpy as np
import pandas as pd
from sequential import Plan, run_until

from mtdlab.config import read_study

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "docs" / "explanation" / "evidence"


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Shares of verdicts, mean runs, and the share of sets that is decided at the first look."""
    spec = read_study(ROOT / "studies" / "mtd.yaml")
    units = [unit.parameters or {} for unit in spec.units()]
    mtd = {each["ema_decay"]: spec.settings(each, seed=0).mtd for each in units}
    runs = pd.read_csv(RECORDED / "default_study_runs.csv")
    items = pd.read_csv(RECORDED / "default_study_items.csv").drop(columns="mtd").to_numpy()
    table = runs.pivot(index=["part", "seed"], columns="ema_decay", values="score")
    assert set(table.columns) == set(mtd), "the recorded runs are those of other configurations"
    plan = Plan(tuple(mtd[decay] for decay in table.columns), spec.looks)
    parts = {str(part): scores.to_numpy() for part, scores in table.groupby("part")}
    parts["all"] = table.to_numpy()
    random = np.random.default_rng(seed)
    found = []
    for part, scores in parts.items():
        drawn = [scores[random.permutation(len(scores))[: plan.looks[-1]]] for _ in range(datasets)]
        for pairs, covariance in (("these", None), ("like these", items)):
            outcome = run_until(np.array(drawn), plan, items=covariance)
            verdicts = ("peaked", "rising", "falling", "flat", "inconclusive")
            shares = {name: float((outcome.verdict == name).mean()) for name in verdicts}
            first = float((outcome.runs == plan.looks[0] * len(plan.levels)).mean())
            row = {"part": part, "seeds": len(scores), "pairs": pairs, **shares}
            found.append(row | {"runs": float(outcome.runs.mean()), "first look": first})
    return pd.DataFrame(found)
