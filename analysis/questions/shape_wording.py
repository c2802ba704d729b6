"""The shape of the score over MTD in words: its answer, its certainty, and how it is judged."""

import math
from dataclasses import replace

import pandas as pd

from mtdlab.analysis.data.beyond_run import describe_left_out
from mtdlab.analysis.data.runs import CONDITIONS, format_mtd, name_levels, traced_runs
from mtdlab.analysis.data.settings import format_value
from mtdlab.analysis.inference.intervals import Estimate
from mtdlab.analysis.inference.pairing import LevelScores
from mtdlab.analysis.inference.verdict import Lead, Verdict
from mtdlab.analysis.questions.answer import Difference
from mtdlab.analysis.questions.varied_history import claim_within, describe_history, hold
from mtdlab.analysis.questions.wording import (
    capitalise,
    describe_equivalence,
    describe_over_looks,
    format_p,
    join_words,
    list_above,
    over_all_looks,
    state_p,
)

_GIVEN_ITEMS = (
    "The evaluation data are taken as given: intervals and tests cover other seeds, not other "
    "evaluation data."
)


def find_effect(verdict: Verdict) -> Difference | None:
    """The difference that the shape rests on; None where nothing is compared.

    It is the level with the highest estimate minus another one: where the score rises or falls,
    minus the end where it is lower; where it peaks, minus the end where it is higher, which the
    peak has to exceed; otherwise minus the lowest level, the largest difference that there is.
    """
    if not verdict.leads:
        return None
    ends = [lead for lead in verdict.leads if lead.mtd in (verdict.first, verdict.last)]
    write = verdict.score_format
    lead, role = verdict.leads[-1], write.say("the lowest mean")
    if ends and (verdict.is_peaked or verdict.is_trend):
        lead = ends[0 if verdict.is_peaked else -1]
        role = "the first level" if lead.mtd == verdict.first else "the last level"
    best, other = (format_mtd(mtd) for mtd in (verdict.peak_mtd, lead.mtd))
    text = f"MTD {best}, the {write.say('highest')} mean, minus MTD {other}, {role}"
    return Difference.of(verdict, _size_of(lead, verdict), text)


def _size_of(lead: Lead, verdict: Verdict) -> Estimate:
    """A difference as it is stated: that it is within the margin has bounds of its own tests."""
    return Estimate(lead.size.mean) if verdict.is_within else lead.size


def describe_these(verdict: Verdict) -> str:
    """The verdict without the sampling error of the items, where that is counted; else empty."""
    if (these := verdict.for_these) is None:
        return ""
    test = f" ({format_p(these.p_shown)})" if these.is_peaked or these.is_trend else ""
    word = verdict.score_format.say(hold(these, verdict.history).verdict)
    return f"For exactly these items: {word}{test}."


def state_shape(verdict: Verdict, levels: LevelScores) -> Verdict:
    """The verdict with its sentence, which says for which runs it holds."""
    scope = _describe_scope(verdict, describe_conditions(levels.runs))
    without = f" {describe_left_out(verdict.left_out)}".rstrip()
    if levels.uneven and not find_obstacle(verdict):
        listed = [
            ", ".join(f"{name} {format_value(name, value)}" for name, value in values.items())
            for values in levels.uneven
        ]
        without += f" Not compared: {'; '.join(listed)}, with which a level has too few scores."
    return replace(verdict, sentence=write_sentence(verdict) + without + scope)


def _describe_scope(verdict: Verdict, conditions: str) -> str:
    """A sentence on what the verdict covers: seeds, evaluation items, settings not varied."""
    if verdict.levels < 2 or verdict.seeds < 2:
        return f" This holds {conditions}." if verdict.levels > 1 and conditions else ""
    covered = "these evaluation data"
    if verdict.items:
        covered = f"evaluation data like these {verdict.items:,} items"
    return f" This holds for {covered}{conditions and ', '}{conditions}."


def write_sentence(verdict: Verdict) -> str:
    """The verdict as text, with its numbers: its answer, what it rests on, the best levels."""
    texts = [f"{answer_shape(verdict)}."]
    if find_obstacle(verdict):
        return texts[0]
    if effect := find_effect(verdict):
        texts.append(effect.sentence)
    texts += filter(None, (describe_certainty(verdict), describe_history(verdict)))
    if not verdict.is_within:
        texts.append(
            f"Statistically indistinguishable from the best of {verdict.levels} levels "
            f"({100 * verdict.confidence:.3g} % confidence{over_all_looks(verdict.over_looks)}): "
            f"{name_levels(verdict.optimal_range)}."
        )
    if verdict.is_trend:
        beyond = f"above {format_mtd(verdict.last)}", "compared" if verdict.is_cut else "tested"
        if verdict.end == verdict.first:
            beyond = f"below {format_mtd(verdict.first)}", "tested"
        texts.append(f"MTDs {beyond[0]} were not {beyond[1]}.")
    return " ".join(texts)


def answer_shape(verdict: Verdict, settings: str = "") -> str:
    """The shape of the score over MTD in a few words, and the levels that may be the best.

    `settings` are those of the lowest and the highest of these levels, such as "η 0.9 to 0.97".
    """
    first, last = format_mtd(verdict.first), format_mtd(verdict.last)
    levels = verdict.optimal_range or (verdict.peak_mtd,)
    low, high = format_mtd(levels[0]), format_mtd(levels[-1])
    say = verdict.score_format.say
    best = f"at MTD {low}" if low == high else f"between MTD {low} and {high}"
    best += f" ({settings})" if settings else ""
    if verdict.is_peaked:
        if {verdict.first, verdict.last} & {*levels}:
            return f"The score {say('rises and falls')} inside the range; it is best {best}"
        return f"The score {say('peaks')} {best}"
    if verdict.is_trend:
        is_rise = verdict.end == verdict.last
        verb, end = (say("rises"), "end") if is_rise else (say("falls"), "start")
        if verdict.is_undecided:
            unknown = say("rise on, level off or fall" if is_rise else "rise, be level or fall")
            return f"The score {verb} with MTD; it is best {best}, where it may {unknown}"
        if verdict.verdict.endswith(f"lower at the {end}"):
            worse = f"{say('lower')} at the {end}"
            return f"The score {verb} overall with MTD; it is best {best}, and {worse}"
        if {*levels} != {verdict.end}:
            return f"The score {verb} with MTD; it is best {best}"
        if not is_rise:
            return f"The score {verb} with MTD, from {first}, the lowest tested"
        compared = "within the run" if verdict.is_cut else "tested"
        return f"The score {verb} with MTD, up to {last}, the highest {compared}"
    if verdict.is_within:
        span = f"between {first} and {last}"
        none = f"MTD makes no difference {span}"
        return claim_within(verdict, none, f"Any two levels of MTD {span}")
    none = f"no effect of MTD between {first} and {last} is significant"
    if any(lead.size.low > 0 for lead in verdict.leads):
        none = f"levels of MTD differ, but neither a {say('peak')} nor a trend is significant"
    return f"Inconclusive: {find_obstacle(verdict) or none}"


def find_obstacle(verdict: Verdict) -> str:
    """Why no levels are compared, in a few words; empty where some are."""
    if verdict.left_out and verdict.levels_run - len(verdict.left_out) < 2:
        return "fewer than two levels of MTD are within the run"
    if not verdict.levels_run:
        return "no completed trial with an MTD has a score yet"
    if verdict.levels_run == 1:
        return "all scored trials have the same MTD"
    if verdict.seeds == 1:
        best = format_mtd(verdict.peak_mtd)
        highest = verdict.score_format.say("the highest score")
        return f"one seed cannot separate MTD from chance; {highest} is at MTD {best}"
    if verdict.levels < 2 or not (verdict.seeds or verdict.known_errors):
        return "no two seeds were run at the same two levels of MTD"
    return ""


def describe_certainty(verdict: Verdict, default: float = math.nan) -> str:
    """The certainty of the shape as text: difference to the lowest level, p value or margin, n.

    `default`: the level of the default settings, in steps; NaN where it was not run.
    """
    if find_obstacle(verdict):
        return "Not tested."
    write = verdict.score_format
    peak = write.say("peak")
    tests = f"{format_p(verdict.p_value)} for a {peak}, {format_p(verdict.p_trend)} for a trend"
    if verdict.is_peaked:
        tests = f"{state_p(verdict)} for a {peak} (multiplicity-adjusted)"
    elif verdict.is_trend:
        tests = f"{state_p(verdict)} for a trend"
    elif verdict.is_within:
        tests = (
            f"Any two levels differ by less than {write.stated_margin} "
            f"({describe_equivalence(verdict)})"
        )
    last, effect, above = len(verdict.leads) - 1, find_effect(verdict), {}
    for place, lead in enumerate(verdict.leads):
        roles = {"the runner-up": not place, write.say("the lowest"): place == last}
        roles["the default"] = lead.mtd == default
        named = [role for role, holds in roles.items() if holds]
        if named and effect and lead.size.mean != effect.size.mean:
            above[f"{join_words(named)}, MTD {format_mtd(lead.mtd)}"] = _size_of(lead, verdict)
    span = f"MTD {format_mtd(verdict.first)} to {format_mtd(verdict.last)}"
    levels = f"{verdict.levels} levels, {span}"
    if verdict.left_out:
        levels += f" ({len(verdict.left_out)} beyond the run left out)"
    ends = f"{verdict.seeds} seeds, {levels}."
    if verdict.known_errors:
        ends = f"{levels}, standard errors as given."
    looks = describe_over_looks(verdict.over_looks)
    bounds = describe_bounds(verdict) if verdict.is_trend else ""
    # p is a symbol, which stays small
    tests = tests if tests.startswith("p ") else capitalise(tests)
    return f"{list_above(above, verdict)}{bounds}{tests}; {ends}{looks and ' '}{looks}"


def describe_bounds(verdict: Verdict) -> str:
    """What is shown of a trend beside its sign, in sentences; empty where it has no bounds."""
    if (bounds := verdict.bounds) is None:
        return ""
    is_rise, levels = verdict.end == verdict.last, verdict.optimal_range
    other, end = verdict.first + verdict.last - verdict.end, format_mtd(verdict.end)
    write = verdict.score_format
    above = f"at least {write.rounded_down(bounds.above)} {write.say('above')} "
    above += f"MTD {format_mtd(other)}, "
    # the highest mean minus the other end has been stated
    if bounds.above <= 0 or verdict.peak_mtd == verdict.end:
        above = ""
    below = "the best level"
    if bounds.below:
        below = f"at most {write.rounded_up(bounds.below)} {write.say('below')} the best"
    over = over_all_looks(verdict.over_looks)
    texts = [f"MTD {end} is {above}{below} ({100 * verdict.confidence:.3g} % confidence{over})"]
    furthest = format_mtd(min(levels) if is_rise else max(levels))
    if bounds.within:
        ends = (furthest, end) if is_rise else (end, furthest)
        texts.append(
            f"any two levels from MTD {' to '.join(ends)} differ by at most "
            f"{write.rounded_up(bounds.within)}"
        )
    if verdict.is_undecided:
        parts = f"rises up to MTD {furthest}, is level or falls"
        if is_rise:
            parts = f"rises on from MTD {furthest}, levels off or falls"
        texts.append(f"whether the score {write.say(parts)} is open")
    return f"{'; '.join(texts)}. "


_WHERE_FIXED = ("ema_decay", "queue_size")


def describe_conditions(trials: pd.DataFrame) -> str:
    """Learning rate, steps and batch size of the completed runs with an MTD, as text.

    Before the batch size stand the EMA decay and the queue size where they were fixed: with it they
    make up MTD. For example "at learning rate 0.001, 160 steps, queue size 512 and batch size 64".
    Settings that are not columns are left out; the text is empty if none is a column.
    """
    runs = traced_runs(trials)
    parts = []
    for name in (*CONDITIONS, *_WHERE_FIXED, "batch_size"):
        values = sorted(runs[name].dropna().unique()) if name in runs else []
        if values and not (name in _WHERE_FIXED and len(values) > 1):
            listed = join_words([f"{float(value):g}" for value in values])
            noun = name.replace("_", " ").replace("ema", "EMA") + "s" * (len(values) > 1)
            parts.append(f"{listed} steps" if name == "steps" else f"{noun} {listed}")
    return f"at {join_words(parts)}" if parts else ""


_MODEL = (
    "The verdict on MTD comes from a model of the score with an effect of the seed and one of the "
    "level of MTD."
)
_OF_MEANS = "The verdict on MTD is by the tests for trials, with these standard errors."
_RULES = (
    "It is “flat” if any two levels are shown to differ by less than {margin} (equivalence tests) "
    "and history to vary between them; it is “history not shown to vary” or, where that was not "
    "measured, “within margin” if only the score is. If not, it is “peaked” if the slope of the "
    "score on log MTD up to an inner level and the slope down from it are both significant, "
    "adjusted for the choice of that level; if not, “rising” or “falling” if the slope over all "
    "levels and the difference of the ends are significant; otherwise “inconclusive”. A score that "
    "rises is “lower at the end” if another level is significantly better than the last, and its "
    "end is open unless the last is shown to be less than {margin} below the best; one that falls "
    "likewise at its start."
)
_VARIANCES = (
    "A difference has the variance of its own values by seed. With fewer than 8 seeds a test uses "
    "the least significant of three variances: that of the levels compared, that typical of all "
    "levels, and that between seeds, each of which may have a slope and a curvature of its own. "
    "Critical values are simulated for this design, with independent errors, with errors "
    "correlated between neighbouring levels, and with seeds that have slopes of their own."
)


def explain_shape(verdict: Verdict) -> tuple[str, ...]:
    """Sentences on the tests of the shape over MTD, the data they hold for, and the best levels."""
    items = _GIVEN_ITEMS
    if verdict.items:
        items = (
            f"Intervals and tests also cover the sampling of the {verdict.items:,} evaluation "
            "items: the variance of a difference is that between seeds plus that of its influence "
            "over the items, which all seeds share. Items count as independent: where sentences "
            "stand in several evaluation pairs, these intervals are too narrow."
        )
    write = verdict.score_format
    rules = _RULES.format(margin=write.stated_margin)
    tests = [write.say(f"{_MODEL} {rules} {_VARIANCES}"), items]
    if verdict.known_errors:
        tests = [f"{_OF_MEANS} {rules}"]
    return (
        *tests,
        "The levels that are statistically indistinguishable from the best come from multiple "
        "comparisons with the best: the best level is among them with a probability of at least "
        f"{100 * verdict.confidence:.3g} %{over_all_looks(verdict.over_looks)}.",
    )
