"""A factorial study with known means, asked whatever a test declares."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import Plan, RecordedSetting, StudyFrames
from mtdlab.analysis.questions.study import StudyQuestions

Means = Callable[[str, int, str], float]
Ask = Callable[..., StudyQuestions]
SETTINGS = {name: RecordedSetting(name) for name in ("slice", "width", "branch")}


def make_runs(means: Means, *, seeds: int = 6, noise: float = 0.3, draw: int = 0) -> pd.DataFrame:
    """Three slices, two widths and two branches, with an effect of the seed and errors."""
    rng = np.random.default_rng(draw)
    rows = [
        (seed, part, width, branch, means(part, width, branch))
        for seed in range(seeds)
        for part in ("new", "middle", "old")
        for width in (2, 8)
        for branch in ("target", "online")
    ]
    runs = pd.DataFrame(rows, columns=["seed", "slice", "width", "branch", "score"])
    runs["score"] += rng.normal(scale=5, size=seeds)[runs["seed"]]
    runs["score"] += rng.normal(scale=noise, size=len(runs))
    return runs.assign(
        number=range(len(runs)),
        state="COMPLETE",
        reason="",
        mtd=np.nan,
        score_before=np.nan,
        wall_seconds=1.0,
        peak_memory=np.nan,
        batch_size=64,
    )


def recorded(*asked: dict[str, Any], after: int = 0, alpha: float = 0.05) -> Plan:
    """The plan of a study with these questions."""
    values = {"margin": 0.5, "alpha": alpha, "looks": [6], "beyond_run": "leave-out"}
    return Plan(after, values | ({"questions": [*asked]} if asked else {}), "0" * 64)


@pytest.fixture
def ask(few_simulated_tables: None) -> Ask:  # noqa: ARG001
    """The results of runs with declared questions."""

    def build(runs: pd.DataFrame, *asked: dict[str, Any], **options: Any) -> StudyQuestions:
        plans = options.pop("plans", None) or (recorded(*asked, **options),)
        return StudyQuestions(
            StudyFrames("s", "accuracy", len(runs), runs, settings=SETTINGS, plans=plans)
        )

    return build
