"""The first screen of a study's page: question, answer, recommended configuration, next step."""

import numpy as np

from mtdlab.analysis.data.defaults import CONFIRMATION_SUFFIX, LEVEL
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.questions import ANY
from mtdlab.analysis.data.runs import (
    completed_runs,
    format_mtd,
    free_settings,
    is_missing,
    varied_settings,
)
from mtdlab.analysis.data.settings import format_value, name_setting
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.pairing import Mean, select_configuration
from mtdlab.analysis.questions.next_steps import (
    MOST_COMMAND,
    NextStep,
    describe_time,
    extend_range,
    step,
)
from mtdlab.analysis.questions.wording import (
    clean,
    describe_interval,
    describe_items,
    join_sentences,
)
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.page import Headline, Recommendation, Status
from mtdlab.analysis.report.study_facts import (
    count_retried,
    define_asked,
    define_points,
    describe_model,
    describe_rerun,
    describe_scope,
    describe_status,
    list_facts,
    planned_trials,
    trial_states,
)
from mtdlab.analysis.report.text_tables import write_results
from mtdlab.analysis.report.topics.claims import find_claims, list_lines
from mtdlab.analysis.report.topics.references import find_untrained
from mtdlab.analysis.report.warnings import list_caveats
from mtdlab.analysis.statistics.best_trial import DEV, find_scores
from mtdlab.analysis.statistics.configurations import estimate_configuration

_MOST_SETTINGS = 8
_ENDED = ("COMPLETE", "FAIL", "PRUNED")


def build_headline(context: StudyContext, baseline: str = "") -> Headline:
    """The first screen of a study's page; `baseline` is how its baseline compares, as text."""
    status, answer = describe_status(context.study), context.answer
    rerun, rerun_where = describe_rerun(context.study)
    return Headline(
        question=ask(context),
        answer=answer.heading
        if status.is_over or answer.number is None
        else f"So far: {answer.heading}",
        certainty=answer.certainty,
        is_open=not answer.is_decided,
        status=status,
        effect=answer.effect,
        points=""
        if answer.number is None
        else join_sentences(define_points(context), define_asked(context)),
        recommendation=recommend(context, status),
        next_step=find_nextstep(context, status),
        scope=describe_scope(context),
        caveats=list_caveats(context),
        baseline=baseline,
        claims=list_lines(context.once(find_claims)),
        facts=list_facts(context),
        rerun=clean(rerun, most=MOST_COMMAND),
        rerun_where=rerun_where,
        results=write_results(context) if len(context.runs) else "",
    )


def ask(context: StudyContext) -> str:
    """The main question of a study, or that nothing has been run."""
    if len(context.trials):
        return context.question.sentence
    if context.study.table:
        return "The table has no runs."
    return "Nothing has been run yet; the study file states what will be compared."


def recommend(context: StudyContext, status: Status) -> Recommendation | None:
    """The configuration of the answer's trial; None without a completed trial."""
    answer, write = context.answer, context.write
    if answer.number is None:
        return None
    label = ""
    if untrained := find_untrained(context):
        label = write.say(f"Highest mean, below the untrained encoder ({untrained[0]})")
    elif not status.is_over:
        label = write.say("Highest mean so far")
    if answer.is_below_baseline and context.study.baseline and context.against_baseline:
        values = context.study.baseline.values
        return Recommendation(
            f"{label or 'Recommended configuration'}: the baseline",
            {clean(name): clean(format_value(name, value)) for name, value in values.items()},
            f"{_state_mean(context, context.against_baseline.mean)} The kept model is not of it.",
        )
    study, choice = context.study, _describe_choice(context, answer.number)
    mean = estimate_configuration(study.trials, study.settings, answer.number, study.items)
    # a mean that chose its configuration has no interval: that of one mean would be too high
    stated = _state_mean(context, mean, has_interval=not choice)
    return Recommendation(
        label or answer.recommendation,
        _list_settings(context, answer.number),
        f"{stated} {choice}".rstrip(),
        *describe_model(context, answer.number),
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
        settings = {ANY: "the only one"}
    if name := context.study.named.get(number):
        settings = {ANY: clean(name)} | settings
    if np.isfinite(row["mtd"]) and row["mtd"] > 0:
        settings["MTD"] = format_mtd(float(row["mtd"]))
    return settings


def _state_mean(context: StudyContext, mean: Mean, *, has_interval: bool = True) -> str:
    covered = format_count(mean.seeds, "seed")
    write = context.write
    if has_interval and (interval := describe_interval(mean.estimate, LEVEL, write=write)):
        covered = f"{interval}, {covered}{describe_items(mean.items)}"
    return f"Mean {clean(write.name, most=40)} {write.score(mean.estimate.mean)} ({covered})."


def _describe_choice(context: StudyContext, number: int) -> str:
    """A sentence that the stated mean chose the configuration, and whether dev scores agree."""
    study, runs = context.study, completed_runs(context.trials)
    varied = varied_settings(runs, study.settings)
    if not varied or runs["seed"].nunique() < 2:
        return ""
    text = f"This mean chose the configuration, so it is too {context.write.choose('high', 'low')}"
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
    named = ", ".join(f"{name_setting(name)} {value}" for name, value in other.items())
    named = clean(context.study.named.get(top, named))
    return f"{text}; {DEV} chooses another ({named})."


def find_nextstep(context: StudyContext, status: Status) -> NextStep:
    """What to do next: finish the study, run failed trials again, or what its answer suggests."""
    study, answer = context.study, context.answer
    if not status.is_over:
        return _continue(context, status)
    # the failed runs of a table may have been run again already
    failed = count_retried(study)
    if failed and not (study.table and answer.number is not None):
        return step(f"Run the failed trials again ({describe_time(study, failed)})", status.retry)
    if status.failures and answer.number is None:
        return step("Change a setting that all trials share: with their seeds they collapse again")
    if study.name.endswith(CONFIRMATION_SUFFIX) and study.invocation.command == "confirm":
        return step("Compare with the study that chose the two configurations")
    if answer.is_below_baseline and (untrained := find_untrained(context)):
        return step(
            "Vary something else: neither search nor baseline reaches the untrained encoder "
            f"({untrained[0]})"
        )
    return extend_range(study.tuning) or answer.suggest()


def _continue(context: StudyContext, status: Status) -> NextStep:
    """How a study that is not over goes on; failed trials are run again with the others."""
    study, text = context.study, "Run it"
    if study.table:
        why = "when it has runs"
        if going := int((~context.trials["state"].isin(_ENDED)).sum()):
            why = f"when all runs have ended ({format_count(going, 'run')} left)"
        return step(f"Export the table again {why}", study.command)
    if status.kind == "running":
        text = "Wait, or rerun to resume if the sweep was stopped"
    elif len(context.trials):
        text = "Rerun to resume the study"
    trials = trial_states(study)
    ended = int(trials["state"].isin(_ENDED).sum())
    left = planned_trials(study) - ended + count_retried(study)
    included = ", failed trials included" if status.retry else ""
    text = f"{text}{included} ({describe_time(study, left)})"
    return step(text, status.retry or study.command)
