"""The question what each addition changes, where configurations add one thing after another.

The field calls it a cumulative ablation.
"""

from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise

import numpy as np
import pandas as pd

from mtdlab.analysis.data.durations import list_first
from mtdlab.analysis.data.questions import ANY, Declared, PlannedQuestion
from mtdlab.analysis.inference.power import PlannedDesign
from mtdlab.analysis.questions.answer import Answer
from mtdlab.analysis.questions.best import describe_budget
from mtdlab.analysis.questions.differences import DifferencesQuestion, Family
from mtdlab.analysis.questions.varied_history import claim_within
from mtdlab.analysis.questions.wording import capitalise, clean, join_sentences
from mtdlab.analysis.statistics.configurations import Factors, tabulate_factors

_MOST = 4


class AdditionsQuestion(DifferencesQuestion):
    """How much more does each named configuration score than the one before it?"""

    @property
    def sentence(self) -> str:
        first = clean(self.asked.names[0])
        return f"What does each addition to {first} change in {self.results.metric}?"

    @property
    def noun(self) -> str:
        return "all differences between a configuration and the one before it together"

    @cached_property
    def runs(self) -> pd.DataFrame:
        runs = self.basis.select(self.results.runs)
        called = runs["number"].map(self.results.study.named)
        return runs.assign(**{ANY: called})[called.isin(self.asked.names)]

    @cached_property
    def factors(self) -> Factors:
        return tabulate_factors(self.runs, [ANY], self.results.study.items)

    @cached_property
    def obstacle(self) -> str:
        if len(self.factors.values) and len(self.family_of_differences.rows):
            return ""
        return "no two seeds were run with a configuration and the one before it"

    @classmethod
    def list_differences(cls, asked: Declared, values: pd.DataFrame) -> Family:
        is_of = {name: (values[ANY] == name).to_numpy(dtype=np.float64) for name in asked.names}
        pairs = _pair(asked, values)
        names = tuple(f"{clean(name)} minus {clean(before)}" for before, name in pairs)
        return Family(np.array([is_of[name] - is_of[before] for before, name in pairs]), names)

    @classmethod
    def plan(cls, planned: PlannedQuestion) -> PlannedDesign:
        values = pd.DataFrame({ANY: planned.asked.names})
        rows = cls.list_differences(planned.asked, values).rows
        return PlannedDesign(np.arange(1.0, len(values) + 1), ordered=False, rows=rows)

    @property
    def added(self) -> list[str]:
        """The configurations of the differences, without the one before each."""
        return [name for _, name in _pair(self.asked, self.factors.values)]

    @property
    def leading(self) -> int:
        """Which difference is stated: the largest of those that are shown, else of all."""
        sizes = self.judged.sizes
        shown = [abs(size.mean) if size.low > 0 or size.high < 0 else 0.0 for size in sizes]
        return int(np.argmax(shown)) if any(shown) else super().leading

    @cached_property
    def found(self) -> Mapping[str, list[str]]:
        """The additions that are shown to gain and to lose."""
        sizes = dict(zip(map(clean, self.added), self.judged.sizes, strict=True))
        return {
            "gained": [name for name, size in sizes.items() if size.low > 0],
            "lost": [name for name, size in sizes.items() if size.high < 0],
        }

    @cached_property
    def answer(self) -> Answer:
        if self.obstacle:
            return self.state("")
        if self.is_within:
            none, compared = "No addition makes a difference", "A configuration and the one before"
            return self.state(claim_within(self.judged, none, compared))
        count = len(self.judged.sizes)
        if not self.judged.is_different:
            return self.state(f"No addition of {count} is shown to gain or lose")
        parts = [
            f"{what}: {list_first(names, _MOST)}" for what, names in self.found.items() if names
        ]
        if left := count - sum(map(len, self.found.values())):
            parts.append(f"{left} of {count} undecided")
        return self.state(capitalise("; ".join(parts)))

    def describe_certainty(self) -> str:
        lacking = [clean(name) for name in self.asked.names[1:] if name not in self.added]
        left_out = (
            "Not compared, where it or the one before has no scores of shared seeds: "
            f"{', '.join(lacking)}."
        )
        budget = describe_budget(self.results.study)
        return join_sentences(
            f"Configurations compared {budget}." if budget else "",
            left_out if lacking else "",
            super().describe_certainty(),
        )


def _pair(asked: Declared, values: pd.DataFrame) -> list[tuple[str, str]]:
    """The configuration before and each addition, without those that have no scores."""
    scored = {*values[ANY]}
    return [pair for pair in pairwise(asked.names) if scored.issuperset(pair)]
