"""What several topics of a report need of a study, each computed once and only if needed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.runs import (
    MTD_DECIMALS,
    completed_runs,
    has_mtd,
    traced_runs,
    untraced_runs,
)
from mtdlab.analysis.data.tasks import LAST, is_own, label_score
from mtdlab.analysis.experiments.catalogue import EXPERIMENTS
from mtdlab.analysis.experiments.compare import Comparison, compare
from mtdlab.analysis.inference.best import (
    METHOD_KEYS,
    BestVerdict,
    asks_for_best,
    best_scores,
    judge_best,
)
from mtdlab.analysis.inference.intervals import summarise
from mtdlab.analysis.inference.looks import judged_trials, over_looks_of
from mtdlab.analysis.inference.pairing import (
    LevelScores,
    compute_paired_curve,
    compute_smooth,
    level_scores,
    summarise_scores,
)
from mtdlab.analysis.inference.power import Needed, need_for_verdict
from mtdlab.analysis.inference.verdict import Verdict, judge_levels, over_all_looks
from mtdlab.analysis.measures.trace import MTD_COLUMNS
from mtdlab.analysis.report.cells import clean
from mtdlab.analysis.statistics.baseline import AgainstBaseline, compare_with_baseline
from mtdlab.analysis.statistics.configurations import compute_configurations
from mtdlab.analysis.statistics.contrasts import choose_best_candidates, choose_candidates
from mtdlab.analysis.statistics.curves import find_width
from mtdlab.analysis.statistics.methods import compute_methods, select_curve_trials
from mtdlab.analysis.statistics.sufficiency import Sufficiency, compute_sufficiency
from mtdlab.analysis.statistics.training import assess_collapse

_MOST_LABEL = 60
Result = TypeVar("Result")


@dataclass(frozen=True)
class StudyContext:
    """A study with the results that more than one topic uses, at 95 % confidence but the verdict.

    The verdict is at the error rate and the margin that the study specifies.
    """

    study: StudyFrames
    _results: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    @property
    def trials(self) -> pd.DataFrame:
        return self.study.trials

    def once(self, compute: Callable[["StudyContext"], Result]) -> Result:
        """What a function of the context returns; it is called once."""
        if compute not in self._results:
            self._results[compute] = compute(self)
        result: Result = self._results[compute]
        return result

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
    def curve(self) -> pd.DataFrame:
        return summarise_scores(self.traced, by=["mtd"], items=self.study.items)

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
            level=trials["mtd"].astype("float64").round(MTD_DECIMALS),
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
    def levels(self) -> LevelScores:
        return self._tabulate(self.curve_trials)

    @cached_property
    def paired(self) -> pd.DataFrame:
        return compute_paired_curve(self.levels)

    @cached_property
    def smooth(self) -> pd.DataFrame:
        return compute_smooth(self.levels)

    @cached_property
    def asks_for_best(self) -> bool:
        """Whether the study's question is which configuration is best, not the shape over MTD."""
        return asks_for_best(self.trials, self.study.settings)

    @cached_property
    def _judged_trials(self) -> tuple[pd.DataFrame, float]:
        """The trials that a comparison of configurations is computed from, and its alpha."""
        return judged_trials(self.study, self.trials)

    @cached_property
    def best_scores(self) -> LevelScores:
        study = self.study
        return best_scores(self._judged_trials[0], study.compared, study.items)

    @cached_property
    def best(self) -> BestVerdict:
        """The verdict on the best configuration, of a study that asks for it."""
        level = 1 - self._judged_trials[1]
        verdict = judge_best(self.best_scores, level=level, margin=self.study.margin)
        return replace(verdict, over_looks=over_looks_of(self.study))

    @cached_property
    def configurations(self) -> pd.DataFrame:
        return self._compare(compute_configurations)

    def _compare(self, compute: Callable[..., pd.DataFrame]) -> pd.DataFrame:
        """A table of what is compared, at the level of the study's verdict on the best."""
        trials, alpha = self._judged_trials
        return compute(self.study, trials, 1 - alpha)

    @property
    def of_comparisons(self) -> str:
        """The confidence of comparisons with the best, as text."""
        return f"{100 * self.best.confidence:.3g} %{over_all_looks(self.best.over_looks)}"

    def candidates(self) -> tuple[pd.Series, pd.Series]:
        """The first complete trials of the best configuration and of its runner-up.

        Raises ValueError with fewer than two.
        """
        study = self.study
        if self.asks_for_best:
            return choose_best_candidates(self.best_scores, study.settings, self.best)
        trials, _ = judged_trials(study, self.curve_trials)
        return choose_candidates(study, trials, self.verdict)

    @cached_property
    def _judged(self) -> tuple[LevelScores, float]:
        """The trials that the verdict on MTD is computed from, and its significance level.

        Where MTD is not the question, looks are not about it.
        """
        if self.asks_for_best:
            return self.levels, self.study.alpha
        trials, alpha = judged_trials(self.study, self.curve_trials)
        is_all = trials is self.curve_trials
        return self.levels if is_all else self._tabulate(trials), alpha

    def _tabulate(self, trials: pd.DataFrame) -> LevelScores:
        study = self.study
        return level_scores(trials, study.settings, study.items, beyond_run=study.beyond_run)

    @cached_property
    def verdict(self) -> Verdict:
        levels, alpha = self._judged
        over_looks = None if self.asks_for_best else over_looks_of(self.study)
        margin = self.study.margin
        return judge_levels(levels, level=1 - alpha, margin=margin, over_looks=over_looks)

    @cached_property
    def need_for_verdict(self) -> Needed | None:
        """What a verdict takes with 80 % power; None where there is one, or nothing is known.

        It is that on the question of the study.
        """
        if self.asks_for_best:
            is_open = self.best.kind == "inconclusive"
            return need_for_verdict(self.best_scores, self.best) if is_open else None
        is_open = self.verdict.verdict == "inconclusive"
        return need_for_verdict(self._judged[0], self.verdict) if is_open else None

    @cached_property
    def sufficiency(self) -> Sufficiency | None:
        if self.traced["mtd"].nunique() < 2:
            return None
        return compute_sufficiency(self.study, self.curve_trials)

    @cached_property
    def methods(self) -> pd.DataFrame:
        return self._compare(compute_methods)

    @property
    def compares_methods(self) -> bool:
        """Whether the study's answer is on its methods, not on its levels of MTD."""
        return len(self.methods) > 0

    @property
    def mixed_methods(self) -> bool:
        """Whether the rows of methods differ in more than the method and the MTD."""
        return bool(set(self.methods) & set(self.study.compared) - set(METHOD_KEYS))

    @cached_property
    def comparisons(self) -> Mapping[str, Comparison]:
        """The comparison with each published experiment that the study varied, by its name."""
        study = self.study
        by_name = {
            experiment.name: compare(
                study.trials,
                experiment,
                study.compared,
                items=study.items,
                curves=study.curves,
                width=self.width,
            )
            for experiment in EXPERIMENTS
        }
        return {name: comparison for name, comparison in by_name.items() if comparison is not None}

    @cached_property
    def against_baseline(self) -> AgainstBaseline | None:
        return compare_with_baseline(self.study)

    @property
    def is_one_point(self) -> bool:
        """Whether methods are compared, and what is shown over MTD would be one level of one."""
        return len(self.methods) > 0 and self.traced["mtd"].nunique() == 1

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
        return clean(label_score(study.metric, study.evaluation_name), most=_MOST_LABEL)

    @property
    def selection_label(self) -> str:
        """The axis label of the scores during training, which choose a trial's checkpoint."""
        splits = {"dev": "sts_dev", LAST: "sts_dev", "test": "sts_test"}
        names = sorted({splits.get(name, name) for name in list_selection(self.trials)})
        if len(names) != 1:
            return "score that chooses the checkpoint"
        # a task of the user's own on its dev split is named after both
        name = names[0].removesuffix(":dev")
        label = label_score(name, self.study.evaluation_name)
        return clean(label if name == names[0] else label.replace("test", "dev"), most=_MOST_LABEL)

    @property
    def note(self) -> str:
        """What every figure states about the choice of checkpoints, or empty."""
        return describe_selection(self.trials)

    def name_method(self, method: object) -> str:
        """A method as it is written in text."""
        return self.study.methods.get(str(method), str(method))

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
    on = " or ".join(_CHOSEN_ON.get(value, value) for value in used if value != LAST)
    ways = [f"chosen on {on}" if on else "", "those of the last step" if LAST in used else ""]
    return " or ".join(filter(None, ways)) or "chosen by a rule that is not recorded"


def describe_splits(study: StudyFrames) -> str:
    """The metric and the score that selects, as text, where one is a user's task; else empty."""
    if not any(map(is_own, (study.metric, *list_selection(study.trials)))):
        return ""
    return clean(
        f"Reported: {study.metric}, on test data. Checkpoints were "
        f"{describe_checkpoints(study.trials)}, and trials ranked by "
        f"{study.select_by or study.metric}."
    )


def describe_selection(trials: pd.DataFrame) -> str:
    """The note of a figure where checkpoints were chosen on test pairs or sets; else empty."""
    used = list_selection(trials)
    chosen = [_CHOSEN_ON[value] for value in ("test", "sts_average") if value in used]
    return f"checkpoints chosen on {' or '.join(chosen)}" if chosen else ""
