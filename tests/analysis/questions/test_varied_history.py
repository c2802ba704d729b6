"""No difference in score is called none without a history that is shown to vary."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import HISTORY_COLUMNS, LOOK_COLUMNS, RecordedSetting
from mtdlab.analysis.inference.level_means import LevelMeans
from mtdlab.analysis.notebook import Study
from mtdlab.analysis.questions.answer import QuestionOutcome
from mtdlab.analysis.questions.study import StudyQuestions, list_fields
from mtdlab.analysis.questions.varied_history import measure_variation
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.level_means import write_level_means
from mtdlab.analysis.report.topics import history
from mtdlab.analysis.report.topics.looks import build
from tests.analysis.conftest import SETTINGS, build_study, make_trials, report_of
from tests.analysis.questions.conftest import recorded
from tests.conftest import Settings
from tests.training.conftest import run

pytestmark = pytest.mark.usefixtures("few_simulated_tables")
NOT_SHOWN, NOT_MEASURED = "history not shown to vary", "within margin"
CLAIMS = ("flat", "equivalent", "no difference", "no effect", "is the same")


def aged(row: pd.Series) -> float:
    """A similarity that falls with MTD."""
    return 1 - 0.01 * float(row["mtd"])


def unaged(_: pd.Series) -> float:
    return 0.999


def measured(
    trials: pd.DataFrame, similarity: Callable[[pd.Series], float] | None, *asked: dict[str, Any]
) -> Study:
    """The study of trials whose similarities are measured twice, with small errors."""
    study = build_study(trials)
    settings = SETTINGS | {name: RecordedSetting(name) for name in trials if name == "extra"}
    plans = (recorded(*asked),) if asked else ()
    study = replace(study, plans=plans, settings=settings)
    if similarity is not None:
        rng = np.random.default_rng(0)
        rows = [
            (row["number"], step, 2, 4, similarity(row) + rng.normal(scale=0.001), 0.5, 0.1)
            for _, row in trials.iterrows()
            for step in (5, 10)
        ]
        history = pd.DataFrame(rows, columns=list(HISTORY_COLUMNS)).astype(dict(HISTORY_COLUMNS))
        study = replace(study, history=history)
    return Study.of(study)


def level(**changed: Any) -> pd.DataFrame:
    """Trials whose scores are equal but for seed and small errors, of four levels by default."""
    grid = {"times": (1, 8)} | changed
    return make_trials(seeds=range(5), shape=lambda _: 40.0, noise=0.05, **grid)


def texts_of(study: Study) -> str:
    """All that an answer says, for people and as JSON, but for the names of its fields."""
    answer = StudyQuestions(study).answer
    fields = [str(value) for value in list_fields(StudyQuestions(study)).values()]
    return " ".join([answer.sentence, study.summary(), answer.recommendation, *fields])


def test_equal_scores_are_flat_where_history_is_shown_to_vary() -> None:
    study = measured(level(), aged)
    assert (study.verdict().verdict, StudyQuestions(study).answer.outcome) == (
        "flat",
        QuestionOutcome.EQUIVALENT,
    )
    assert study.summary().startswith("MTD makes no difference between ")
    assert "History was shown to vary: the mean cosine of keys in use" in study.summary()
    assert "The number of keys (K) varied, from 64 to 512; their age was shown to differ" in (
        study.summary()
    )


@pytest.mark.parametrize(
    ("similarity", "verdict", "outcome", "heading", "step"),
    [
        (
            unaged,
            NOT_SHOWN,
            QuestionOutcome.OPEN,
            "History was not shown to vary",
            "Use a higher learning rate or more steps",
        ),
        (
            None,
            NOT_MEASURED,
            QuestionOutcome.WITHIN,
            "Any two levels of MTD between 5 and 14.7 differ by less than 0.5 points; whether "
            "history differed was not measured",
            "Choose by cost",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["shape", "conditions"])
def test_equal_scores_are_not_flat_otherwise(
    kind: str, similarity: Any, verdict: str, outcome: Any, heading: str, step: str
) -> None:
    trials = level()
    if kind == "conditions":
        rates = [trials.assign(learning_rate=rate) for rate in (1e-4, 1e-3)]
        trials = pd.concat(rates, ignore_index=True).assign(number=range(2 * len(trials)))
    study = measured(trials, similarity, {kind: "mtd"})
    answer = StudyQuestions(study).answer
    assert answer.outcome is outcome
    assert answer.suggest().text.startswith(step)
    fields = list_fields(StudyQuestions(study))
    if kind == "shape":
        assert (answer.heading, fields["verdict"]) == (heading, verdict)
        assert answer.effect is not None
        assert "(two one-sided tests at 5 % each: every 90 % CI is within ±0." in study.summary()
    else:
        assert f"Verdicts by condition: 2 {verdict}, " in answer.certainty
    text = texts_of(study)
    assert [claim for claim in CLAIMS if claim in text] == []


@pytest.mark.parametrize(
    "asked",
    [
        {"effect": "ema_decay"},
        {"contrast": {"queue_size": [64, 512]}},
        {"interaction": ["ema_decay", "queue_size"]},
        {"best": "configuration"},
    ],
)
def test_every_kind_of_question_about_history_is_held(asked: dict[str, Any]) -> None:
    def verdict_of(similarity: Callable[[pd.Series], float] | None) -> tuple[str, str]:
        study = measured(level(), similarity, asked)
        return study.verdict().verdict, texts_of(study)

    assert verdict_of(aged)[0] == "equivalent"
    for similarity, verdict in ((unaged, NOT_SHOWN), (None, NOT_MEASURED)):
        found, text = verdict_of(similarity)
        assert found == verdict
        assert [claim for claim in CLAIMS if claim in text] == []


def test_other_settings_need_no_history() -> None:
    trials = level(decays=(0.75,))
    trials = pd.concat([trials.assign(extra=0), trials.assign(extra=1)], ignore_index=True)
    trials["number"] = range(len(trials))
    study = measured(trials, None, {"effect": "extra"})
    assert study.verdict().verdict == "equivalent"
    assert study.summary().startswith("extra makes no difference")


@pytest.mark.parametrize("similarity", [aged, unaged, None])
def test_a_real_effect_does_not_vanish(similarity: Any) -> None:
    study = measured(make_trials(seeds=range(5), noise=0.1), similarity)
    assert study.verdict().verdict == "peaked"
    assert "istory" not in study.summary()


def test_a_decision_to_end_is_that_of_the_scores() -> None:
    for similarity in (aged, unaged, None):
        for asked, decision in (
            ({"shape": "mtd"}, "flat"),
            ({"effect": "ema_decay"}, "equivalent"),
        ):
            question = StudyQuestions(measured(level(), similarity, asked)).question
            assert question.decide(is_last=False) == decision


def test_a_question_that_awaits_history_is_not_decided_beside_others() -> None:
    asked = {"shape": "mtd"}, {"effect": "ema_decay"}
    for similarity, is_decided in ((aged, True), (unaged, False), (None, True)):
        [other] = StudyQuestions(measured(level(), similarity, *asked)).others
        assert other.outcome.is_decided == is_decided


def test_the_levels_with_the_least_and_the_most_history_are_found_paired_by_seed() -> None:
    trials = level().assign(bias=lambda rows: rows["seed"] * 0.05)
    study = measured(trials, lambda row: aged(row) - row["bias"])
    found = measure_variation(study, trials, ["mtd"])
    assert found is not None
    assert (found.names, found.keys) == (("MTD 5", "MTD 14.7"), (64, 512))
    lowest, highest = trials["mtd"].min(), trials["mtd"].max()
    assert found.size.mean == pytest.approx(0.01 * (highest - lowest), abs=0.003)
    assert found.size.low < found.size.mean < found.size.high
    by_decay = measure_variation(study, trials, ["ema_decay"])
    assert by_decay is not None
    assert (by_decay.names, by_decay.keys) == (("EMA decay 0.75", "EMA decay 0.85"), ())
    assert measure_variation(study, trials, ["learning_rate"]) is None
    named = trials.assign(queue_size="K " + trials["queue_size"].astype("str"))
    texts = measure_variation(study, named, ["mtd", "queue_size"])
    assert texts is not None
    assert texts.keys == ()
    one = measure_variation(study, trials[trials["seed"] == 0], ["mtd"])
    assert one is not None
    assert (len(one.names), one.is_shown) == (2, False)
    none = measure_variation(study, trials[:0], ["mtd"])
    assert none is not None
    assert (none.names, none.is_shown) == ((), False)


def test_keys_that_do_not_age_never_make_a_score_flat(settings_of: Settings) -> None:
    """Runs at a learning rate of 1e-7, and what is said of equal scores of their levels."""
    trials = make_trials(
        seeds=range(3), decays=(0.75,), times=(1, 2, 4), shape=lambda _: 40.0, noise=0.01
    )
    rows = []
    for number, seed, size in trials[["number", "seed", "queue_size"]].itertuples(index=False):
        settings = settings_of(
            seed=seed,
            queue_size=size // 8,
            ema_decay=0.75,
            learning_rate=1e-7,
            initial_queue_size=0,
        )
        found = run(settings).history
        rows.append(pd.DataFrame(found).assign(number=number))
    study = measured(trials, unaged)
    history = pd.concat(rows)[list(HISTORY_COLUMNS)].astype(dict(HISTORY_COLUMNS))
    study = Study.of(replace(study, history=history))
    assert study.verdict().verdict == NOT_SHOWN
    assert [claim for claim in CLAIMS if claim in texts_of(study)] == []


def test_looks_and_means_of_before_are_not_called_flat(tmp_path: Path) -> None:
    """A look recorded as flat, and means of levels, tell nothing of history."""
    row = (1, 5, 40, 0.05, 0.05, 0.2, "flat", "flat", 0, tuple(range(40)))
    looks = pd.DataFrame([row], columns=list(LOOK_COLUMNS)).astype(dict(LOOK_COLUMNS))
    for similarity, word in ((None, NOT_MEASURED), (aged, "flat")):
        contents = build(StudyContext(replace(measured(level(), similarity), looks=looks)))
        assert contents is not None
        assert contents.text[1].startswith(f"Look 1 of 1, at 5 seeds: {word} ")
    values = pd.DataFrame({"mtd": [5.0, 8, 20], "mean": 40.0, "low": 39.99, "high": 40.01})
    report = write_level_means(LevelMeans("a", "b", values), tmp_path, generated="", version="0")
    assert report.verdict.verdict == report.fields["verdict"] == NOT_MEASURED
    assert [claim for claim in CLAIMS if claim in report.verdict.sentence] == []


def test_the_page_says_what_the_levels_did_to_the_similarity() -> None:
    for similarity, known in ((aged, "shown"), (unaged, "not shown")):
        contents = history.KEYS.build(StudyContext(measured(make_trials(), similarity)))
        assert contents is not None
        assert f"History was {known} to vary: the mean cosine of keys in" in " ".join(contents.text)


@pytest.mark.usefixtures("figures_not_drawn")
def test_a_page_on_keys_that_do_not_age_claims_nothing(tmp_path: Path) -> None:
    report, page = report_of(measured(level(), unaged), tmp_path)
    assert "<h1>History was not shown to vary</h1>" in page
    stated = [*report.summary, *re.findall(r"<(?:p|figcaption)[ >].*?</", page, flags=re.S)]
    explained = "The verdict on MTD comes from"
    for text in (text for text in stated if explained not in text):
        assert [claim for claim in ("flat", "equivalent", "no difference") if claim in text] == []
