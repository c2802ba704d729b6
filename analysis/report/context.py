"""What several topics of a report need of a study, each computed once and only if needed."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from analysis.data.frames import StudyFrames
from analysis.data.runs import traced_runs, untraced_runs
from analysis.data.tasks import is_own, label_score
from analysis.inference.design import seeds_for_verdict
from analysis.inference.interim_analysis import judged_trials
from analysis.inference.pairing import LevelScores, level_scores
from analysis.inference.verdict import Verdict, judge_levels
from analysis.report.cells import clean
from analysis.statistics.curves import compute_mtd_curve, find_width
from analysis.statistics.methods import compute_methods, select_curve_trials
from analysis.statistics.sufficiency import Sufficiency, compute_sufficiency

_MOST_LABEL = 60


@dataclass(frozen=True)
class StudyContext:
    """A study with the results that more than one topic uses, at 95 % confidence but the verdict.

    Attributes:
        curve_trials: the trials whose runs make one curve over MTD: of one method alone where
            several have an MTD.
        traced: completed runs of these with an MTD.
        untraced: all completed runs without one.
        levels: `level_scores` of the curve's trials.
        curve: `compute_mtd_curve` of the score.
        verdict: on its shape, at the error rate and the margin that the study specifies.
        sufficiency: of MTD; None where fewer than two levels of MTD have a score.
        methods: `compute_methods`; no rows where the runs are of one method.
        labels: of the columns that are settings.
        width: dimension of the encoder; None if it is not known.
        note: what every figure states about the choice of checkpoints, or empty.
    """

    study: StudyFrames

    @property
    def trials(self) -> pd.DataFrame:
        return self.study.trials

    @cached_property
    def curve_trials(self) -> pd.DataFrame:
        return select_curve_trials(self.trials, self.study.settings)

    @cached_property
    def traced(self) -> pd.DataFrame:
        return traced_runs(self.curve_trials)

    @cached_property
    def untraced(self) -> pd.DataFrame:
        return untraced_runs(self.trials)

    @cached_property
    def curve(self) -> pd.DataFrame:
        return compute_mtd_curve(self.curve_trials)

    @cached_property
    def levels(self) -> LevelScores:
        return level_scores(self.curve_trials, self.study.settings, self.study.items)

    @cached_property
    def _judged(self) -> tuple[LevelScores, float]:
        """What the verdict is computed from, and its significance level."""
        trials, alpha = judged_trials(self.study, self.curve_trials)
        if len(trials) == len(self.curve_trials):
            return self.levels, alpha
        return level_scores(trials, self.study.settings, self.study.items), alpha

    @cached_property
    def verdict(self) -> Verdict:
        levels, alpha = self._judged
        return judge_levels(levels, level=1 - alpha, margin=self.study.margin)

    @cached_property
    def seeds_for_verdict(self) -> int | None:
        """Seeds in all for a verdict with 80 % power; None where there is one, or not known."""
        if self.verdict.verdict != "inconclusive":
            return None
        return seeds_for_verdict(self._judged[0], self.verdict)

    @cached_property
    def sufficiency(self) -> Sufficiency | None:
        if self.traced["mtd"].nunique() < 2:
            return None
        return compute_sufficiency(self.curve_trials, self.study.settings)

    @cached_property
    def methods(self) -> pd.DataFrame:
        study = self.study
        return compute_methods(self.trials, study.settings, items=study.items)

    @property
    def labels(self) -> Mapping[str, str]:
        return {name: setting.label for name, setting in self.study.settings.items()}

    @cached_property
    def width(self) -> int | None:
        return find_width(self.study.spectra)

    @property
    def score_label(self) -> str:
        """The unit of the metric x 100 and what it is measured on, for the axis of a figure."""
        study = self.study
        return clean(label_score(study.metric, study.facts.get("evaluation", "")), most=_MOST_LABEL)

    @property
    def selection_label(self) -> str:
        """As `score_label`, of the scores that choose a trial's checkpoint."""
        splits = {"dev": "sts_dev", "test": "sts_test"}
        used = set(self.trials["select_on"].dropna()) if "select_on" in self.trials else set()
        names = [splits.get(str(name), str(name)) for name in used]
        if len(names) != 1:
            return "score that chooses the checkpoint"
        # a task of the user's own on its dev split is named after both
        name, evaluation = names[0].removesuffix(":dev"), self.study.facts.get("evaluation", "")
        label = label_score(name, evaluation)
        return clean(label if name == names[0] else label.replace("test", "dev"), most=_MOST_LABEL)

    @property
    def note(self) -> str:
        return describe_selection(self.trials)

    @cached_property
    def untraced_by_method(self) -> Mapping[str, pd.DataFrame]:
        """The runs without an MTD of each method, by its name as it is written in text."""
        runs, study = self.untraced, self.study
        if "method" not in runs or not len(runs):
            return {"": runs} if len(runs) else {}
        groups = runs.groupby("method")
        return {study.methods.get(str(name), str(name)): group for name, group in groups}

    @cached_property
    def untraced_methods(self) -> str:
        """The names of the methods of the runs without an MTD; empty if not recorded."""
        return name_methods(self.untraced, self.study)


def name_methods(runs: pd.DataFrame, study: StudyFrames) -> str:
    """The methods of some runs, as they are written in text; empty if not recorded."""
    if "method" not in runs:
        return ""
    names = [str(name) for name in runs["method"].dropna().unique()]
    return ", ".join(study.methods.get(name, name) for name in sorted(names))


def describe_splits(study: StudyFrames) -> str:
    """What was reported and what selected, where either is a task of the user's own; else empty."""
    trials = study.trials
    used = sorted(map(str, trials["select_on"].dropna().unique())) if "select_on" in trials else []
    if not is_own(study.metric) and not any(map(is_own, used)):
        return ""
    names = {"dev": "the dev pairs of the evaluation (sts_dev)", "test": "its TEST pairs"}
    selected = " or ".join(names.get(each, each) for each in used)
    return clean(
        f"Reported: {study.metric}, on test data. Checkpoints were selected on {selected}, and "
        f"trials ranked by {study.select_by or study.metric}."
    )


def describe_selection(trials: pd.DataFrame) -> str:
    """What figures state where checkpoints were chosen on test pairs or sets; else empty."""
    names = {"test": "the TEST pairs", "sts_average": "the STS TEST sets"}
    used = set(trials["select_on"]) if "select_on" in trials else set()
    chosen = [text for value, text in names.items() if value in used]
    return f"checkpoints chosen on {' or '.join(chosen)}" if chosen else ""
