"""The question whether the effect of a setting depends on another one."""

from functools import cached_property
from itertools import combinations, compress, product

import numpy as np
import pandas as pd

from mtdlab.analysis.data.questions import Declared
from mtdlab.analysis.data.settings import name_setting
from mtdlab.analysis.inference.blocks import Blocks
from mtdlab.analysis.inference.intervals import Estimate
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
        names = [_name_gain(*effect, *place) for effect, place in product(effects, places)]
        rows = interaction_contrasts(values[first], values[second])
        # of a combination whose runs all failed there is no difference of differences
        whole: list[bool] = np.all(np.isfinite(rows), axis=1).tolist()
        return Family(rows[whole], tuple(compress(names, whole)))

    @cached_property
    def obstacle(self) -> str:
        if why := super().obstacle:
            return why
        if len(self.family_of_differences.rows):
            return ""
        first, second = self.settings
        return f"no two values of {first} were both run with the same two values of {second}"

    def describe_certainty(self) -> str:
        one, two, gains = self._gains
        parts = (f"{self.write.difference(gain)} with {at}" for at, gain in gains)
        return join_sentences(
            f"Gain of {one} over {two}: {' and '.join(parts)}.", super().describe_certainty()
        )

    def name_leading(self) -> tuple[str, Estimate]:
        one, two, [(at, _), (less_at, _)] = self._gains
        size = self.judged.sizes[self.leading]
        return _name_gain(one, two, at, less_at), -size if size.mean < 0 else size

    @cached_property
    def _gains(self) -> tuple[str, str, list[tuple[str, float]]]:
        """Two values of the first setting, and by how much the one gains over the other.

        The gains are those at both values of the second setting whose difference leads; the larger
        one, which is above 0, comes first.
        """
        factors, (first, second) = self.factors, self.asked.names
        row, scores = self.family_of_differences.rows[self.leading], factors.table.to_numpy()
        effects = Blocks(np.isfinite(scores)).estimate(scores)
        values = factors.values.loc[row != 0]
        one, two = (name_value(first, value) for value in values[first].unique())
        signs = np.where(factors.values[first] == values[first].iloc[0], 1, -1)
        weighted, at = np.abs(row) * signs * effects, factors.values[second]
        gains = [
            (name_value(second, value), float(weighted[at == value].sum()))
            for value in values[second].unique()
        ]
        gains.sort(key=lambda gain: -abs(gain[1]))
        if gains[0][1] < 0:
            return two, one, [(name, -gain) for name, gain in gains]
        return one, two, gains

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


def _name_gain(one: str, two: str, at: str, less_at: str) -> str:
    return f"How much larger the gain of {one} over {two} is with {at} than with {less_at}"
