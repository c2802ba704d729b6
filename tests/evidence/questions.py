"""How often declared questions about differences are decided wrongly: `make evidence`.

A study is S seeds by 12 configurations: three slices of a queue, two widths, two branches; score =
what the truth says + deviations of the seed + error of standard deviation 1. It asks whether slice
a scores more than slice b, and three other questions, which share an error rate (Holm). Each study
is answered as a page answers it. A decision is false where what is claimed is not so: of a contrast
that is averaged, that its mean has the other sign or is 0; of one that is stated by the values of a
setting, that it is not so at one of them; of an equivalence, that a difference is the margin or
more. The margin is 1. Letters: S seeds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np
import pandas as pd
from bounds import bound_below
from joblib import Parallel, delayed

from mtdlab.analysis.data.frames import Plan, RecordedSetting, StudyFrames
from mtdlab.analysis.questions.answer import QuestionOutcome
from mtdlab.analysis.questions.base import Question
from mtdlab.analysis.questions.contrast import ContrastQuestion
from mtdlab.analysis.questions.study import StudyQuestions

Rates = dict[str, float | str]
SEEDS = (3, 6)
NAMES = ("part", "width", "branch")
SETTINGS = {name: RecordedSetting(name) for name in NAMES}
POINTS = [*product("abc", (1, 2), ("x", "y"))]
ASKED = (
    {"contrast": {"part": ["a", "b"]}},
    {"contrast": {"part": ["b", "c"], "within": {"branch": "x"}}},
    {"effect": "width"},
    {"interaction": ["width", "branch"]},
)


@dataclass(frozen=True)
class Truth:
    """The means of the configurations, and which of the four questions have a difference of 0.

    `by_branch` is slice a minus slice b at branch x and at y.
    """

    name: str
    mean: Callable[[str, int, str], float]
    by_branch: tuple[float, float]
    is_null: tuple[bool, bool, bool, bool]

    def is_false(self, question: Question, place: int) -> bool:
        """Whether the decision on the question at a place is false."""
        outcome = question.outcome
        if outcome is QuestionOutcome.EQUIVALENT:
            return place == 0 and max(map(abs, self.by_branch)) >= 1
        if outcome not in (QuestionOutcome.SHOWN, QuestionOutcome.OPPOSITE):
            return False
        if place or not isinstance(question, ContrastQuestion):
            return self.is_null[place]
        sign = 1 if outcome is QuestionOutcome.SHOWN else -1
        claimed = [np.mean(self.by_branch)]
        if question.dependence == "branch":
            claimed = [*self.by_branch]
        return min(sign * difference for difference in claimed) <= 0


TRUTHS = (
    Truth("nothing differs", lambda *_: 0.0, (0, 0), (True, True, True, True)),
    Truth("widths differ by 3", lambda _, w, __: 3.0 * w, (0, 0), (True, True, False, True)),
    Truth(
        "a above b by 3 at x, below it by 3 at y",
        lambda part, _, branch: (3.0 if branch == "x" else -3.0) * (part == "a"),
        (3, -3),
        (True, True, True, True),
    ),
    Truth(
        "a above b by 3 at x alone",
        lambda part, _, branch: 3.0 * (part == "a") * (branch == "x"),
        (3, 0),
        (False, True, True, True),
    ),
    Truth("a above b by 1", lambda part, *_: float(part == "a"), (1, 1), (False, True, True, True)),
    Truth(
        "a above b by 2", lambda part, *_: 2.0 * (part == "a"), (2, 2), (False, True, True, True)
    ),
)
DEVIATIONS: Mapping[str, tuple[float, float, float]] = {
    "nothing": (0, 0, 0),
    "each setting, 1": (1, 0, 0),
    "slice and branch together, 1": (0, 1, 0),
    "slice and branch together, 3": (0, 3, 0),
    "configurations, unequally": (0, 0, 2),
}
"""Standard deviations of what a seed does to values, to slice and branch, and of the errors of
slice a beside those of the others."""


def draw(
    rng: np.random.Generator, seeds: int, truth: Truth, scales: tuple[float, ...]
) -> pd.DataFrame:
    """The runs of a study."""
    runs = pd.DataFrame(
        [(seed, *point) for seed in range(seeds) for point in POINTS], columns=["seed", *NAMES]
    )
    each, together, unequal = scales
    score = np.array([truth.mean(*point) for point in POINTS] * seeds) + rng.normal(size=len(runs))
    for name in NAMES:
        score += each * _own(rng, runs, ["seed", name])
    score += together * _own(rng, runs, ["seed", "part", "branch"])
    score += unequal * rng.normal(size=len(runs)) * (runs["part"] == "a")
    score += 5 * _own(rng, runs, ["seed"])
    known = {"state": "COMPLETE", "reason": "", "mtd": np.nan, "score_before": np.nan}
    return runs.assign(score=score, number=range(len(runs)), batch_size=64, **known)


def _own(rng: np.random.Generator, runs: pd.DataFrame, by: list[str]) -> np.ndarray:
    groups = runs.groupby(by).ngroup()
    return np.asarray(rng.normal(size=groups.max() + 1)[groups])


def answer(runs: pd.DataFrame, truth: Truth) -> tuple[bool, bool, bool, bool]:
    """Of one study: a false decision on the main question and on any other; it is shown; equal."""
    plan = Plan(0, {"margin": 1.0, "alpha": 0.05, "looks": [1], "questions": [*ASKED]}, "0" * 64)
    results = StudyQuestions(
        StudyFrames("s", "a", len(runs), runs, settings=SETTINGS, plans=(plan,))
    )
    main, others = results.question, results.others
    wrong = [truth.is_false(other, place) for place, other in enumerate(others, start=1)]
    shown, equal = main.outcome is QuestionOutcome.SHOWN, main.outcome is QuestionOutcome.EQUIVALENT
    return truth.is_false(main, 0), any(wrong), shown, equal


def measure(seeds: int, place: int, deviation: str, datasets: int, seed: int) -> Rates:
    """One cell: shares of studies with false decisions, and of those that show or exclude it."""
    truth, scales = TRUTHS[place], DEVIATIONS[deviation]
    rng = np.random.default_rng([seed, seeds, place, [*DEVIATIONS].index(deviation)])
    found = np.mean([answer(draw(rng, seeds, truth, scales), truth) for _ in range(datasets)], 0)
    names = ("main_false", "others_false", "main_shown", "main_equivalent")
    rates = dict(zip(names, map(float, found), strict=True))
    cell: Rates = {"seeds": seeds, "truth": truth.name, "seeds deviate in": deviation}
    return {**cell, **rates, "n": datasets}


def rows(datasets: int, seed: int = 0) -> pd.DataFrame:
    """Every cell, with the lower 99 % bounds of false decisions (Bonferroni over cells)."""
    cells = list(product(SEEDS, range(len(TRUTHS)), DEVIATIONS))
    table = pd.DataFrame(
        Parallel(n_jobs=-1)(delayed(measure)(*cell, datasets, seed) for cell in cells)
    )
    for kind in ("main", "others"):
        table[f"{kind}_low99"] = bound_below(table[f"{kind}_false"], table["n"], len(table))
    return table
