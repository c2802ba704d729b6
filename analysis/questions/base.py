"""What a question of a study gives: its sentence, its numbers, what a look decides, its answer."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import pandas as pd

from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.questions import Declared, PlannedQuestion
from mtdlab.analysis.inference.power import Needed, PlannedDesign
from mtdlab.analysis.inference.verdict import UNMEASURED, UNVARIED, Judgement
from mtdlab.analysis.questions.answer import UNCONFIRMED, Answer, QuestionOutcome
from mtdlab.analysis.questions.next_steps import (
    NextStep,
    confirm_command,
    new_seeds,
    run_more_seeds,
    step,
)
from mtdlab.analysis.questions.results import Basis, StudyResults
from mtdlab.analysis.questions.varied_history import (
    Judged,
    describe_history,
    hold,
    measure_variation,
)
from mtdlab.analysis.questions.wording import describe_recorded, join_sentences

Decision = Literal["continue", "decided", "flat", "equivalent", "max_seeds", "no scores"]
"""Whether a study goes on after a look, or why it ends."""
WITHIN = {
    **dict.fromkeys(("flat", "equivalent"), QuestionOutcome.EQUIVALENT),
    UNMEASURED: QuestionOutcome.WITHIN,
    UNVARIED: QuestionOutcome.OPEN,
}


@dataclass(frozen=True, eq=False)
class Question(ABC):
    """A question of a study; each kind is a subclass, and its module is called like it.

    Attributes:
        results: the study.
        asked: the question as declared, or as it follows from what varies.
        basis: what it is judged by.
        after: how many trials had started when it was declared; None where it was not.
    """

    results: StudyResults
    asked: Declared
    basis: Basis
    after: int | None = None

    is_over_mtd: ClassVar[bool] = False
    wider: ClassVar[str] = "Compare what differs more"
    """What may decide it where seeds do not."""

    @property
    @abstractmethod
    def sentence(self) -> str:
        """The question as a sentence."""

    @property
    @abstractmethod
    def judged(self) -> Judgement:
        """The numbers of its answer, computed once."""

    @property
    @abstractmethod
    def finding(self) -> QuestionOutcome:
        """What is decided, where differences are not all within the margin."""

    @property
    def outcome(self) -> QuestionOutcome:
        """What is decided; where no difference is, by what is known of history."""
        return WITHIN.get(self.judged.verdict, self.finding)

    @property
    def is_within(self) -> bool:
        """Whether all that is asked about is within the margin, whatever is known of history."""
        return self.judged.is_within

    def hold(self, judged: Judged, runs: pd.DataFrame) -> Judged:
        """What was computed of runs, with its looks, by what is known of their keys' history."""
        study = self.results.study
        judged = replace(
            judged, metric=study.metric, scale=study.scale, over_looks=self.basis.over_looks
        )
        return hold(judged, measure_variation(study, runs, self.asked.names))

    def judge(self, verdict: str, p_value: float, *, seeds: int, items: int) -> Judgement:
        """The numbers of a question that has no others than every question."""
        study = self.results.study
        return Judgement(
            verdict,
            p_value=p_value,
            seeds=seeds,
            items=items,
            level=self.basis.level,
            margin=study.margin,
            metric=study.metric,
            scale=study.scale,
            over_looks=self.basis.over_looks,
        )

    @property
    @abstractmethod
    def answer(self) -> Answer:
        """The answer, of a study in which a trial is complete with a score."""

    @property
    def family(self) -> str:
        """The tests that share its error rate, in words; empty where it tests nothing."""
        return ""

    @property
    def p_value(self) -> float:
        """The p value of what is shown; NaN where nothing is tested."""
        return self.judged.p_shown

    @property
    def need(self) -> Needed | None:
        """What deciding it takes with 80 % power; None where that is not known."""
        return None

    @property
    def shows_best(self) -> bool:
        """Whether the configuration with the highest mean is shown to be better than others."""
        return False

    def name_highest(self, alike: str) -> str:
        """The heading above the configuration with the highest mean; `alike` are those like it."""
        if self.shows_best:
            return "Recommended configuration"
        return f"Highest mean; {alike} lie within the margin" if self.is_within else UNCONFIRMED

    @property
    def is_paired(self) -> bool:
        """Whether what it compares has seeds in common."""
        return True

    def describe(self) -> tuple[str, ...]:
        """The answer in full, in sentences, where it says more than the answer."""
        return ()

    def explain(self) -> tuple[str, ...]:
        """Paragraphs on how its numbers are computed."""
        return ()

    @property
    def fields(self) -> Mapping[str, Any]:
        """What its kind adds to the numbers of every answer, for JSON."""
        return {}

    @classmethod
    def plan(cls, planned: PlannedQuestion) -> PlannedDesign | None:
        """What planned configurations compare; None where its power is not known."""
        del planned
        return None

    def decide(self, *, is_last: bool) -> Decision:
        """Whether a study that adds seeds until this is decided ends at a look."""
        if self.outcome is QuestionOutcome.NOT_TESTED:
            return "no scores"
        if self.is_within:
            return "equivalent"
        if self.outcome is QuestionOutcome.OPEN:
            return "max_seeds" if is_last else "continue"
        return "decided"

    def find_leading(self) -> frozenset[int]:
        """The numbers of the trials whose configurations get the next seeds first."""
        return frozenset(self.results.trials["number"].tolist())

    def choose_candidates(self) -> tuple[pd.Series, pd.Series]:
        """The first complete trials of the two configurations that new seeds confirm.

        Raises ValueError where there are none.
        """
        raise ValueError("its question is not about two configurations")

    def find_next_step(self) -> NextStep:
        """What to do next where the study is over."""
        study = self.results.study
        if self.is_within:
            if self.outcome is QuestionOutcome.OPEN:
                more = "a higher learning rate or more steps"
                return step(f"Use {more}, so that the levels differ in history")
            margin = self.write.stated_margin
            return step(f"Choose by cost: differences are below the margin of {margin}")
        if self.shows_best:
            text = f"Run the best configuration and the next one {new_seeds(study)}"
            return step(text, confirm_command(study))
        return run_more_seeds(self.results, self.need, wider=self.wider, is_paired=self.is_paired)

    def reply(self, heading: str, certainty: str, **rest: Any) -> Answer:
        """An answer with what does not depend on its wording."""
        if self.after and self.outcome is not QuestionOutcome.NOT_TESTED:
            late = f"Exploratory: the question was declared {describe_recorded(self.after)}."
            certainty = join_sentences(certainty, late)
        certainty = join_sentences(certainty, describe_history(self.judged))
        scope = self.results.describe_scope(self.judged, is_paired=self.is_paired)
        given: dict[str, Any] = {"judged": self.judged, "outcome": self.outcome, "topic": self}
        given |= {"family": self.family, "scope": scope, "suggest": self.find_next_step}
        answer = Answer(heading, certainty, **(given | rest))
        return replace(answer, recommendation=self.write.say(answer.recommendation))

    @property
    def write(self) -> ScoreFormat:
        """How scores and their differences are written."""
        return self.results.study.score_format
