"""The question whether MTD alone determines the score, however it is divided."""

from dataclasses import replace
from functools import cached_property

import numpy as np
import pandas as pd

from mtdlab.analysis.data.beyond_run import describe_left_out
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.runs import format_mtd
from mtdlab.analysis.inference.verdict import Judgement
from mtdlab.analysis.questions.answer import Answer, Difference, QuestionOutcome
from mtdlab.analysis.questions.base import Question
from mtdlab.analysis.questions.next_steps import NextStep, confirm_command, new_seeds, step
from mtdlab.analysis.questions.results import find_highest
from mtdlab.analysis.questions.shape import ShapeQuestion
from mtdlab.analysis.questions.wording import (
    describe_interval,
    describe_items,
    format_p,
    join_sentences,
    over_all_looks,
    state_p,
)
from mtdlab.analysis.statistics.sufficiency import NEAR, Pair, Sufficiency


class SufficiencyQuestion(Question):
    """Does MTD alone determine the score, or also how it is divided between average and queue?"""

    is_over_mtd = True

    @property
    def sentence(self) -> str:
        metric, parts = self.results.metric, "1/(1 − η) and K/N"
        return f"Does MTD alone determine {metric}, or also how it is divided between {parts}?"

    @cached_property
    def info(self) -> Sufficiency:
        """The test, of the trials and at the significance level of the question."""
        results, basis = self.results, self.basis
        found = results.test_sufficiency(basis.select(results.curve_trials), basis.level)
        if found is None:
            return Sufficiency("cannot be tested", reason=_ONE_LEVEL)
        return replace(found, over_looks=basis.over_looks)

    @cached_property
    def judged(self) -> Judgement:
        info = self.info
        verdict = "inconclusive" if info.answer == "cannot be tested" else info.answer
        return self.judge(verdict, info.p_value, seeds=info.seeds, items=info.items)

    @cached_property
    def shape(self) -> ShapeQuestion:
        """The question on the shape over MTD, whose best level is recommended."""
        return ShapeQuestion(self.results, self.asked, self.basis)

    @property
    def finding(self) -> QuestionOutcome:
        """Opposite where it is rejected; that it is not rejected shows nothing."""
        if self.info.answer == "cannot be tested":
            return QuestionOutcome.NOT_TESTED
        return QuestionOutcome.OPPOSITE if self.info.answer == "rejected" else QuestionOutcome.OPEN

    @property
    def family(self) -> str:
        return "the test whether MTD alone determines the score"

    @cached_property
    def answer(self) -> Answer:
        heading, certainty = "MTD alone does not determine the score", self._describe_basis()
        if self.outcome is not QuestionOutcome.OPPOSITE:
            heading, *rest = describe_sufficiency(self.info, self.write)
            heading, certainty = heading.removesuffix("."), join_sentences(*rest)
        number = self.shape.answer.number
        if self.outcome is QuestionOutcome.OPPOSITE:
            # a level of MTD is not one configuration
            number = find_highest(self.results.levels.runs, self.results.study.settings)
        return self.reply(heading, certainty, effect=self.find_difference(), number=number)

    def _describe_basis(self) -> str:
        return (
            "At equal MTD the score also depends on how it is divided between 1/(1 − η) and K/N "
            f"({state_p(self.judged)})."
        )

    def find_difference(self) -> Difference | None:
        """The largest difference at nearly equal MTD; None without one."""
        if (pair := self.info.pair) is None:
            return None
        high, low = name_pair(self.info, pair)
        what = f"{high} minus {low}, the most different at nearly equal MTD"
        return Difference.of(self.judged, pair.difference, what)

    def qualify(self, answer: Answer) -> Answer:
        """The answer on the shape over MTD, and after it what this question says of it."""
        found = {
            QuestionOutcome.OPPOSITE: self._describe_basis(),
            QuestionOutcome.OPEN: "That MTD alone determines the score is not rejected "
            f"({format_p(self.info.p_value)}).",
        }.get(self.outcome)
        if not found:
            return answer
        more = "Exploratory, a test of its own:"
        return replace(answer, certainty=join_sentences(answer.certainty, more, found))

    def choose_candidates(self) -> tuple[pd.Series, pd.Series]:
        """Two configurations that differ most at nearly equal MTD; if not shown, those of shape."""
        if self.outcome is not QuestionOutcome.OPPOSITE or (pair := self.info.pair) is None:
            return self.shape.choose_candidates()
        runs, cell = self.info.runs.sort_values("number"), ["mtd", "ratio", "ema_decay"]
        high, low = (
            runs[(runs[cell] == self.info.cells.loc[row, cell]).all(axis=1)].iloc[0]
            for row in (pair.high_row, pair.low_row)
        )
        return high, low

    def find_next_step(self) -> NextStep:
        if self.outcome is not QuestionOutcome.OPPOSITE:
            return super().find_next_step()
        study = self.results.study
        text = "Run two configurations of nearly equal MTD that divide it otherwise"
        if (pair := self.info.pair) is None:
            return step(f"{text} between 1/(1 − η) and K/N")
        text = f"{text}, {' and '.join(name_pair(self.info, pair))}, {new_seeds(study)}"
        return step(text, confirm_command(study))


_ONE_LEVEL = "there are fewer than two levels of MTD"


def describe_sufficiency(info: Sufficiency, write: ScoreFormat) -> tuple[str, ...]:
    """The answer in two sentences: on the test, and on what models and configurations show."""
    left_out = describe_left_out(info.left_out)
    if info.answer == "cannot be tested":
        text = f"Whether MTD alone determines the score cannot be tested here: {info.reason}."
        return (f"{text} {left_out}".rstrip(),)
    these = f", {format_p(info.p_these)} for exactly these" if info.items else ""
    basis = (
        f"{format_p(info.p_value)} over seeds{describe_items(info.items)}{these}; "
        f"{format_count(len(info.cells), 'configuration')}, {format_count(info.seeds, 'seed')}, "
        f"{format_count(int(info.cells['trials'].sum()), 'trial')}"
    )
    answer = (
        "That MTD alone determines the score is not rejected: no effect of 1/(1 − η) and K/N "
        "beyond MTD was found, which does not show that there is none"
    )
    if info.answer == "rejected":
        answer = (
            "MTD alone does not determine the score here: at equal MTD the score also depends on "
            "how the history is divided between the EMA, 1/(1 − η), and the queue, K/N"
        )
    return (
        f"{answer} ({basis}). {left_out}".rstrip(),
        f"{_describe_models(info)}; {_describe_pair(info, write)}.",
    )


def _describe_models(info: Sufficiency) -> str:
    interaction = ""
    if np.isfinite(info.interaction_p):
        interaction = f" (interaction beyond that: {format_p(info.interaction_p)})"
    alone, additive = (
        f"{100 * info.explained[model]:.0f} % ({info.freedom[model]} degrees of freedom)"
        for model in ("mtd", "additive")
    )
    return (
        f"Levels of nearly equal MTD explain {alone} of the variance between configuration means, "
        f"curves over 1/(1 − η) and K/N that add up {additive}{interaction}"
    )


def _describe_pair(info: Sufficiency, write: ScoreFormat) -> str:
    if (pair := info.pair) is None:
        return f"no two configurations differ by less than {100 * NEAR - 100:.0f} % in MTD"
    high, low = name_pair(info, pair)
    level, over = info.level, over_all_looks(info.over_looks)
    if info.over_looks:
        level = info.over_looks.confidence
    interval = describe_interval(pair.difference, level, over, write=write)
    return (
        "the largest difference at nearly equal MTD is "
        f"{write.amount(write.as_read(pair.difference.mean))}, {high} minus {low} (simultaneous "
        f"{interval})"
    )


def name_cell(cell: pd.Series) -> str:
    """A configuration by its EMA decay and queue size, with its MTD."""
    return f"η {cell['ema_decay']:g} with K/N {cell['ratio']:g} (MTD {format_mtd(cell['mtd'])})"


def name_pair(info: Sufficiency, pair: Pair) -> tuple[str, str]:
    """The configurations of a pair, that with the higher score first."""
    high, low = (name_cell(info.cells.iloc[row]) for row in (pair.high_row, pair.low_row))
    return high, low
