"""A study with the results that several questions share, each computed once and only if needed."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import pandas as pd

from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.frames import Settings, StudyFrames
from mtdlab.analysis.data.run_tables import check_evaluators
from mtdlab.analysis.data.runs import completed_runs, traced_runs, untraced_runs, varied_settings
from mtdlab.analysis.inference.best import number_configurations
from mtdlab.analysis.inference.intervals import share_level
from mtdlab.analysis.inference.looks import judged_trials, over_looks_of
from mtdlab.analysis.inference.pairing import LevelScores, level_scores
from mtdlab.analysis.inference.verdict import Judgement, OverLooks
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.statistics.baseline import AgainstBaseline, compare_with_baseline
from mtdlab.analysis.statistics.configurations import Effects, compute_effects
from mtdlab.analysis.statistics.methods import select_curve_trials
from mtdlab.analysis.statistics.sufficiency import Sufficiency, compute_sufficiency

Result = TypeVar("Result")


@dataclass(frozen=True)
class Basis:
    """What a question is judged by.

    Attributes:
        alpha: the significance level of its tests.
        over_looks: what holds over all looks; None for a question that is judged once.
        numbers: the trials that are used; None: all.
        explores: whether it is that of a question beside a main one whose differences have the
            error rate: its own are stated without intervals.
    """

    alpha: float
    over_looks: OverLooks | None = None
    numbers: frozenset[int] | None = None
    explores: bool = False

    @property
    def level(self) -> float:
        """The confidence of tests and intervals."""
        return 1 - self.alpha

    def divide(self, share: int) -> Self:
        """That of one of several questions beside the main one, which share its error rate."""
        over = self.over_looks
        if over:
            # the p value over all looks is that of the main question
            confidence = share_level(share, over.confidence)
            over = replace(over, confidence=confidence, p_value=math.nan)
        return replace(self, alpha=self.alpha / share, over_looks=over)

    def select(self, trials: pd.DataFrame) -> pd.DataFrame:
        """Those of the trials that are used."""
        return trials if self.numbers is None else trials[trials["number"].isin(self.numbers)]


@dataclass(frozen=True)
class StudyResults:
    """A study, and what its questions are judged by, if other than as recorded."""

    study: StudyFrames
    given_basis: Basis | None = None
    _results: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise TableError where the scores have no common measure."""
        check_evaluators(completed_runs(self.study.trials))

    @cached_property
    def basis(self) -> Basis:
        """The basis of the main question.

        Of a study that adds seeds it is that of the last look: later trials are of the next one.
        """
        if self.given_basis:
            return self.given_basis
        trials, alpha = judged_trials(self.study)
        numbers = frozenset(trials["number"].tolist()) if len(self.study.looks) else None
        return Basis(alpha, over_looks_of(self.study), numbers)

    @property
    def trials(self) -> pd.DataFrame:
        return self.study.trials

    def once(self, compute: Callable[[Self], Result]) -> Result:
        """What a function of these results returns; it is called once."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        result: Result = self._results[compute]
        return result

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The completed runs with a score."""
        return completed_runs(self.trials)

    @cached_property
    def highest(self) -> int:
        """The first trial of the configuration with the highest mean."""
        return find_highest(self.runs, self.study.settings)

    @cached_property
    def curve_trials(self) -> pd.DataFrame:
        """The trials whose runs make one curve: of one method where several have an MTD."""
        return select_curve_trials(self.trials, self.study.settings)

    @cached_property
    def traced(self) -> pd.DataFrame:
        """The completed runs of the curve."""
        return traced_runs(self.curve_trials)

    @cached_property
    def untraced(self) -> pd.DataFrame:
        """All completed runs without an MTD."""
        return untraced_runs(self.trials)

    @property
    def has_no_mtd(self) -> bool:
        """Whether there are completed runs, and none of them has an MTD."""
        return len(self.untraced) > 0 and not len(traced_runs(self.trials))

    @cached_property
    def levels(self) -> LevelScores:
        """The scores of the curve by seed and level of MTD."""
        return self.tabulate(self.curve_trials)

    def tabulate(self, trials: pd.DataFrame) -> LevelScores:
        """The scores of trials by seed and level of MTD."""
        study = self.study
        return level_scores(trials, study.compared, study.items, beyond_run=study.beyond_run)

    @cached_property
    def sufficiency(self) -> Sufficiency | None:
        """Whether MTD alone determines the score; None with fewer than two levels."""
        return self.test_sufficiency(self.curve_trials)

    def test_sufficiency(self, trials: pd.DataFrame, level: float = LEVEL) -> Sufficiency | None:
        """The same of some trials of the curve."""
        if traced_runs(trials)["mtd"].nunique() < 2:
            return None
        return compute_sufficiency(self.study, trials, level)

    @cached_property
    def effects(self) -> Effects | None:
        """The effects of the settings of a grid; None where they only make up the MTD."""
        effects = compute_effects(self.study)
        return None if effects is None or {*effects.settings["setting"]} <= {*PARTS} else effects

    @cached_property
    def against_baseline(self) -> AgainstBaseline | None:
        """The comparison with the baseline; None where no trial of one has a score."""
        return compare_with_baseline(self.study)

    @property
    def asks_differences(self) -> bool:
        """Whether a declared question is about effects of settings, and states their intervals."""
        asked = [question.kind for plan in self.study.plans[-1:] for question in plan.questions]
        return bool({"additions", "contrast", "effect", "interaction"} & {*asked})

    def describe_scope(self, judged: Judgement, *, is_paired: bool) -> str:
        """What an answer covers, without a full stop: seeds, and evaluation items."""
        seeds = int(self.runs["seed"].nunique())
        if seeds < 2 or not is_paired:
            return (
                f"Covers these trials alone ({'no two seeds of all' if seeds > 1 else 'one seed'})"
            )
        covered = "these evaluation data only"
        if judged.items:
            covered = f"evaluation items like these {judged.items:,}"
        return f"Covers other seeds than these {judged.seeds or seeds} and {covered}"

    @property
    def metric(self) -> str:
        """The metric as text, as it was read."""
        return clean(self.study.score_format.name, most=60)

    @property
    def labels(self) -> Mapping[str, str]:
        return {name: setting.label for name, setting in self.study.settings.items()}

    def name_method(self, method: object) -> str:
        """A method as it is written in text."""
        return self.study.methods.get(str(method), str(method))


def find_highest(runs: pd.DataFrame, settings: Settings) -> int:
    """The first trial of the configuration with the highest mean; of equal ones, the first."""
    runs = runs.sort_values("number")
    means = runs.groupby(number_configurations(runs, varied_settings(runs, settings)))["score"]
    return int(runs["number"].to_numpy()[int(means.transform("mean").argmax())])


def at_defaults(rows: pd.DataFrame, varied: Iterable[object], settings: Settings) -> pd.Series:
    """Which rows have the default values of the settings that varied."""
    defaults = {name: settings[name].default for name in map(str, varied) if name in settings}
    return (rows[list(defaults)] == pd.Series(defaults)).all(axis=1) & bool(defaults)
