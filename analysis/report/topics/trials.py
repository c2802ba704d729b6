"""Topics: all trials, and why trials failed; the best trial and the optimism of its score."""

import math
from dataclasses import replace

import pandas as pd

from mtdlab.analysis.data.frames import StudyFrames
from mtdlab.analysis.data.metric import ScoreFormat, as_read, is_negated
from mtdlab.analysis.data.questions import ANY
from mtdlab.analysis.data.runs import varied_settings
from mtdlab.analysis.measures.trace import PARTS
from mtdlab.analysis.questions.wording import clean
from mtdlab.analysis.report.cells import format_count, make_table
from mtdlab.analysis.report.page import trial_anchor
from mtdlab.analysis.report.topics.base import Contents, StudyContext, Topic
from mtdlab.analysis.statistics.best_trial import DEV, compute_choices, find_scores

_MOST_ROWS = 1_000
_MOST_REASONS = 20


def build(context: StudyContext) -> Contents:
    """The reasons of failures and all trials of any study, also of an empty one.

    The table of trials has scores and states, every setting that varied, and each measure that any
    trial has.
    """
    study, trials = context.study, context.study.ranked_trials
    names = {DEV, study.select_by} - {"", study.metric}
    scores = {name: find_scores(trials, study.scores, name) for name in sorted(names)}
    scores = {name: values for name, values in scores.items() if values.notna().any()}
    scores = {
        as_read(name): -values if is_negated(name) else values for name, values in scores.items()
    }
    trials = trials.assign(**scores).sort_values("number", ignore_index=True)
    called = [ANY] if study.names else []
    if called:
        trials[ANY] = trials["number"].map(study.named)
    metric = ["score", "score_before"]
    trials[metric] = context.write.frame(trials[metric])
    first = ("number", "state", "seed", *PARTS, "initial_queue_size", "mtd", "score")
    table = trials[list(dict.fromkeys((*first, *trials)))]
    measured = ["mtd", *scores, "best_step", "wall_seconds", "alignment", "uniformity"]
    known = [
        name
        for name in (*measured, "run", "reason", "note")
        if name in table and (table[name].notna() & (table[name] != "")).any()
    ]
    varied, role = varied_settings(table, study.settings), {"role"} & {*table}
    ranking = as_read(study.select_by)
    chosen, caption = _choose(
        table, ranking if ranking in scores else "score", lowest_first=context.write.is_turned
    )
    shown = make_table(
        chosen[
            [*dict.fromkeys(["number", *called, "score", "state", *role, "seed", *varied, *known])]
        ].rename(columns={"wall_seconds": "wall time, s"}),
        caption=caption,
        csv="trials",
        sortable=True,
        most=_MOST_ROWS,
        labels=context.labels,
        # the scores are as they were read
        write=context.write.unsigned,
    )
    reasons, why = _count_reasons(table), "Why trials ended without a result."
    if len(reasons) > _MOST_REASONS:
        why += f" The {_MOST_REASONS} commonest of {len(reasons):,} reasons."
    commonest = make_table(
        reasons.head(_MOST_REASONS), caption=why, csv="failures", labels={"number": "first trial"}
    )
    anchors = tuple(trial_anchor(int(number)) for number in chosen["number"])
    return Contents(
        csv={"trials": table, "failures": reasons},
        text=[] if len(table) else ["No trial has been started."],
        tables=(commonest, replace(shown, anchors=anchors)),
        folded=True,
    )


def _count_reasons(trials: pd.DataFrame) -> pd.DataFrame:
    """Why trials failed or were stopped, the commonest reason first, with the first such trial."""
    ended = trials[trials["state"].isin(["FAIL", "PRUNED"])]
    reasons = ended.assign(reason=ended["reason"].replace("", "not recorded"))
    counts = reasons.groupby(["state", "reason"], as_index=False)["number"].agg(["size", "min"])
    named = counts.rename(columns={"size": "n", "min": "number"})
    ranked = named.sort_values(["n", "number"], ascending=[False, True])
    return ranked[["n", "state", "reason", "number"]]


def _choose(trials: pd.DataFrame, ranking: str, *, lowest_first: bool) -> tuple[pd.DataFrame, str]:
    """The trials that the page shows, the best first, then those without a score; a caption."""
    done = (trials["state"] == "COMPLETE") & trials[ranking].notna()
    best = trials[done].sort_values([ranking, "number"], ascending=[lowest_first, True])
    caption = f"{format_count(len(trials), 'trial')}, best first by {clean(ranking)}."
    if len(trials) > _MOST_ROWS:
        caption += f" The page shows at most {_MOST_ROWS:,} rows; the CSV has all."
    return pd.concat([best, trials[~done]]).head(_MOST_ROWS), caption


TOPIC = Topic("trials", "All trials", build, csv=["trials", "failures"], group="Trials")


def _build_best(context: StudyContext) -> Contents | None:
    """The trial that each score chooses; None where no run has the score that ranks the trials."""
    study, table = context.study, compute_choices(context.study)
    if not len(table) or table["chosen_by"][0] != (study.select_by or study.metric):
        return None
    write, by = context.write, table["chosen_by"]
    chosen = zip(by, table["value"], strict=True)
    values = [ScoreFormat(name).as_read(value) for name, value in chosen]
    written = write.frame(table, "configuration_mean").assign(
        chosen_by=[clean(as_read(name)) for name in by], value=values
    )
    shown = make_table(
        written.drop(columns=["n", "seed_sd", "trial_sd", "slope"]).dropna(axis=1, how="all"),
        caption="The trial that each score chooses; this study chooses as in the first row.",
        csv="best_trial",
        write=write.unsigned,
    )
    text = (_describe_gain(study, table), _describe_optimism(study, table.iloc[0]))
    return Contents(csv={"best_trial": written}, text=text, tables=[shown])


def _describe_gain(study: StudyFrames, choices: pd.DataFrame) -> str:
    """A sentence on what choosing by the reported score adds to it on these runs, where it does."""
    is_metric = choices["chosen_by"] == study.metric
    if is_metric.all() or not is_metric.any():
        return ""
    reported, other = choices[is_metric].iloc[0], choices[~is_metric].iloc[0]
    write, gain = study.score_format, reported["score"] - other["score"]
    if reported["number"] == other["number"]:
        return ""
    return (
        f"Choosing by {clean(write.name)}, the score that is reported, makes it "
        f"{write.amount(gain)} {write.say('higher')} on these trials."
    )


def _describe_optimism(study: StudyFrames, best: pd.Series) -> str:
    write, by = study.score_format, clean(as_read(best["chosen_by"]))
    metric, high = clean(write.name), write.choose("high", "low")
    if not math.isfinite(best["optimism"]):
        return (
            f"The score of a best trial is too {high} by chance. By how much cannot be "
            "estimated here: no configuration has two trials."
        )
    text = (
        f"The {write.say('highest')} {by} of {format_count(best['n'], 'trial')} is too "
        f"{high} by chance: by {write.amount(best['optimism'])} if all had the same true "
        "mean, by less if means differ "
        "(expected maximum of normal values, Tippett 1925; standard deviation "
        f"{write.unsigned.score(best['seed_sd'])} between seeds and "
        f"{write.unsigned.score(best['trial_sd'])} between trials of a seed)."
    )
    if best["chosen_by"] == study.metric or not math.isfinite(best["slope"]):
        return text
    return text + (
        f" Its {metric} may therefore be up to {write.amount(best['score_optimism'])} "
        f"{write.say('above')} what its configuration scores with new seeds: within a "
        f"configuration, 1 more of {by} goes with {best['slope']:.2f} more of {metric}."
    )


BEST = Topic("best-trial", "The best trial", _build_best, csv=["best_trial"], group="Trials")
