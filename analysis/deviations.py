"""Scores less the mean of their seed: what differs between configurations within a seed."""

from collections.abc import Sequence

import pandas as pd

from analysis.pairing import complete_block


def compute_deviations(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The score of each seed at each configuration less the seed's mean over all configurations.

    runs  the columns `by`, seed and score, a row per run; runs of one seed and configuration are
          averaged.

    Seeds and configurations with holes are left out, the emptiest first, so that every seed's mean
    is over the same configurations. Returns the columns `by`, seed, deviation.
    """
    table = complete_block(runs.pivot_table(index="seed", columns=list(by), values="score"))
    deviations = table.sub(table.mean(axis=1), axis=0)
    levels = list(range(len(by)))
    long = pd.Series(deviations.stack(levels, future_stack=True), name="deviation").reset_index()
    return long[[*by, "seed", "deviation"]].dropna(ignore_index=True)
