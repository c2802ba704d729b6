"""A score: whether higher or lower values are better, its unit, and how its values are written.

Scores are compared so that higher is better. Those of which lower is better are negated where they
are read, and have a minus in their name from then on: `-val_loss`, `evaluator:-nll`. `ScoreFormat`
writes them as they were read.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from mtdlab.analysis.data import tasks
from mtdlab.analysis.data.defaults import MARGIN, Direction, ReadScale

if TYPE_CHECKING:
    from pandas import DataFrame

_EVALUATOR = "evaluator:"
_LOSS = re.compile(
    r"(^|[^a-z])((log_?)?loss|(cross_)?entropy|err(or)?(_rate)?|[cdetw]er|perplexity|ppl|nll"
    r"|(false_(positive|negative|alarm|discovery)|miss)_rate|f[pnda]r|r?mse|rmsle|[sw]?m?ape|mae|mad"
    r"|bp[bcdw]|bits_per_[a-z]+|(simple_)?regret|brier(_score)?|ece|crps|kld?|(kl_)?div(ergence)?"
    r"|deviance|wasserstein|fid|fvd|lpips|latency)"
    # what it is measured on, how often and in what may follow
    r"([^a-z](val(id(ation)?)?|dev|test|eval|mean|avg|best|last|final|min|k|m?s)|@?\d+)*$"
)
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NEGATED = re.compile(r"(^|[^a-z])(neg|negative|negated|minus|inverse|inv)([^a-z]|$)")
_SHARE = re.compile(
    r"^score$|(^|[^a-z])(acc(uracy)?(_score)?|top_?[15]|(spearman|pearson|kendall)r?|corr(elation)?|rho"
    r"|tau|f1(_?(score|macro|micro|weighted))?|ndcg|mrr|map|recall|precision|hit(_rate|s)?"
    r"|au(ro|pr)?c|roc_auc|(exact_)?match|pass|win_rate|mcc)(@\d+)?$|(^|[^a-z])(sts|sick)([^a-z]|$)"
)
_OWN_SCORES = {*tasks.TASK_COLUMNS, *tasks.AVERAGES, "sts_test", "builtin"}
_MIRRORED = {
    "highest": "lowest",
    "higher": "lower",
    "above": "below",
    "rises": "falls",
    "rise": "fall",
    "rising": "falling",
}
_MIRRORED |= {low: high for high, low in _MIRRORED.items()} | {
    "peak": "valley",
    "peaks": "has a valley",
    "peaked": "valley",
}
_VALUES = (
    *("score", "score_before", "mean", "best mean", "difference", "paired_mean"),
    "baseline minus it",
)
BOUNDS = (
    *(("low", "high"), ("difference_low", "difference_high"), ("within_low", "within_high")),
    *(("paired_low", "paired_high"), ("paired_low_all", "paired_high_all")),
)
"""Columns of the bounds of scores and differences."""
_MINUS = re.compile(r"(?<![\w.,:/=-])-(?=\d)")
_WORD = re.compile(rf"\b({'|'.join(_MIRRORED)})\b", re.IGNORECASE)


def is_loss(score: str) -> bool:
    """Whether a score is by its name one of which lower is better, and that is not negated."""
    name = _as_words(score).removesuffix(":dev")
    return bool(_LOSS.search(name)) and not (_NEGATED.search(name) or is_negated(name))


def is_share(score: str) -> bool:
    """Whether a score is by its name a correlation or a share, such as an accuracy."""
    return score in _OWN_SCORES or bool(_SHARE.search(_as_words(score)))


def _as_words(score: str) -> str:
    """A name in small letters, with an underline where a capital began a word."""
    return _CAPITAL.sub("_", score).lower()


def is_in_points(score: str) -> bool:
    """Whether 1 counts 100 points, by the score's name; others have a unit of their own."""
    return not (is_negated(score) or is_loss(score)) and (tasks.is_own(score) or is_share(score))


def is_negated(score: str) -> bool:
    """Whether a score has the opposite sign of the one that was read, by its name."""
    return score.removeprefix(_EVALUATOR).startswith("-")


def direction_of(score: str) -> Direction:
    """Whether higher or lower values of what was read are better, by the score's name."""
    return "minimize" if is_negated(score) else "maximize"


def as_read(score: str) -> str:
    """The name with which a score was read, before it was negated."""
    return negated(score) if is_negated(score) else score


def negated(score: str) -> str:
    """The name of a score with the opposite sign."""
    kind = _EVALUATOR if score.startswith(_EVALUATOR) else ""
    name = score.removeprefix(kind)
    return kind + (name.removeprefix("-") if name.startswith("-") else f"-{name}")


@dataclass(frozen=True)
class ScoreFormat:
    """How scores, their differences and their directions are written: as they were read.

    Attributes:
        metric: the score as it is compared.
        margin: the difference that counts as none; its size tells the decimals.
        scale: how a table's scores were read.
    """

    metric: str = "sts_test"
    margin: float = MARGIN
    scale: ReadScale = ""

    @property
    def name(self) -> str:
        """The name of the score as it was read."""
        return as_read(self.metric)

    @property
    def is_turned(self) -> bool:
        """Whether lower scores are better, so that they were negated."""
        return is_negated(self.metric)

    @property
    def unit(self) -> str:
        """`points`; empty for a score in a unit of its own."""
        in_points = self.scale != "own" if self.scale else is_in_points(self.metric)
        return tasks.POINTS if in_points else ""

    @property
    def axis_unit(self) -> str:
        """What the label of an axis says of the score."""
        return self.unit or f"{self.choose('higher', 'lower')} is better"

    @property
    def unsigned(self) -> "ScoreFormat":
        """The format of differences whose direction words say."""
        return replace(self, metric=self.name)

    def choose(self, higher: str, lower: str) -> str:
        """The word for scores of which higher ones are better, or that for the others."""
        return lower if self.is_turned else higher

    @property
    def decimals(self) -> int:
        """Two, or more where the margin is small: a fifth of it is seen."""
        return max(2, 1 - math.floor(math.log10(self.margin))) if self.margin > 0 else 2

    def as_read(self, value: float) -> float:
        """A score or a difference with the sign of what was read; a 0 has none."""
        return 0 - value if self.is_turned else value

    def score(self, value: float) -> str:
        """A score, such as 76.89."""
        return write_fixed(self.as_read(value), self.decimals)

    def difference(self, value: float) -> str:
        """A difference with its sign, such as +0.64."""
        return write_fixed(self.as_read(value), self.decimals, "+")

    def amount(self, value: float) -> str:
        """By how much scores differ, without a sign, with the unit, such as 0.64 points."""
        return self.with_unit(f"{value:.{self.decimals}f}")

    def rounded_up(self, value: float) -> str:
        """An upper bound of an amount, with the unit."""
        return self._bound(value, math.ceil)

    def rounded_down(self, value: float) -> str:
        """A lower bound of an amount, with the unit."""
        return self._bound(value, math.floor)

    def _bound(self, value: float, outward: Callable[[float], int]) -> str:
        # a value that has these decimals is its own bound, whatever its last bit
        scaled = round(value * 10**self.decimals, 6)
        return self.amount(outward(scaled) / 10**self.decimals)

    def with_unit(self, number: str) -> str:
        """A number with the unit of the score, where that has a name."""
        return f"{number} {self.unit}".rstrip()

    def interval(self, low: float, high: float) -> str:
        """Two bounds of a score or a difference, the lower one first."""
        ends = sorted(map(self.as_read, (low, high)))
        return " to ".join(write_fixed(end, self.decimals) for end in ends)

    def frame(self, scores: "DataFrame", *more: str) -> "DataFrame":
        """A table of scores and differences, in columns of the usual names, as they were read.

        `more` are further columns that hold scores.
        """
        if not self.is_turned:
            return scores
        turned = {name: 0 - scores[name] for name in (*_VALUES, *more) if name in scores}
        for low, high in BOUNDS:
            if low in scores:
                turned |= {low: 0 - scores[high], high: 0 - scores[low]}
        return scores.assign(**turned)

    @property
    def stated_margin(self) -> str:
        """The margin with its unit, such as 0.5 points."""
        return self.with_unit(f"{self.margin:g}")

    def say(self, words: str) -> str:
        """Words on scores that are higher where they are better, as they hold of what was read."""
        if not self.is_turned:
            return words
        return _WORD.sub(_mirror, words)


POINTS = ScoreFormat()
"""The format of scores x 100."""


def read_scores(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores by name as they were read."""
    return {as_read(name): ScoreFormat(name).as_read(score) for name, score in scores.items()}


def write_score(name: str, score: float) -> str:
    """A score of any name as it was read: with two decimals in points, else with five digits."""
    value = ScoreFormat(name).as_read(score)
    return write_fixed(value, 2) if is_in_points(name) else f"{value:.5g}"


def write_fixed(value: float, decimals: int, sign: Literal["", "+"] = "") -> str:
    """A number with so many decimals, with its sign too where that is "+"; of 0 it has none."""
    text = f"{value:{sign}.{decimals}f}"
    return text if float(text) else text.lstrip("+-")


def write_minus(text: str) -> str:
    """Text with the minus sign, in place of a hyphen, before negative numbers."""
    return _MINUS.sub("−", text)


def _mirror(found: re.Match[str]) -> str:
    word = _MIRRORED[found[0].lower()]
    return word.capitalize() if found[0][0].isupper() else word
