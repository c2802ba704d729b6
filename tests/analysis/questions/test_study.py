"""The questions of a study: declared or derived, their share of the error rate, late ones."""

from typing import Any

import numpy as np
import pytest

from mtdlab.analysis.data.questions import Declared, QuestionError, derive
from mtdlab.analysis.inference.verdict import OverLooks
from mtdlab.analysis.questions.answer import QuestionOutcome
from mtdlab.analysis.questions.results import Basis
from mtdlab.analysis.questions.study import (
    StudyQuestions,
    describe_error_rates,
    kind_of,
    list_declared,
    list_fields,
)
from tests.analysis.questions.conftest import Ask, make_runs, recorded

QUIET = make_runs(lambda *_: 40.0, noise=3.0)


@pytest.mark.parametrize(
    ("rows", "asked"),
    [
        ([{"method": "a", "mtd": 3}, {"method": "b", "mtd": 9}], {"best": "method"}),
        ([{"mtd": 3.0}, {"mtd": 3.0000001}], {"best": "configuration"}),
        ([{"mtd": 3}, {"mtd": 9}], {"shape": "mtd"}),
        ([{"mtd": 3}, {"mtd": None}, {"mtd": 0}], {"best": "configuration"}),
        (
            [{"mtd": mtd, "learning_rate": rate} for mtd in (3, 9) for rate in (1, 2)],
            {"conditions": "mtd"},
        ),
        # each rate has one level
        ([{"mtd": 3, "steps": 1}, {"mtd": 9, "steps": 2}], {"shape": "mtd"}),
        ([], {"best": "configuration"}),
    ],
)
def test_an_undeclared_question_follows_from_what_varies(
    rows: list[dict[str, Any]], asked: dict[str, str]
) -> None:
    assert derive(rows).write() == asked


def test_a_rate_that_is_chosen_for_each_configuration_makes_no_condition() -> None:
    rows = [{"mtd": mtd, "learning_rate": rate} for mtd in (3, 9) for rate in (1, 2)]
    assert derive(rows, ["learning_rate"]).kind == "shape"


def test_the_first_declared_question_is_the_main_one(ask: Ask) -> None:
    asked = {"effect": "width"}, {"best": "configuration"}, {"interaction": ["slice", "width"]}
    results = ask(QUIET, *asked)
    assert results.question.asked.write() == asked[0]
    assert [other.asked.write() for other in results.others] == [*asked[1:]]
    assert ask(QUIET).question.asked.write() == {"best": "configuration"}
    assert ask(QUIET).question.after is None


def test_the_others_share_the_error_rate_by_holms_rule(ask: Ask) -> None:
    # one of three is clear: the two that stay open are judged at half of the error rate
    runs = make_runs(lambda part, *_: 40 + 20 * (part == "new"), noise=3.0)
    others = ({"effect": "slice"}, {"effect": "width"}, {"effect": "branch"})
    found = ask(runs, {"best": "configuration"}, *others).others
    assert [other.basis.alpha for other in found] == pytest.approx([0.05 / 3, 0.025, 0.025])
    assert [other.outcome.is_decided for other in found] == [True, False, False]
    # with none shown, all stay at a third
    quiet = ask(QUIET, {"best": "configuration"}, *others).others
    assert [other.basis.alpha for other in quiet] == pytest.approx([0.05 / 3] * 3)


def test_a_question_that_tests_nothing_takes_no_share(ask: Ask) -> None:
    asked = {"best": "configuration"}, {"effect": "slice"}, {"history": "mtd"}
    shares = [other.basis.alpha for other in ask(QUIET, *asked).others]
    assert shares == pytest.approx([0.05, 0.05])
    assert "Holm" not in describe_error_rates(ask(QUIET, asked[0], asked[2]))


def test_the_others_have_their_own_confidence_over_all_looks(ask: Ask) -> None:
    asked = {"best": "configuration"}, {"effect": "slice"}, {"effect": "width"}
    at_look = Basis(0.02, OverLooks(3, 2, 0.95, p_value=0.0123, is_early=True))
    for other in StudyQuestions(ask(QUIET, *asked).study, at_look).others:
        over = other.judged.over_looks
        assert over is not None
        assert np.isnan(over.p_value)
        assert (other.judged.level, over.confidence) == pytest.approx((0.99, 0.975))
        assert other.answer.effect is not None
        assert "97.5 % CI" in other.answer.effect.interval


def test_a_question_that_was_declared_later_is_exploratory(ask: Ask) -> None:
    first, second, third = {"effect": "width"}, {"effect": "slice"}, {"effect": "branch"}
    plans = (recorded(first, second), recorded(first, second, third, after=7))
    results = ask(QUIET, plans=plans)
    assert [(asked.write(), after) for asked, after in list_declared(results.study)] == [
        (first, 0),
        (second, 0),
        (third, 7),
    ]
    # it takes nothing of the error rate of those that were declared before the first trial
    shares = {other.asked.names: other.basis.alpha for other in results.others}
    assert shares == {("slice",): pytest.approx(0.05), ("branch",): pytest.approx(0.05)}
    assert describe_error_rates(results).endswith(
        "together; the decisions on the other questions that were declared before trial 1 share an "
        "error rate of 5 % (Holm's rule); all other tests and intervals on this page are "
        "exploratory: not adjusted for their number."
    )
    late = ask(QUIET, plans=(recorded(), recorded(first, after=7)))
    assert late.question.answer.certainty.endswith(
        "Exploratory: the question was declared after 7 trials had started."
    )
    assert "Exploratory" not in results.question.answer.certainty
    text = describe_error_rates(late)
    assert text.startswith("All tests and intervals on this page are exploratory")
    assert text.endswith("The question was declared after 7 trials had started.")


def test_a_question_that_becomes_the_main_one_later_is_exploratory(ask: Ask) -> None:
    first, second = {"effect": "width"}, {"effect": "slice"}
    plans = (recorded(first, second), recorded(second, first, after=20))
    results = ask(QUIET, plans=plans)
    declared = [(asked.write(), after) for asked, after in list_declared(results.study)]
    assert declared == [(second, 20), (first, 0)]
    assert describe_error_rates(results) == (
        "The decisions on the other questions that were declared before trial 1 share an error "
        "rate of 5 % (Holm's rule); all other tests and intervals on this page are exploratory: "
        "not adjusted for their number. The main question was declared after 20 trials had started."
    )
    # before the first trial the order may change
    planned = ask(QUIET, plans=(recorded(first, second), recorded(second, first)))
    assert [after for _, after in list_declared(planned.study)] == [0, 0]


def test_a_question_that_is_taken_out_after_the_first_trial_keeps_its_share(ask: Ask) -> None:
    asked = {"best": "configuration"}, {"effect": "slice"}, {"effect": "width"}
    late = ask(QUIET, plans=(recorded(*asked), recorded(*asked[:2], after=20)))
    assert [other.basis.alpha for other in late.others] == pytest.approx([0.025])
    early = ask(QUIET, plans=(recorded(*asked), recorded(*asked[:2])))
    assert [other.basis.alpha for other in early.others] == pytest.approx([0.05])


def test_a_question_that_was_taken_out_and_back_counts_from_then(ask: Ask) -> None:
    asked = {"effect": "width"}
    plans = (recorded(asked), recorded(after=3), recorded(asked, after=9))
    assert [after for _, after in list_declared(ask(QUIET, plans=plans).study)] == [9]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"shapes": "mtd"}, "'shapes' is no kind of question; known: shape, best"),
        ({"shape": "score"}, "'score': it is about mtd; write shape: mtd"),
        ({"shape": "mtd", "best": "method"}, "write one kind and what it is about"),
        ("shape", "write one kind and what it is about"),
        ({"effect": ["a", "b"]}, r"\['a', 'b'\]: write effect: ema_decay"),
        ({"effect": {"a": 1}}, "write effect: ema_decay"),
        ({"interaction": ["a", "a"]}, r"write interaction: \[ema_decay, queue_size\]"),
        ({"interaction": [["a"], ["b"]]}, "write interaction"),
    ],
)
def test_what_is_no_question_is_refused_in_a_sentence(written: object, problem: str) -> None:
    with pytest.raises(QuestionError, match=problem):
        Declared.read(written)


ROWS = [
    {"a": a, "b": b, "mtd": 3, "queue_size": 4, "batch_size": 2, "ema_decay": 0.5}
    for a in (1, 2, 3)
    for b in ("x", "y")
    if (a, b) != (3, "y")
]


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"shape": "mtd"}, "fewer than two levels of MTD"),
        ({"sufficiency": "mtd"}, "divided between ema_decay and queue"),
        ({"conditions": "mtd"}, "two values of learning_rate or steps"),
        ({"history": "mtd"}, "fewer than two levels"),
        ({"effect": "ema_decay"}, "ema_decay is 0.5 everywhere"),
        ({"effect": "rate"}, "rate is no setting of this study"),
        ({"best": "method"}, "method is no setting"),
        ({"best": "a"}, "b vary too; write best: configuration, or effect: a"),
        ({"interaction": ["a", "b"]}, "not every value of a runs with every value of b"),
    ],
)
def test_what_does_not_vary_is_not_asked_about(written: object, problem: str) -> None:
    with pytest.raises(QuestionError, match=problem):
        Declared.read(written).check(ROWS)


def test_a_nuisance_setting_is_not_asked_about() -> None:
    with pytest.raises(QuestionError, match="a is chosen for each configuration"):
        Declared.read({"effect": "a"}).check(ROWS, ["a"])


@pytest.mark.parametrize(
    "written",
    [
        {"best": "configuration"},
        {"interaction": ["a", "b"]},
    ],
)
def test_a_question_is_written_as_it_was_read(written: dict[str, Any]) -> None:
    assert Declared.read(written).write() == written


@pytest.mark.parametrize("kind", ["shape", "best", "effect", "interaction", "sufficiency"])
def test_each_kind_has_a_module_that_is_called_like_it(kind: str) -> None:
    name = {"interaction": ["a", "b"]}.get(kind, "mtd" if kind in ("shape", "sufficiency") else "a")
    question = kind_of(Declared.read({kind: name}))
    assert question.__module__ == f"mtdlab.analysis.questions.{kind}"


def test_a_question_without_runs_is_not_answered(ask: Ask) -> None:
    failed = QUIET.assign(state="FAIL", score=float("nan"), reason="nan_loss")
    answer = ask(failed, {"effect": "width"}).answer
    assert answer.heading == f"All {len(failed)} trials failed"
    assert (answer.outcome, answer.number) == (QuestionOutcome.NOT_TESTED, None)
    empty = ask(QUIET[:0], {"effect": "width"}).answer
    assert empty.heading == "No result yet"


@pytest.mark.parametrize("complete", [(), (4,), (4, 6)])
def test_what_a_study_asks_does_not_change_while_it_runs(
    ask: Ask, complete: tuple[int, ...]
) -> None:
    fixed = {"ema_decay": 0.5, "queue_size": 64, "learning_rate": 1e-3, "steps": 10}
    runs = make_runs(lambda *_: 40.0, noise=3.0).assign(**fixed)
    runs["mtd"] = runs["slice"].map({"new": 4.0, "middle": 6.0, "old": 12.0})
    is_complete = runs["mtd"].isin(complete)
    runs["state"] = np.where(is_complete, "COMPLETE", "RUNNING")
    results = ask(runs.assign(score=runs["score"].where(is_complete)))
    assert results.question.sentence == (
        "How does accuracy depend on the maximum traceable distance (MTD)?"
    )
    assert not results.answer.outcome.is_decided
    assert "peak_mtd" in list_fields(results)
