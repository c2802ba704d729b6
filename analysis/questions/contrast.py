"""The question whether one value of a setting scores more than another."""

from collections.abc import Hashable
from functools import cached_property
from itertools import combinations

import numpy as np
import pandas as pd

from mtdlab.analysis.data.questions import Declared
from mtdlab.analysis.data.settings import format_value, name_setting
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.questions.answer import Answer, QuestionOutcome
from mtdlab.analysis.questions.differences import (
    DifferencesQuestion,
    Family,
    name_value,
    name_within,
)
from mtdlab.analysis.questions.varied_history import claim_within
from mtdlab.analysis.questions.wording import (
    capitalise,
    clean,
    describe_size,
    join_sentences,
    join_words,
    over_all_looks,
)


class ContrastQuestion(DifferencesQuestion):
    """Does one value of a setting score more than another, averaged over other settings?

    Where the difference is shown to depend on another setting, it is stated by the values of that.
    """

    @property
    def sentence(self) -> str:
        first, second = _name_values(self.asked)
        within = name_within(self.asked)
        than = f"{self.write.choose('more', 'less')} than {second} in {self.results.metric}"
        return f"Does {first} score {than}{within}?"

    @property
    def noun(self) -> str:
        first, second = _name_values(self.asked)
        return f"the difference of {first} and {second}{name_within(self.asked)}"

    @classmethod
    def list_differences(cls, asked: Declared, values: pd.DataFrame) -> Family:
        return Family(_weigh(asked, values)[None], (_name(asked),))

    @cached_property
    def others(self) -> list[str]:
        """The settings that the difference is averaged over."""
        return [str(name) for name in self.factors.values if name not in self.asked.names]

    @cached_property
    def dependence(self) -> str:
        """The setting on which the difference depends most clearly; empty where none is shown."""
        if self.obstacle:
            return ""
        rows: list[Floats] = []
        settings: list[str] = []
        for name in self.others:
            by_value = [row for _, row in self._list_by_value(name)]
            rows += [one - other for one, other in combinations(by_value, 2)]
            settings += [name] * (len(rows) - len(settings))
        if not rows:
            return ""
        judged = self.compare(np.array(rows))
        clearest = int(np.argmax([max(size.low, -size.high) for size in judged.sizes]))
        return settings[clearest] if judged.is_different else ""

    @property
    def _by(self) -> str:
        """The setting on which the difference depends, in words."""
        return clean(name_setting(self.dependence))

    def _list_by_value(self, name: str) -> list[tuple[Hashable, Floats]]:
        """The difference at each value of another setting."""
        values = self.factors.values
        return [
            (value, _weigh(self.asked, values, at=(values[name] == value).to_numpy()))
            for value in values[name].unique()
        ]

    @cached_property
    def family_of_differences(self) -> Family:
        if not self.dependence:
            return super().family_of_differences
        names, rows = zip(*self._list_by_value(self.dependence), strict=True)
        places = (f"{_name(self.asked)}, at {name_value(self.dependence, at)}" for at in names)
        return Family(np.array(rows), tuple(places))

    @property
    def leading(self) -> int:
        """The difference nearest to 0, where it is stated by the values of another setting."""
        return int(np.argmin(np.abs([size.mean for size in self.judged.sizes])))

    @property
    def finding(self) -> QuestionOutcome:
        if (outcome := super().finding) is not QuestionOutcome.SHOWN:
            return outcome
        if all(size.low > 0 for size in self.judged.sizes):
            return QuestionOutcome.SHOWN
        return (
            QuestionOutcome.OPPOSITE
            if all(size.high < 0 for size in self.judged.sizes)
            else QuestionOutcome.OPEN
        )

    @cached_property
    def answer(self) -> Answer:
        first, second = _name_values(self.asked)
        more, less = self.write.choose("more", "less"), self.write.choose("less", "more")
        found = {
            QuestionOutcome.SHOWN: f"{first} scores {more} than {second}",
            QuestionOutcome.OPPOSITE: f"{first} scores {less} than {second}",
        }
        open_ = f"No difference of {first} and {second} is shown"
        if self.dependence:
            open_ = f"The difference of {first} and {second} depends on {self._by}"
        if self.is_within:
            none = f"{first} and {second} make no difference"
            open_ = claim_within(self.judged, none, f"{first} and {second}")
        heading = capitalise(found.get(self.outcome, open_))
        return self.state(heading + name_within(self.asked))

    def describe_certainty(self) -> str:
        averaged = ""
        if self.dependence:
            level, over = self.judged.confidence, over_all_looks(self.basis.over_looks)
            others = zip(self.family_of_differences.names, self.judged.sizes, strict=True)
            listed = [
                f"{capitalise(name)}: {describe_size(size, level, over, write=self.write)}."
                for name, size in others
            ]
            del listed[self.leading]
            why = f"Stated by the values of {self._by}, on which it depends."
            averaged = join_sentences(*listed, why)
        elif self.others:
            over_others = join_words([clean(name_setting(name)) for name in self.others])
            averaged = (
                f"Averaged over {over_others}, on which the difference is not shown to depend."
            )
        return join_sentences(super().describe_certainty(), averaged)


def _weigh(asked: Declared, values: pd.DataFrame, at: Floats | bool = True) -> Floats:
    """The first value minus the second, averaged over the configurations that are chosen, (C,)."""
    column = values[asked.names[0]]
    first, second = ((column == value).to_numpy() & at for value in asked.values)
    return np.asarray(first / first.sum() - second / second.sum())


def _name_values(asked: Declared) -> tuple[str, str]:
    """Both values as text, the first with the name of their setting."""
    [name] = asked.names
    return name_value(name, asked.values[0]), clean(format_value(name, asked.values[1]))


def _name(asked: Declared) -> str:
    return " minus ".join(_name_values(asked)) + name_within(asked)
