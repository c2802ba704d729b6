"""The question which configuration, or which method, is the best."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import MOST_COMPARED
from mtdlab.analysis.data.durations import format_count
from mtdlab.analysis.data.frames import DIFFERENCE, StudyFrames
from mtdlab.analysis.data.questions import METHOD, PlannedQuestion
from mtdlab.analysis.data.runs import format_mtd, free_settings, round_scores
from mtdlab.analysis.data.settings import name_setting
from mtdlab.analysis.inference.best import (
    METHOD_KEYS,
    BestVerdict,
    best_scores,
    judge_best,
    number_configurations,
    runs_by_method,
    varies_method,
)
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.looks import LEADING_LEVEL, lead
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.inference.power import Needed, PlannedDesign, need_for_verdict
from mtdlab.analysis.questions.answer import Answer, Difference, QuestionOutcome
from mtdlab.analysis.questions.base import Question
from mtdlab.analysis.questions.effect import describe_effect
from mtdlab.analysis.questions.results import StudyResults, at_defaults
from mtdlab.analysis.questions.varied_history import claim_within
from mtdlab.analysis.questions.wording import (
    clean,
    describe_over_looks,
    join_sentences,
    join_words,
    list_above,
    over_all_looks,
    state_equivalence,
)
from mtdlab.analysis.statistics.configurations import (
    COLUMNS,
    compute_configurations,
    name_rows,
    rank_rows,
)
from mtdlab.analysis.statistics.contrasts import choose_best_candidates
from mtdlab.analysis.statistics.methods import compute_methods, equal_budget

NAME = "name of the row"
"""The column with the names of a comparison's rows, beside columns that settings name."""
_MOST_LETTERS = 70
_PAIRED = (
    "Configurations are compared with seeds as blocks (least squares): by the paired difference of "
    "their scores where every configuration has every seed. Because the best is chosen by the same "
    "scores, the confidence intervals are simultaneous for "
    "all pairs; a difference is statistically significant if its interval excludes 0."
)


class BestQuestion(Question):
    """Which configuration, or which method, has the highest score?"""

    @property
    def sentence(self) -> str:
        metric = self.results.metric
        if self.is_of_methods:
            return f"Which method has the {self.write.say('highest')} {metric}?"
        if not free_settings(self.results.trials, self.results.study.compared):
            return f"Which {metric} does this configuration reach?"
        return f"Which configuration has the {self.write.say('highest')} {metric}?"

    @cached_property
    def is_of_methods(self) -> bool:
        """Whether methods are compared, each at its levels of MTD."""
        return varies_method(self.results.trials, self.results.study.settings)

    @cached_property
    def scores(self) -> LevelScores:
        """The scores by seed and configuration that are compared."""
        study = self.results.study
        return best_scores(self.basis.select(study.trials), study.compared, study.items)

    @cached_property
    def judged(self) -> BestVerdict:
        basis, margin = self.basis, self.results.study.margin
        judged = judge_best(self.scores, level=basis.level, margin=margin)
        runs = self.scores.runs
        if judged.is_within:
            runs = runs[runs["first"].isin(judged.may_be_best)]
        return self.hold(judged, runs)

    @cached_property
    def compared(self) -> pd.DataFrame:
        """`compute_methods`, by their names, or `compute_configurations`, the best first."""
        study = self.results.study
        compute = compute_methods if self.is_of_methods else compute_configurations
        return compute(study, self.basis.select(study.trials), self.basis.level)

    @cached_property
    def table(self) -> pd.DataFrame:
        """What is compared, with the names of the rows."""
        table, names = self.compared, name_table(self.results, self.compared)
        others = {*table} & {*self.results.study.compared} - {*METHOD_KEYS}
        if self.is_of_methods and not others:
            names = tuple(
                f"{name} at MTD {format_mtd(mtd)}" if np.isfinite(mtd) else name
                for name, mtd in zip(names, table["mtd"], strict=True)
            )
        return table.assign(**{NAME: prefer_names(self.results, table, names)})

    @cached_property
    def ranked(self) -> pd.DataFrame:
        """The rows of the table, the highest estimate first; of a method the best one alone."""
        if not self.is_of_methods:
            return self.table
        return rank(self.table).drop_duplicates(METHOD, ignore_index=True)

    @property
    def finding(self) -> QuestionOutcome:
        if len(self.judged.ranked) < 2:
            return QuestionOutcome.NOT_TESTED
        return QuestionOutcome.SHOWN if self.judged.is_separated else QuestionOutcome.OPEN

    @property
    def family(self) -> str:
        return f"all differences of {self._noun} together"

    @property
    def _noun(self) -> str:
        return "methods" if self.is_of_methods else "configurations"

    @property
    def shows_best(self) -> bool:
        return self.judged.is_separated

    @property
    def need(self) -> Needed | None:
        return need_for_verdict(self.scores, self.judged) if self.judged.is_open else None

    @property
    def is_paired(self) -> bool:
        return self.scores.comparable or len(self.compared) < 2

    def choose_candidates(self) -> tuple[pd.Series, pd.Series]:
        return choose_best_candidates(self.scores, self.results.study.settings, self.judged)

    def find_leading(self) -> frozenset[int]:
        """All that may be the best, at least two."""
        scores = self.scores.without_items()
        optimal = scores.tests.find_optimal(scores.fit, 1 - LEADING_LEVEL)
        leading = lead(optimal, scores.fit.effects)
        chosen = scores.runs["first"].isin(scores.table.columns[leading])
        return frozenset(scores.runs.loc[chosen, "number"].tolist())

    @cached_property
    def answer(self) -> Answer:
        """The best of several rows against the others, by their paired differences."""
        if len(self.table) < 2:
            return self._answer_of_one()
        number = int(self.ranked["number"].iloc[0])
        if self.is_of_methods and self.judged.ranked:
            number = int(self.choose_candidates()[0]["number"])
        answer = self._contest(number)
        if not self.is_of_methods:
            found = None if self.results.asks_differences else self.results.effects
            effect = describe_effect(found, self.write) if found else ""
            return replace(answer, certainty=join_sentences(answer.certainty, effect))
        if not (budget := describe_budget(self.results.study)):
            return answer
        is_one = len(self.ranked) == len(self.table)
        chosen = "" if is_one else ". Each method is at its best configuration"
        certainty = f"Methods compared {budget}{chosen}. {answer.certainty}"
        return replace(answer, heading=f"At an equal budget, {answer.heading}", certainty=certainty)

    def _answer_of_one(self) -> Answer:
        runs = self.results.runs
        mean = runs.groupby("seed")["score"].mean().mean()
        seeds = format_count(runs["seed"].nunique(), "seed")
        trials = f"{format_count(len(runs), 'trial')}, {seeds}"
        return self.reply(
            f"The mean score is {self.write.score(mean)}",
            f"{trials}; one configuration, so nothing is compared.",
            topic=None,
            family="",
            number=self.results.highest,
        )

    def _contest(self, number: int) -> Answer:
        ranked, verdict = self.ranked, self.judged
        others, names = ranked.iloc[1:], ranked[NAME].tolist()
        tested = np.isfinite(others["difference_low"].to_numpy())
        if not tested.any():
            text = f"{names[0]} {self._describe_highest()}; no difference is tested"
            why = "It shares fewer than two seeds with any other one."
            run = "Run all with the same 3 or more"
            if self.results.study.table:
                run += "; if a column of results counts as a setting, name the settings (--setting)"
            return self.reply(text, f"{why} {run}.", number=number)
        # the runner-up: of rows that were compared, the one with the next mean
        at = int(tested.argmax()) + 1
        role = ", the runner-up" if len(others) > at else ""
        text = f"{names[0]} minus {names[at]}{role}"
        effect = Difference.of(verdict, lead_over(ranked.iloc[at]), text)
        above = {name: lead_over(ranked.iloc[row]) for name, row in self._name_others(at).items()}
        seeds = min(ranked["seeds"].iloc[0], ranked["seeds"].iloc[at])
        certainty = join_sentences(
            list_above(above, verdict).rstrip(),
            f"Blocked by seed, multiplicity-adjusted; {format_count(int(seeds), 'seed')}.",
            describe_over_looks(verdict.over_looks),
            state_equivalence(verdict),
        )
        return self.reply(
            self._describe_contest(),
            certainty,
            number=number,
            effect=effect,
            recommendation=self.name_highest("all that may be the best"),
        )

    def _name_others(self, runner_up: int) -> dict[str, int]:
        """The rows beside the runner-up that the best is compared with, by their names."""
        ranked, names = self.ranked, self.ranked[NAME].tolist()
        known = np.flatnonzero(np.isfinite(ranked["difference"].iloc[1:].to_numpy()))
        lowest = int(known[-1]) + 1
        is_cut = len(ranked) > MOST_COMPARED
        of_compared = f" of the {MOST_COMPARED} compared" if is_cut else ""
        if self.is_of_methods and len(ranked) < len(self.table):
            # other configurations of a method may be lower
            of_compared = " method"
        named = {}
        if lowest != runner_up:
            named[f"{self.write.say('the lowest')}{of_compared}, {names[lowest]}"] = lowest
        if not self.is_of_methods:
            same = at_defaults(ranked, ranked, self.results.study.compared).to_numpy()
            if (default := int(same.argmax())) not in (0, runner_up, lowest):
                named[f"the default, {names[default]}"] = default
        return named

    def _describe_contest(self) -> str:
        ranked, verdict = self.ranked, self.judged
        others, names = ranked.iloc[1:], ranked[NAME].tolist()
        # a row without a seed in common was not compared: nothing is said of it
        tested = np.isfinite(others["difference_low"].to_numpy())
        count = int(tested.sum())
        of = "" if tested.all() else f" of the {count + 1} compared"
        against = self.results.against_baseline
        if against is not None and against.mean.estimate.mean > ranked["mean"].iloc[0]:
            of += " of the search"
        if verdict.is_separated:
            return f"{names[0]} is best{of}"
        alike = [names[1 + row] for row in np.flatnonzero(others["may_be_best"] & tested)]
        if verdict.is_within:
            within = f"any two of them differ by less than {self.write.stated_margin}"
            known = claim_within(verdict, within, "any two of them")
            rest = f"{len(alike) + 1} of {count + 1} may be the best, and {known}"
        else:
            # with none alike, other configurations of its method may be the best
            rest = {
                count: "no other is significantly worse",
                0: f"all other {self._noun} are significantly worse",
                1: f"{'; '.join(alike)} is not significantly worse",
            }.get(len(alike), f"{len(alike)} of {count} others are not significantly worse")
        return f"{names[0]} {self._describe_highest()}{of}; {rest}"

    def _describe_highest(self) -> str:
        """What the first row has: the highest mean, or the highest where seeds are blocks."""
        means = round_scores(self.ranked["mean"], self.ranked["mean"])
        adjusted = " adjusted for missing seeds" if means.iloc[0] < means.max() else ""
        return self.write.say(f"has the highest mean score{adjusted}")

    def describe(self) -> tuple[str, ...]:
        if len(self.table) < 2:
            return ()
        presets = self._describe_presets() if self.is_of_methods else ""
        return tuple(filter(None, (self._count_worse(), presets)))

    def _count_worse(self) -> str:
        """A sentence on how many of the others are significantly worse than the best."""
        tested = int(self.table["difference_low"].notna().sum())
        worse = int((~self.table["may_be_best"]).sum())
        if not tested:
            return "With fewer than two common seeds, no difference is tested."
        is_one_each = self.is_of_methods and self.table[METHOD].is_unique
        other = "method" if is_one_each else "configuration"
        said = f"{worse:,} of {tested:,} other {other}s {'is' if worse == 1 else 'are'}"
        if tested == 1:
            said = f"The other compared {other} is{'' if worse else ' not'}"
        holds = "excludes" if worse or tested > 1 else "includes"
        return (
            f"{said} significantly worse than the best: the interval of the difference, "
            f"simultaneous for all pairs at {self.confidence}, {holds} 0."
        )

    @property
    def confidence(self) -> str:
        """The confidence of comparisons with the best, as text."""
        return f"{100 * self.judged.confidence:.3g} %{over_all_looks(self.judged.over_looks)}"

    def _describe_presets(self) -> str:
        """The presets, and the methods that ran with each."""
        runs = runs_by_method(self.results.trials, self.results.study.settings)
        recorded = runs[runs["preset"].notna()] if "preset" in runs else runs[:0]
        texts = []
        for preset, methods in recorded.groupby("preset")[METHOD] if len(recorded) else ():
            names = sorted(map(self.results.name_method, methods.unique()))
            ran = "every method" if len(names) == runs[METHOD].nunique() else ", ".join(names)
            texts.append(f"{preset} ({ran})")
        return f"Presets: {', '.join(map(clean, texts))}." if texts else ""

    def explain(self) -> tuple[str, ...]:
        return () if len(self.table) < 2 else (_PAIRED,)

    @classmethod
    def plan(cls, planned: PlannedQuestion) -> PlannedDesign | None:
        return PlannedDesign(np.arange(1.0, planned.count_compared() + 1), ordered=False)

    @property
    def fields(self) -> Mapping[str, Any]:
        return {"ranked": self.judged.ranked, "may_be_best": self.judged.may_be_best}


def list_settings(table: pd.DataFrame) -> list[str]:
    """The columns of a comparison that are settings."""
    return [str(name) for name in table if name not in (*COLUMNS, "mtd", NAME)]


def name_table(
    results: StudyResults, table: pd.DataFrame, *, most: int = _MOST_LETTERS
) -> tuple[str, ...]:
    """The rows of a comparison by the settings that differ, the nuisance settings last."""
    names = list_settings(table)
    shown = table
    if METHOD in table:
        shown = table.assign(method=[results.name_method(name) for name in table[METHOD]])
    settings = results.study.settings.items()
    defaults = {name: each.default for name, each in settings if each.default is not None}
    texts = name_rows(shown, names, beside=results.study.nuisance, most=most, defaults=defaults)
    return tuple(clean(text, most=most) for text in texts)


def find_names(results: StudyResults, table: pd.DataFrame) -> list[str]:
    """What the study file calls the configuration of each row; empty where a row is not one."""
    study = results.study
    by = [name for name in (*list_settings(table), "mtd") if name in table]
    runs = runs_by_method(results.trials, study.settings)
    groups = number_configurations(runs, [name for name in by if name not in study.nuisance])
    called = pd.Series(study.call(runs["number"], [""] * len(runs)), runs.index, dtype="str")
    called = called.map(clean).where(called.groupby(groups).transform("nunique") == 1, "")
    by_number = dict(zip(runs["number"], called, strict=True))
    return [by_number[number] for number in table["number"]]


def prefer_names(results: StudyResults, table: pd.DataFrame, others: Sequence[str]) -> list[str]:
    """What the study file calls the rows of a comparison; `others` where it does not."""
    if not results.study.names:
        return [*others]
    return [name or other for name, other in zip(find_names(results, table), others, strict=True)]


def rank(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of a comparison of methods, the highest estimate first."""
    # the best row has no difference to itself
    best = table["difference"].isna() & table["may_be_best"]
    of = best if best.any() else table["mean"]
    return rank_rows(table, int(of.to_numpy().argmax()))


def lead_over(row: pd.Series) -> Estimate:
    """The best row of a comparison minus another one, in points."""
    return -Estimate(*row[DIFFERENCE])


def describe_budget(study: StudyFrames) -> str:
    """What is equal for all methods, and what was chosen for each: a phrase; else empty."""
    if (budget := equal_budget(study.trials)) is None:
        return ""
    equal = f"at an equal budget of {budget:,} sentences a trial"
    if study.tuning is None:
        return equal
    chosen = join_words([name_setting(name) for name in study.nuisance])
    seeds = format_count(len(study.tuning.seeds), "seed")
    return f"{equal}, each with the {clean(chosen)} that {seeds} chose for it"
