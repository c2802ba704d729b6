"""The claims of the papers as questions of studies with known scores."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.environment import Environment, RecordedEvaluation
from mtdlab.analysis.data.frames import NuisanceTrials, RecordedSetting, StudyFrames
from mtdlab.analysis.inference.claims import SMALL
from mtdlab.analysis.measures.trace import d_trace
from mtdlab.analysis.questions.claim import ClaimQuestion, ask_claims
from mtdlab.analysis.questions.results import StudyResults

Point = Mapping[str, Any]
BASE: Point = {
    "method": "mocose",
    "ema_decay": 0.85,
    "queue_size": 512,
    "batch_size": 64,
    "initial_queue_size": 128,
    "queue_slice": "all",
    "fgsm_epsilon": 5e-9,
    "augmentation": "none",
    "learning_rate": 1e-3,
    "steps": 5000,
}
SETTINGS = {
    name: RecordedSetting(name, default="mocose" if name == "method" else None)
    for name in (*BASE, "queue_clusters", "prediction_dim", "backbone")
}
JITTER = (0.0, 0.2, -0.1, 0.15)


@pytest.fixture(scope="module", autouse=True)
def claims_not_asked() -> None:
    """They are asked here."""


def study_of(points: Sequence[tuple[Point, float]], name: str = "s", **more: Any) -> StudyFrames:
    """Four seeds of each point with its score; seeds differ by up to 5, and points by a jitter."""
    rows = [
        {**BASE, **point, "seed": seed, "score": score + 5 * seed + (-1) ** at * JITTER[seed]}
        for at, (point, score) in enumerate(points)
        for seed in range(len(JITTER))
    ]
    unknown = dict.fromkeys(("wall_seconds", "peak_memory", "alignment", "uniformity"), np.nan)
    trials = pd.DataFrame(rows).assign(state="COMPLETE", reason="", score_before=10.0, **unknown)
    traced = (trials["queue_size"] > 0).to_numpy()
    mtd = d_trace(trials["ema_decay"], trials["queue_size"], trials["batch_size"])
    trials = trials.assign(mtd=np.where(traced, mtd, np.nan), number=range(len(trials)))
    values = {"metric": "sts_average", "settings": SETTINGS} | more
    return StudyFrames(name=name, planned=len(trials), trials=trials, **values)


def claims_of(study: StudyFrames) -> dict[str, ClaimQuestion]:
    return {question.claim.name: question for question in ask_claims(StudyResults(study))}


def slices(*scores: float, queue: int = 256, **more: Any) -> StudyFrames:
    """The slices of table 8 in another queue: middle, newest, oldest, both ends, all."""
    quarter = queue // 4
    texts = [
        f"{quarter}-{3 * quarter}",
        f"0-{2 * quarter}",
        f"{2 * quarter}-{queue}",
        f"0-{quarter},{3 * quarter}-{queue}",
        "all",
    ]
    points = [
        ({"queue_slice": text, "queue_size": queue, "initial_queue_size": 32}, score)
        for text, score in zip(texts, scores, strict=False)
    ]
    return study_of(points, **more)


def test_slices_are_matched_by_share() -> None:
    found = claims_of(slices(40, 38, 37, 36, 41))
    assert [*found] == ["slice-middle", "slice-middle-above-all"]
    middle = found["slice-middle"]
    assert middle.judged.verdict == "replicated"
    # the difference that is least like the claim: to the newest half
    assert middle.judged.size.mean == pytest.approx(2 + 2 * np.mean(JITTER), abs=1e-9)
    assert middle.effect.text == "slice 1/4-3/4 minus slice 0-1/2"
    assert middle.sizes == pytest.approx([0.92, 1.31, 0.84])
    above_all = found["slice-middle-above-all"]
    assert above_all.judged.verdict == "contradicted"


def test_sizes_are_those_of_the_studys_own_tasks() -> None:
    def sizes(**more: Any) -> list[float]:
        return [*claims_of(slices(40, 38, 37, 36, 41, **more))["slice-middle"].sizes]

    assert sizes(metric="STSB") == pytest.approx([0.43, 0.88, 0.37])
    folder = Environment(evaluation=RecordedEvaluation("senteval", 1500, 1379))
    assert sizes(metric="sts_test", environments=(folder,)) == pytest.approx([0.43, 0.88, 0.37])
    assert sizes(metric="sts_test") == pytest.approx([0.92, 1.31, 0.84])


def test_a_study_that_lacks_rows_says_which() -> None:
    lacking = slices(40, 38, name="table8-queue-slices-small")
    found = claims_of(lacking)
    middle = found["slice-middle"]
    assert middle.judged.verdict == "not tested"
    assert middle.why == "no trial with slice 1/2-1"
    assert middle.effect is None
    # of another study they are no claims
    assert claims_of(replace(lacking, name="s")) == {}


def test_a_study_without_results_tests_nothing() -> None:
    study = slices(40, 38, 37, 36, name="table8-queue-slices")
    waiting = replace(study, trials=study.trials.assign(state="WAITING", score=np.nan))
    assert {q.why for q in claims_of(waiting).values()} == {"no trial is complete with a score"}
    one = replace(study, trials=study.trials[study.trials["seed"] == 0])
    assert claims_of(one)["slice-middle"].why == "one seed; it takes two"
    apart = study.trials["seed"].where(study.trials["queue_slice"] != "64-192", 99)
    unshared = replace(study, trials=study.trials.assign(seed=apart))
    assert claims_of(unshared)["slice-middle"].why == (
        "no two trials of a seed differ in slice alone"
    )


def test_a_level_beyond_the_run_is_named() -> None:
    points = [({"ema_decay": 0.85}, 40.0), ({"ema_decay": 0.99}, 30.0)]
    long = study_of([*points, ({"ema_decay": 0.5}, 1.0)])
    assert claims_of(long)["decay-high-loses"].judged.verdict == "replicated"
    short = replace(long, name="table3-ema-decay", trials=long.trials.assign(steps=120))
    found = claims_of(short)["decay-high-loses"]
    assert found.why == "ema_decay 0.99 is beyond the run"
    levels = [({"ema_decay": 0.85}, 30.0), ({"ema_decay": 0.95, "queue_size": 64}, 30.0)]
    figure = study_of(levels, name="figure2-mtd", metric="sts_average")
    shorter = replace(figure, trials=figure.trials.assign(steps=20))
    assert claims_of(shorter)["mtd-falls"].why == "MTD 21 is beyond the run"


def test_other_settings_are_alike_on_both_sides() -> None:
    """Rates of 40 and 70 points: without the same rates on both sides the claim would be false."""
    points = [
        ({"queue_clusters": 0, "learning_rate": 1e-3}, 40.0),
        ({"queue_clusters": 5, "learning_rate": 1e-3}, 42.0),
        ({"queue_clusters": 5, "learning_rate": 3e-3}, 10.0),
    ]
    found = claims_of(study_of(points))["clusters-five"]
    assert found.judged.verdict == "contradicted"
    assert found.judged.size.mean == pytest.approx(-2, abs=0.3)
    assert found.averaged_over == ("learning_rate",)


def test_sides_that_differ_in_another_setting_too_answer_another_question() -> None:
    points = [
        ({"queue_clusters": 0, "learning_rate": 1e-3}, 40.0),
        ({"queue_clusters": 5, "learning_rate": 3e-3}, 30.0),
    ]
    found = claims_of(study_of(points))["clusters-five"]
    assert found.judged.verdict == "not tested"
    assert found.why == "another question: the sides differ in learning_rate too"


def test_rates_that_were_chosen_for_each_side_answer_another_question() -> None:
    points = [({"queue_clusters": 0}, 40.0), ({"queue_clusters": 5}, 30.0)]
    study = study_of(points)
    tuning = NuisanceTrials(("learning_rate",), (), 0, {}, study.trials.iloc[:0])
    same = claims_of(replace(study, tuning=tuning))["clusters-five"]
    assert same.judged.verdict == "replicated"
    rates = np.where(study.trials["queue_clusters"] == 5, 3e-3, 1e-3)
    own = replace(study, tuning=tuning, trials=study.trials.assign(learning_rate=rates))
    found = claims_of(own)["clusters-five"]
    assert found.judged.verdict == "not tested"
    assert found.why == "another question: each side has its own learning_rate"
    # the difference is stated nevertheless
    assert found.effect is not None
    assert found.effect.size.mean == pytest.approx(10, abs=0.3)


def test_no_difference_without_varied_history_shows_nothing() -> None:
    scores = {0.85: 40.0, 0.99: 39.9}
    study = study_of([({"ema_decay": eta}, score) for eta, score in scores.items()])
    trials = study.trials.assign(score=40.0 + study.trials["seed"])
    jitter = np.where(trials["ema_decay"] == 0.99, np.array(JITTER)[trials["seed"]], 0.0)
    near = replace(study, trials=trials.assign(score=trials["score"] + 0.1 * jitter))
    # within half of 1.37, but history was not measured
    found = claims_of(near)["decay-high-loses"]
    assert found.judged.verdict == "not tested"
    assert found.why == "no difference, but history was not shown to vary"


def test_a_setting_that_changed_no_score_is_not_tested() -> None:
    """Three steps of FGSM are lost in rounding, and a fourth is not."""
    steps = {0: 40.0, 1e-9: 40.0, 5e-9: 40.0, 1e-8: 40.0, 5e-8: 40.0}
    study = study_of([({"fgsm_epsilon": step}, score) for step, score in steps.items()])

    def changed(**by_step: float) -> dict[str, ClaimQuestion]:
        added = study.trials["fgsm_epsilon"].map({float(k): v for k, v in by_step.items()})
        seeds = study.trials["seed"]
        scores = 40.0 + 5 * seeds + added.fillna(0) * np.array(JITTER)[seeds]
        return claims_of(replace(study, trials=study.trials.assign(score=scores)))

    idle = changed(**{"5e-9": 0.1, "5e-8": 5.0})
    for name in ("fgsm-step", "fgsm-helps"):
        assert idle[name].judged.verdict == "not tested"
        assert idle[name].why == "it changed no score by more than 0.1 points"
        assert idle[name].need is None
    # what is stated is a difference that did not change anything
    assert idle["fgsm-step"].judged.place == 0
    assert idle["fgsm-step"].effect is not None
    assert idle["fgsm-step"].effect.size == idle["fgsm-helps"].judged.size
    # by 0.14 points with one seed
    assert changed(**{"5e-9": 0.7})["fgsm-helps"].judged.verdict == "undecided"


def test_history_that_changed_no_score_is_tested_where_it_is_shown_to_vary() -> None:
    study = study_of([({"ema_decay": eta}, 40.0) for eta in (0.85, 0.99)])
    same = study.trials.assign(score=40.0 + study.trials["seed"])
    similarity = np.where(same["ema_decay"] == 0.85, 0.9, 0.5) + 1e-3 * same["seed"]
    rows = {"step": 1, "age": 1, "oldest_age": 1, "oldest_similarity": 0.5, "different": 0.0}
    history = pd.DataFrame({"number": same["number"], "similarity": similarity}).assign(**rows)
    unvaried = claims_of(replace(study, trials=same))["decay-high-loses"]
    assert unvaried.why == "no difference, but history was not shown to vary"
    varied = claims_of(replace(study, trials=same, history=history))["decay-high-loses"]
    assert varied.judged.verdict == SMALL


def test_a_claim_over_several_values_is_not_tested_with_fewer() -> None:
    """Figure 2 is a mean over three batch sizes."""
    points = [
        {"ema_decay": eta, "queue_size": keys * batch, "initial_queue_size": 8, "batch_size": batch}
        for batch in (32, 64, 128)
        for eta, keys in ((0.85, 8), (0.95, 1))
    ]
    study = study_of([(point, 40.0) for point in points], name="figure2-mtd")
    assert claims_of(study)["mtd-falls"].judged.verdict != "not tested"
    two = replace(study, trials=study.trials[study.trials["batch_size"] > 32])
    found = claims_of(two)["mtd-falls"]
    assert found.judged.verdict == "not tested"
    assert found.why == "run with batch_size 64 and 128; the claim is over 3 values"
    one = replace(study, trials=study.trials[study.trials["batch_size"] == 32])
    assert claims_of(one)["mtd-falls"].why.startswith("run with batch_size 32; ")
    # what is claimed of one batch size is tested with it
    at_64 = replace(study, trials=study.trials[study.trials["batch_size"] == 64])
    assert claims_of(at_64)["mtd-falls-64"].judged.verdict != "not tested"


def test_a_baseline_is_a_side_and_a_program_has_no_claims() -> None:
    methods = [({"method": "mocose"}, 40.0)]
    lacking = {"queue_size": 0, "ema_decay": 0.0}
    both = study_of([*methods, ({"method": "simcse", **lacking}, 43.0)])
    assert claims_of(both)["mocose-above-simcse"].judged.verdict == "contradicted"
    own = replace(both, methods={"program:train": "program:train"})
    assert claims_of(own) == {}


def test_what_would_decide_is_said() -> None:
    wide = study_of([({"queue_clusters": 0}, 40.0), ({"queue_clusters": 5}, 39.9)])
    noise = np.where(wide.trials["number"] % 2 == 0, 3.0, -3.0) * (wide.trials["number"] < 4)
    found = claims_of(replace(wide, trials=wide.trials.assign(score=wide.trials["score"] + noise)))
    assert found["clusters-five"].judged.verdict == "undecided"
    assert found["clusters-five"].why.endswith("seeds would decide")
