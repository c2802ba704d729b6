"""The question whether the effect of a setting depends on another one."""

from functools import cached_property
from itertools import combinations, compress, product

import numpy as np
import pandas as pd

from mtdlab.analysis.data.questions import Declared
from mtdlab.analysis.data.settings import name_setting
from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.questions.answer import Answer
from mtdlab.analysis.questions.differences import DifferencesQuestion, Family, name_value
from mtdlab.analysis.questions.varied_history import claim_within
from mtdlab.analysis.questions.wording import clean, join_sentences
from mtdlab.analysis.statistics.configurations import interaction_contrasts


class InteractionQuestion(DifferencesQuestion):
    """Does the effect of one setting depend on the value of another?"""

    @property
    def settings(self) -> tuple[str, str]:
        """Both settings as text."""
        first, second = (clean(name_setting(name)) for name in self.asked.names)
        return first, second

    @property
    def sentence(self) -> str:
        first, second = self.settings
        return f"Does the effect of {first} on {self.results.metric} depend on {second}?"

    @property
    def noun(self) -> str:
        first, second = self.settings
        return f"all differences of differences between {first} and {second} together"

    @classmethod
    def list_differences(cls, asked: Declared, values: pd.DataFrame) -> Family:
        first, second = asked.names
        effects = combinations([name_value(first, value) for value in values[first].unique()], 2)
        places = combinations([name_value(second, value) for value in values[second].unique()], 2)
        pairs = [*product(effects, places)]
        names, opposites = (
            tuple(
                f"{one} minus {two} with {at}, minus the same with {less_at}"
                for one, two, at, less_at in ordered
            )
            for ordered in (
                [(*effect, *place) for effect, place in pairs],
                [(*effect, *place[::-1]) for effect, place in pairs],
            )
        )
        rows = interaction_contrasts(values[first], values[second])
        # of a combination whose runs all failed there is no difference of differences
        whole: list[bool] = np.all(np.isfinite(rows), axis=1).tolist()
        return Family(rows[whole], tuple(compress(names, whole)), tuple(compress(opposites, whole)))

    @cached_property
    def obstacle(self) -> str:
        if why := super().obstacle:
            return why
        if len(self.family_of_differences.rows):
            return ""
        first, second = self.settings
        return f"no two values of {first} were both run with the same two values of {second}"

    def describe_certainty(self) -> str:
        return join_sentences(self._describe_parts(), super().describe_certainty())

    def _describe_parts(self) -> str:
        """The effect of the first setting at both values of the second, whose difference leads."""
        factors, (first, second) = self.factors, self.asked.names
        row, scores = self.family_of_differences.rows[self.leading], factors.table.to_numpy()
        effects = Blocks(np.isfinite(scores)).estimate(scores)
        values = factors.values.loc[row != 0]
        one, two = (name_value(first, value) for value in values[first].unique())
        signs = np.where(factors.values[first] == values[first].iloc[0], 1, -1)
        parts = [
            f"{self.write.difference(part)} with {name_value(second, value)}"
            for value in values[second].unique()
            for part in [(np.abs(row) * signs * effects)[factors.values[second] == value].sum()]
        ]
        return f"{one} minus {two}: {' and '.join(parts)}."

    @cached_property
    def answer(self) -> Answer:
        first, second = self.settings
        if self.judged.is_different:
            return self.state(f"The effect of {first} depends on {second}")
        if self.is_within:
            same = f"The effect of {first} is the same at all values of {second}"
            compared = f"Effects of {first} at any two values of {second}"
            return self.state(claim_within(self.judged, same, compared))
        return self.state(f"That the effect of {first} depends on {second} is not shown")


QUESTION = InteractionQuestion
