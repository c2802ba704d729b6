"""The answer to a question: what was found, how certain it is, and the numbers that it rests on."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from typing import Any

from mtdlab.analysis.data.metric import POINTS, ScoreFormat
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.verdict import Judgement
from mtdlab.analysis.questions.next_steps import NextStep
from mtdlab.analysis.questions.wording import describe_interval, join_sentences, over_all_looks

UNCONFIRMED = "Highest mean, not confirmed as best"
"""The heading above a configuration that is not shown to be the best."""


class QuestionOutcome(Enum):
    """What is decided of a question."""

    OPEN = "open"
    SHOWN = "shown"
    OPPOSITE = "opposite"
    EQUIVALENT = "equivalent"
    WITHIN = "within margin"
    NOT_TESTED = "not tested"

    @property
    def is_decided(self) -> bool:
        """Whether anything is shown."""
        return self not in (QuestionOutcome.OPEN, QuestionOutcome.NOT_TESTED)


@dataclass(frozen=True)
class Difference:
    """The difference of scores on which an answer rests, and what minus what it is.

    `over` is written after its interval.
    """

    size: Estimate
    level: float
    text: str
    over: str = ""
    score_format: ScoreFormat = POINTS

    @classmethod
    def of(cls, judged: Judgement, size: Estimate, text: str) -> "Difference":
        """A difference of a question, at the confidence that holds over all of its looks."""
        over = over_all_looks(judged.over_looks)
        return cls(size, judged.confidence, text, over, judged.score_format)

    @property
    def value(self) -> str:
        """The difference with its sign."""
        return self.score_format.difference(self.size.mean)

    @property
    def interval(self) -> str:
        """Its confidence interval as text; empty where there is none."""
        return describe_interval(self.size, self.level, self.over, write=self.score_format)

    @property
    def sentence(self) -> str:
        """What minus what, the difference and its interval."""
        interval = f" ({self.interval})" if self.interval else ""
        return f"{self.text}: {self.score_format.with_unit(self.value)}{interval}."


@dataclass(frozen=True)
class Answer:
    """The answer to a question.

    Attributes:
        heading: the answer in a few words, without a full stop.
        certainty: how certain it is, in sentences.
        outcome: what is decided.
        judged: the numbers of its question.
        topic: the question whose figure shows it; None where there is nothing to draw.
        family: the tests that share its error rate, in words; empty where nothing is tested.
        scope: what it covers, without a full stop: seeds, evaluation items.
        these: the same for the evaluation items as they are, as a sentence; else empty.
        suggest: finds the next step of a study that is over.
        number: a trial of the configuration to recommend; None without a score.
        recommendation: the heading above that configuration.
        effect: the difference on which the answer rests; None where nothing is compared.
        stated: the answer in sentences that stand alone, where the page has others.
        is_below_baseline: whether that configuration is shown to score less than the baseline.
        is_doubted: whether it says too that training did not raise the score.
    """

    heading: str
    certainty: str
    outcome: QuestionOutcome
    judged: Judgement
    topic: object = None
    family: str = ""
    scope: str = ""
    these: str = ""
    suggest: Callable[[], NextStep] = field(default=lambda: NextStep(""), repr=False)
    number: int | None = None
    recommendation: str = UNCONFIRMED
    effect: Difference | None = None
    stated: str = ""
    is_below_baseline: bool = False
    is_doubted: bool = False

    @property
    def is_decided(self) -> bool:
        """Whether anything is shown."""
        return self.outcome.is_decided and not self.is_doubted

    @property
    def sentence(self) -> str:
        """The answer, the difference that it rests on, and its certainty."""
        effect = self.effect.sentence if self.effect else ""
        return join_sentences(f"{self.heading}.", effect, self.certainty)

    @property
    def verdict(self) -> Judgement:
        """The numbers of the question, with the answer as their sentence."""
        return replace(self.judged, sentence=self.stated or self.sentence)


def list_numbers(judged: Judgement) -> Mapping[str, Any]:
    """What the numbers of all questions have, for JSON."""
    return {
        "verdict": judged.label,
        "sentence": judged.sentence,
        "p_value": judged.p_value,
        "p_over_looks": judged.over_looks and judged.over_looks.p_value,
        "confidence": judged.confidence,
        "history": judged.history and asdict(judged.history),
    }
