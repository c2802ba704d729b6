"""What questions about differences between means of configurations have in common."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import MOST_COMPARED
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.questions import ANY, MTD, Declared, PlannedQuestion
from mtdlab.analysis.data.settings import write_setting
from mtdlab.analysis.inference.differences import Differences, judge_differences
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.power import Needed, PlannedDesign, need_for_differences
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.questions.answer import Answer, Difference, QuestionOutcome
from mtdlab.analysis.questions.base import Question
from mtdlab.analysis.questions.next_steps import NextStep, confirm_command, new_seeds, step
from mtdlab.analysis.questions.wording import (
    clean,
    join_sentences,
    join_words,
    state_equivalence,
    state_p,
)
from mtdlab.analysis.statistics.configurations import (
    Factors,
    determines,
    independent_settings,
    tabulate_factors,
)


@dataclass(frozen=True)
class Family:
    """Differences that are judged together: their contrasts (K, C), and what minus what they are.

    `opposites` are the names of the differences with the other sign, where neither sign is asked.
    """

    rows: Floats
    names: tuple[str, ...]
    opposites: tuple[str, ...] = ()


class DifferencesQuestion(Question):
    """How much more do some configurations score than others?"""

    @classmethod
    @abstractmethod
    def list_differences(cls, asked: Declared, values: pd.DataFrame) -> Family:
        """The differences between configurations, whose settings are `values` (C, V)."""

    @property
    @abstractmethod
    def noun(self) -> str:
        """What is judged, for a sentence."""

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The completed runs that are compared."""
        runs = self.basis.select(self.results.runs)
        for name, value in self.asked.within.items():
            runs = runs[runs[name] == value]
        if self.asked.values:
            runs = runs[runs[self.asked.names[0]].isin(self.asked.values)]
        return runs

    @cached_property
    def factors(self) -> Factors:
        """The configurations that differ in the settings asked about and in independent ones."""
        asked, study = [*self.asked.names], self.results.study
        runs = self.runs.dropna(subset=asked)
        names = _name_factors(runs, asked, study.compared)
        factors = tabulate_factors(runs, names, study.items)
        while len(crossed := select_crossed(factors.values, asked)) < len(factors.values):
            runs = runs.merge(crossed, on=names)
            factors = tabulate_factors(runs, names, study.items)
        return factors

    @cached_property
    def family_of_differences(self) -> Family:
        return self.list_differences(self.asked, self.factors.values)

    @cached_property
    def obstacle(self) -> str:
        """Why nothing is tested, in a few words; empty where it is."""
        for name in (*self.asked.names, *self.asked.within):
            if name not in self.results.runs:
                return f"no run has recorded {clean(name)}"
        varied = self.factors.values.nunique()
        if not len(self.factors.table) or (varied[[*self.asked.names]] < 2).any():
            names = " and ".join(self.asked.names)
            return f"no two seeds were run with configurations that differ in {names} alone"
        if (compared := len(self.factors.values)) > MOST_COMPARED:
            return f"{compared:,} configurations, of which at most {MOST_COMPARED} are compared"
        return ""

    @cached_property
    def judged(self) -> Differences:
        basis, margin = self.basis, self.results.study.margin
        if self.obstacle:
            return Differences(level=basis.level, margin=margin, over_looks=basis.over_looks)
        return self.hold(self.compare(self.family_of_differences.rows), self.runs)

    def compare(self, rows: Floats) -> Differences:
        """What the scores show about the differences `rows` (K, C) together."""
        return judge_differences(
            self.factors.table.to_numpy(),
            rows,
            self.factors.covariance,
            items=self.factors.items,
            level=self.basis.level,
            margin=self.results.study.margin,
        )

    @property
    def finding(self) -> QuestionOutcome:
        if self.obstacle:
            return QuestionOutcome.NOT_TESTED
        return QuestionOutcome.SHOWN if self.judged.is_different else QuestionOutcome.OPEN

    @property
    def family(self) -> str:
        return "" if self.obstacle else self.noun

    @property
    def need(self) -> Needed | None:
        if self.outcome is not QuestionOutcome.OPEN or self.is_within:
            return None
        table, rows = self.factors.table, self.family_of_differences.rows
        return need_for_differences(table, self.factors.covariance, rows, self.judged)

    @property
    def leading(self) -> int:
        """Which of the differences is stated: the largest."""
        return int(np.argmax(np.abs([size.mean for size in self.judged.sizes])))

    def name_leading(self) -> tuple[str, Estimate]:
        """The difference that is stated: its name and its size, with the sign that is asked."""
        size, family = self.judged.sizes[self.leading], self.family_of_differences
        if family.opposites and size.mean < 0:
            return family.opposites[self.leading], -size
        return family.names[self.leading], size

    def state(self, heading: str) -> Answer:
        """The answer with its difference; `heading` says what is shown."""
        if self.obstacle:
            return self.reply(
                f"Not tested: {self.obstacle}", "", topic=None, number=self.results.highest
            )
        name, size = self.name_leading()
        effect, certainty = Difference.of(self.judged, size, name), self.describe_certainty()
        return self.reply(heading, certainty, effect=effect, number=self.results.highest)

    def describe_certainty(self) -> str:
        """How the differences were tested, in sentences."""
        judged, several = self.judged, len(self.judged.sizes) > 1
        seeds = format_count(judged.seeds, "seed")
        how = f", for all {len(judged.sizes)} differences together" if several else ""
        compared = self.factors.table.loc[:, (self.family_of_differences.rows != 0).any(axis=0)]
        if missing := int(compared.isna().to_numpy().sum()):
            seeds += f", {missing:,} of {compared.size:,} scores missing"
        paired = f"Paired by seed; {state_p(judged)}{how}; {seeds}."
        return join_sentences(state_equivalence(judged), paired)

    def find_next_step(self) -> NextStep:
        if self.outcome not in (QuestionOutcome.SHOWN, QuestionOutcome.OPPOSITE):
            return super().find_next_step()
        study = self.results.study
        text = f"Run the best configuration and its counterpart {new_seeds(study)}"
        return step(text, confirm_command(study))

    def choose_candidates(self) -> tuple[pd.Series, pd.Series]:
        """The best configuration on the higher side, and the most similar one on the other."""
        if self.obstacle:
            raise ValueError(self.obstacle)
        row = self.family_of_differences.rows[self.leading]
        signs = np.sign(row * self.judged.sizes[self.leading].mean)
        values, means = self.factors.values, self.factors.table.mean()
        best = means[signs > 0].idxmax()
        alike = (values == values.loc[best]).sum(axis=1)[signs < 0]
        first, second = (self._find_run(values.loc[at]) for at in (best, alike.idxmax()))
        return first, second

    def _find_run(self, settings: pd.Series) -> pd.Series:
        same = (self.runs[[*settings.index]] == settings).all(axis=1)
        run: pd.Series = self.runs[same].sort_values("number").iloc[0]
        return run

    def describe(self) -> tuple[str, ...]:
        return () if self.obstacle else (self.answer.sentence,)

    @classmethod
    def plan(cls, planned: PlannedQuestion) -> PlannedDesign | None:
        asked = planned.asked
        frame = pd.DataFrame(asked.select(planned.rows)).dropna(subset=[*asked.names])
        names = _name_factors(frame, asked.names, {*frame} - {MTD, ANY})
        values = select_crossed(frame[names], asked.names)
        if not len(values):
            return None
        differences = cls.list_differences(asked, values)
        places = np.arange(1.0, len(values) + 1)
        return PlannedDesign(places, ordered=False, rows=differences.rows)

    @property
    def fields(self) -> Mapping[str, Any]:
        names = () if self.obstacle else self.family_of_differences.names
        sizes = zip(names, self.judged.sizes, strict=True)
        listed = [{"difference": name, **vars(size.as_read(self.write))} for name, size in sizes]
        return {"differences": listed, "items": self.judged.items}


def _name_factors(
    runs: pd.DataFrame, asked: Collection[str], settings: Collection[str]
) -> list[str]:
    """The settings asked about, then others that vary independently of them."""
    others = [name for name in independent_settings(runs, settings) if name not in asked]
    codes = {name: runs[name].factorize()[0] for name in (*asked, *others)}
    return [
        *asked,
        *(n for n in others if not any(determines(codes[n], codes[name]) for name in asked)),
    ]


def select_crossed(values: pd.DataFrame, asked: Collection[str]) -> pd.DataFrame:
    """The configurations at those values of other settings that have all values of `asked`."""
    others = [name for name in values if name not in asked]
    if not others:
        return values
    every = len(values[[*asked]].drop_duplicates())
    return values[values.groupby(others)[str(others[0])].transform("size") == every]


def name_value(name: str, value: object) -> str:
    """A value of a setting as text."""
    return clean(write_setting(name, value))


def name_within(asked: Declared) -> str:
    """The words for the settings that are held, after a comma; empty without any."""
    held = [name_value(name, value) for name, value in asked.within.items()]
    return f", with {join_words(held)}" if held else ""
