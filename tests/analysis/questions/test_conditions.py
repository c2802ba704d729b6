"""The optimum in MTD by learning rate and steps: conditions, text, table, figure."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import PROBE_COLUMNS, Plan
from mtdlab.analysis.questions.conditions import Condition, find_conditions
from mtdlab.analysis.questions.shape_wording import describe_conditions
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import conditions as topic
from mtdlab.analysis.report.topics.base import compose
from mtdlab.analysis.report.topics.score import CORRELATION, describe
from tests.analysis.conftest import build_study, make_trials, report_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def conditioned(tops: Sequence[tuple[float, int, float]]) -> pd.DataFrame:
    """Five levels of MTD, 3 seeds; for each (learning rate, steps) the MTD of the best score."""
    parts = [
        make_trials(
            decays=(0.5, 0.75, 0.9, 0.95, 0.98),
            times=(8,),
            noise=0.05,
            shape=lambda mtd, top=top: -20 * float(np.log(mtd / top)) ** 2,
        ).assign(learning_rate=rate, steps=steps)
        for rate, steps, top in tops
    ]
    trials = pd.concat(parts, ignore_index=True)
    return trials.assign(number=range(len(trials)))


def conditions_of(trials: pd.DataFrame, **fields: Any) -> tuple[Condition, ...]:
    """Those of a study in which the half-life of a key is a quarter of the MTD."""
    probes = pd.DataFrame({"number": trials["number"], "step": 100, "lag": 100})
    probes = probes.assign(cosine=1 - 200 / trials["mtd"], cosine_different=0.0)
    return find_conditions(StudyContext(replace(build_study(trials), probes=probes, **fields)))


FOUR = ((1e-3, 160, 18.0), (1e-3, 640, 18.0), (3e-4, 160, 28.0), (3e-3, 160, 12.0))


def test_a_condition_whose_levels_are_within_the_margin_states_the_interval_that_shows_it() -> None:
    at_rates = [
        make_trials(seeds=range(6), times=(1, 8), noise=0.02, shape=shape).assign(
            learning_rate=rate
        )
        for rate, shape in ((1e-3, lambda _: 40.0), (3e-3, lambda mtd: 40.0 + mtd / 10))
    ]
    trials = pd.concat(at_rates, ignore_index=True).assign(steps=160)
    contents = topic.build(StudyContext(build_study(trials.assign(number=range(len(trials))))))
    assert contents is not None
    [stated] = [text for text in contents.text if "rests on" in text]
    assert stated.startswith(
        "Learning rate 0.001. That they are within the margin of 0.5 points rests on two one-sided "
        "tests at 2.5 % each: every 95 % CI is within ±0.0"
    )


def test_every_condition_has_its_own_verdict() -> None:
    found = conditions_of(conditioned(FOUR))
    assert [condition.name for condition in found] == [
        "learning rate 0.0003, 160 steps",
        "learning rate 0.001, 160 steps",
        "learning rate 0.001, 640 steps",
        "learning rate 0.003, 160 steps",
    ]
    best = [float(condition.curve["mtd"][condition.curve["mean"].argmax()]) for condition in found]
    assert best == [28, 18, 18, 12]
    assert all(condition.verdict.seeds == 3 and len(condition.paired) == 5 for condition in found)
    assert [condition.verdict.level for condition in found] == pytest.approx([0.9875] * 4)
    assert conditions_of(conditioned(FOUR[:2]))[0].verdict.level == 0.975
    stated = describe_conditions(found[0].runs)
    assert stated == "at learning rate 0.0003, 160 steps, queue size 512 and batch size 64"


def test_a_level_is_left_out_where_it_is_beyond_the_run_of_its_condition() -> None:
    # 0.98^100 = 0.13, 0.98^640 = 2e-6: MTD 58 is compared in the long runs alone
    trials = conditioned(((1e-3, 100, 18.0), (1e-3, 640, 18.0)))
    short, long = conditions_of(trials)
    assert list(short.verdict.left_out) == [58]
    assert (short.verdict.levels, long.verdict.levels, long.verdict.left_out) == (4, 5, ())
    assert set(short.curve["mtd"]) == set(long.curve["mtd"])
    kept, _ = conditions_of(trials, beyond_run="keep")
    assert kept.verdict.levels == 5


def test_a_rate_at_which_runs_of_a_level_failed_makes_no_peak() -> None:
    """All levels are alike at either rate; one has lost its runs at the rate of low scores."""
    trials = conditioned(((3e-4, 160, 18.0), (1e-3, 160, 18.0)))
    trials["score"] = 50 + trials["seed"] + trials["number"] % 7 / 100
    high = trials["learning_rate"] == 1e-3
    trials.loc[high, "score"] -= 30
    trials.loc[high & trials["mtd"].astype("float64").round(1).eq(18.0), "state"] = "FAIL"
    verdict = StudyContext(build_study(trials)).verdict
    assert not verdict.is_peaked
    assert "Not compared: learning_rate 0.001, with which a level has too few" in verdict.sentence
    assert "at learning rate 0.0003, 160 steps" in verdict.sentence
    whole = StudyContext(build_study(trials.assign(state="COMPLETE"))).verdict
    assert "Not compared" not in whole.sentence
    assert "at learning rates 0.0003 and 0.001, 160 steps" in whole.sentence


def test_conditions_that_interact_are_not_compared_together() -> None:
    trials = conditioned(((3e-4, 160, 18.0), (1e-3, 160, 18.0)))
    trials["score"] += 50 * (trials["ema_decay"] > 0.9) * (trials["learning_rate"] > 5e-4)
    values = {"metric": "sts_average", "beyond_run": "leave-out", "alpha": 0.05, "margin": 0.5}
    texts = []
    for asked in ({"interaction": ["ema_decay", "learning_rate"]}, {"effect": "ema_decay"}):
        plan = Plan(0, values | {"looks": [3], "questions": [asked]}, "")
        context = StudyContext(replace(build_study(trials), plans=(plan,)))
        texts.append(" ".join(describe(context)))
    assert texts[0] == (
        "Conditions are not compared together, since they interact; each has a verdict under "
        "“Robustness of the optimum”."
    )
    assert "It is of means over these; each has a verdict under" in texts[1]


def test_a_rate_at_which_runs_of_a_level_failed_changes_no_correlation() -> None:
    """The score falls by a little with MTD; one level in the middle has lost its low scores."""
    rates = [make_trials(noise=0).assign(learning_rate=rate) for rate in (3e-4, 1e-3)]
    trials = pd.concat(rates, ignore_index=True)
    trials["score"] = 50 - trials["mtd"].astype("float64") / 100
    high, middle = trials["learning_rate"] == 1e-3, trials["mtd"] == trials["mtd"].unique()[5]
    trials.loc[high, "score"] -= 30
    trials = trials.assign(
        number=range(len(trials)), state=np.where(high & middle, "FAIL", "COMPLETE")
    )
    shown = CORRELATION.build(StudyContext(build_study(trials)))
    assert shown is not None
    spearman = shown.csv["correlation"].set_index("measure")["mean"]["Spearman"]
    assert spearman == pytest.approx(-1)


def test_one_condition_or_none_with_several_levels_is_nothing_to_compare() -> None:
    trials = conditioned(FOUR)
    assert conditions_of(trials[trials["learning_rate"] == 1e-3])
    assert conditions_of(trials.iloc[:15]) == ()
    single = trials[(trials["steps"] == 160) | (trials["mtd"] == 10)]
    single = single[single["learning_rate"] == 1e-3]
    assert conditions_of(single) == ()
    assert conditions_of(trials.iloc[:0]) == ()
    bare = trials.drop(columns=["learning_rate", "steps"])
    assert conditions_of(bare) == ()


def test_the_half_life_is_that_of_the_best_level() -> None:
    found = conditions_of(conditioned(FOUR))
    assert [condition.half_life for condition in found] == pytest.approx([7, 4.5, 4.5, 3])


def test_the_section_names_each_condition() -> None:
    trials = conditioned(FOUR)
    context = StudyContext(build_study(trials))
    contents, names = topic.build(context), [each.name for each in find_conditions(context)]
    assert contents.text[0] == (
        "The 4 verdicts share the error rate of 5 %: each is at 98.75 % confidence (Bonferroni)."
    )
    assert "Learning rate 0.0003, 160 steps: " in contents.figures["robustness"].alt
    (table,) = contents.tables
    assert [row[0] for row in table.rows] == names
    assert "half-life of a key there, steps" not in {column.label for column in table.columns}
    assert contents.csv["robustness_curves"]["condition"].nunique() == 4
    assert [title for title, _ in contents.figures["robustness"].panels] == names


def test_a_measured_half_life_is_stated() -> None:
    trials = conditioned(FOUR)
    lags = 2.0 ** np.arange(8)
    probes = pd.DataFrame(
        [
            (number, 200, int(lag), max(1 - lag / (mtd / 2), 0.0), 0.0)
            for number, mtd in zip(trials["number"], trials["mtd"], strict=True)
            for lag in lags
        ],
        columns=list(PROBE_COLUMNS),
    )
    contents = topic.build(StudyContext(replace(build_study(trials), probes=probes)))
    (table,) = contents.tables
    assert table.columns[-1].label == "half-life of a key there, steps"
    assert (table.rows[0][2], table.rows[0][-1]) == ("28", "7")


@pytest.mark.usefixtures("figures_not_drawn")
def test_the_page_opens_with_the_best_mtd_over_conditions(tmp_path: Path) -> None:
    study = build_study(conditioned(FOUR).assign(score_before=-99.0))
    _, text = report_of(study, tmp_path, topic.TOPIC)
    assert "<h1>The highest mean is at MTD 12 to 28 in 4 conditions</h1>" in text


def test_conditions_of_which_one_seed_has_ended_are_drawn() -> None:
    """One condition has a second seed at one level, as while a study runs."""
    trials = conditioned(FOUR[:2])
    begun = (trials["seed"] == 0) | ((trials["seed"] == 1) & (trials["number"] < 3))
    contents = topic.TOPIC.build(StudyContext(build_study(trials[begun])))
    assert contents is not None
    (drawing,) = contents.figures.values()
    assert drawing is not None
    figure = compose(drawing)
    assert all(np.isfinite(ax.get_ylim()).all() for ax in figure.axes)


def test_a_study_of_mtd_alone_has_no_section() -> None:
    assert topic.build(StudyContext(build_study(make_trials()))) is None


def test_conditions_are_part_of_a_sentence() -> None:
    trials = conditioned(FOUR)
    assert describe_conditions(trials) == (
        "at learning rates 0.0003, 0.001 and 0.003, 160 and 640 steps, queue size 512 and batch "
        "size 64"
    )
    bare = trials.drop(columns=["learning_rate", "steps", "queue_size", "batch_size"])
    assert describe_conditions(bare) == ""
    assert describe_conditions(trials.iloc[:0]) == ""
