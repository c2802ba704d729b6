"""Topics: all trials, and why trials failed; the best trial and the optimism of its score."""

import math
from dataclasses import asdict, dataclass, replace

import pandas as pd

from mtdlab.analysis.data.durations import format_seconds
from mtdlab.analysis.data.frames import TRIAL_COLUMNS, StudyFrames
from mtdlab.analysis.data.runs import format_mtd, varied_settings
from mtdlab.analysis.report.cells import clean, count, make_table
from mtdlab.analysis.report.page import trial_anchor
from mtdlab.analysis.report.study_facts import model_folder, place_of_model
from mtdlab.analysis.report.topics.base import StudyContext, Table, Topic
from mtdlab.analysis.statistics.best_trial import DEV, Choice, compute_choices, find_scores

FIRST_COLUMNS = (
    "number",
    "state",
    "seed",
    "ema_decay",
    "queue_size",
    "batch_size",
    "initial_queue_size",
    "mtd",
    "score",
    "alignment",
    "uniformity",
    "reason",
)
"""First columns of the table of trials, in this order."""
_MOST_ROWS = 1_000
_MOST_REASONS = 20


@dataclass(frozen=True)
class Trials:
    """The table of all trials, its columns of scores beside the metric, and the one that ranks."""

    context: StudyContext
    table: pd.DataFrame
    scores: tuple[str, ...]
    ranking: str


def compute(context: StudyContext) -> Trials:
    """The trials of any study, also an empty one."""
    study, trials = context.study, context.trials
    names = {DEV, study.select_by} - {"", study.metric}
    scores = {name: find_scores(trials, study.scores, name) for name in sorted(names)}
    known = {name: values for name, values in scores.items() if values.notna().any()}
    table = compute_trials_table(trials.assign(**known))
    ranking = study.select_by if study.select_by in known else "score"
    return Trials(context, table, tuple(known), ranking)


def compute_trials_table(trials: pd.DataFrame) -> pd.DataFrame:
    """All trials by number: `FIRST_COLUMNS`, then other `TRIAL_COLUMNS`, then other settings."""
    known = [name for name in TRIAL_COLUMNS if name in trials and name not in FIRST_COLUMNS]
    rest = [name for name in trials if name not in FIRST_COLUMNS and name not in known]
    return trials[[*FIRST_COLUMNS, *known, *rest]].sort_values("number", ignore_index=True)


def show(info: Trials) -> tuple[Table, ...]:
    """The tables of the reasons of failures and of all trials.

    The latter has scores and states, every setting that varied, and each measure that any trial
    has.
    """
    trials, study = info.table, info.context.study
    measured = ["mtd", *info.scores, "best_step", "wall_seconds", "alignment", "uniformity"]
    known = [name for name in measured if name in trials and trials[name].notna().any()]
    known += [
        name for name in ("run", "reason", "note") if name in trials and (trials[name] != "").any()
    ]
    varied = varied_settings(trials, study.settings)
    chosen, caption = _choose(trials, info.ranking)
    shown = chosen[["number", "score", "state", "seed", *varied, *known]]
    table = make_table(
        shown.rename(columns={"wall_seconds": "wall time, s"}),
        caption=caption,
        csv="trials",
        sortable=True,
        labels=info.context.labels,
    )
    anchors = tuple(trial_anchor(int(number)) for number in chosen["number"])
    return _show_reasons(trials), replace(table, anchors=anchors)


def _show_reasons(trials: pd.DataFrame) -> Table:
    """The table of why trials failed or were stopped, the commonest reason first."""
    ended = trials[trials["state"].isin(["FAIL", "PRUNED"])]
    reasons = ended.assign(reason=ended["reason"].replace("", "not recorded"))
    counts = reasons.groupby(["state", "reason"], as_index=False)["number"].agg(["size", "min"])
    counts = counts.sort_values(["size", "min"], ascending=[False, True])
    caption = "Why trials ended without a result."
    if len(counts) > _MOST_REASONS:
        caption += f" The {_MOST_REASONS} commonest of {len(counts):,} reasons."
    shown = counts.head(_MOST_REASONS)[["size", "state", "reason", "min"]]
    named = shown.rename(columns={"size": "n", "min": "first trial"})
    return replace(make_table(named, caption=caption, csv="trials"), name="failures")


def _choose(trials: pd.DataFrame, ranking: str) -> tuple[pd.DataFrame, str]:
    """All trials, the best first, or of many the best half of the rows and the last; a caption.

    Trials without a score follow in the order of their numbers.
    """
    done = trials[(trials["state"] == "COMPLETE") & trials[ranking].notna()]
    best = done.sort_values([ranking, "number"], ascending=[False, True]).index
    rest = trials.index.difference(best)
    order = f"best first by {clean(ranking)}"
    if len(trials) <= _MOST_ROWS:
        return trials.loc[[*best, *rest]], f"{count(len(trials), 'trial')}, {order}."
    half = _MOST_ROWS // 2
    others = trials.index.difference(best[:half])[-half:]
    chosen = [*best[:half], *others]
    caption = (
        f"{len(chosen):,} of {len(trials):,} trials: the {min(half, len(best)):,} best, {order}, "
        f"and the {len(others):,} last of the others. The page shows at most {_MOST_ROWS:,} rows; "
        "the CSV has all."
    )
    return trials.loc[chosen], caption


TOPIC = Topic(
    name="trials",
    title="All trials",
    group="Trials",
    compute=compute,
    csv={"trials": lambda info: info.table},
    text=lambda info: () if len(info.table) else ("No trial has been started.",),
    tables=show,
    keep_empty=True,
    folded=lambda _: True,
)


_SHOWN = (
    "chosen_by",
    "number",
    "seed",
    "mtd",
    "value",
    "optimism",
    "score",
    "score_optimism",
    "configuration_mean",
    "configuration_trials",
)


@dataclass(frozen=True)
class BestTrial:
    """The results: `choices` is `compute_choices`, the first by the score that ranks the trials."""

    study: StudyFrames
    choices: tuple[Choice, ...]


def _find_best(context: StudyContext) -> BestTrial | None:
    """The choices; None where no completed run has the score that ranks the trials."""
    study, choices = context.study, compute_choices(context.study)
    if not choices or choices[0].chosen_by != (study.select_by or study.metric):
        return None
    return BestTrial(study, choices)


def _tabulate_choices(info: BestTrial) -> pd.DataFrame:
    """A row per choice, with all of its fields."""
    rows = [
        asdict(choice)
        | {"chosen_by": clean(choice.chosen_by), "score_optimism": choice.score_optimism}
        for choice in info.choices
    ]
    return pd.DataFrame(rows)


def _show_best(info: BestTrial) -> tuple[Table, ...]:
    if len({choice.number for choice in info.choices}) < 2:
        return ()
    caption = "The trial that each score chooses; this study chooses as in the first row."
    return (make_table(_tabulate_choices(info)[list(_SHOWN)], caption=caption, csv="best_trial"),)


def _describe_choices(info: BestTrial) -> tuple[str, ...]:
    """Sentences on the best trial, on what another choice would report, and on the optimism."""
    best = " ".join(filter(None, (_describe_best(info), _describe_run(info))))
    return best, _describe_other(info), _describe_optimism(info)


def _describe_best(info: BestTrial) -> str:
    best, metric = info.choices[0], clean(info.study.metric)
    by = clean(best.chosen_by)
    ranked = f"Trials are ranked by {by} (select_by)."
    if not info.study.select_by:
        ranked = f"This study records no select_by: its trials are ranked by its metric, {by}."
    if info.study.table:
        ranked = f"Trials are ranked by {by}."
    scores = f"{metric} is {best.score:.2f}"
    if best.chosen_by != info.study.metric:
        scores = f"{by} is {best.value:.2f} and whose {scores}"
    where = f", MTD {format_mtd(best.mtd)}" if math.isfinite(best.mtd) else ""
    return (
        f"{ranked} The best of {count(best.n, 'trial')} is trial {best.number} "
        f"(seed {best.seed}{where}), whose {scores}. The mean {metric} of its configuration is "
        f"{best.configuration_mean:.2f} over {count(best.configuration_trials, 'trial')}."
    )


def _describe_run(info: BestTrial) -> str:
    """A sentence on the best trial's training, and on where its model is."""
    study, best, parts = info.study, info.choices[0], []
    chosen = study.trials[study.trials["number"] == best.number]
    dev = float(find_scores(chosen, study.scores, DEV).iloc[0])
    step, seconds = (
        float(chosen[name].iloc[0]) if name in chosen else math.nan
        for name in ("best_step", "wall_seconds")
    )
    if math.isfinite(step):
        parts.append(f"its checkpoint is that of step {step:g}")
    if math.isfinite(dev) and best.chosen_by != DEV:
        parts.append(f"its dev score ({DEV}) is {dev:.2f}")
    if math.isfinite(seconds):
        parts.append(f"it took {format_seconds(seconds)}")
    if not study.model and (folder := model_folder(study)):
        parts.append(f"its model is in {clean(f'{folder} on the machine that ran it')}")
    elif study.model and study.model["trial"] == best.number:
        parts.append(f"its model is in {place_of_model(study)}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _describe_other(info: BestTrial) -> str:
    """A sentence on what choosing by the reported score adds to it on these runs."""
    by_metric = next(
        (choice for choice in info.choices if choice.chosen_by == info.study.metric), None
    )
    other = next((choice for choice in info.choices if choice.chosen_by != info.study.metric), None)
    if by_metric is None or other is None:
        return ""
    metric, by = clean(info.study.metric), clean(other.chosen_by)
    if by_metric.number == other.number:
        return f"{metric} and {by} choose the same trial."
    return (
        f"{metric} chooses trial {by_metric.number} ({metric} {by_metric.score:.2f}), {by} trial "
        f"{other.number} ({metric} {other.score:.2f}): choosing by the score that is reported adds "
        f"{by_metric.score - other.score:.2f} points to it on these trials."
    )


def _describe_optimism(info: BestTrial) -> str:
    best, metric = info.choices[0], clean(info.study.metric)
    by = clean(best.chosen_by)
    if not math.isfinite(best.optimism):
        return (
            "The score of a best trial is too high by chance. By how much cannot be estimated "
            "here: no configuration has two trials."
        )
    text = (
        f"The highest {by} of {count(best.n, 'trial')} is too high by chance: by "
        f"{best.optimism:.2f} points if all had the same true mean, by less if their means differ "
        "(expected maximum of normal values, Tippett 1925; standard deviation "
        f"{best.seed_sd:.2f} between seeds and {best.trial_sd:.2f} between trials of a seed)."
    )
    if best.chosen_by == info.study.metric or not math.isfinite(best.slope):
        return text
    return text + (
        f" Its {metric} may therefore be up to {best.score_optimism:.2f} points above what its "
        f"configuration scores with new seeds: within a configuration, a point more of {by} goes "
        f"with {best.slope:.2f} points more of {metric}."
    )


BEST = Topic(
    name="best-trial",
    title="The best trial",
    group="Trials",
    compute=_find_best,
    csv={"best_trial": _tabulate_choices},
    text=_describe_choices,
    tables=_show_best,
)
