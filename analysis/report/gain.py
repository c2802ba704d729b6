"""Whether training raised the score of a configuration above that of the untrained encoder."""

from dataclasses import dataclass

from analysis.comparison import estimate_configuration
from analysis.report.context import StudyContext
from analysis.report.text import LEVEL, PERCENT, count
from analysis.runs import completed_runs


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
