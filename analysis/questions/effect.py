"""The question how much a setting changes the score, and effects of settings as text."""

from functools import cached_property
from itertools import combinations

import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.metric import ScoreFormat
from mtdlab.analysis.data.questions import Declared
from mtdlab.analysis.data.settings import format_value, name_setting
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.questions.answer import Answer
from mtdlab.analysis.questions.differences import DifferencesQuestion, Family, name_value
from mtdlab.analysis.questions.varied_history import claim_within
from mtdlab.analysis.questions.wording import clean, describe_size
from mtdlab.analysis.statistics.configurations import Effects, effect_contrasts

_MOST_VALUES = 6


class EffectQuestion(DifferencesQuestion):
    """Does the score depend on a setting, averaged over the other ones?

    Of more than two values the largest difference is stated.
    """

    @property
    def setting(self) -> str:
        """The setting as text."""
        return clean(name_setting(self.asked.names[0]))

    @property
    def sentence(self) -> str:
        return f"Does {self.results.metric} depend on {self.setting}, averaged over other settings?"

    @property
    def noun(self) -> str:
        return f"all differences between values of {self.setting} together"

    @classmethod
    def list_differences(cls, asked: Declared, values: pd.DataFrame) -> Family:
        [setting] = asked.names
        column = values[setting]
        names = [name_value(setting, value) for value in column.unique()]
        pairs = [*combinations(names, 2)]
        named = tuple(f"{one} minus {two}" for one, two in pairs)
        opposites = tuple(f"{two} minus {one}" for one, two in pairs)
        return Family(effect_contrasts(column), named, opposites)

    @cached_property
    def answer(self) -> Answer:
        if self.judged.is_different:
            return self.state(f"The score depends on {self.setting}")
        if self.is_within:
            none = f"{self.setting} makes no difference"
            return self.state(claim_within(self.judged, none, f"Any two values of {self.setting}"))
        return self.state(f"No effect of {self.setting} is shown")


def describe_effect(effects: Effects, write: ScoreFormat) -> str:
    """A sentence on the setting with the largest effect."""
    row = effects.settings.iloc[0]
    size = Estimate(row["difference"], row["low"], row["high"])
    name = str(row["setting"])
    values = " instead of ".join(_write(name, row[end]) for end in ("upper", "lower"))
    doubt = "" if size.low > 0 else ", not significant"
    return (
        f"The largest effect is that of {clean(name_setting(name))}: "
        f"{describe_size(size, LEVEL, write=write)} with {values}, averaged over the other "
        f"settings{doubt}."
    )


def describe_interactions(effects: Effects, write: ScoreFormat) -> tuple[str, ...]:
    """A sentence on each pair of settings of which one's effect significantly depends on the other.

    For the first pair it states the values with the highest means.
    """
    clear = effects.interactions.query("low > 0").drop_duplicates(["first", "second"])
    return tuple(
        _describe_interaction(row, write)
        + (_describe_best_values(effects, write) if place == 0 else "")
        for place, (_, row) in enumerate(clear.iterrows())
    )


def _describe_interaction(row: pd.Series, write: ScoreFormat) -> str:
    first, second = str(row["first"]), str(row["second"])
    upper, lower = (_write(first, row[name]) for name in ("upper", "lower"))
    at, less_at = (_write(second, row[name]) for name in ("at", "less_at"))
    size = Estimate(row["difference"], row["low"], row["high"])
    named, by = clean(name_setting(first)), clean(name_setting(second))
    return (
        f"The effect of {named} depends on {by}: the gain of {upper} over {lower} is "
        f"{describe_size(size, LEVEL, write=write.unsigned)} larger with {by} {at} than with "
        f"{less_at}."
    )


def _describe_best_values(effects: Effects, write: ScoreFormat) -> str:
    """The best value of the first setting at each of the second, where they differ; else empty."""
    first, second = effects.interactions[["first", "second"]].iloc[0].astype("str")
    best = effects.cells.loc[effects.cells.groupby("second")["mean"].idxmax()]
    if best["first"].nunique() < 2 or len(best) > _MOST_VALUES:
        return ""
    places = (
        f"{_write(first, row['first'])} at {_write(second, row['second'])}"
        for _, row in best.iterrows()
    )
    named, by = clean(name_setting(first)), clean(name_setting(second))
    return f" {write.say('Highest')} means by {by}: {named} {', '.join(places)}."


def _write(name: str, value: object) -> str:
    return clean(format_value(name, value))


def describe_effects(effects: Effects, write: ScoreFormat) -> tuple[str, ...]:
    """Sentences on the largest effect and on the interactions."""
    none = ("No effect depends significantly on the value of another setting.",)
    return (describe_effect(effects, write), *(describe_interactions(effects, write) or none))
