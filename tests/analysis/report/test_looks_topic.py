"""The section on specification and looks, and the verdict of a study that adds seeds."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from mtdlab.analysis.data.frames import LOOK_COLUMNS, Plan, RecordedSetting, StudyFrames
from mtdlab.analysis.questions.wording import format_p
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics import looks
from tests.analysis.questions.test_looks import PEAK, trials_of

pytestmark = pytest.mark.usefixtures("few_simulated_tables")

VALUES = {"study": "a", "metric": "sts_test", "margin": 0.5, "alpha": 0.05, "looks": [3, 4, 6]}
VALUES["beyond_run"] = "leave-out"


def plan(trials: int, **changed: Any) -> Plan:
    return Plan(trials, VALUES | changed, "0f" * 32)


def look(number: int, **changed: Any) -> Mapping[str, Any]:
    values = {"look": number, "seeds": 2 + number, "runs": 15, "alpha": 0.01, "spent": 0.01}
    values |= {"p_value": 0.2, "verdict": "inconclusive", "decision": "continue", "added": 5}
    return values | {"trials": tuple(range(15))} | changed


@pytest.fixture
def study() -> StudyFrames:
    """A look at three seeds of five levels, and a fourth seed that ran afterwards."""
    settings = {"ema_decay": 0.5, "queue_size": 512, "batch_size": 64, "score_before": np.nan}
    trials = trials_of(PEAK, 4, 0.5).assign(**settings)
    table = pd.DataFrame([look(1)], columns=list(LOOK_COLUMNS)).astype(dict(LOOK_COLUMNS))
    return StudyFrames("a", "sts_test", 30, trials, looks=table, plans=(plan(0),))


def text_of(study: StudyFrames) -> str:
    contents = looks.build(StudyContext(study))
    assert contents is not None
    return " ".join((*contents.text, *contents.warnings))


def test_the_verdict_is_that_of_the_last_look(study: StudyFrames) -> None:
    verdict = StudyContext(study).verdict
    assert (verdict.seeds, verdict.level, verdict.margin) == (3, pytest.approx(0.99), 0.5)
    fixed = replace(study, looks=study.looks.iloc[:0], plans=(plan(0, looks=[4], margin=1.0),))
    verdict = StudyContext(fixed).verdict
    assert (verdict.seeds, verdict.level, verdict.margin) == (4, 0.95, 1.0)


def test_before_its_first_look_the_verdict_has_the_level_of_that_look(study: StudyFrames) -> None:
    begun = replace(study, looks=study.looks.iloc[:0])
    # half of the seeds at the first of the looks 3, 4, 6: half of alpha
    assert StudyContext(begun).verdict.level == pytest.approx(1 - 0.025)
    assert "The first look at the verdict is taken when" in text_of(begun)


def test_the_section_states_specification_and_looks(study: StudyFrames) -> None:
    text = text_of(study)
    assert "Recorded before trial 1: metric sts_test, margin 0.5 points, α 0.05" in text
    assert f"at 3, 4, 6 seeds (SHA-256 {'0f' * 32}). This was not changed afterwards." in text
    assert (
        "Look 1 of 3, at 3 seeds: inconclusive (p = 0.2). Trials are added up to the next" in text
    )
    assert "It took 15 trials; all configurations with all seeds would be 30." in text
    assert "nominal level of that look, 99 %, so that those of all looks together have 95 %" in text
    contents = looks.build(StudyContext(study))
    assert contents is not None
    [table] = contents.tables
    assert len(table.rows) == 1
    assert "trials" not in contents.csv["looks"]


def test_confidence_and_p_are_those_over_all_looks(study: StudyFrames) -> None:
    """Of a study whose second look, with p 0.01, ended it before its last one."""
    early = look(2, p_value=0.01, verdict="peaked", decision="decided", alpha=0.014)
    table = pd.DataFrame([look(1), early], columns=list(LOOK_COLUMNS))
    context = StudyContext(replace(study, looks=table.astype(dict(LOOK_COLUMNS))))
    over = context.verdict.over_looks
    assert over is not None
    # 0.025 was spent at the first look, and 0.01 at the second is passed by some of these alone
    assert 0.025 < over.p_value < 0.035
    texts = (context.verdict.sentence, context.answer.certainty)
    for text in texts:
        assert re.search(r"\(95 % CI -?[\d.]+ to -?[\d.]+, over all looks\)", text)
        assert "98." not in text
        assert f"at this look, {format_p(over.p_value)} over all looks" in text
        assert "The study could have ended at any of 3 looks: 95 % over all looks is the" in text
        assert (
            "It ended at look 2, because differences were large there, so they tend to be stated"
            in text
        )


@pytest.mark.parametrize(
    ("decision", "sentence"),
    [
        ("decided", "ended there, because its verdict was decided"),
        ("flat", "ended there for futility"),
        ("max_seeds", "ended there undecided"),
        ("no scores", "ended there, because there was nothing to compare"),
    ],
)
def test_why_a_study_ended(study: StudyFrames, decision: str, sentence: str) -> None:
    ended = study.looks.assign(decision=decision, p_value=np.nan)
    assert f"(no test). The study {sentence}" in text_of(replace(study, looks=ended))


def test_changes_after_the_first_trial_are_stated(study: StudyFrames) -> None:
    text = text_of(replace(study, plans=(plan(0), plan(7, margin=1.0, looks=[3, 8]))))
    assert "Changed afterwards: margin from 0.5 to 1.0, looks from [3, 4, 6] to [3, 8]" in text
    assert "after 7 trials had started." in text
    assert "specified or changed when trials had begun" in text
    asked = replace(study, plans=(plan(0), plan(7, questions=[{"shape": "mtd"}])))
    assert "Changed afterwards: the questions after 7 trials had started." in text_of(asked)
    late = text_of(replace(study, plans=(plan(3),)))
    assert "Recorded after 3 trials had started:" in late
    assert "specified or changed when trials had begun" in late


def test_a_study_without_a_record_has_no_section(study: StudyFrames) -> None:
    bare = replace(study, looks=study.looks.iloc[:0], plans=())
    assert looks.build(StudyContext(bare)) is None


def test_a_comparison_is_that_of_its_last_look_over_all_looks(study: StudyFrames) -> None:
    """Learning rates without an MTD, of which one is far above; a fourth seed ran afterwards."""
    rates = study.trials["mtd"].rank(method="dense") / 10
    trials = study.trials.assign(mtd=np.nan, learning_rate=rates)
    names = {name: RecordedSetting(name) for name in ("learning_rate",)}
    ended = look(1, verdict="separated", decision="decided", p_value=0.004, added=0)
    table = pd.DataFrame([ended], columns=list(LOOK_COLUMNS)).astype(dict(LOOK_COLUMNS))
    compared = replace(study, trials=trials, looks=table, settings=names)
    context = StudyContext(compared)
    best = context.best.judged
    assert (best.seeds, best.level, best.confidence) == (3, pytest.approx(0.99), 0.95)
    assert context.best.compared["seeds"].tolist() == [3] * 5
    answer = context.answer
    assert answer.effect is not None
    assert answer.effect.interval.endswith(", over all looks")
    assert "It ended at look 1, because differences were large there" in answer.certainty
    alone = context.best.compared.iloc[1]
    assert answer.effect.value == f"{-alone['difference']:+.2f}"
    assert "separated (p = 0.004). The study ended there, because its verdict" in text_of(compared)
    # the verdict on MTD, which is not the question, has no looks
    assert StudyContext(compared).verdict.over_looks is None
    equal = look(1, verdict="equivalent", decision="equivalent", p_value=0.4, added=0)
    table = pd.DataFrame([equal], columns=list(LOOK_COLUMNS)).astype(dict(LOOK_COLUMNS))
    assert "what may be the best, or is asked about, differs by less than the margin" in (
        text_of(replace(compared, looks=table))
    )
