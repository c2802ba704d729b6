"""Several studies: best configurations, curves, spectra, and whether one predicts the others.

An answer holds in another study by the order of levels and the best one. The first study is the
small one: a small encoder, few steps or little text. Both are compared at their levels of MTD, in
steps, in sentences (MTD times N), in shares of the run (MTD over its steps) or in half-lives of
each study's own keys (`mtdlab.analysis.statistics.history`). Each study contributes confidence
statements at 97.5 %, so that those on both hold at 95 % (Bonferroni; the studies need not be
independent). Half-lives count as known: their sampling error is not in the intervals.

Letters: S seeds, L levels of MTD of a study, M levels of the first study that lie within the range
of the other one, P = M (M - 1) / 2 pairs of them, D dimension of the sentence embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mtdlab.analysis.data.beyond_run import leave_out
from mtdlab.analysis.data.defaults import LEVEL
from mtdlab.analysis.data.frames import MEAN, StudyFrames
from mtdlab.analysis.data.points import describe_means
from mtdlab.analysis.data.runs import completed_runs, traced_runs, untraced_runs, varied_settings
from mtdlab.analysis.data.settings import format_value
from mtdlab.analysis.inference.best import varies_method, with_methods
from mtdlab.analysis.inference.intervals import UNKNOWN, Estimate, summarise
from mtdlab.analysis.inference.pairing import (
    LevelScores,
    compute_paired_curve,
    level_scores,
    merge_levels,
)
from mtdlab.analysis.measures import Floats
from mtdlab.analysis.statistics.configurations import name_configurations, rank_configurations
from mtdlab.analysis.statistics.curves import effective_rank
from mtdlab.analysis.statistics.history import (
    compute_half_lives,
    compute_history_runs,
    compute_retained,
)

STEPS, HALF_LIVES = "steps", "half-lives"
_SCALED_BY = {"sentences": "batch_size", "shares of the run": "steps"}
"""The setting from which a unit follows; where it is the same in both studies, so is the unit."""
UNITS = (STEPS, *_SCALED_BY, HALF_LIVES)
MIN_LEVELS = 3
"""The fewest common levels from which an order is estimated."""
_ALPHA = (1 - LEVEL) / 2
_RELATIVE = 1e-6
"""The tolerance of comparisons that a rounding error must not decide."""


@dataclass(frozen=True)
class Levels:
    """A study's levels that can be compared, and their MTD in the unit of the comparison, (L,).

    The place is NaN where the half-life is not known.
    """

    name: str
    of: LevelScores
    place: Floats

    @property
    def optimal(self) -> Floats:
        """The places of the levels that may be the best, (1 to L,); see `find_optimal`."""
        return self.place[self.of.tests.find_optimal(self.of.fit, _ALPHA)]

    @property
    def best(self) -> Estimate:
        """The place of the level with the highest estimate, and the range of `optimal`.

        NaN where a place is not known.
        """
        place = self.place[int(self.of.fit.effects.argmax())]
        return Estimate(float(place), float(self.optimal.min()), float(self.optimal.max()))


@dataclass(frozen=True)
class Agreement:
    """The agreement of the first study with another one in one unit of MTD.

    Attributes:
        levels: M.
        order: Kendall's tau (a) of the mean scores of these levels; the other study's scores are
            interpolated in log MTD where it has other levels. Its interval takes every pair of
            levels whose difference is not significant in both studies as undecided: it covers the
            tau of the true means with probability 95 %. NaN with fewer than 3 levels.
        alike, opposite: pairs that are significant in both studies, in the same or opposite
            direction.
        pairs: P.
        best: of each study: the best level, then the lowest and highest that may be the best.
        ratio: the other's best level divided by the first's, with its interval.
    """

    unit: str
    first: str
    other: str
    levels: int
    order: Estimate
    alike: int
    opposite: int
    pairs: int
    best: tuple[Estimate, Estimate]
    ratio: Estimate

    @property
    def same_best(self) -> bool:
        """Whether the best levels may be the same: the interval of their ratio contains 1."""
        return self.ratio.low <= 1 + _RELATIVE and self.ratio.high >= 1 - _RELATIVE

    @property
    def is_decided(self) -> bool:
        """Whether the best levels differ, or two levels have an order in both studies."""
        differs = np.isfinite(self.ratio.low) and not self.same_best
        return bool(differs) or self.alike + self.opposite > 0


def compute_agreements(first: StudyFrames, other: StudyFrames) -> tuple[Agreement, ...]:
    """How the levels of two studies agree, in each unit in which both are known.

    Empty unless both have two levels of MTD with two seeds each.
    """
    agreements = []
    for unit in UNITS:
        if unit in _SCALED_BY and _scale(first, unit) == _scale(other, unit):
            continue
        both = _levels(first, unit), _levels(other, unit)
        if all(levels.of.comparable and np.isfinite(levels.place).any() for levels in both):
            agreements.append(compare_levels(unit, *both))
    return tuple(agreements)


def _levels(study: StudyFrames, unit: str) -> Levels:
    levels = level_scores(study.trials, study.compared, study.items, beyond_run=study.beyond_run)
    return Levels(study.name, levels, _convert(study, pd.Series(levels.distance), unit))


def _convert(study: StudyFrames, mtd: pd.Series, unit: str) -> Floats:
    """MTDs in a unit of `UNITS`; half-lives are medians of a level's trials, NaN if not known."""
    place = mtd.to_numpy(dtype=np.float64)
    if unit == STEPS:
        return place
    if unit in _SCALED_BY:
        return place * _scale(study, unit)
    half_lives = pd.Series(dtype="float64")
    if len(study.probes):
        measured = compute_half_lives(compute_retained(study.probes))
        runs = compute_history_runs(study.trials, measured)
        half_lives = runs.groupby(merge_levels(runs["mtd"]))["half_life"].median()
    place = place / half_lives.reindex(place).to_numpy(dtype=np.float64)
    # a half-life beyond the longest lag is not known
    return np.where(place > 0, place, np.nan)


def _scale(study: StudyFrames, unit: str) -> float:
    """What an MTD in steps is multiplied by; NaN where the study varies or lacks the setting."""
    runs, setting = traced_runs(study.trials), _SCALED_BY[unit]
    if setting not in runs or runs[setting].nunique() != 1:
        return float("nan")
    value = float(runs[setting].iloc[0])
    return value if unit == "sentences" else 1 / value


def compare_levels(unit: str, first: Levels, other: Levels) -> Agreement:
    """How the levels of two studies agree."""
    own, others = first.best, other.best
    chosen, weights = match_levels(first.place, other.place)
    pairs = [(i, j) for j in range(len(chosen)) for i in range(j)]
    order, alike, opposite = UNKNOWN, 0, 0
    if len(chosen) >= MIN_LEVELS:
        rows = np.eye(len(first.place))[chosen]
        tests = [_signs(first, rows, pairs), _signs(other, weights, pairs)]
        estimated, decided = np.prod(tests, axis=0)
        alike, opposite = int((decided > 0).sum()), int((decided < 0).sum())
        low, high = 2 * alike / len(pairs) - 1, 1 - 2 * opposite / len(pairs)
        order = Estimate(float(estimated.mean()), low, high)
    return Agreement(
        unit=unit,
        first=first.name,
        other=other.name,
        levels=len(chosen),
        order=order,
        alike=alike,
        opposite=opposite,
        pairs=len(pairs),
        best=(own, others),
        ratio=Estimate(others.mean / own.mean, others.low / own.high, others.high / own.low),
    )


def match_levels(first: Floats, other: Floats) -> tuple[Sequence[int], Floats]:
    """The levels of the first study within the range of the other one, and their interpolation.

    Of places (L,), NaN where not known: M indices of `first`, and weights (M, L of the other) of
    the other's levels that interpolate linearly in the logarithm of the place.
    """
    known = np.flatnonzero(np.isfinite(other))
    order = known[np.argsort(other[known], kind="stable")]
    low, high = other[order[0]] * (1 - _RELATIVE), other[order[-1]] * (1 + _RELATIVE)
    chosen = [index for index, place in enumerate(first) if low <= place <= high]
    points = np.log(other[order])
    rows = np.zeros((len(chosen), len(other)))
    for row, index in zip(rows, chosen, strict=True):
        place = np.log(first[index])
        row[order] = [np.interp(place, points, unit) for unit in np.eye(len(points))]
    return chosen, rows


def _signs(study: Levels, rows: Floats, pairs: Sequence[tuple[int, int]]) -> Floats:
    """The signs (2, P) of differences of scores `rows` (M, L): estimated; 0 if not significant."""
    family = study.of.tests.simultaneous(np.array([rows[j] - rows[i] for i, j in pairs]))
    estimate, width = family.intervals(study.of.fit, _ALPHA)
    sign = np.sign(estimate)
    return np.array([sign, np.where(np.abs(estimate) > width, sign, 0.0)])


def compute_unit_curve(study: StudyFrames, unit: str) -> pd.DataFrame:
    """The paired curve with MTD in a unit of `UNITS`, without levels whose place is not known."""
    curve = compute_paired_curve(_levels(study, STEPS).of)
    curve["mtd"] = _convert(study, curve["mtd"], unit)
    return curve[curve["mtd"] > 0].sort_values("mtd", ignore_index=True)


def compute_candidates(first: StudyFrames, other: StudyFrames) -> pd.DataFrame:
    """The first study's configurations that may be the best, for running them as in the other.

    Returns:
        configuration, mtd; in the other study status ("not run", "may be the best", "not the
        best"), other_n (trials at that MTD) and other_mean; then in the first n, seeds, mean, low,
        high, the highest mean first. No rows without two levels and two seeds in the first.
    """
    columns = ["configuration", "mtd", "status", "other_n", "other_mean", *MEAN]
    own, others = _levels(first, STEPS), _levels(other, STEPS)
    if not own.of.comparable:
        return pd.DataFrame(columns=columns)
    runs = traced_runs(first.trials)
    varied = varied_settings(runs, first.settings)
    runs = runs[merge_levels(runs["mtd"]).isin(own.optimal)]
    _, table = rank_configurations(runs, [*dict.fromkeys([*varied, "mtd"])])
    there = traced_runs(other.trials).groupby("mtd")["score"].agg(["size", "mean"])
    table = table.assign(
        configuration=first.call(table["number"], name_configurations(table[varied])),
        other_n=table["mtd"].map(there["size"]).fillna(0).astype("int64"),
        other_mean=table["mtd"].map(there["mean"]),
    )
    optimal = others.optimal if others.of.comparable else table["mtd"]
    may = np.where(table["mtd"].isin(optimal), "may be the best", "not the best")
    table["status"] = np.where(table["other_n"] > 0, may, "not run")
    return table[columns]


_SAME = 1e-4
_COMPARED = (
    *("steps", "learning_rate", "in_batch_negatives", "encoder", "encoder_layers", "corpus"),
)


def find_best_setting(study: StudyFrames) -> pd.DataFrame:
    """The configuration with the highest mean score, as text.

    One row: setting (empty where nothing varied), n, seeds, mean, low, high; no row without a
    completed run that has a score. Levels of MTD beyond the run are left out, unless they are kept
    or there is no other.
    """
    every = completed_runs(study.trials)
    within, _ = leave_out(every, study.beyond_run)
    runs = within if len(within) else every
    varied = varied_settings(runs, study.settings)
    best = rank_configurations(runs, varied)[1].head(1)
    names = pd.Series(study.call(best["number"], name_configurations(best[varied])), dtype="str")
    return best[MEAN].assign(setting=names)


def compute_overview(studies: Sequence[StudyFrames]) -> pd.DataFrame:
    """A row per study: study, metric, completed, planned, then its best setting.

    The columns of `find_best_setting` are NaN for a study without a score.
    """
    rows = []
    for study in studies:
        done = int((study.trials["state"] == "COMPLETE").sum())
        facts = (study.name, study.metric, done, study.planned)
        row = pd.DataFrame([facts], columns=["study", "metric", "completed", "planned"])
        rows.append(row.join(find_best_setting(study)))
    columns = ["study", "metric", "completed", "planned", "setting", *MEAN]
    return pd.concat(rows, ignore_index=True)[columns]


def compute_curves(studies: Sequence[StudyFrames]) -> pd.DataFrame:
    """Score against MTD of each study: study, metric, mtd, n, seeds, mean, low, high, text, trial.

    text and trial are what a point of a figure states, and the best trial of its configuration.

    Runs without an MTD are summarised in one row at an MTD of 0. A study that varies the method
    becomes one study for each method, named STUDY: METHOD.
    """
    parts = []
    for study in studies_by_method(studies):
        for runs in (untraced_runs(study.trials), traced_runs(study.trials)):
            if len(part := summarise(runs, by=["mtd"])):
                named = part.assign(study=study.name, metric=study.metric)
                before, write = f"{study.name}. ", study.score_format
                parts.append(describe_means(named, runs, write=write, before=before))
    columns = ["study", "metric", "mtd", *MEAN, "text", "trial"]
    return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)


def studies_by_method(studies: Sequence[StudyFrames]) -> list[StudyFrames]:
    """The studies; one that varies the method is split into studies named STUDY: METHOD."""
    parts = []
    for study in studies:
        if not varies_method(study.trials, study.settings):
            parts.append(study)
            continue
        trials = with_methods(study.trials, study.settings)
        for method, rows in trials.groupby("method"):
            name = study.methods.get(str(method), str(method))
            parts.append(replace(study, name=f"{study.name}: {name}", trials=rows))
    return parts


def find_shared_differences(studies: Sequence[StudyFrames]) -> dict[str, dict[str, list[str]]]:
    """Settings that differ between studies: setting -> values as text -> names of studies.

    Compared are steps, learning rate, in-batch negatives, encoder and corpus of the scored runs; a
    study that did not record a setting is not among the names of that setting.
    """
    differences: dict[str, dict[str, list[str]]] = {}
    for name in _COMPARED:
        values: dict[str, list[str]] = {}
        for study in studies:
            runs = completed_runs(study.trials)
            if "encoder" in runs and "encoder_layers" not in runs:
                # recorded before the setting existed
                runs["encoder_layers"] = None
            if name in runs and len(runs):
                texts = sorted({format_value(name, value) for value in runs[name]})
                values.setdefault(", ".join(texts), []).append(study.name)
        if len(values) > 1:
            differences[name] = values
    return differences


def compute_best_spectra(studies: Sequence[StudyFrames]) -> pd.DataFrame:
    """Spectra of the best run of each study that has one, and of the encoders before training.

    A row per model, indexed by (model, moment), moment "after" or "before"; column i is the i-th
    largest singular value divided by the largest, for the largest D; NaN beyond a model's own D.
    Studies with the same initial encoder share a row "encoder before training"; several such rows
    are named by their studies.
    """
    after: dict[str, Floats] = {}
    before: list[tuple[list[str], Floats]] = []
    for study in studies:
        runs = completed_runs(study.trials).sort_values("score", ascending=False, kind="stable")
        numbers = (n for n in runs["number"] if len(_relative(study.spectra, n, "after")))
        if (number := next(numbers, None)) is None:
            continue
        after[study.name] = _relative(study.spectra, number, "after")
        row = _relative(study.spectra, number, "before")
        for names, other in before:
            if len(other) == len(row) and np.allclose(other, row, rtol=_SAME, atol=_SAME):
                names.append(study.name)
                break
        else:
            before += [([study.name], row)] if len(row) else []
    rows = {(name, "after"): row for name, row in after.items()}
    for names, row in before:
        of = f" of {', '.join(names)}" if len(before) > 1 else ""
        rows[(f"encoder before training{of}", "before")] = row
    if not rows:
        return pd.DataFrame()
    table = pd.DataFrame([pd.Series(row) for row in rows.values()])
    table.index = pd.MultiIndex.from_tuples(list(rows), names=["model", "moment"])
    return table


def _relative(spectra: pd.DataFrame, number: int, moment: str) -> Floats:
    """A run's singular values divided by the largest, (D,); empty where none were recorded."""
    here = [index == (number, moment) for index in spectra.index]
    values = spectra[here].to_numpy(dtype=np.float64).ravel()
    values = values[np.isfinite(values)]
    usable = len(values) > 0 and values[0] > 0
    return np.asarray(values / values[0]) if usable else values[:0]


def compute_ranks(spectra: pd.DataFrame) -> pd.DataFrame:
    """Effective rank of each row of `compute_best_spectra`: model, moment, rank."""
    ranks = [effective_rank(row.dropna().to_numpy()) for _, row in spectra.iterrows()]
    index = spectra.index.to_frame(index=False) if len(spectra) else pd.DataFrame()
    return index.reindex(columns=["model", "moment"]).assign(rank=ranks)
