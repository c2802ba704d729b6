"""The first screen of a study's page: question, answer, recommended configuration, next step."""

import re
from dataclasses import replace

import numpy as np

from mtdlab.analysis.data.defaults import CONFIRMATION_SEEDS, CONFIRMATION_SUFFIX
from mtdlab.analysis.data.runs import (
    completed_runs,
    format_mtd,
    free_settings,
    is_missing,
    varied_settings,
)
from mtdlab.analysis.data.settings import format_value
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.pairing import select_configuration
from mtdlab.analysis.inference.power import MOST_SEEDS
from mtdlab.analysis.inference.verdict import describe_interval, join_words
from mtdlab.analysis.report.cells import LEVEL, clean, describe_items, format_count
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.findings import Finding, make_effect, write_finding
from mtdlab.analysis.report.page import Headline, NextStep, Recommendation, Status
from mtdlab.analysis.report.study_facts import (
    MOST_COMMAND,
    command_on,
    confirm_command,
    define_points,
    describe_model,
    describe_rerun,
    describe_scope,
    describe_status,
    describe_time,
    list_facts,
    more_seeds_command,
    planned_trials,
    trial_states,
)
from mtdlab.analysis.report.topics.sufficiency import name_pair
from mtdlab.analysis.report.warnings import list_caveats
from mtdlab.analysis.statistics.best_trial import DEV, find_scores
from mtdlab.analysis.statistics.configurations import estimate_configuration


def lead_with_training(context: StudyContext, finding: Finding) -> Finding:
    """The finding as it is stated: behind that on training where this did not raise the score."""
    no_gain = None if finding.best is None else _find_no_gain(context, finding.best)
    if no_gain is None:
        return finding
    return replace(no_gain, certainty=f"{no_gain.certainty} {write_finding(finding)}")


def _find_no_gain(context: StudyContext, number: int) -> Finding | None:
    """The finding that training did not raise the score of a trial's configuration.

    None where the mean is above that before training, or no score before training was recorded.
    """
    trials, settings = context.trials, context.study.settings
    untrained = trials["score_before"].astype("float64")
    known = completed_runs(trials.assign(score=trials["score"].astype("float64") - untrained))
    if number not in set(known["number"]):
        return None
    gain = estimate_configuration(known, settings, number)
    change, seeds = gain.estimate, gain.seeds
    if change.mean > 0:
        return None
    start = estimate_configuration(known.assign(score=untrained[known.index]), settings, number)
    before, interval = start.estimate.mean, describe_interval(change, LEVEL, " for these items, ")
    answer = "Training was not shown to raise the score"
    if change.high < 0:
        answer = "Training lowered the score"
    there = "in the configuration with the highest mean"
    return Finding(
        answer,
        f"Before training {before:.2f}, after it {before + change.mean:.2f} {there}: "
        f"{change.mean:+.2f} points ({interval}{format_count(seeds, 'seed')}).",
        "inconclusive",
        effect=make_effect(change, LEVEL, f"after training less before it, {there}"),
    )


_MOST_QUESTION = 320
_MOST_SETTINGS = 8
_MOST_RUN_AGAIN = 20
_ENDED = ("COMPLETE", "FAIL", "PRUNED")
OF_BEST = ("methods", "configurations")
"""The topics of findings on the best configuration."""


def build_headline(context: StudyContext, finding: Finding, baseline: str = "") -> Headline:
    """The first screen of a study's page; `baseline` is how its baseline compares, as text."""
    status = describe_status(context.study)
    shown = lead_with_training(context, finding)
    rerun, rerun_where = describe_rerun(context.study)
    return Headline(
        question=ask(context),
        answer=shown.answer,
        certainty=shown.certainty,
        kind=shown.kind,
        status=status,
        effect=shown.effect,
        points=define_points(context) if finding.best is not None else "",
        recommendation=recommend(context, finding, status, is_gain=shown is finding),
        next_step=find_next_step(context, finding, status),
        scope=describe_scope(context),
        caveats=list_caveats(context),
        baseline=baseline,
        facts=list_facts(context),
        rerun=clean(rerun, most=MOST_COMMAND),
        rerun_where=rerun_where,
    )


def ask(context: StudyContext) -> str:
    """The question of a study: its description up to the first question mark, or what varied."""
    study = context.study
    asked = re.match(r"[^?]+\?(?=\s|$)", study.description.strip())
    if asked and len(asked[0]) <= _MOST_QUESTION:
        return clean(asked[0], most=_MOST_QUESTION)
    if study.table and not len(context.trials):
        return "The table has no runs."
    if not len(context.trials):
        return "Nothing has been run yet; the study file states what will be compared."
    names = free_settings(context.trials, study.compared)
    if not names:
        return f"Which {clean(study.metric)} does this configuration reach?"
    varied = join_words(["MTD" if name == "mtd" else name for name in names])
    asked_of = f"How does {study.metric} depend on {varied}?"
    return clean(asked_of, most=_MOST_QUESTION)


def recommend(
    context: StudyContext, finding: Finding, status: Status, *, is_gain: bool
) -> Recommendation | None:
    """The configuration of the finding's trial; None without a completed trial."""
    if finding.best is None:
        return None
    label = "Highest mean, not confirmed as best"
    if not status.is_over:
        label = "Highest mean so far"
    elif not is_gain:
        label = "Highest mean, not above that before training"
    elif finding.decided:
        label = "Recommended configuration"
    elif finding.topic in ("score", "sufficiency") and context.verdict.verdict == "flat":
        label = "Highest mean; all tested are equivalent"
    elif finding.kind == "equivalent":
        label = "Highest mean; all that may be the best are equivalent"
    return Recommendation(
        label,
        _list_settings(context, finding.best),
        _describe_score(context, finding.best),
        *describe_model(context, finding.best),
    )


def _list_settings(context: StudyContext, number: int) -> dict[str, str]:
    """The settings of a trial that were varied, its method first, and its MTD."""
    chosen = context.trials[context.trials["number"] == number].head(1)
    varied = free_settings(context.trials, context.study.settings)
    # a setting that the trial's method does not have is missing
    names = [name for name in varied if name != "mtd" and not is_missing(chosen[name]).all()]
    names.sort(key=lambda name: name != "method")
    row, shown = chosen.iloc[0], names[:_MOST_SETTINGS]
    settings = {clean(name): clean(format_value(name, row[name])) for name in shown}
    if not names and context.verdict.levels_run < 2:
        settings = {"configuration": "the only one"}
    if np.isfinite(row["mtd"]) and row["mtd"] > 0:
        settings["MTD"] = format_mtd(float(row["mtd"]))
    return settings


def _describe_score(context: StudyContext, number: int) -> str:
    """The mean score of a configuration, and by which scores it was chosen."""
    study = context.study
    mean = estimate_configuration(context.trials, study.settings, number, study.items)
    covered = "one seed"
    if interval := describe_interval(mean.estimate, LEVEL):
        covered = f"{interval}, {mean.seeds} seeds{describe_items(mean.items)}"
    score = f"Mean {clean(study.metric, most=40)} {mean.estimate.mean:.2f} ({covered})."
    return f"{score} {_describe_choice(context, number)}".rstrip()


def _describe_choice(context: StudyContext, number: int) -> str:
    """A sentence that the stated mean chose the configuration, and whether dev scores agree."""
    study, runs = context.study, completed_runs(context.trials)
    varied = varied_settings(runs, study.settings)
    if not varied or runs["seed"].nunique() < 2:
        return ""
    text = "This mean chose the configuration, so it is slightly too high"
    group = number_configurations(runs, varied)
    # means over unlike seeds are not compared
    common = group.groupby(runs["seed"]).transform("nunique") == group.nunique()
    dev = find_scores(runs, study.scores, DEV)[common]
    if study.metric == DEV or not len(dev) or not dev.notna().all():
        return f"{text}."
    means = dev.groupby(group[common]).transform("mean")
    top = int(runs.loc[common, "number"].to_numpy()[means.to_numpy().argmax()])
    if number in select_configuration(runs, study.settings, top)["number"].to_numpy():
        return f"{text}; {DEV} chooses the same."
    other = _list_settings(context, top)
    named = ", ".join(f"{name} {value}" for name, value in other.items())
    return f"{text}; {DEV} chooses another ({named})."


def find_next_step(context: StudyContext, finding: Finding, status: Status) -> NextStep:
    """What to do next: finish the study, confirm its best level, or run more seeds."""
    study, command = context.study, context.study.invocation.command
    new_seeds = f"{CONFIRMATION_SEEDS} new seeds"
    time = describe_time(study, 2 * CONFIRMATION_SEEDS)
    if not status.is_over:
        return _continue(context, status)
    # the failed runs of a table may have been run again already
    if status.failures and not (study.table and finding.topic):
        failed = int((trial_states(study)["state"] == "FAIL").sum())
        return _step(f"Run the failed trials again ({describe_time(study, failed)})", status.retry)
    if study.name.endswith(CONFIRMATION_SUFFIX) and command == "confirm":
        return _step("Compare with the study that chose the two configurations")
    if finding.topic == "sufficiency":
        return _compare_divisions(context, f"with {new_seeds} ({time})")
    if finding.kind in ("flat", "equivalent"):
        return _step(f"Choose by cost: differences are below the margin of {study.margin:g} points")
    if finding.decided and finding.topic == "score" and command == "sweep":
        text = f"{_widen(context)}Confirm the best level with {new_seeds} ({time})"
        return _step(text, confirm_command(study))
    if finding.decided:
        text = f"Run the best configuration and the next one with {new_seeds} ({time})"
        return _step(text, confirm_command(study) if command == "sweep" else "")
    return _more_seeds(context, finding)


def _compare_divisions(context: StudyContext, new_seeds: str) -> NextStep:
    sufficiency = context.sufficiency
    text = "Compare configurations of equal MTD that divide it otherwise between 1/(1 − η) and K/N"
    if sufficiency is None or (pair := sufficiency.pair) is None:
        return _step(text)
    high, low = name_pair(sufficiency, pair)
    text = f"{text}, {new_seeds}. Most different here: {high} and {low}"
    if context.study.invocation.command != "sweep":
        return _step(text)
    runs, numbers = context.traced, []
    for row in (pair.high_row, pair.low_row):
        cell, ratio = sufficiency.cells.iloc[row], runs["queue_size"] / runs["batch_size"]
        same = np.isclose(ratio, cell["ratio"]) & (runs["ema_decay"] == cell["ema_decay"])
        numbers.append(str(int(runs.loc[same, "number"].min())))
    return _step(f"{text}, on the seeds so far", command_on(context.study, "compare", *numbers))


def _step(text: str, command: str = "") -> NextStep:
    """The next step with its command; the sentence ends with a colon where a command follows."""
    return NextStep(f"{text}{':' if command else '.'}", clean(command, most=MOST_COMMAND))


def _continue(context: StudyContext, status: Status) -> NextStep:
    """How a study that is not over goes on; failed trials are run again with the others."""
    study, text = context.study, "Run it"
    if study.table:
        why = "when it has runs"
        if going := int((~context.trials["state"].isin(_ENDED)).sum()):
            why = f"when all runs have ended ({format_count(going, 'run')} left)"
        return _step(f"Export the table again {why}", study.command)
    if status.kind == "running":
        text = "Wait, or rerun to resume if the sweep was stopped"
    elif len(context.trials):
        text = "Rerun to resume the study"
    ended = trial_states(study)["state"].isin(["COMPLETE", "PRUNED"])
    left = planned_trials(study) - int(ended.sum())
    included = ", failed trials included" if status.retry else ""
    text = f"{text}{included} ({describe_time(study, left)})"
    return _step(text, status.retry or study.command)


def _widen(context: StudyContext) -> str:
    """The next step where the best level is at an end of the range."""
    verdict = context.verdict
    ends = {verdict.first: ("lowest", "lower"), verdict.last: ("highest", "higher")}
    if verdict.verdict not in ("rising", "falling") or verdict.peak_mtd not in ends:
        return ""
    end, further = ends[verdict.peak_mtd]
    if end == "highest" and verdict.is_cut:
        return "The best level is the highest within the run: more steps allow a higher MTD. "
    return f"The best level is the {end} tested: also test {further} MTD. "


def _more_seeds(context: StudyContext, finding: Finding) -> NextStep:
    runs, of_mtd = completed_runs(context.trials), finding.topic == "score"
    used, names = runs["seed"].nunique(), varied_settings(runs, context.study.compared)
    configurations = max(number_configurations(runs, names).nunique(), 1)
    need = context.need_for_verdict if of_mtd or finding.topic in OF_BEST else None
    if need and not need.seeds:
        wider = "Test a wider range of MTD" if of_mtd else "Compare what differs more"
        if need.items:
            wider = f"{wider}, or use at least {need.items:,} evaluation items"
        return _step(
            f"{wider}: if all is as estimated, more than {MOST_SEEDS} seeds would be needed to "
            "decide here"
        )
    # as estimated, the seeds so far may have been enough
    if used > 1 and not need and finding.topic in OF_BEST and not context.best_scores.comparable:
        return _step(
            f"Run the {format_count(configurations, 'configuration')} with the same seeds, at "
            "least 3: differences are paired by seed"
        )
    if context.study.table and configurations > _MOST_RUN_AGAIN and not (need and need.seeds):
        return _step("Run the few best configurations again, with at least 3 new seeds each")
    wanted = max(need.seeds, used + 1) if need and need.seeds else max(2 * used, 3)
    text = f"More seeds narrow the confidence intervals; {wanted} in all"
    if need:
        text = f"Run {wanted} seeds in all, {wanted - used} more, for a verdict with 80 % power"
    time = describe_time(context.study, max(wanted - used, 0) * configurations)
    if context.study.table:
        time += f" of {format_count(configurations, 'configuration')}"
    if len(context.study.looks):
        # its seeds are fixed with its looks
        return _step(f"{text} ({time}), in a new study, since the looks of this one are over")
    return _step(f"{text} ({time})", more_seeds_command(context.study, wanted))
