"""Effects and interactions that a study asks about."""

import re

import pytest

from mtdlab.analysis.data.questions import Declared, PlannedQuestion
from mtdlab.analysis.questions.answer import QuestionOutcome
from mtdlab.analysis.questions.differences import DifferencesQuestion
from mtdlab.analysis.questions.study import (
    StudyQuestions,
    describe_error_rates,
    kind_of,
    list_fields,
)
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.topics.questions import DIFFERENCE
from tests.analysis.questions.conftest import Ask, make_runs


def question_of(results: StudyQuestions) -> DifferencesQuestion:
    question = results.question
    assert isinstance(question, DifferencesQuestion)
    return question


def test_of_three_values_the_largest_difference_is_stated_upwards(ask: Ask) -> None:
    runs = make_runs(lambda part, *_: 40 + {"new": 0, "middle": 1, "old": 3}[part])
    question = question_of(ask(runs, {"effect": "slice"}))
    means = runs.groupby("slice")["score"].mean()
    assert len(question.judged.sizes) == 3
    assert question.answer.effect.text == "slice old minus slice new"
    assert question.answer.effect.size.mean == pytest.approx(means["old"] - means["new"])
    size = question.answer.effect.size
    assert 2 < size.low < size.mean < size.high
    assert question.answer.heading == "The score depends on slice"
    falling = make_runs(lambda part, *_: 40 - {"new": 0, "middle": 1, "old": 3}[part])
    size = question_of(ask(falling, {"effect": "slice"})).answer.effect.size
    assert 2 < size.low < size.mean < size.high


def test_no_effect_is_equivalence_or_open_never_shown(ask: Ask) -> None:
    quiet = question_of(ask(make_runs(lambda *_: 40.0, noise=0.1), {"effect": "width"}, alpha=0.01))
    assert (quiet.outcome, quiet.answer.heading) == (
        QuestionOutcome.EQUIVALENT,
        "width makes no difference",
    )
    loud = question_of(ask(make_runs(lambda *_: 40.0, noise=3.0), {"effect": "width"}, alpha=0.01))
    assert (loud.outcome, loud.answer.heading) == (
        QuestionOutcome.OPEN,
        "No effect of width is shown",
    )


def test_an_interaction_is_a_difference_of_differences(ask: Ask) -> None:
    runs = make_runs(lambda part, _, branch: 40 + 5 * (part == "new") * (branch == "target"))
    question = question_of(ask(runs, {"interaction": ["slice", "branch"]}))
    means = runs.groupby(["slice", "branch"])["score"].mean()
    sizes = dict(zip(question.family_of_differences.names, question.judged.sizes, strict=True))
    expected = (means["new", "online"] - means["old", "online"]) - (
        means["new", "target"] - means["old", "target"]
    )
    name = (
        "How much larger the gain of slice new over slice old is with branch online than with "
        "branch target"
    )
    assert sizes[name].mean == pytest.approx(expected)
    assert question.outcome is QuestionOutcome.SHOWN
    assert question.answer.heading == "The effect of slice depends on branch"
    additive = make_runs(lambda part, width, _: 40 + 5 * (part == "new") + width)
    assert question_of(ask(additive, {"interaction": ["slice", "width"]}, alpha=0.01)).outcome in (
        QuestionOutcome.OPEN,
        QuestionOutcome.EQUIVALENT,
    )


def test_the_effects_that_an_interaction_compares_are_stated(ask: Ask) -> None:
    """They differ by what is stated, also where runs are missing."""
    runs = make_runs(lambda part, _, branch: 40 + 5 * (part == "old") * (branch == "target"))
    lost = (runs["seed"] == 1) & (runs["slice"] == "new")
    for known in (runs, runs[~lost]):
        answer = question_of(ask(known, {"interaction": ["slice", "branch"]})).answer
        [one, other] = re.findall(r"([+-]\d+\.\d\d) with branch", answer.certainty)
        assert answer.effect is not None
        assert float(one) - float(other) == pytest.approx(answer.effect.size.mean, abs=0.011)
        assert float(one) > abs(float(other))
        assert re.match(
            r"Gain of slice old over slice \w+: \S+ with branch target", answer.certainty
        )


def test_a_combination_without_a_score_has_no_part_in_an_interaction(ask: Ask) -> None:
    whole = make_runs(lambda part, _, branch: 40 + 5 * (part == "old") * (branch == "target"))
    lost = (whole["slice"] == "new") & (whole["branch"] == "target")
    runs = whole[~lost]
    question = question_of(ask(runs, {"interaction": ["slice", "branch"]}))
    [name], [size] = question.family_of_differences.names, question.judged.sizes
    assert name == (
        "How much larger the gain of slice middle over slice old is with branch online than with "
        "branch target"
    )
    means = runs.groupby(["slice", "branch"])["score"].mean()
    expected = (means["middle", "online"] - means["old", "online"]) - (
        means["middle", "target"] - means["old", "target"]
    )
    assert size.mean == pytest.approx(expected)
    few = runs[(runs["slice"] != "old")]
    answer = question_of(ask(few, {"interaction": ["slice", "branch"]})).answer
    assert answer.heading == (
        "Not tested: no two values of slice were both run with the same two values of branch"
    )


def test_the_figure_says_how_many_combinations_are_not_drawn(ask: Ask) -> None:
    runs = make_runs(lambda part, *_: 3.0 * (part == "new"), seeds=3)
    empty = (runs["slice"] == "old") & (runs["branch"] == "online") & (runs["seed"] > 0)
    captions = []
    for known in (runs, runs.assign(state=runs["state"].mask(empty, "FAIL"))):
        study = ask(known, {"interaction": ["slice", "branch"]}).study
        shown = DIFFERENCE.build(StudyContext(study))
        assert shown is not None
        captions.append(next(iter(shown.figures.values())).caption)
    assert "Not drawn" not in captions[0]
    lost = "Not drawn, with scores of too few seeds: slice old with branch online."
    assert captions[1].endswith(lost)


def test_the_wanted_direction_of_an_interaction_is_the_positive_one(ask: Ask) -> None:
    runs = make_runs(lambda part, _, branch: 40 - 5 * (part == "new") * (branch == "target"))
    answer = question_of(ask(runs, {"interaction": ["slice", "branch"]})).answer
    assert answer.effect.size.low > 0
    # a loss of one value is the gain of the other
    assert answer.effect.text.startswith("How much larger the gain of slice ")
    assert answer.effect.text.endswith(
        " over slice new is with branch target than with branch online"
    )


@pytest.mark.parametrize(
    ("asked", "rows"),
    [
        ({"effect": "b"}, 1),
        ({"effect": "a"}, 3),
        ({"interaction": ["a", "b"]}, 3),
    ],
)
def test_planned_configurations_have_the_contrasts_of_the_runs(
    asked: dict[str, object], rows: int
) -> None:
    configurations = [{"a": a, "b": b, "c": 1, "mtd": None} for a in (1, 2, 3) for b in (0, 1)]
    declared = Declared.read(asked)
    planned = PlannedQuestion(declared, configurations, ("a", "b"), "leave-out")
    design = kind_of(declared).plan(planned)
    assert design.rows.shape == (rows, len(declared.select(configurations)))
    assert not design.ordered
    assert design.rows.sum(axis=1) == pytest.approx([0.0] * rows)


@pytest.mark.parametrize("asked", [{"effect": "rate"}, {"interaction": ["slice", "rate"]}])
def test_a_setting_that_no_run_recorded_is_not_tested(ask: Ask, asked: dict[str, object]) -> None:
    results = ask(make_runs(lambda *_: 40.0), asked)
    answer = results.answer
    assert answer.heading == "Not tested: no run has recorded rate"
    assert (answer.topic, list_fields(results)["differences"]) == (None, [])
    assert describe_error_rates(results) == ""


def test_one_seed_is_not_tested(ask: Ask) -> None:
    runs = make_runs(lambda *_: 40.0, seeds=1)
    assert ask(runs, {"effect": "slice"}).answer.heading.startswith("Not tested: no two seeds")
