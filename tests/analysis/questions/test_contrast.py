"""A contrast of two values: its size, what it is averaged over, and what is shown of it."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mtdlab.analysis.data.questions import Declared, PlannedQuestion, QuestionError
from mtdlab.analysis.inference.verdict import OverLooks
from mtdlab.analysis.questions.answer import QuestionOutcome
from mtdlab.analysis.questions.contrast import ContrastQuestion
from mtdlab.analysis.questions.results import Basis
from mtdlab.analysis.questions.study import StudyQuestions, list_fields
from tests.analysis.questions.conftest import Ask, make_runs
from tests.analysis.questions.test_study import ROWS

OLD_OR_NEW = {"slice": ["new", "old"]}


def contrast_of(results: StudyQuestions) -> ContrastQuestion:
    question = results.question
    assert isinstance(question, ContrastQuestion)
    return question


def by_seed(runs: pd.DataFrame) -> np.ndarray:
    """The mean of the new slices of each seed less that of its old ones."""
    means = runs.groupby(["seed", "slice"])["score"].mean().unstack()
    return (means["new"] - means["old"]).to_numpy()


def aged(part: str, width: int, branch: str) -> float:
    """Two points more for new keys, whatever the width; the branch online is 4 points above."""
    return 40 + 2 * (part == "new") + 0.2 * (width == 8) + 4 * (branch == "online")


def test_it_is_the_paired_difference_averaged_over_the_other_settings(ask: Ask) -> None:
    runs = make_runs(aged)
    question = contrast_of(ask(runs, {"contrast": OLD_OR_NEW}))
    differences = by_seed(runs)
    [size] = question.judged.sizes
    assert size.mean == pytest.approx(differences.mean())
    # an independent computation; the interval may use a larger variance, never a smaller one
    paired = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert size.high - size.low >= 0.99 * (paired.high - paired.low)
    assert size.high - size.low < 3 * (paired.high - paired.low)
    assert (question.outcome, question.judged.seeds) == (QuestionOutcome.SHOWN, 6)
    assert question.answer.heading == "Slice new scores more than old"
    assert question.answer.certainty.endswith(
        "Averaged over width and branch, on which the difference is not shown to depend."
    )
    assert question.sentence == "Does slice new score more than old in accuracy?"


def test_missing_scores_of_what_is_compared_are_counted(ask: Ask) -> None:
    runs = make_runs(aged)
    question = contrast_of(ask(runs, {"contrast": OLD_OR_NEW}))
    assert "missing" not in question.answer.certainty
    is_lost = (runs["slice"] != "new") & (runs["seed"] == 2) & (runs["width"] == 8)
    question = contrast_of(ask(runs[~is_lost], {"contrast": OLD_OR_NEW}))
    assert "; 6 seeds, 2 of 48 scores missing." in question.answer.certainty


def test_the_order_of_the_values_is_the_direction_of_the_claim(ask: Ask) -> None:
    runs = make_runs(aged)
    forward = contrast_of(ask(runs, {"contrast": OLD_OR_NEW}))
    back = contrast_of(ask(runs, {"contrast": {"slice": ["old", "new"]}}))
    assert back.outcome is QuestionOutcome.OPPOSITE
    assert back.answer.heading == "Slice old scores less than new"
    [one], [other] = forward.judged.sizes, back.judged.sizes
    assert (other.mean, other.low, other.high) == pytest.approx((-one.mean, -one.high, -one.low))


def test_within_holds_a_setting_and_leaves_the_rest_out(ask: Ask) -> None:
    runs = make_runs(lambda part, _, branch: 40 + 2 * (part == "new") * (branch == "target"))
    held = {"contrast": OLD_OR_NEW | {"within": {"branch": "online"}}}
    online = contrast_of(ask(runs, held, alpha=0.01))
    [size] = online.judged.sizes
    assert size.mean == pytest.approx(by_seed(runs[runs["branch"] == "online"]).mean())
    assert online.outcome in (QuestionOutcome.OPEN, QuestionOutcome.EQUIVALENT)
    assert ", with branch online" in online.sentence
    assert online.others == ["width"]


def test_it_is_stated_by_the_values_of_a_setting_on_which_it_depends(ask: Ask) -> None:
    runs = make_runs(lambda part, _, branch: 40 + (2 + 6 * (branch == "target")) * (part == "new"))
    question = contrast_of(ask(runs, {"contrast": OLD_OR_NEW}))
    assert question.dependence == "branch"
    names, sizes = question.family_of_differences.names, question.judged.sizes
    assert names == (
        "slice new minus old, at branch online",
        "slice new minus old, at branch target",
    )
    for branch, size in zip(("online", "target"), sizes, strict=True):
        assert size.mean == pytest.approx(by_seed(runs[runs["branch"] == branch]).mean())
    # the difference that is nearest to 0 leads, the other one is stated behind it
    answer = question.answer
    assert answer.effect.text.endswith("at branch online")
    assert "Slice new minus old, at branch target: 8." in answer.certainty
    assert answer.outcome is QuestionOutcome.SHOWN


def test_a_difference_at_one_value_alone_is_open(ask: Ask) -> None:
    runs = make_runs(lambda part, _, branch: 40 + 8 * (branch == "target") * (part == "new"))
    question = contrast_of(ask(runs, {"contrast": OLD_OR_NEW}, alpha=0.01))
    assert question.dependence == "branch"
    assert min(size.low for size in question.judged.sizes) < 0
    assert question.outcome is QuestionOutcome.OPEN


def test_each_stated_difference_holds_over_all_looks(ask: Ask) -> None:
    runs = make_runs(lambda part, _, branch: 40 + (2 + 6 * (branch == "target")) * (part == "new"))
    at_look = Basis(0.02, OverLooks(3, 1, 0.9, p_value=0.1, is_early=True))
    answer = replace(contrast_of(ask(runs, {"contrast": OLD_OR_NEW})), basis=at_look).answer
    assert answer.effect is not None
    assert answer.effect.interval.endswith(", over all looks")
    stated = r"branch target: 8\.\d+ points \(90 % CI .*?, over all looks\)"
    assert re.search(stated, answer.certainty)


def test_differences_of_both_signs_are_no_difference_in_one_direction(ask: Ask) -> None:
    runs = make_runs(
        lambda part, _, branch: 40 + (4 if branch == "target" else -4) * (part == "new")
    )
    question = contrast_of(ask(runs, {"contrast": OLD_OR_NEW}))
    assert abs(by_seed(runs).mean()) < 0.5
    assert question.outcome is QuestionOutcome.OPEN
    assert question.answer.heading == "The difference of slice new and old depends on branch"


def test_a_small_difference_with_little_noise_is_equivalent(ask: Ask) -> None:
    runs = make_runs(lambda *_: 40.0, noise=0.1)
    question = contrast_of(ask(runs, {"contrast": OLD_OR_NEW}, alpha=0.001))
    assert question.outcome is QuestionOutcome.EQUIVALENT
    certainty = question.answer.certainty
    assert "within the margin of 0.5 points rests on two one-sided tests at 0.1 % each" in certainty
    assert "the other intervals decide what differs from 0." in certainty
    # of one difference the interval at 90 % is within that at 95 %
    [size] = question.judged.sizes
    assert question.judged.within < max(abs(size.low), abs(size.high))
    assert question.judged.within < question.judged.margin
    assert question.find_next_step().text.startswith("Choose by cost")


def test_values_without_a_seed_in_common_are_not_tested(ask: Ask) -> None:
    runs = make_runs(aged)
    apart = runs[(runs["seed"] < 3) == (runs["slice"] == "new")]
    question = contrast_of(ask(apart, {"contrast": OLD_OR_NEW}))
    assert question.outcome is QuestionOutcome.NOT_TESTED
    assert question.answer.heading.startswith("Not tested: no two seeds were run")
    assert question.answer.effect is None
    assert question.decide(is_last=False) == "no scores"
    with pytest.raises(ValueError, match="no two seeds"):
        question.choose_candidates()


def test_configurations_that_one_side_lacks_are_left_out(ask: Ask) -> None:
    runs = make_runs(aged)
    some = runs[~((runs["slice"] == "old") & (runs["width"] == 8))]
    question = contrast_of(ask(some, {"contrast": OLD_OR_NEW}))
    [size] = question.judged.sizes
    assert size.mean == pytest.approx(by_seed(runs[runs["width"] == 2]).mean())


def test_new_seeds_confirm_the_best_against_its_counterpart(ask: Ask) -> None:
    question = contrast_of(ask(make_runs(aged), {"contrast": OLD_OR_NEW}))
    best, other = question.choose_candidates()
    assert (best["slice"], other["slice"]) == ("new", "old")
    assert (best["width"], best["branch"]) == (other["width"], other["branch"])
    assert best["branch"] == "online"


def test_looks_end_where_it_is_shown(ask: Ask) -> None:
    shown = contrast_of(ask(make_runs(aged), {"contrast": OLD_OR_NEW}))
    assert shown.decide(is_last=False) == "decided"
    open_ = contrast_of(ask(make_runs(aged, noise=8.0), {"contrast": OLD_OR_NEW}))
    assert (open_.decide(is_last=False), open_.decide(is_last=True)) == ("continue", "max_seeds")


def test_json_has_the_differences(ask: Ask) -> None:
    results = ask(make_runs(aged), {"contrast": OLD_OR_NEW})
    fields = list_fields(results)
    assert (fields["verdict"], fields["outcome"]) == ("different", "shown")
    [difference] = fields["differences"]
    assert difference["difference"] == "slice new minus old"
    assert difference["mean"] == pytest.approx(results.answer.effect.size.mean)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"contrast": {"a": [1]}}, "name 2 values"),
        ({"contrast": {"a": [1, 1]}}, "name 2 values"),
        ({"contrast": {"a": [1, 2], "b": [1, 2]}}, "write contrast"),
        ({"contrast": {"a": [1, 2], "within": 3}}, "write contrast"),
        ({"contrast": {"a": [1, 2], "within": None}}, "write contrast"),
        ({"contrast": "a"}, "write contrast"),
    ],
)
def test_what_is_no_contrast_is_refused_in_a_sentence(written: object, problem: str) -> None:
    with pytest.raises(QuestionError, match=problem):
        Declared.read(written)


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ({"contrast": {"a": [1, 9]}}, "a has no value 9; its values are 1, 2, 3"),
        ({"contrast": {"c": [1, 9]}}, "none: it is no setting of this study"),
        (
            {"contrast": {"a": [1, 2], "within": {"b": "z"}}},
            "b has no value z; its values are x, y",
        ),
    ],
)
def test_values_that_are_not_run_are_named(written: object, problem: str) -> None:
    with pytest.raises(QuestionError, match=problem):
        Declared.read(written).check(ROWS)


@pytest.mark.parametrize(
    "written",
    [
        {"contrast": {"a": [1, 2], "within": {"b": "x"}}},
        {"contrast": {"a": ["0-1", "1-2"]}},
    ],
)
def test_a_contrast_is_written_as_it_was_read(written: dict[str, object]) -> None:
    assert Declared.read(written).write() == written


def test_planned_configurations_have_the_contrast_of_the_runs() -> None:
    configurations = [{"a": a, "b": b, "c": 1, "mtd": None} for a in (1, 2, 3) for b in (0, 1)]
    declared = Declared.read({"contrast": {"a": [1, 3]}})
    design = ContrastQuestion.plan(PlannedQuestion(declared, configurations, "ab", "leave-out"))
    assert design.rows == pytest.approx(np.array([[0.5, 0.5, -0.5, -0.5]]))
