"""Whether training raised the score, without which no configuration is recommended."""

from dataclasses import replace

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.runs import completed_runs
from mtdlab.analysis.questions.answer import Answer, Difference
from mtdlab.analysis.questions.results import StudyResults
from mtdlab.analysis.questions.wording import describe_interval, join_sentences
from mtdlab.analysis.statistics.configurations import estimate_configuration


def doubt_without_gain(results: StudyResults, answer: Answer) -> Answer:
    """The answer behind the finding that training did not raise the score, where this is so.

    It is so where the mean of the answer's configuration is not above that before training.
    """
    trials, settings = results.trials, results.study.settings
    untrained = trials["score_before"].astype("float64")
    known = completed_runs(trials.assign(score=trials["score"].astype("float64") - untrained))
    if (number := answer.number) is None or number not in set(known["number"]):
        return answer
    gain = estimate_configuration(known, settings, number)
    change = gain.estimate
    if change.mean > 0:
        return answer
    start = estimate_configuration(known.assign(score=untrained[known.index]), settings, number)
    before, interval = start.estimate.mean, describe_interval(change, LEVEL, " for these items, ")
    there = "in the configuration with the highest mean"
    found = (
        f"Before training {before:.2f}, after it {before + change.mean:.2f} {there}: "
        f"{change.mean:+.2f} points ({interval}{format_count(gain.seeds, 'seed')})."
    )
    lowered = change.high < 0
    return replace(
        answer,
        heading="Training lowered the score"
        if lowered
        else "Training was not shown to raise the score",
        certainty=join_sentences(found, answer.sentence),
        effect=Difference(change, LEVEL, f"after training less before it, {there}"),
        recommendation="Highest mean, not above that before training",
        is_doubted=True,
        stated="",
    )
