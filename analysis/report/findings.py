"""The answer of a study in one line, with its certainty: what the first screen of a page states.

What a study is about follows from what varied: methods, conditions of an optimum, measured
history, the maximum traceable distance (MTD), or other settings.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from mtdlab.analysis.data.defaults import MOST_COMPARED
from mtdlab.analysis.data.frames import Settings
from mtdlab.analysis.data.points import format_component
from mtdlab.analysis.data.runs import completed_runs, format_mtd, varied_settings
from mtdlab.analysis.inference.best import BestVerdict
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.verdict import (
    Verdict,
    answer_shape,
    describe_certainty,
    describe_interval,
    describe_over_looks,
    format_p,
    list_above,
    name_lead,
    over_all_looks,
)
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.report.cells import LEVEL, PERCENT, format_count
from mtdlab.analysis.report.context import StudyContext
from mtdlab.analysis.report.page import Effect
from mtdlab.analysis.report.topics import conditions, configurations, effects, history, methods
from mtdlab.analysis.report.topics.configurations import NAME, describe_highest, lead_over
from mtdlab.analysis.report.topics.sufficiency import name_pair
from mtdlab.analysis.statistics.robustness import Condition

_OF_MTD = "the verdict on MTD and, as a family of their own, of the differences of levels"
_FAMILIES = {
    "score": _OF_MTD,
    "sufficiency": _OF_MTD,
    "methods": "all differences of methods together",
    "configurations": "all differences of configurations together",
    "robustness": "the verdicts of all conditions together",
}
"""The tests that have a page's error rate, in words, by the topic of its finding."""


def find_effect(verdict: Verdict) -> Effect | None:
    """The level with the highest estimate less the runner-up; None where nothing is compared."""
    if not verdict.leads:
        return None
    over = over_all_looks(verdict.over_looks)
    return make_effect(verdict.leads[0].size, verdict.confidence, name_lead(verdict), over)


def make_effect(size: Estimate, level: float, text: str, over: str = "") -> Effect:
    """A difference in points as a large number; `over` is written after its interval."""
    return Effect(f"{size.mean:+.2f}", describe_interval(size, level, over), text)


def write_effect(effect: Effect) -> str:
    """An effect as a sentence."""
    interval = f" ({effect.interval})" if effect.interval else ""
    return f"{effect.text}: {effect.value} points{interval}."


def describe_exploratory(topic: str, alpha: float) -> str:
    """A sentence on which tests of a page have its error rate; all others are exploratory.

    Empty for a page whose `topic` compares nothing. `alpha` is that of the study's verdict.
    """
    if not topic:
        return ""
    rest = "not adjusted for their number"
    if topic not in _FAMILIES:
        return f"All tests and intervals on this page are exploratory: {rest}."
    rate = 1 - LEVEL if topic == "robustness" else alpha
    return (
        f"The error rate of {100 * rate:.3g} % is that of {_FAMILIES[topic]}; all other tests and "
        f"intervals on this page are exploratory: {rest}."
    )


@dataclass(frozen=True)
class Finding:
    """The answer of a study, and the numbers that it rests on.

    Attributes:
        topic: whose figure is the main one; empty for none.
        best: a trial of the configuration to recommend; None without a score.
        decided: whether that configuration is significantly better than others.
        effect: the difference on which the answer rests; None where nothing is compared.
    """

    answer: str
    certainty: str
    kind: str
    topic: str = ""
    best: int | None = None
    decided: bool = False
    effect: Effect | None = None


def write_finding(finding: Finding) -> str:
    """A finding in sentences: its answer, the difference that this rests on, its certainty."""
    effect = write_effect(finding.effect) if finding.effect else ""
    return " ".join(filter(None, (f"{finding.answer}.", effect, finding.certainty)))


def find_answer(context: StudyContext) -> Finding:
    """The answer to what the study varied."""
    runs = completed_runs(context.trials)
    if not len(runs):
        states = context.trials["state"]
        if len(states) and (states == "FAIL").all():
            all_failed = f"All {format_count(len(states), 'trial')} failed"
            return Finding(all_failed, "Nothing to compare.", "failed")
        return Finding("No result yet", "No trial is complete with a score.", "inconclusive")
    finding = _find_answer(context, runs)
    if (found := context.once(effects.compute)) is not None:
        together = effects.describe_interactions(found)
        finding = replace(finding, certainty=" ".join([finding.certainty, *together]))
    return finding


def _find_answer(context: StudyContext, runs: pd.DataFrame) -> Finding:
    """The answer by the completed runs, without interactions."""
    if (compared := context.once(methods.compute)) is not None:
        return _methods(context, compared)
    if found := context.once(conditions.compute):
        return _conditions(runs, found)
    if (measured := context.once(history.compute)) is not None and len(measured.runs):
        return _history(context, runs, measured)
    if context.verdict.levels_run > 1:
        return _distance(context)
    if (ranked := context.once(configurations.compute)) is not None:
        return _configurations(context, ranked)
    mean = runs.groupby("seed")["score"].mean().mean()
    seeds = format_count(runs["seed"].nunique(), "seed")
    return Finding(
        f"The mean score is {mean:.2f}",
        f"{format_count(len(runs), 'trial')}, {seeds}; one configuration, so nothing is compared.",
        "inconclusive",
        best=_best_trial(runs),
    )


def _best_trial(runs: pd.DataFrame) -> int:
    return int(runs.sort_values(["score", "number"], ascending=[False, True])["number"].iloc[0])


def _methods(context: StudyContext, table: pd.DataFrame) -> Finding:
    ranked = methods.rank(table).drop_duplicates("method", ignore_index=True)
    best = int(ranked["number"].iloc[0])
    if context.best.ranked:
        best = int(context.candidates()[0]["number"])
    finding = _contest(ranked, "methods", best, context.best)
    if not (budget := methods.describe_budget(context.study)):
        return finding
    each = "" if len(ranked) == len(table) else ". Each method is at its best configuration"
    certainty = f"Methods compared {budget}{each}. {finding.certainty}"
    return replace(finding, answer=f"At an equal budget, {finding.answer}", certainty=certainty)


def _configurations(context: StudyContext, table: pd.DataFrame) -> Finding:
    same = _at_defaults(table, table, context.study.compared).to_numpy()
    default = int(same.argmax()) if same.any() else None
    best = int(table["number"].iloc[0])
    finding = _contest(table, "configurations", best, context.best, default)
    if (found := context.once(effects.compute)) is None:
        return finding
    return replace(finding, certainty=f"{finding.certainty} {effects.describe_effect(found)}")


def _at_defaults(rows: pd.DataFrame, varied: Iterable[object], settings: Settings) -> pd.Series:
    """Which rows have the default values of the settings that varied."""
    defaults = {name: settings[name].default for name in map(str, varied) if name in settings}
    return (rows[list(defaults)] == pd.Series(defaults)).all(axis=1) & bool(defaults)


def _contest(
    ranked: pd.DataFrame,
    topic: str,
    best: int,
    verdict: BestVerdict,
    default: int | None = None,
) -> Finding:
    """The best of several rows against the others, by their paired differences, best first.

    `default` is the row of the default settings; None where they were not run.
    """
    others, names = ranked.iloc[1:], ranked[NAME].tolist()
    first = names[0]
    tested = np.isfinite(others["difference_low"].to_numpy())
    if not tested.any():
        text = f"{first} {describe_highest(ranked)}; no difference is tested"
        why = "It shares fewer than two seeds with any other one. Run all with the same 3 or more."
        return Finding(text, why, "inconclusive", topic, best)
    level, over = verdict.confidence, over_all_looks(verdict.over_looks)
    # the runner-up: of rows that were compared, the one with the next mean
    at = int(tested.argmax())
    second, row = names[at + 1], others.iloc[at]
    difference, seeds = lead_over(row), min(ranked["seeds"].iloc[0], row["seeds"])
    several = len(others) > at + 1
    role = ", the runner-up" if several else ""
    effect = make_effect(difference, level, f"{first} less {second}{role}", over)
    lowest = int(np.flatnonzero(np.isfinite(others["difference"].to_numpy()))[-1]) + 1
    is_cut = len(ranked) > MOST_COMPARED
    of_compared = f" of the {MOST_COMPARED} compared" if is_cut else ""
    named = {f"the lowest{of_compared}, {names[lowest]}": lowest} if several else {}
    if default and default not in (at + 1, lowest):
        named[f"the default, {names[default]}"] = default
    above = {name: lead_over(ranked.iloc[place]) for name, place in named.items()}
    notes = [
        f"{list_above(above, level, over)}Blocked by seed, multiplicity-adjusted; "
        f"{format_count(int(seeds), 'seed')}.",
        describe_over_looks(verdict.over_looks),
    ]
    alike = [names[1 + place] for place in np.flatnonzero(others["may_be_best"])]
    kind, answer = str(verdict.kind), f"{first} {describe_highest(ranked)}; "
    if verdict.kind == "separated":
        kind, answer = "decided", f"{first} is best"
    elif verdict.kind == "equivalent":
        answer += (
            f"{len(alike) + 1} of {len(ranked)} may be the best, and any two of them differ by "
            f"less than {verdict.margin:g} points"
        )
        notes.append(f"Equivalence tests at {100 * (1 - level):.3g} %{over}.")
    else:
        # with none alike, other configurations of its method may be the best
        answer += {
            len(others): "no other is significantly worse",
            0: f"all other {topic} are significantly worse",
            1: f"{'; '.join(alike)} is not significantly worse",
        }.get(len(alike), f"{len(alike)} of {len(others)} others are not significantly worse")
    certainty = " ".join(filter(None, notes))
    return Finding(answer, certainty, kind, topic, best, decided=kind == "decided", effect=effect)


def _conditions(runs: pd.DataFrame, info: Sequence[Condition]) -> Finding:
    verdicts = [condition.verdict for condition in info]
    peaks = sorted(verdict.peak_mtd for verdict in verdicts)
    ends = " to ".join(dict.fromkeys(map(format_mtd, (peaks[0], peaks[-1]))))
    kinds = pd.Series([verdict.verdict for verdict in verdicts]).value_counts()
    listed = ", ".join(f"{amount} {kind}" for kind, amount in kinds.items())
    return Finding(
        f"The highest mean is at MTD {ends} in {len(info)} conditions",
        f"Verdicts by condition: {listed}, each at {100 * verdicts[0].level:.4g} % confidence, all "
        f"together at {PERCENT}; "
        f"{format_count(max(verdict.seeds for verdict in verdicts), 'seed')}.",
        "inconclusive" if "inconclusive" in kinds else "decided",
        "robustness",
        _best_trial(runs),
    )


def _history(context: StudyContext, runs: pd.DataFrame, info: history.History) -> Finding:
    seeds = format_count(info.runs["seed"].nunique(), "seed")
    trials = f"{format_count(len(info.runs), 'trial')}, {seeds}."
    certainty = history.describe_association(context, info) or trials
    return Finding(history.describe_range(info), certainty, "decided", "history", _best_trial(runs))


def _distance(context: StudyContext) -> Finding:
    """The finding on the shape over MTD, or that MTD is not sufficient where this was rejected."""
    verdict, sufficiency = context.verdict, context.sufficiency
    answer, runs = answer_shape(verdict, _name_settings(context)), context.traced
    varied = varied_settings(runs, context.study.settings)
    same = runs.loc[_at_defaults(runs, varied, context.study.settings), "mtd"]
    certainty = describe_certainty(verdict, float(same.iloc[0]) if len(same) else math.nan)
    topic, kind, effect = "score", str(verdict.verdict), find_effect(verdict)
    if sufficiency is not None and sufficiency.answer == "rejected":
        answer, topic, kind = "MTD alone does not determine the score", "sufficiency", "decided"
        of_levels = f"{write_effect(effect)} " if effect else ""
        certainty = (
            "At equal MTD the score also depends on how it is divided between 1/(1 − η) and K/N "
            f"({format_p(sufficiency.p_value)}). {of_levels}{certainty}"
        )
        if (pair := sufficiency.pair) is not None:
            high, low = name_pair(sufficiency, pair)
            what = f"{high} less {low}, the most different at nearly equal MTD"
            effect = make_effect(pair.difference, LEVEL, what)
    elif sufficiency is not None and sufficiency.answer == "not rejected":
        p_value = format_p(sufficiency.p_value)
        certainty += f" That MTD alone determines the score is not rejected ({p_value})."
    return Finding(
        answer,
        certainty,
        kind,
        topic,
        find_best_level(context),
        decided=verdict.verdict in ("peaked", "rising", "falling"),
        effect=effect,
    )


def _name_settings(context: StudyContext) -> str:
    """The range of the only setting that makes up MTD here, over the levels that may be best."""
    runs = context.traced
    varied = [name for name in PARTS if runs[name].nunique() > 1]
    levels = context.verdict.optimal_range
    if len(varied) != 1 or not levels:
        return ""
    inside = runs.loc[runs["mtd"].between(levels[0], levels[-1]), varied[0]]
    ends = dict.fromkeys(map(format_component, (inside.min(), inside.max())))
    return f"{PARTS[varied[0]]} {' to '.join(ends)}"


def find_best_level(context: StudyContext) -> int:
    """The first trial of the best configuration at the best level of MTD."""
    if not context.asks_for_best and context.verdict.seeds and context.verdict.levels > 1:
        return int(context.candidates()[0]["number"])
    # one beyond the run only where there is no other
    is_chosen = context.verdict.left_out and len(context.levels.runs)
    runs = context.levels.runs if is_chosen else completed_runs(context.curve_trials)
    return _best_trial(runs)
