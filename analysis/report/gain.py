"""What a configuration gains: over the untrained encoder, the default and the lowest mean."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.comparison import compute_configurations, estimate_configuration, name_configuration
from analysis.experiments.settings import with_defaults
from analysis.intervals import Estimate
from analysis.report.context import StudyContext
from analysis.report.text import LEVEL, PERCENT, count
from analysis.runs import completed_runs, varied_settings
from analysis.verdict import describe_points


@dataclass(frozen=True)
class NoGain:
    """answer: a sentence without its full stop; certainty: its numbers."""

    answer: str
    certainty: str


def find_no_gain(context: StudyContext, number: int) -> NoGain | None:
    """That training did not raise the score of a trial's configuration.

    None where the mean is above that before training, or no score before training was recorded.
    """
    trials, settings = context.trials, context.study.settings
    before = trials["score_before"].astype("float64")
    known = completed_runs(trials.assign(score=trials["score"].astype("float64") - before))
    if number not in set(known["number"]):
        return None
    change, seeds = estimate_configuration(known, settings, number, level=LEVEL)
    if change.mean > 0:
        return None
    untrained, _ = estimate_configuration(
        known.assign(score=before[known.index]), settings, number, level=LEVEL
    )
    interval = f"{PERCENT} CI {change.low:.2f} to {change.high:.2f}, " if seeds > 1 else ""
    return NoGain(
        "Training lowered the score" if change.high < 0 else "Training did not raise the score",
        f"Before training {untrained.mean:.2f}, after it {untrained.mean + change.mean:.2f} in the "
        f"configuration with the highest mean: {change.mean:+.2f} points "
        f"({interval}{count(seeds, 'seed')}).",
    )


def describe_gain(context: StudyContext, number: int) -> str:
    """The paired differences of a configuration to the default one and to the lowest mean.

    number  of the first trial of the configuration with the highest mean; empty for another. The
            default is that of the settings that varied, where it was run. The intervals are
            simultaneous for all configurations, which covers the choice of the best.
    """
    study = context.study
    trials = with_defaults(context.trials, study.settings)
    table = compute_configurations(trials, study.settings, items=study.items, level=LEVEL)
    if len(table) < 2 or table["number"].iloc[0] != number:
        return ""
    varied = varied_settings(completed_runs(trials), study.settings)
    defaults = {name: study.settings[name].default for name in varied}
    same = (table[varied] == pd.Series(defaults)).all(axis=1)
    others = {"the default": table[same], "the lowest mean": table.tail(1)}
    texts = [
        f"{_gain(rows.iloc[0])} over {what} ({name_configuration(rows.iloc[0][varied])})"
        for what, rows in others.items()
        if len(rows) and np.isfinite(rows["difference"].iloc[0])
    ]
    return f"{'; '.join(texts)}." if texts else ""


def _gain(row: pd.Series) -> str:
    less = (-float(row[name]) for name in ("difference", "difference_high", "difference_low"))
    return f"+{describe_points(Estimate(*less), LEVEL)}"
