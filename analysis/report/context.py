"""What several topics of a report need of a study, each computed once and only if needed."""

from collections.abc import Mapping
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.metric import ScoreFormat, as_read
from mtdlab.analysis.data.runs import completed_runs, has_mtd, levels_of, traced_runs
from mtdlab.analysis.data.tasks import LAST, is_own, label_score
from mtdlab.analysis.experiments import EXPERIMENTS, Comparison, compare
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.inference.pairing import compute_paired_curve, compute_smooth, summarise_scores
from mtdlab.analysis.inference.verdict import Verdict
from mtdlab.analysis.measures.trace import MTD_COLUMNS
from mtdlab.analysis.questions.study import StudyQuestions
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.statistics.configurations import estimate_configuration
from mtdlab.analysis.statistics.curves import find_width
from mtdlab.analysis.statistics.training import assess_collapse

_MOST_LABEL = 60


class StudyContext(StudyQuestions):
    """A study with the results that more than one topic uses, at 95 % confidence but the answers.

    The questions are judged at the error rate and the margin that the study specifies.
    """

    @property
    def verdict(self) -> Verdict:
        """The shape of the score over MTD."""
        return self.shape.judged

    @cached_property
    def curve(self) -> pd.DataFrame:
        return summarise_scores(self.balanced, by=["mtd"], items=self.study.items)

    @cached_property
    def balanced(self) -> pd.DataFrame:
        """The runs of the curve without those whose other settings are not those of all levels."""
        return self.traced[~self.traced["number"].isin(self.levels.unbalanced)]

    @cached_property
    def collapsed(self) -> pd.DataFrame:
        """How many trials of each level collapsed, of how many this is known, the share in percent.

        The index is mtd; the columns are trials (with a score, or collapsed), assessed, collapsed
        and share. Whether a trial collapsed is known where it failed, and where its curve was read;
        the share of the other trials is taken to be that of those read, and is NaN at a level
        without any.
        """
        known, trials = assess_collapse(self.study), self.curve_trials[has_mtd(self.curve_trials)]
        done = trials["number"].isin(completed_runs(trials)["number"])
        trials = trials.assign(
            done=done,
            read=done & trials["number"].isin(known.index),
            collapsed=trials["number"].map(known).eq(True),
            level=levels_of(trials),
        )[done | trials["number"].isin(known.index)]
        trials["failed"] = trials["collapsed"] & ~trials["done"]
        sums = trials.groupby("level")[["done", "read", "collapsed", "failed"]].sum()
        of_read = (sums["collapsed"] - sums["failed"]) / sums["read"].where(sums["read"] > 0)
        of_done = (sums["done"] * of_read).where(sums["done"] > 0, 0.0)
        counted = sums["done"] + sums["failed"]
        return pd.DataFrame(
            {
                "trials": counted,
                "assessed": sums["read"] + sums["failed"],
                "collapsed": sums["collapsed"],
                "share": 100 * (sums["failed"] + of_done) / counted,
            }
        ).rename_axis("mtd")

    @cached_property
    def cells(self) -> pd.DataFrame:
        return summarise(traced_runs(self.curve_trials), by=MTD_COLUMNS)

    @cached_property
    def paired(self) -> pd.DataFrame:
        return compute_paired_curve(self.levels)

    @cached_property
    def smooth(self) -> pd.DataFrame:
        return compute_smooth(self.levels)

    @property
    def compares_methods(self) -> bool:
        """Whether the study has several methods."""
        return self.best.is_of_methods

    @cached_property
    def comparisons(self) -> Mapping[str, Comparison]:
        """The comparison with each published experiment that the study varied, by its name."""
        found = {each.name: compare(self.study, each, self.width) for each in EXPERIMENTS}
        return {name: comparison for name, comparison in found.items() if comparison is not None}

    @cached_property
    def best_mean(self) -> float | None:
        """The mean of the answer's configuration, or that of the baseline where it is higher."""
        if (number := self.answer.number) is None:
            return None
        mean = estimate_configuration(self.trials, self.study.settings, number).estimate.mean
        against = self.against_baseline
        return mean if against is None else max(mean, against.mean.estimate.mean)

    @cached_property
    def _stated_sizes(self) -> NDArray[np.float64]:
        """The sizes of the differences that the first screen and that table state."""
        stated = [lead.size.mean for lead in self.verdict.leads]
        if not self.best.basis.explores:
            stated += self.best.compared["difference"].tolist()
        if effect := self.answer.effect:
            stated.append(effect.size.mean)
        return np.abs(stated)

    def states_difference(self, mean: float) -> bool:
        """Whether answer, leads or table of configurations state a difference of this size.

        They give its interval too, so that another part of the page gives none.
        """
        return bool(np.isclose(abs(mean), self._stated_sizes, rtol=0, atol=1e-6).any())

    @property
    def is_one_point(self) -> bool:
        """Whether methods are compared, and what is shown over MTD would be one level of one."""
        return self.compares_methods and self.traced["mtd"].nunique() == 1

    @cached_property
    def width(self) -> int | None:
        return find_width(self.study.spectra)

    @property
    def score_label(self) -> str:
        """The unit of the metric x 100 and what it is measured on, for the axis of a figure."""
        study = self.study
        label = label_score(self.write.name, study.evaluation_name, self.write.axis_unit)
        return clean(label, most=_MOST_LABEL)

    @property
    def write(self) -> ScoreFormat:
        """How scores and their differences are written."""
        return self.study.score_format

    @property
    def written_in_training(self) -> ScoreFormat:
        """How the scores during training are written, which choose a trial's checkpoint."""
        if self.study.program:
            return self.write
        names = list_selection(self.trials)
        return ScoreFormat(names[0] if len(names) == 1 else "sts_dev")

    @property
    def selection_label(self) -> str:
        """The axis label of the scores during training, which choose a trial's checkpoint."""
        splits = {"dev": "sts_dev", LAST: "sts_dev", "test": "sts_test"}
        names = sorted({splits.get(name, name) for name in list_selection(self.trials)})
        if len(names) != 1:
            return "score that chooses the checkpoint"
        # a task of the user's own on its dev split is named after both
        name = names[0].removesuffix(":dev")
        unit = ScoreFormat(name).axis_unit
        label = label_score(as_read(name), self.study.evaluation_name, unit)
        return clean(label if name == names[0] else label.replace("test", "dev"), most=_MOST_LABEL)

    @property
    def note(self) -> str:
        """What every figure states about the choice of checkpoints, or empty."""
        return describe_selection(self.trials)

    @cached_property
    def untraced_by_method(self) -> Mapping[str, pd.DataFrame]:
        """The runs without an MTD of each method, by its name; by "" if none was recorded."""
        runs = self.untraced
        if "method" not in runs or not len(runs):
            return {"": runs} if len(runs) else {}
        return {self.name_method(name): group for name, group in runs.groupby("method")}


def list_selection(trials: pd.DataFrame) -> list[str]:
    """The values of `select_on`; empty where that is not recorded."""
    used = trials["select_on"].dropna().unique() if "select_on" in trials else ()
    return sorted(map(str, used))


_CHOSEN_ON = {"dev": "the dev pairs", "test": "the TEST pairs", "sts_average": "the STS TEST sets"}


def describe_checkpoints(trials: pd.DataFrame) -> str:
    """How checkpoints were chosen, as words after "checkpoints were"."""
    used = list_selection(trials)
    on = " or ".join(_CHOSEN_ON.get(value, as_read(value)) for value in used if value != LAST)
    ways = [f"chosen on {on}" if on else "", "those of the last step" if LAST in used else ""]
    return " or ".join(filter(None, ways)) or "chosen by a rule that is not recorded"


def describe_splits(study: StudyFrames) -> str:
    """The metric and the score that selects, as text, where one is a user's task; else empty."""
    if not any(map(is_own, (study.metric, *list_selection(study.trials)))):
        return ""
    return clean(
        f"Reported: {study.score_format.name}, on test data. Checkpoints were "
        f"{describe_checkpoints(study.trials)}, and trials ranked by "
        f"{as_read(study.select_by or study.metric)}."
    )


def describe_selection(trials: pd.DataFrame) -> str:
    """The note of a figure where checkpoints were chosen on test pairs or sets; else empty."""
    used = list_selection(trials)
    chosen = [_CHOSEN_ON[value] for value in ("test", "sts_average") if value in used]
    return f"checkpoints chosen on {' or '.join(chosen)}" if chosen else ""
