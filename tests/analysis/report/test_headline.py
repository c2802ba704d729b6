"""The first screen of a page: question, answer, certainty, recommendation, next step, status."""

import dataclasses
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.environment import (
    Environment,
    RecordedCorpus,
    RecordedEncoder,
    RecordedEvaluation,
)
from mtdlab.analysis.data.frames import (
    Baseline,
    NuisanceTrials,
    Plan,
    RecordedSetting,
    StudyFrames,
)
from mtdlab.analysis.data.invocation import NO_INVOCATION, Invocation
from mtdlab.analysis.inference.shapes import compare_columns
from mtdlab.analysis.questions.answer import list_numbers
from mtdlab.analysis.questions.next_steps import more_seeds_command, run_more_seeds
from mtdlab.analysis.questions.results import StudyResults
from mtdlab.analysis.questions.study import describe_error_rates
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.headline import build_headline
from mtdlab.analysis.report.study_facts import (
    describe_status,
    list_fixed,
    list_varied,
    model_folder,
    place_of_model,
)
from mtdlab.analysis.report.summary import list_rows
from mtdlab.analysis.report.topics import configurations
from mtdlab.analysis.statistics.configurations import compute_configurations
from tests.analysis.conftest import build_study, make_trials

pytestmark = pytest.mark.usefixtures("few_simulated_studies")


def headline_of(study: StudyFrames) -> Any:
    """A `Headline`, whose optional parts are there."""
    return build_headline(StudyContext(study))


def test_a_peak_is_answered_recommended_and_confirmed() -> None:
    shown = headline_of(build_study(make_trials(noise=0.1)))
    assert shown.question == (
        "How does sts_average depend on the maximum traceable distance (MTD)?"
    )
    assert shown.answer == "The score peaks between MTD 8 and 8.67"
    assert shown.effect.text == "MTD 8.67, the highest mean, minus MTD 14.7, the last level"
    assert shown.certainty.startswith("Above the runner-up, MTD 8: ")
    assert "for a peak (multiplicity-adjusted)" in shown.certainty
    assert "3 seeds, 8 levels" in shown.certainty
    assert shown.recommendation.label == "Recommended configuration"
    settings = {"ema_decay": "0.85", "queue_size": "128", "MTD": "8.67"}
    assert shown.recommendation.settings == settings
    assert shown.next_step.command == "mtdlab confirm mtd"


def test_the_first_screen_says_what_varied_what_it_covers_and_what_training_gained() -> None:
    used = Environment(
        corpus=RecordedCorpus("builtin", 240, "sentences", "ab"),
        encoder=RecordedEncoder("tiny", 520_000, "cls pooling"),
        evaluation=RecordedEvaluation("builtin", 15, 15),
    )
    study = build_study(make_trials(times=(2,), decays=(0.5, 0.85, 0.99), seeds=range(6)))
    default = dataclasses.replace(study.settings["ema_decay"], default=0.99)
    settings = {**study.settings, "ema_decay": default}
    shown = headline_of(dataclasses.replace(study, environments=(used,), settings=settings))
    assert shown.answer == "The score peaks at MTD 8.67 (η 0.85)"
    assert shown.scope == (
        "Covers other seeds than these 6 and these evaluation data only; all of encoder tiny (0.52 "
        "million weights), synthetic text."
    )
    assert shown.facts == {
        "Varied": "ema_decay η: 0.5, 0.85, 0.99; 6 seeds",
        "Data and metric": "sts_average; trained on the built-in text: 240 sentences; evaluated on "
        "the built-in pairs: 15 dev pairs (sts_dev) and 15 test pairs (sts_test)",
        "Without training": "sts_average: before training 30.00",
    }
    assert shown.rerun == "mtdlab sweep studies/mtd.yaml"
    means = study.trials.groupby("ema_decay")["score"].mean()
    assert means.idxmin() == 0.99
    gained = f"Above the lowest and the default, MTD 102: {means[0.85] - means[0.99]:.2f} points"
    assert shown.certainty.startswith(f"{gained} (95 % CI")
    assert shown.effect.value == f"{means[0.85] - means[0.5]:+.2f}"
    assert shown.points == (
        "Points of sts_average: Spearman ρ × 100 (mean of 7 STS tasks); higher is better."
    )
    assert "with 5 new seeds (10 trials, about 2 min of computing)" in shown.next_step.text


@pytest.mark.parametrize(("count", "is_plain"), [(0, True), (1, True), (5, False)])
def test_what_fails_more_often_than_the_others_is_not_plainly_recommended(
    count: int, is_plain: bool
) -> None:
    """Its mean is of the trials that completed, as they are by chance or not."""
    trials = make_trials(seeds=range(8), noise=0.1)
    best = trials["mtd"].sub(8.67).abs() < 0.01
    numbers = trials["number"][best][:count]
    trials["state"] = trials["state"].mask(trials["number"].isin(numbers), "FAIL")
    shown = headline_of(build_study(trials))
    assert shown.recommendation.settings["MTD"] == "8.67"
    rates = f"{count} of its 8 trials failed, 0 of 56 others"
    label = f"Highest mean of trials that completed: {rates}"
    assert shown.recommendation.label == ("Recommended configuration" if is_plain else label)
    assert (f"fails more often than the others: {rates}." in shown.certainty) is not is_plain


def test_a_level_beyond_the_run_is_not_recommended() -> None:
    trials = make_trials(times=(2,), decays=(0.5, 0.75, 0.85, 0.995), seeds=range(6))
    trials = trials.assign(steps=160)
    trials.loc[trials["ema_decay"] == 0.995, "score"] += 200.0
    study = build_study(trials)
    shown = headline_of(study)
    assert shown.recommendation.settings["ema_decay"] == "0.85"
    assert "6 seeds, 3 levels, MTD 4 to 8.67 (1 beyond the run left out)" in shown.certainty
    kept = headline_of(dataclasses.replace(study, beyond_run="keep"))
    assert kept.recommendation.settings["ema_decay"] == "0.995"
    two = headline_of(build_study(trials[trials["ema_decay"].isin([0.5, 0.995])]))
    assert two.answer == "Inconclusive: fewer than two levels of MTD are within the run"
    assert two.recommendation.settings["ema_decay"] == "0.5"


def test_the_kept_model_of_another_configuration_is_named_with_the_command_for_this_one() -> None:
    trials = make_trials(times=(2,), decays=(0.5, 0.85, 0.99), seeds=range(3))
    dev = trials["number"].map({3: 30.0, 4: 10.0, 5: 20.0}).fillna(5.0)
    dev[trials["ema_decay"] == 0.5] = 40.0
    scores = pd.DataFrame({"number": trials["number"], "task": "sts_dev", "score": dev})
    kept = {"trial": 0, "host": "box", "folder": "/m/mtd"}
    study = dataclasses.replace(build_study(trials), scores=scores, model=kept)
    study = dataclasses.replace(study, select_by="sts_dev", invocation=Invocation("sweep", ("a",)))
    shown = headline_of(study).recommendation
    assert shown.model.startswith(
        "Kept model: /m/mtd on host box, of trial 0 (seed 0), which has the highest sts_dev of all "
        "trials and another configuration (EMA decay 0.5)."
    )
    assert shown.text.endswith("so it is too high; sts_dev chooses another (EMA decay 0.5, MTD 4).")
    assert shown.command == "mtdlab reproduce mtd 5 --out models/mtd-median"
    # one easy seed that the others have not run yet does not make a level the best on dev
    early = trials["number"].isin([1, 2])
    begun = dataclasses.replace(
        study, trials=trials[~early], scores=scores.assign(score=dev.where(dev < 40, 12.0))
    )
    assert headline_of(begun).recommendation.text.endswith("sts_dev chooses the same.")
    # an exported study has none
    unknown = headline_of(dataclasses.replace(study, model={})).recommendation
    assert (unknown.model, unknown.command) == ("", "")
    own = headline_of(dataclasses.replace(study, model=kept | {"trial": 3})).recommendation
    assert own.model.endswith(" and this configuration.")
    here = dataclasses.replace(study, model=kept | {"trial": 3, "folder": "/home/models/mtd"})
    assert headline_of(here).recommendation.model.startswith("Kept model: models/mtd, of trial 3")
    shared = {"folder": "file:///runs/mtd/models/trial-3-0f"}
    there = dataclasses.replace(study, model=kept | {"trial": 3} | shared)
    assert place_of_model(there) == "mtd/models/trial-3-0f of the study's artifacts"
    assert own.command == ""


def test_equal_mtd_is_compared_where_mtd_alone_does_not_determine_the_score() -> None:
    trials = make_trials(decays=(0.5, 0.75, 0.9), times=(2, 4, 8), seeds=range(6))
    trials["score"] += 3 * (trials["ema_decay"] == 0.75)
    values = {"alpha": 0.1, "margin": 0.5, "looks": [6], "questions": [{"sufficiency": "mtd"}]}
    study = dataclasses.replace(build_study(trials), plans=(Plan(0, values, ""),))
    shown = headline_of(study)
    assert shown.answer == "MTD alone does not determine the score"
    assert re.fullmatch(
        r"η 0.75 with K/N \d \(MTD \d+\) minus η 0.\d+ with K/N \d \(MTD \d+\), "
        "the most different at nearly equal MTD",
        shown.effect.text,
    )
    assert float(shown.effect.value) == pytest.approx(3, abs=1)
    assert shown.effect.interval.startswith("90 % CI ")
    named = shown.effect.text.removesuffix(", the most different at nearly equal MTD")
    assert named.replace(" minus ", " and ") in shown.next_step.text
    assert shown.next_step.command == "mtdlab confirm mtd"
    read_by = Invocation("report", options={"table": ("runs.csv",)})
    table = dataclasses.replace(build_study(trials), invocation=read_by)
    read = headline_of(table).next_step
    assert read.command == ""


def test_what_has_the_error_rate_of_the_page_is_named() -> None:
    def rates_of(study: StudyFrames, **plan: Any) -> str:
        values = {"alpha": 0.05, "margin": 0.5, "looks": [3], **plan}
        plans = (Plan(0, values, ""),)
        return describe_error_rates(StudyContext(dataclasses.replace(study, plans=plans)))

    study = build_study(make_trials())
    assert rates_of(build_study(make_trials(decays=(0.85,), times=(8,)))) == ""
    described = rates_of(study, questions=[{"history": "mtd"}])
    assert described == ""
    assert "rate of 1 % is that of the verdict on MTD" in rates_of(study, alpha=0.01)
    rates = [make_trials(noise=0.1).assign(learning_rate=rate) for rate in (1e-4, 1e-3)]
    trials = pd.concat(rates, ignore_index=True).assign(number=range(48))
    conditions = rates_of(build_study(trials), alpha=0.01)
    assert "rate of 1 % is that of the verdicts of all conditions together;" in conditions
    assert conditions.endswith("are exploratory: not adjusted for their number.")


def test_the_question_is_what_varied_whatever_the_description_asks() -> None:
    study = build_study(make_trials())
    asked = dataclasses.replace(study, description="Is K 1.5 enough? It is a grid. Or not?")
    question = "How does sts_average depend on the maximum traceable distance (MTD)?"
    assert headline_of(asked).question == question
    stated = dataclasses.replace(study, description="Runs read from a.csv.")
    assert headline_of(stated).question == question


def test_an_open_study_asks_for_the_seeds_that_would_settle_it() -> None:
    trials = make_trials(noise=2.0, shape=lambda mtd: 40 - 3.2 * float(np.log(mtd / 8.667)) ** 2)
    study = build_study(trials)
    shown, needed = headline_of(study), StudyContext(study).question.need
    assert shown.answer.startswith("Inconclusive")
    assert shown.recommendation.label == "Highest mean, not confirmed as best"
    assert needed is not None
    assert f"Run {needed.seeds} seeds in all" in shown.next_step.text


def test_a_learning_rate_study_opens_with_a_paired_difference() -> None:
    low = make_trials(decays=(0.85,), times=(8,), seeds=range(6)).assign(learning_rate=1e-4)
    high = low.assign(learning_rate=1e-3, score=low["score"] + 2 + 0.1 * (low["seed"] % 2))
    trials = pd.concat([low, high], ignore_index=True).assign(number=range(12))
    shown = headline_of(build_study(trials))
    assert shown.question == "Which configuration has the highest sts_average?"
    assert shown.answer == "learning rate 0.001 is best"
    assert shown.effect.value == "+2.05"
    assert shown.effect.text == "learning rate 0.001 minus learning rate 0.0001"
    assert shown.certainty == "Blocked by seed, multiplicity-adjusted; 6 seeds."
    equal = pd.concat([low, high.assign(score=low["score"].to_numpy()[::-1])], ignore_index=True)
    shown = headline_of(build_study(equal.assign(number=range(12))))
    assert shown.answer.endswith(" is not significantly worse")


def rates_study(points: dict[float, list[float]]) -> StudyFrames:
    """Learning rates with the scores of their seeds, at one level of MTD."""
    rates = [
        make_trials(decays=(0.85,), times=(8,), seeds=range(len(scores))).assign(
            learning_rate=rate, score=scores
        )
        for rate, scores in points.items()
    ]
    trials = pd.concat(rates, ignore_index=True)
    return build_study(trials.assign(number=range(len(trials))))


BY_SEED = np.array([40.0, 42, 39, 41, 43, 40])


def test_an_open_comparison_asks_for_the_seeds_that_decide_at_the_observed_scatter() -> None:
    """The seeds are those of the paired t test, whose power is that of a noncentral t."""
    lead = np.array([2.6, -0.4, 2.0, -0.2, 1.9, 0.1])
    study = rates_study({1e-3: BY_SEED + lead, 1e-4: BY_SEED})
    context, shown = StudyContext(study), headline_of(study)
    need = context.question.need
    assert context.best.judged.verdict == "inconclusive"
    effect = lead.mean() / lead.std(ddof=1)
    known = next(
        seeds
        for seeds in range(2, 100)
        if stats.nct.sf(stats.t.ppf(0.975, seeds - 1), seeds - 1, effect * seeds**0.5) > 0.8
    )
    assert need is not None
    assert need.seeds is not None
    # few tables are simulated, and critical values are at the upper end of their intervals
    assert known - 1 <= need.seeds <= 1.5 * known
    wanted = f"Run {need.seeds} seeds in all, {need.seeds - 6} more, for a verdict with 80 % power"
    assert shown.next_step.text.startswith(wanted)
    assert f"seeds={[*range(need.seeds)]}" in shown.next_step.command
    more = need.seeds - 6
    assert f"({2 * more} trials" in shown.next_step.text
    # those of a baseline, and one that is missing, are run too
    own = study.trials[study.trials["learning_rate"] == 1e-4]
    baseline = Baseline({"learning_rate": 1e-2}, len(own), own.assign(learning_rate=1e-2))
    beside = dataclasses.replace(study, baseline=baseline)
    advised = run_more_seeds(StudyResults(beside), need, wider="", is_paired=True)
    assert f"({3 * more} trials" in advised.text
    without = dataclasses.replace(study, trials=study.trials.drop(index=own.index[0]))
    advised = run_more_seeds(StudyResults(without), need, wider="", is_paired=True)
    assert f"({2 * more + 1} trials" in advised.text


def test_where_very_many_seeds_would_decide_another_design_is_advised() -> None:
    lead = np.array([2.6, -2.4, 2.0, -2.2, 1.9, -0.1])
    study = rates_study({1e-3: BY_SEED + lead, 1e-4: BY_SEED})
    need = StudyContext(study).question.need
    assert need is not None
    assert need.seeds is not None
    assert need.seeds > 30
    advised = headline_of(study).next_step
    assert advised.text.startswith(f"Compare what differs more: as estimated, {need.seeds} seeds")
    assert not advised.command


def test_a_value_at_the_end_of_its_range_for_all_is_followed_by_values_beyond() -> None:
    study = rates_study({1e-3: BY_SEED, 1e-4: BY_SEED - 9})
    rows = [
        {"group": group, "configuration": group, "seed": 90, "state": "COMPLETE", "selected": score}
        | {"weight_decay": decay, "reason": "", "score": score, "wall_seconds": 1.0}
        for group in ("a", "b")
        for decay, score in ((1e-6, 50.0), (1e-4, 40.0))
    ]
    chosen = {"a": {"weight_decay": 1e-6}, "b": {"weight_decay": 1e-6}}
    tuning = NuisanceTrials(("weight_decay",), (), 1, chosen, pd.DataFrame(rows))
    tuned = dataclasses.replace(study, tuning=tuning)
    expected = "Try lower values of weight_decay: the lowest one tried, 1e-06, was chosen in all 2"
    assert headline_of(tuned).next_step.text.startswith(expected)
    other = {**chosen, "b": {"weight_decay": 1e-4}}
    mixed = dataclasses.replace(study, tuning=dataclasses.replace(tuning, chosen=other))
    assert headline_of(mixed).next_step == headline_of(study).next_step


def test_configurations_that_are_equivalent_are_chosen_by_cost() -> None:
    small = 0.05 * np.array([1, -1, 0.5, 1, -1, 0])
    study = rates_study({1e-3: BY_SEED + small, 1e-4: BY_SEED, 1e-2: BY_SEED - 9 - small})
    shown = headline_of(study)
    assert shown.answer == (
        "learning rate 0.001 has the highest mean score; 2 of 3 may be the best, and any two of "
        "them differ by less than 0.5 points"
    )
    assert shown.certainty.endswith("the other intervals decide what differs from 0.")
    assert "two one-sided tests at 5 % each: every 90 % CI is within ±0." in shown.certainty
    assert shown.recommendation.label == (
        "Highest mean; all that may be the best lie within the margin"
    )
    assert shown.next_step.text.startswith("Choose by cost: differences are below the margin")


def test_the_best_of_two_is_separated_by_its_interval_not_by_a_one_sided_comparison() -> None:
    """One-sided comparisons of two equal configurations leave one of them out in 10 % of studies.

    Here p of the paired t test is 0.057.
    """
    lead = np.array([1.7, -0.2, 1.0, -0.1, 1.4, 0.9])
    assert 0.05 < stats.ttest_1samp(lead, 0).pvalue < 0.06
    study = rates_study({1e-3: BY_SEED + lead, 1e-4: BY_SEED})
    shown, best = headline_of(study), StudyContext(study).best
    assert shown.answer.endswith("; learning rate 0.0001 is not significantly worse")
    # the table, JSON and Python name the same ones
    assert sorted(best.judged.may_be_best) == [0, 6]
    assert best.table["may_be_best"].all()
    assert shown.recommendation.label == "Highest mean, not confirmed as best"


def test_a_separated_configuration_is_confirmed() -> None:
    shown = headline_of(rates_study({1e-3: BY_SEED + 3 + BY_SEED % 2, 1e-4: BY_SEED}))
    assert (shown.is_open, shown.answer) == (False, "learning rate 0.001 is best")
    assert shown.next_step.command == "mtdlab confirm mtd"


def test_the_best_is_not_the_one_that_ran_with_easier_seeds() -> None:
    """Looks add seeds for some: the best ran with two more, in which all scores are lower."""
    best = [50.0, 52.1, 49, 20, 22.2]
    study = rates_study({1e-4: [47.0, 49.2, 46.1], 1e-3: best, 1e-2: [49, 51, 48.2, 19, 21]})
    shown = headline_of(study)
    assert shown.answer == "learning rate 0.001 is best"
    assert shown.effect.text == "learning rate 0.001 minus learning rate 0.01, the runner-up"
    assert "Above the lowest, learning rate 0.0001:" in shown.certainty


def test_the_runner_up_of_equal_configurations_is_the_equal_one() -> None:
    """40.1 + 0.2 differs from 40.3 by rounding."""
    scores = [40.1 + 0.2 + seed for seed in range(4)], [40.3 + seed for seed in range(4)]
    shown = headline_of(rates_study({1e-2: [35.0] * 4, 1e-3: scores[1], 1e-4: scores[0]}))
    assert shown.answer.startswith("learning rate 0.001 has the highest mean score")
    assert shown.effect.text == "learning rate 0.001 minus learning rate 0.0001, the runner-up"
    assert shown.effect.value == "0.00"


def test_a_mean_that_is_highest_for_common_seeds_alone_is_called_so() -> None:
    """The first seed, in which all scores are low, was not run with the rate 0.01."""
    study = rates_study({1e-3: [20.0, 51, 52, 53], 1e-2: [np.nan, 50.2, 52.6, 52.1]})
    trials = study.trials[study.trials["score"].notna()]
    context = StudyContext(dataclasses.replace(study, trials=trials))
    assert context.answer.heading.startswith(
        "learning rate 0.001 has the highest mean score adjusted for missing seeds"
    )
    (table,) = configurations.TOPIC.build(context).tables
    assert "Rows lack seeds: a mean is over the row's own ones" in table.caption


def test_of_too_many_configurations_those_that_are_compared_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in ("inference.best", "statistics.configurations", "questions.best"):
        monkeypatch.setattr(f"mtdlab.analysis.{module}.MOST_COMPARED", 4)
    monkeypatch.setattr(configurations, "MOST_COMPARED", 4)
    draws = np.random.default_rng(0)
    study = rates_study(
        {rate / 1e3: BY_SEED[:3] - rate + draws.normal(size=3) for rate in range(1, 7)}
    )
    context = StudyContext(study)
    assert "the lowest of the 4 compared, learning rate 0.004" in context.answer.certainty
    (table,) = configurations.TOPIC.build(context).tables
    assert "Of 6 rows the 4 with the highest means are compared" in table.caption
    assert len(table.rows) == 4


def test_the_method_that_may_be_best_is_named_although_it_is_not_the_runner_up() -> None:
    """The second is always 6 points below the first; the third is below it by 1.5 to 11.5."""
    one = make_trials(decays=(0.85,), times=(8,), seeds=range(6)).assign(mtd=np.nan)
    varying = [11, 2, 11.5, 1.5, 11, 2]
    below = {"simcse": [0.0] * 6, "mixcse": [6, 6.2] * 3, "consert": varying}
    rows = [one.assign(method=name, score=40 - np.array(points)) for name, points in below.items()]
    trials = pd.concat(rows, ignore_index=True).assign(number=range(18))
    shown = headline_of(build_study(trials))
    assert shown.effect.text == "SimCSE minus mixcse, the runner-up"
    assert shown.answer == "SimCSE has the highest mean score; consert is not significantly worse"


def test_configurations_are_compared_over_common_seeds() -> None:
    scores = {0.1: [10, 20, 30], 0.2: [11, 22, 33], 0.3: [5, 6, 7]}
    rows = [(seed, rate, score) for rate in scores for seed, score in enumerate(scores[rate])]
    trials = pd.DataFrame(rows, columns=["seed", "rate", "score"]).assign(number=range(9))
    settings = {"rate": RecordedSetting("rate")}
    study = StudyFrames("s", "accuracy", 9, trials, settings=settings)
    table = compute_configurations(study, trials)
    assert table["rate"].tolist() == [0.2, 0.1, 0.3]
    assert table["number"].tolist() == [3, 0, 6]
    assert table["difference"].tolist()[1:] == pytest.approx([-2, -16])
    values = np.array([scores[rate] for rate in table["rate"]], dtype=float).T
    expected = compare_columns(values, 0, 0.05)
    assert table["difference_low"][1] == pytest.approx(expected[1, 1])
    assert np.isnan(table["difference_low"][0])


@pytest.mark.parametrize(
    ("states", "planned", "kind", "text"),
    [
        ({}, 24, "complete", "24 of 24 trials complete, none failed"),
        ({0: "RUNNING"}, 30, "running", "23 of 30 trials complete, 1 running, 6 waiting"),
        ({}, 30, "paused", "24 of 30 trials complete, 6 waiting"),
        ({1: "FAIL"}, 24, "complete", "23 of 24 trials complete, 1 failed"),
        (dict.fromkeys(range(24), "FAIL"), 24, "failed", "0 of 24 trials complete, 24 failed"),
    ],
)
def test_the_status_is_a_word_and_its_numbers(
    states: dict[int, str], planned: int, kind: str, text: str
) -> None:
    trials = make_trials()
    for number, state in states.items():
        trials.loc[number, ["state", "reason"]] = [state, "out of memory"]
    status = describe_status(build_study(trials, planned=planned))
    assert (status.kind, status.text) == (kind, text)
    failed = list(states.values()).count("FAIL")
    named = f"{failed} trial{'s' if failed > 1 else ''} failed: out of memory"
    assert status.failures == ((named,) if failed else ())
    assert status.retry == ("mtdlab sweep studies/mtd.yaml --retry-failed" if failed else "")


def test_a_study_that_is_not_over_is_resumed() -> None:
    shown = headline_of(build_study(make_trials(), planned=30))
    assert shown.next_step.text == "Rerun to resume the study (6 trials, about 75 s of computing):"
    assert shown.next_step.command == "mtdlab sweep studies/mtd.yaml"
    assert shown.caveats[0] == (
        "The study has not ended: the answer is of what has been run, and it may change."
    )
    # a result that more trials may change is no recommendation
    assert shown.recommendation.label == "Highest mean so far"
    failed = make_trials()
    failed.loc[1, "state"] = "FAIL"
    shown = headline_of(build_study(failed, planned=30))
    assert shown.next_step.text == (
        "Rerun to resume the study, failed trials included (7 trials, about 88 s of computing):"
    )
    assert shown.next_step.command == shown.status.retry


def test_settings_that_follow_from_the_method_are_named() -> None:
    """Methods are compared with poolings of their own, for example."""
    trials = make_trials(times=(2, 4), decays=(0.85,))
    short = trials["queue_size"] == 128
    trials = trials.assign(
        method=np.where(short, "simcse", "consert"), pooling=np.where(short, "cls", "last2")
    )
    study = build_study(trials)
    settings = {**study.settings, **{name: RecordedSetting(name) for name in ("method", "pooling")}}
    varied = headline_of(dataclasses.replace(study, settings=settings)).facts["Varied"]
    assert varied == "method: consert, simcse; with these queue_size, pooling; 3 seeds"


def test_a_collapse_is_not_run_again() -> None:
    """With its seed it would collapse again."""
    trials = make_trials().assign(reason_code="")
    trials.loc[[1, 2], ["state", "reason_code"]] = ["FAIL", "collapsed"]
    trials.loc[2, "reason"] = "no sts_test: collapsed: every cosine is the same"
    trials.loc[3, ["state", "reason_code", "reason"]] = ["FAIL", "nan_loss", "loss is NaN"]
    shown = headline_of(build_study(trials, planned=30))
    assert shown.next_step.text.startswith("Rerun to resume the study (6 trials, about")
    assert shown.next_step.command == "mtdlab sweep studies/mtd.yaml"
    assert shown.status.failures == (
        "2 trials failed: collapsed: all cosines are equal",
        "1 trial failed: loss is NaN",
    )
    assert "Run the failed trials" not in headline_of(build_study(trials)).next_step.text
    # in code of the user it may be a mistake
    own = Invocation("sweep", ("a.yaml",), {"import": ("own.py",)})
    mended = headline_of(dataclasses.replace(build_study(trials), invocation=own)).next_step
    assert mended.text.startswith("Run the failed trials again (3 trials")
    assert mended.command.endswith("--retry-failed --changed-code")
    none = trials.assign(state="FAIL", reason_code="collapsed", score=np.nan)
    assert headline_of(build_study(none)).next_step.text.startswith("Change a setting that all")
    trials.loc[4, ["state", "reason_code"]] = ["FAIL", "oom"]
    step = headline_of(build_study(trials)).next_step
    # the command runs all of them
    assert step.text == "Run the failed trials again (4 trials, about 50 s of computing):"
    assert step.command.endswith("--retry-failed")


def test_studies_without_a_score_say_so() -> None:
    none = headline_of(build_study(make_trials().iloc[:0], planned=9))
    assert (none.answer, none.recommendation) == ("No result yet", None)
    failed = make_trials().assign(state="FAIL", reason="loss is NaN", score=np.nan)
    shown = headline_of(build_study(failed))
    assert shown.answer == "All 24 trials failed"
    assert shown.status.failures == ("24 trials failed: loss is NaN",)
    assert shown.next_step.command.endswith("--retry-failed")
    one = headline_of(build_study(make_trials().iloc[:1]))
    assert one.answer.startswith("The mean score is")


def test_commands_are_made_of_the_one_that_ran_the_study() -> None:
    options = {"models": ("/data/m",), "set": ("trainer.steps=4",)}
    sweep = Invocation("sweep", ("my study.yaml",), options)
    study = dataclasses.replace(build_study(make_trials()), invocation=sweep)
    assert model_folder(study) == "/data/m/mtd"
    assert more_seeds_command(study, 5) == (
        "mtdlab sweep 'my study.yaml' --models /data/m --set trainer.steps=4 "
        "--set 'seeds=[0, 1, 2, 3, 4]'"
    )
    assert more_seeds_command(study, 500) == ""
    bare = dataclasses.replace(study, invocation=NO_INVOCATION)
    assert (model_folder(bare), more_seeds_command(bare, 5)) == ("", "")


def test_the_effective_configuration_is_complete() -> None:
    study = build_study(make_trials(times=range(1, 21)).assign(steps=160, select_on="dev"))
    assert list_varied(study) == {
        "ema_decay η": "0.75, 0.85",
        "queue_size K": "20 values from 64 to 1280",
        "seed": "0, 1, 2",
    }
    fixed = list_fixed(study)
    general = ["metric", "select_by", "sampler", "margin", "alpha"]
    settings = ["batch_size N", "initial_queue_size", "queue_slice", "steps", "select_on"]
    assert list(fixed) == [*general, *settings]
    assert fixed["steps"] == "160"
    assert fixed["margin"] == "0.5 points"


def test_durations_are_readable() -> None:
    shown = [format_seconds(value) for value in (0.02, 1.53, 12.4, 720, 12_000)]
    assert shown == ["0 s", "1.5 s", "12 s", "12 min", "3 h 20 min"]


def test_auto_is_shown_as_what_the_machines_made_of_it() -> None:
    trials = make_trials().assign(device="auto", precision="float32")
    machine = {"device": "cpu", "precision": "bfloat16", "threads": "1", "processor": ""}
    environment = pd.DataFrame([machine | {"number": number} for number in trials["number"]])
    settings = {name: RecordedSetting(name) for name in ("device", "precision")}
    study = dataclasses.replace(build_study(trials), environment=environment, settings=settings)
    fixed = list_fixed(study)
    assert (fixed["device"], fixed["precision"]) == ("cpu", "float32")
    assert list_fixed(dataclasses.replace(study, environment=environment[:0]))["device"] == "auto"


@pytest.mark.parametrize(
    ("above", "answer"),
    [(20.0, "training lowered the score"), (0.0, "training was not shown to raise the score")],
)
def test_training_that_did_not_raise_the_score_is_in_the_headline(
    above: float, answer: str
) -> None:
    trials = make_trials(noise=0.1)
    best = trials["mtd"].sub(8.667).abs() < 0.01
    before = float(trials.loc[best, "score"].mean()) + above
    study = build_study(trials.assign(score_before=before))
    shown = headline_of(study)
    assert shown.answer == f"The score peaks between MTD 8 and 8.67; {answer}"
    assert shown.certainty.startswith(f"Before training {before:.2f}, after it ")
    # the number is that of the question
    assert shown.effect.text.startswith("MTD 8.67, the highest mean, minus MTD 14.7, ")
    assert shown.recommendation.label == "Highest mean, not above that before training"
    stated = StudyContext(study).answer.verdict.sentence
    assert stated.startswith("The score peaks between MTD 8 and 8.67. MTD 8.67, the highest mean")
    assert f"{answer.capitalize()}. Before training {before:.2f}" in stated


def test_training_that_raised_the_score_is_not_spoken_of() -> None:
    for before in (10.0, np.nan):
        study = build_study(make_trials().assign(score_before=before))
        assert "raining" not in list_rows(StudyContext(study))["finding"]


RATES = make_trials(decays=(0.5,), times=(2,)).assign(learning_rate=0.1)
BETTER = RATES.assign(number=RATES["number"] + 3, learning_rate=0.2, score=RATES["score"] + 3)
DIVIDED = make_trials(decays=(0.5, 0.75, 0.8, 0.85, 0.9), noise=0.05)
DIVIDED["score"] = DIVIDED["score"] + 40 * DIVIDED["ema_decay"]


def test_the_verdict_says_what_the_page_answers() -> None:
    """Of runs of one MTD it is that on the best."""
    study = build_study(pd.concat([RATES, BETTER]))
    shown, verdict = headline_of(study), StudyContext(study).answer.verdict
    assert shown.answer == "learning rate 0.2 is best"
    stated = f"{shown.answer}. {shown.effect.text}: {shown.effect.value} "
    assert verdict.sentence.startswith(stated)
    assert list_numbers(verdict)["verdict"] == "separated"


def test_an_exploratory_test_of_sufficiency_does_not_head_the_answer() -> None:
    study = build_study(DIVIDED)
    shown = headline_of(study)
    assert shown.answer.startswith("The score peaks")
    assert (
        "Exploratory, a test of its own: At equal MTD the score also depends on how it is divided "
        "between 1/(1 − η) and K/N (p < 0.001)." in shown.certainty
    )
    assert "the verdict on MTD" in describe_error_rates(StudyContext(study))


def test_nothing_is_recommended_that_scores_no_more_than_the_untrained_encoder() -> None:
    trained = build_study(make_trials(times=(2,), decays=(0.5, 0.85, 0.99), seeds=range(6)))
    best = float(trained.trials["score"].max())
    labels = []
    for score in (best - 50, best + 50):
        references = pd.DataFrame({"encoder": ["tiny"], "reading": ["mean"], "score": [score]})
        shown = headline_of(dataclasses.replace(trained, references=references))
        assert shown.recommendation is not None
        labels.append(shown.recommendation.label)
    assert labels[0] != labels[1] == "Highest mean, below the untrained encoder (mean pooling)"
