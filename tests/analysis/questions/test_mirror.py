"""Each answer about a loss is that about its negative in mirror, for every kind of question."""

import re
from dataclasses import replace

import pandas as pd
import pytest

from mtdlab.analysis.data.frames import Plan, RecordedSetting, StudyFrames
from mtdlab.analysis.data.metric import POINTS, ScoreFormat
from mtdlab.analysis.questions.study import StudyQuestions, list_fields
from tests.analysis.conftest import build_study, make_trials
from tests.analysis.questions.conftest import SETTINGS, make_runs, recorded

pytestmark = pytest.mark.usefixtures("few_simulated_tables")


def at_rates(best: tuple[float, float]) -> pd.DataFrame:
    parts = [
        make_trials().assign(learning_rate=rate, score=make_trials()["score"] + shift)
        for rate, shift in zip((0.001, 0.003), best, strict=True)
    ]
    whole = pd.concat(parts, ignore_index=True)
    return whole.assign(number=range(len(whole)))


def best_by_part(part: str, width: int, branch: str) -> float:
    del branch
    return 70 + 3 * (part == "new") + 2 * (part == "new" and width == 8)


RUNS = make_runs(best_by_part)
ALIKE = make_runs(lambda *_: 70.0, noise=0.01)
OPEN = make_runs(lambda *_: 70.0, noise=2)
STUDIES: dict[str, tuple[pd.DataFrame, tuple[Plan, ...]]] = {
    "peaked": (make_trials(), ()),
    "rising": (make_trials(decays=(0.5, 0.75), times=(4, 8)), ()),
    "configurations": (RUNS, ()),
    "alike": (ALIKE, ()),
    "open": (OPEN, ()),
    "conditions": (at_rates((0.0, 1.0)), (recorded({"conditions": "mtd"}),)),
    "sufficiency": (make_trials(), (recorded({"sufficiency": "mtd"}),)),
    "effect": (RUNS, (recorded({"effect": "slice"}),)),
    "contrast": (RUNS, (recorded({"contrast": {"slice": ["old", "new"]}}),)),
    "interaction": (RUNS, (recorded({"interaction": ["slice", "width"]}),)),
    "methods": (RUNS.assign(method=RUNS["slice"].map({"new": "xbm", "old": "mocose"})), ()),
}
NUMBER = re.compile(r"[+-]?\d+\.\d\d\b")


def results_of(kind: str, metric: str) -> StudyQuestions:
    trials, plans = STUDIES[kind]
    if "slice" in trials:
        trials = trials.dropna(subset=[name for name in ("method",) if name in trials])
        known = SETTINGS | {name: RecordedSetting(name) for name in ("method",) if name in trials}
        return StudyQuestions(
            StudyFrames("s", metric, len(trials), trials, settings=known, plans=plans)
        )
    study = build_study(trials)
    return StudyQuestions(replace(study, metric=metric, scores=study.scores[:0], plans=plans))


@pytest.mark.parametrize("kind", STUDIES)
def test_answers_are_mirrored(kind: str) -> None:
    low, high = (results_of(kind, metric) for metric in ("-loss", "accuracy"))
    write = low.study.score_format
    lower, higher = low.answer, high.answer
    assert type(low.question) is type(high.question)
    assert (lower.outcome, lower.number) == (higher.outcome, higher.number)
    assert lower.judged.p_value == pytest.approx(higher.judged.p_value, nan_ok=True)
    assert lower.judged.label == write.say(higher.judged.label)
    assert lower.recommendation == write.say(higher.recommendation)
    if higher.effect and lower.effect:
        assert float(lower.effect.value) == pytest.approx(-float(higher.effect.value), abs=0.011)
        assert lower.effect.interval.count("CI") == higher.effect.interval.count("CI")
    for text in (lower.sentence, *low.question.describe()):
        assert "points" not in text, text
        assert "score rises" not in text or "falls" in text, text
    said = NUMBER.findall(higher.sentence)
    assert len(NUMBER.findall(lower.sentence)) == len(said)
    fields, others = list_fields(low), list_fields(high)
    assert fields.keys() == others.keys()


def test_words_and_numbers_are_those_of_what_was_read() -> None:
    write = ScoreFormat("-val_loss", 0.02)
    assert write.say("The highest mean rises") == "The lowest mean falls"
    assert write.say("rising, lower at the end") == "falling, higher at the end"
    assert POINTS.say("The highest mean rises") == "The highest mean rises"
    assert (write.score(-2.3456), write.difference(0.5)) == ("2.346", "-0.500")
    assert write.interval(-2.5, -2.25) == "2.250 to 2.500"
    assert (write.name, write.unit, write.stated_margin) == ("val_loss", "", "0.02")
    frame = pd.DataFrame({"mean": [-2.0], "low": [-2.5], "high": [-1.0], "seeds": [3]})
    assert write.frame(frame).iloc[0].tolist() == [2.0, 1.0, 2.5, 3]
    assert POINTS.frame(frame) is frame
