"""The questions of a study, the first of which is the main one, and their answers."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.questions import ANY, METHOD, MTD, Declared, derive
from mtdlab.analysis.data.runs import CONDITIONS, completed_runs, free_settings
from mtdlab.analysis.inference.best import number_configurations, with_methods
from mtdlab.analysis.questions.answer import Answer, Difference, QuestionOutcome, list_numbers
from mtdlab.analysis.questions.base import Decision, Question
from mtdlab.analysis.questions.best import BestQuestion
from mtdlab.analysis.questions.effect import describe_interactions
from mtdlab.analysis.questions.next_steps import step
from mtdlab.analysis.questions.results import Basis, StudyResults
from mtdlab.analysis.questions.shape import QuestionOverShape, ShapeQuestion
from mtdlab.analysis.questions.sufficiency import SufficiencyQuestion
from mtdlab.analysis.questions.wording import (
    capitalise,
    describe_interval,
    describe_recorded,
    join_sentences,
)
from mtdlab.analysis.statistics.configurations import estimate_configuration, find_frequent_failures


def kind_of(asked: Declared) -> type[Question]:
    """The class of a kind of question, which is called like its module."""
    module = import_module(f"mtdlab.analysis.questions.{asked.kind}")
    kind: type[Question] = getattr(module, f"{asked.kind.capitalize()}Question")
    return kind


def list_declared(study: StudyFrames) -> list[tuple[Declared, int]]:
    """The declared questions, each with how many trials had started when it was.

    A question that becomes the main one counts as declared then, and one whose names are given to
    other configurations when they are.
    """
    since: dict[Declared, int] = {}
    named: dict[str, Any] = {}
    for plan in study.plans:
        before = next(iter(since), None)
        of_plan: Mapping[str, Any] = plan.values.get("named", {})
        moved = {name for name, point in of_plan.items() if named.get(name, point) != point}
        named |= of_plan
        since = {asked: since.get(asked, plan.trials) for asked in plan.questions}
        since |= {asked: plan.trials for asked in since if moved & {*asked.names}}
        # as the main question, one is declared when it becomes that
        since |= {asked: plan.trials for asked in [*since][:1] if asked != before}
    return [*since.items()]


def _count_taken_out(study: StudyFrames) -> int:
    """How many tested questions but the main one were declared before trial 1, and are not now."""
    early = [plan.questions for plan in study.plans if not plan.trials][-1:]
    tested = {asked for first in early for asked in first[1:] if asked.is_tested}
    return len(tested - {*study.plans[-1].questions})


def derive_question(results: StudyResults) -> Declared:
    """The question that follows from what the trials vary, also those that are not complete."""
    runs = with_methods(results.trials, results.study.settings)
    read = [name for name in (METHOD, MTD, *CONDITIONS) if name in runs]
    rows = runs[read].drop_duplicates().astype("object")
    known = [dict(zip(read, row, strict=True)) for row in rows.where(rows.notna(), None).to_numpy()]
    return derive(known, results.study.nuisance)


@dataclass(frozen=True)
class StudyQuestions(StudyResults):
    """A study with its questions and the answer to the main one, each found once."""

    @cached_property
    def question(self) -> Question:
        """The main one: the first that is declared, else the one that follows from what varied."""
        for asked, after in list_declared(self.study):
            return kind_of(asked)(self, asked, self.basis, after)
        asked = derive_question(self)
        return kind_of(asked)(self, asked, self.basis)

    @cached_property
    def others(self) -> tuple[Question, ...]:
        """The other declared questions.

        Those declared before the first trial share one error rate by Holm's rule (Scandinavian
        Journal of Statistics 1979): of m each is judged at alpha / m, and those that are not
        decided again with their number in place of m, until none more is decided. Those that were
        taken out after the first trial count as not decided. The later ones are exploratory, and
        one that is not decided by a test takes no share.
        """
        declared = list_declared(self.study)[1:]
        taken_out = _count_taken_out(self.study) if declared else 0
        found: dict[Declared, Question] = {}

        def judge(asked: Declared, after: int, share: int) -> bool:
            basis = self.basis.divide(share)
            found[asked] = kind_of(asked)(self, asked, basis, after)
            return found[asked].outcome.is_decided

        for asked, after in declared:
            if after or not asked.is_tested:
                judge(asked, after, 1)
        left = [asked for asked, after in declared if asked not in found]
        while left:
            still_open = [asked for asked in left if not judge(asked, 0, len(left) + taken_out)]
            left = still_open if len(still_open) < len(left) else []
        return tuple(found[asked] for asked, _ in declared)

    @cached_property
    def shape(self) -> ShapeQuestion:
        """The question on the shape over MTD: the main one, or one explored beside it."""
        main = self.question
        if isinstance(main, ShapeQuestion):
            return main
        # looks are about the main question; where that is on MTD too, about the same trials
        basis = self.basis if main.is_over_mtd else Basis(self.study.alpha)
        basis = replace(basis, explores=not isinstance(main, QuestionOverShape))
        return ShapeQuestion(self, Declared("shape", (MTD,)), basis)

    @cached_property
    def best(self) -> BestQuestion:
        """The question for the best configuration: the main one, or one explored beside it."""
        main = self.question
        if isinstance(main, BestQuestion):
            return main
        basis = replace(self.basis, explores=True)
        return BestQuestion(self, Declared("best", (ANY,)), basis)

    @cached_property
    def answer(self) -> Answer:
        """The answer to the main question, behind what puts it in doubt."""
        if not len(self.runs):
            return _answer_without_runs(self)
        question = self.question
        answer = question.answer
        if isinstance(question, ShapeQuestion):
            answer = SufficiencyQuestion(self, question.asked, Basis(1 - LEVEL)).qualify(answer)
        if question.after is None and (effects := self.effects) is not None:
            together = describe_interactions(effects, self.study.score_format)
            answer = replace(answer, certainty=join_sentences(answer.certainty, *together))
        answer = _hold_against_baseline(self, _doubt_without_gain(self, answer))
        return _state_failures(self, answer)


def _state_failures(results: StudyResults, answer: Answer) -> Answer:
    """The answer, which does not plainly recommend what fails more often than the others do."""
    trials = results.study.ranked_trials
    ended = trials[trials["state"].isin(["COMPLETE", "FAIL"])]
    failed = ended["state"] == "FAIL"
    chosen = ended["number"] == answer.number
    if answer.number is None or not failed.any() or not chosen.any():
        return answer
    groups = number_configurations(ended, free_settings(ended, results.study.compared))
    uneven, own = find_frequent_failures(failed, groups), groups[chosen].iloc[0]
    if own not in uneven.index:
        return answer
    here, size = uneven.loc[own]
    rates = (
        f"{here} of its {size} trials failed, {failed.sum() - here} of {len(ended) - size} others"
    )
    found = f"The configuration with the highest mean fails more often than the others: {rates}."
    return replace(
        answer,
        certainty=join_sentences(answer.certainty, found),
        recommendation=f"Highest mean of trials that completed: {rates}",
    )


def _hold_against_baseline(results: StudyResults, answer: Answer) -> Answer:
    """The answer, which recommends, and has confirmed, nothing that loses to the baseline."""
    against, number = results.against_baseline, answer.number
    row = None if against is None or number is None else against.find(results.study, number)
    if row is None or not row["difference"] > 0:
        return answer
    if not row["difference_low"] > 0:
        worse = results.study.score_format.say("Highest mean of the search, below the baseline's")
        return replace(answer, recommendation=worse)
    scores = f"scores {results.study.score_format.choose('less', 'more')}"
    text = f"Keep the baseline, or vary something else: the best of the search {scores}"
    return replace(answer, is_below_baseline=True, suggest=lambda: step(text))


def _doubt_without_gain(results: StudyResults, answer: Answer) -> Answer:
    """The answer with the finding that training did not raise the score, where this is so."""
    trials, settings = results.trials, results.study.settings
    untrained = trials["score_before"].astype("float64")
    known = completed_runs(trials.assign(score=trials["score"].astype("float64") - untrained))
    if (number := answer.number) is None or number not in set(known["number"]):
        return answer
    gain = estimate_configuration(known, settings, number)
    change = gain.estimate
    if change.mean > 0:
        return answer
    start = estimate_configuration(known.assign(score=untrained[known.index]), settings, number)
    before, write = start.estimate.mean, results.study.score_format
    interval = describe_interval(change, LEVEL, " for these items, ", write=write)
    there = write.say("in the configuration with the highest mean")
    found = (
        f"Before training {write.score(before)}, after it {write.score(before + change.mean)} "
        f"{there}: {write.with_unit(write.difference(change.mean))} "
        f"({interval}{format_count(gain.seeds, 'seed')})."
    )
    lowered, raise_ = ("raised", "lower") if write.is_turned else ("lowered", "raise")
    training = lowered if change.high < 0 else f"was not shown to {raise_}"
    gained = Difference(
        change, LEVEL, f"after training minus before it, {there}", score_format=write
    )
    return replace(
        answer,
        heading=f"{answer.heading}; training {training} the score",
        certainty=join_sentences(found, answer.certainty),
        effect=answer.effect or gained,
        recommendation=write.say("Highest mean, not above that before training"),
        is_doubted=True,
        stated=answer.stated
        and join_sentences(answer.stated, f"Training {training} the score.", found),
    )


def _answer_without_runs(results: StudyQuestions) -> Answer:
    states, judged = results.trials["state"], results.shape.judged
    if len(states) and (states == "FAIL").all():
        failed = f"All {format_count(len(states), 'trial')} failed"
        return Answer(failed, "Nothing to compare.", QuestionOutcome.NOT_TESTED, judged)
    why = "No trial is complete with a score."
    return Answer("No result yet", why, QuestionOutcome.NOT_TESTED, judged)


def describe_error_rates(results: StudyQuestions) -> str:
    """A sentence on which tests of a page have its error rate; all others are exploratory.

    Empty for a study that compares nothing.
    """
    answer = results.answer
    if answer.topic is None:
        return ""
    question, rate = results.question, f"{100 * results.study.alpha:.3g} %"
    held, late = list[str](), ""
    if question.after:
        main = "main question" if results.others else "question"
        late = f"The {main} was declared {describe_recorded(question.after)}."
    elif answer.family:
        held.append(f"the error rate of {rate} is that of {answer.family}")
    if any(not other.after and other.asked.is_tested for other in results.others):
        others = "the decisions on the other questions that were declared before trial 1"
        held.append(f"{others} share an error rate of {rate} (Holm's rule)")
    held.append(
        f"all {'other ' if held else ''}tests and intervals on this page are exploratory: not "
        "adjusted for their number."
    )
    return join_sentences(capitalise("; ".join(held)), late)


def list_fields(results: StudyQuestions) -> dict[str, Any]:
    """The main answer for JSON: question, outcome, verdict, and the numbers of its kind."""
    question, answer = results.question, results.answer
    asked = {"question": question.sentence, "outcome": answer.outcome.value}
    return {**asked, **list_numbers(answer.verdict), **question.fields}


@dataclass(frozen=True)
class LookResult:
    """The result of a look.

    Attributes:
        verdict: what is decided, in a word.
        p_value: of what is shown; None if not tested.
        decision: continue, or why the study ends.
        leading: the numbers of the trials whose configurations get the next seeds first.
    """

    verdict: str
    p_value: float | None
    decision: Decision
    leading: frozenset[int]


def judge_look(study: StudyFrames, *, alpha: float, is_last: bool) -> LookResult:
    """Whether a study ends at this look at its main question, at significance level alpha."""
    question = StudyQuestions(study, Basis(alpha)).question
    decision, p_value = question.decide(is_last=is_last), question.p_value
    leading = question.find_leading() if decision == "continue" else frozenset[int]()
    return LookResult(
        question.judged.label, None if math.isnan(p_value) else p_value, decision, leading
    )
