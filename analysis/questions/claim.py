"""The question whether a claim of a paper holds in a study."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd

from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.claims import CLEAR, SCORE, PaperClaim, Selection, load_claims
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.meaning import MADE_OF, add_meaning, is_value
from mtdlab.analysis.data.questions import METHOD
from mtdlab.analysis.data.runs import completed_runs, free_settings, levels_of
from mtdlab.analysis.data.settings import format_setting, with_defaults
from mtdlab.analysis.data.tasks import STS, TASKS, TRANSFER
from mtdlab.analysis.inference.claims import ClaimJudgement, find_need, judge_claim
from mtdlab.analysis.inference.pairing import OF_LEVELS, Paired, complete_block, pair_runs
from mtdlab.analysis.inference.power import Needed
from mtdlab.analysis.questions.answer import Difference
from mtdlab.analysis.questions.results import StudyResults
from mtdlab.analysis.questions.varied_history import measure_variation
from mtdlab.analysis.questions.wording import clean, join_words
from mtdlab.analysis.statistics.curves import find_width, measure_distances, rank_spectra

_STS_B_TEST = 1_379
"""How many test pairs STS-B has, by which a folder of graded pairs is known to be it."""
_LAST_HALF = 0.5
UNCHANGED = 0.1
"""The most points by which a setting that changed nothing may change the score of a seed.

Trainings that differ in more than rounding end further apart with one seed or another: by 0.28
points or more in the studies of the gallery, where FGSM with a step of 5e-9 changes 0.07 at most.
"""


@dataclass(frozen=True, eq=False)
class ClaimQuestion:
    """Does what a paper states hold in a study, at its scale?

    Each claim has its own error rate, whatever else the study asks.
    """

    results: StudyResults
    claim: PaperClaim

    @cached_property
    def runs(self) -> pd.DataFrame:
        """The completed runs with the claim's columns, and its measure as their score."""
        runs = self.results.once(_leave_out)[0]
        if self.claim.measure == SCORE:
            return runs
        measured = runs["number"].map(measure_runs(self.results.study, self.claim.measure))
        return runs.assign(score=measured).dropna(subset=["score"])

    @property
    def beyond(self) -> tuple[float, ...]:
        """The levels of MTD beyond the run, whose runs are left out."""
        return self.results.once(_leave_out)[1]

    @cached_property
    def sides(self) -> tuple[pd.DataFrame, ...]:
        """The runs of each side, of `compare` first."""
        return tuple(_select(self.runs, side) for side in self.claim.sides)

    @cached_property
    def pairs(self) -> tuple[tuple[pd.DataFrame, pd.DataFrame], ...]:
        """The first side and each other one, as far as they have seeds and other settings alike."""
        first, *others = self.sides
        return tuple(_balance(first, other, self._list_others(first, other)) for other in others)

    @cached_property
    def differences(self) -> tuple[Paired, ...]:
        """The differences by seed; without a side to compare with, the values themselves."""
        if len(self.sides) == 1:
            return (Paired(self.sides[0].groupby("seed")["score"].mean().to_numpy("float64")),)
        items = self.results.study.items if self.claim.measure == SCORE else None
        return tuple(pair_runs(first, other, (items, items)) for first, other in self.pairs)

    @cached_property
    def _parts(self) -> list[str]:
        """The settings of which the claim's columns are made."""
        return [part for name in self.claim.columns for part in MADE_OF.get(name, (name,))]

    def _list_others(self, first: pd.DataFrame, second: pd.DataFrame) -> list[str]:
        """The settings that vary between the sides and are to be alike on both."""
        made = [name for name in self._parts if name in first]
        runs = pd.concat([first, second], ignore_index=True)
        return [
            name
            for name in free_settings(runs, self.results.study.compared)
            if name not in (*made, "mtd")
            and runs.groupby(made, dropna=False)[name].nunique(dropna=False).max() > 1
        ]

    @property
    def averaged_over(self) -> tuple[str, ...]:
        """The settings that vary within a side, and are alike on both."""
        first, *others = self.sides
        names = (name for other in others for name in self._list_others(first, other))
        return tuple(dict.fromkeys(names))

    @property
    def is_asked(self) -> bool:
        """Whether the study is about the claim: it is that of the paper, or has all of its rows."""
        name, asks = self.results.study.name, self.claim.study
        if asks and (name == asks or name.startswith(f"{asks}-")):
            return True
        runs = self.results.once(_tabulate)
        if any(name not in runs or runs[name].nunique() < 2 for name in self.claim.columns):
            return False
        has_rows = len(self.sides) > 1 and all(map(len, self.sides))
        return has_rows and all(len(first) for first, _ in self.pairs)

    @cached_property
    def obstacle(self) -> str:
        """Why nothing is tested, in a few words; empty where it is."""
        claim = self.claim
        if claim.reason:
            return claim.reason
        if not len(self.results.runs):
            return "no trial is complete with a score"
        for side, runs in zip(claim.sides, self.sides, strict=True):
            if not len(runs):
                return self._describe_lacking(side)
        if own := self._find_own_rates():
            return f"another question: each side has its own {own}"
        if tied := self._find_tied():
            return f"another question: the sides differ in {tied} too"
        fewest = min(len(paired.values) for paired in self.differences)
        if not fewest:
            return f"no two trials of a seed differ in {' and '.join(claim.columns)} alone"
        for name, least in claim.over.items():
            recorded = (first[name].unique() for first, _ in self.pairs if name in first)
            if len(values := min(recorded, key=len, default=np.array([]))) < least:
                ran = join_words([*map(format_setting, sorted(values))]) or "not recorded"
                return f"run with {name} {ran}; the claim is over {least} values"
        return "one seed; it takes two" if fewest < 2 else ""

    def _describe_lacking(self, side: Selection) -> str:
        """Which value of a side no run has, or that it is beyond the run."""
        every = self.results.once(_tabulate)
        named = {name: value for name, value in side.items() if name in self.claim.names}
        if len(chosen := _select(every, side)):
            own = {name: named[name] for name in self.claim.columns if name in named}
            if levels_of(chosen).isin(self.beyond).all():
                return f"{_name_side(own)} is beyond the run"
            return f"{NAMES.get(self.claim.measure, self.claim.measure)} was not recorded"
        lacking = {
            name: value
            for name, value in named.items()
            if name not in every or not is_value(every[name], value).any()
        }
        return f"no trial with {_name_side(lacking or named)}"

    def _find_own_rates(self) -> str:
        """The nuisance settings whose chosen values differ between the sides, as text."""
        names = [name for name in self.results.study.nuisance if name in self.runs]
        found = [
            name
            for name in names
            if any({*a[name].unique()} != {*b[name].unique()} for a, b in self.pairs)
        ]
        return " and ".join(found)

    def _find_tied(self) -> str:
        """The other settings of which both sides have no value in common, as text.

        Not those that go with a method, or are scaled with batch or queue.
        """
        if METHOD in self.claim.columns:
            return ""
        found = []
        for pair in self.pairs:
            runs = pd.concat(pair, ignore_index=True)
            for name in free_settings(runs, self.results.study.compared):
                values = [{*side[name].dropna()} for side in pair]
                if name not in (*self._parts, *OF_LEVELS) and all(values):
                    found += [] if values[0] & values[1] else [name]
        return " and ".join(dict.fromkeys(found))

    @cached_property
    def judged(self) -> ClaimJudgement:
        if self.obstacle:
            known = [paired for paired in self.differences if len(paired.values)]
            if not (all(map(len, self.sides)) and known):
                return ClaimJudgement()
            least = min(known, key=lambda paired: float(paired.values.mean()))
            place = self.differences.index(least)
            return ClaimJudgement(place=place, size=least.estimate(), seeds=len(least.values))
        claim = self.claim
        judged = judge_claim(
            self.differences, alike=claim.alike, least=claim.least, small=self.small
        )
        if not (judged.by_equivalence or self.unchanged):
            return judged
        names = ["queue_slice" if name == "slice" else name for name in claim.columns]
        history = measure_variation(self.results.study, pd.concat(self.sides), names)
        varies_keys = history is not None and history.keys and "queue_size" in names
        if history is None and not self.unchanged:
            return judged
        if history is not None and (history.is_shown or varies_keys):
            return judged
        [place, *_] = [*self.unchanged, judged.place]
        size = self.differences[place].estimate()
        return ClaimJudgement(place=place, size=size, seeds=judged.seeds, history=history)

    @cached_property
    def unchanged(self) -> list[int]:
        """The places of the differences in which no seed's score changed (`UNCHANGED`)."""
        scores = self.results.once(_leave_out)[0].set_index("number")["score"]
        found = []
        for place, pair in enumerate(self.pairs):
            first, other = (part.assign(score=part["number"].map(scores)) for part in pair)
            values = pair_runs(first, other, (None, None)).values
            if len(values) and np.abs(values).max() <= UNCHANGED:
                found.append(place)
        return found

    @property
    def small(self) -> list[float]:
        """Below which size each difference contradicts a printed one; 0: none does."""
        return [size / 2 if size >= CLEAR else 0.0 for size in self.sizes]

    @property
    def need(self) -> Needed | None:
        if self.judged.verdict != "undecided":
            return None
        place = self.judged.place
        small = self.small[place] if self.small else 0.0
        return find_need(self.differences[place], self.claim.alike, small, self.claim.least)

    @cached_property
    def sizes(self) -> Sequence[float]:
        """The printed sizes, on the study's own tasks where the paper prints them by task."""
        return self.claim.find_sizes(_list_tasks(self.results.study))

    @property
    def why(self) -> str:
        """Why it is not tested, what would decide it, or how small what contradicts it is."""
        if self.obstacle:
            return self.obstacle
        if self.judged.verdict == "not tested":
            if self.judged.history is None:
                return f"it changed no score by more than {UNCHANGED:g} points"
            return "no difference, but history was not shown to vary"
        if (need := self.need) is None:
            margin = self.claim.least if self.claim.alike is None else self.claim.alike
            noun = "point" if abs(margin) == 1 else "points"
            return f"the margin is {abs(margin):g} {noun}" if margin else ""
        if need.seeds:
            return f"as estimated, {format_count(need.seeds, 'seed')} would decide"
        if need.items:
            return f"as estimated, {need.items:,} evaluation items would decide, no number of seeds"
        return "as estimated, no number of seeds decides"

    @cached_property
    def compared(self) -> tuple[frozenset[Hashable], ...]:
        """The runs of each side of the difference on which the verdict rests, as `_identify_runs`.

        One side where the values themselves are tested.
        """
        known = self.results.once(_identify_runs)
        sides = self.pairs[self.judged.place] if self.pairs else self.sides
        return tuple(frozenset(known[number] for number in side["number"]) for side in sides)

    @property
    def effect(self) -> Difference | None:
        """The difference on which the verdict rests; None without seeds that have both sides."""
        if not (judged := self.judged).seeds:
            return None
        against = self.claim.against[judged.place : judged.place + 1]
        text = " minus ".join(map(_name_side, (self.claim.compare, *against)))
        return Difference(judged.size, judged.level, text)


def _leave_out(results: StudyResults) -> tuple[pd.DataFrame, tuple[float, ...]]:
    """The runs of `_tabulate` without those of levels of MTD beyond the run; those levels."""
    runs = results.once(_tabulate)
    beyond = leave_out(runs, results.study.beyond_run)[1]
    return runs[~levels_of(runs).isin(beyond)], beyond


def _tabulate(results: StudyResults) -> pd.DataFrame:
    """The completed runs, also of the baseline, with the columns of all claims."""
    study = results.study
    runs = completed_runs(study.ranked_trials)
    names = {name for claim in load_claims() for name in claim.names}
    needed = {part for name in names for part in MADE_OF.get(name, (name,))}
    known = {name: study.settings[name] for name in needed if name in study.settings}
    return add_meaning(with_defaults(runs, known), names, find_width(study.spectra))


def _identify_runs(results: StudyResults) -> Mapping[int, Hashable]:
    """What is equal for the same run in several studies, by the number of its trial.

    A run that is made again, or is imported, has the same seed, score, alignment and uniformity to
    the last bit, whatever its settings are called; without one of these it is known by its study.
    """
    runs = results.study.ranked_trials
    measured = runs[["seed", "score", "alignment", "uniformity"]].astype("float64").to_numpy()
    return {
        number: tuple(row) if np.isfinite(row).all() else (results.study.name, number)
        for number, row in zip(runs["number"].tolist(), measured, strict=True)
    }


def ask_claims(results: StudyResults) -> tuple[ClaimQuestion, ...]:
    """The claims that a study is about, in the order of the papers.

    A program has none, and nor has a score in a unit of its own.
    """
    study = results.study
    has_none = study.program or not study.score_format.unit
    if has_none:
        return ()
    return tuple(q for claim in load_claims() if (q := ClaimQuestion(results, claim)).is_asked)


def _name_side(side: Selection) -> str:
    words = {"mtd": "MTD", "augmentation_kind": "augmentation", "share": "random share"}
    texts = []
    for name, value in side.items():
        text = str(value) if isinstance(value, bool | str) else format_setting(value)
        texts.append(f"{words.get(name, name)} {text}")
    return clean(", ".join(texts))


def _select(runs: pd.DataFrame, side: Selection) -> pd.DataFrame:
    if not {*side} <= {*runs}:
        return runs.iloc[:0]
    return runs[np.logical_and.reduce([is_value(runs[name], side[name]) for name in side])]


def _balance(
    first: pd.DataFrame, second: pd.DataFrame, others: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The runs of both sides in the complete block of seeds and values of other settings."""
    cells = pd.concat([first, second], keys=(0, 1), names=["side"]).reset_index("side")
    cells["cell"] = cells.groupby(list(others), dropna=False).ngroup() if others else 0
    one, two = (
        cells[cells["side"] == side].pivot_table(index="seed", columns="cell", values="score")
        for side in (0, 1)
    )
    both = (one - two).dropna(how="all").dropna(axis="columns", how="all")
    kept = complete_block(both)
    inside = cells[cells["seed"].isin(kept.index) & cells["cell"].isin(kept.columns)]
    return inside[inside["side"] == 0], inside[inside["side"] == 1]


def _list_tasks(study: StudyFrames) -> list[str]:
    """The published tasks that a study's metric is of; empty where it is of none."""
    if study.metric in STS:
        return [study.metric]
    if study.metric == "sts_average":
        items = study.items.tasks if study.items else ()
        return [name for name in items if name in STS]
    evaluation = study.ran_with.evaluation
    is_sts_b = evaluation is not None and evaluation.test_pairs == _STS_B_TEST
    return ["STSB"] if study.metric == "sts_test" and is_sts_b else []


def measure_runs(study: StudyFrames, name: str) -> pd.Series:
    """A measure by the number of the run, in points or in its own unit; empty where not recorded.

    One of `MEASURES`, or a task, x 100. Raises KeyError for another name.
    """
    if name in TASKS:
        scores = study.scores[study.scores["task"] == name]
        return scores.set_index("number")["score"].dropna()
    measured = MEASURES[name](study)
    return measured[np.isfinite(measured.astype("float64"))]


def _read_measures(study: StudyFrames) -> pd.DataFrame:
    """The measures of completed runs by their number, NaN where they were not recorded."""
    runs = completed_runs(study.ranked_trials).set_index("number")
    measures = ["score", "score_before", "alignment", "uniformity"]
    return runs.reindex(columns=measures).astype("float64")


def _evaluations(study: StudyFrames) -> pd.DataFrame:
    curves = study.curves[study.curves["score"].notna()]
    return curves[curves["number"].isin(_read_measures(study).index)].sort_values(
        ["number", "step"]
    )


def _measure_swing(study: StudyFrames) -> pd.Series:
    """Mean absolute change from one evaluation to the next, in the second half of the run."""
    curves = _evaluations(study)
    last = curves.groupby("number")["step"].transform("max")
    late = curves[curves["step"] > _LAST_HALF * last]
    return late.groupby("number")["score"].agg(lambda scores: scores.diff().abs().mean())


MEASURES: Mapping[str, Callable[[StudyFrames], pd.Series]] = {
    "gain": lambda study: _read_measures(study)["score"] - _read_measures(study)["score_before"],
    "transfer": lambda study: (
        study.scores[study.scores["task"].isin(TRANSFER)].groupby("number")["score"].mean()
    ),
    "nearness": lambda study: -measure_distances(_read_measures(study))["l2"],
    "evenness": lambda study: -_read_measures(study)["uniformity"],
    "rank": lambda study: rank_spectra(study.spectra, "after"),
    "rank_gain": lambda study: (
        rank_spectra(study.spectra, "after") - rank_spectra(study.spectra, "before")
    ),
    "final": lambda study: _evaluations(study).groupby("number")["score"].last(),
    "swing": _measure_swing,
}
"""What is compared of a run beside its score, larger where a claim says that a side has more."""
NAMES: Mapping[str, str] = {
    "gain": "score after training minus that before",
    "transfer": "mean accuracy of the transfer tasks",
    "nearness": "nearness to alignment 0 and uniformity −4",
    "evenness": "uniformity with the opposite sign",
    "rank": "effective rank of the singular values",
    "rank_gain": "effective rank after training minus that before",
    "final": "score of the last evaluation",
    "swing": "mean change from evaluation to evaluation",
}
"""What is measured, in words."""
UNITS: Mapping[str, str] = {
    "nearness": "distance",
    "evenness": "uniformity",
    "rank": "effective rank",
    "rank_gain": "effective rank",
}
"""In what the measures are whose sizes are not in points."""
