"""Topic: the best trial, by which score it was chosen, and the optimism of its score."""

import math
from dataclasses import asdict, dataclass

import pandas as pd

from analysis.data.durations import format_seconds
from analysis.data.frames import StudyFrames
from analysis.data.runs import format_mtd
from analysis.report.cells import clean, count, make_table
from analysis.report.study_facts import model_folder, place_of_model
from analysis.report.topics.base import StudyContext, Table, Topic
from analysis.statistics.best_trial import DEV, Choice, compute_choices, find_scores

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


def compute(context: StudyContext) -> BestTrial | None:
    """The choices; None where no completed run has the score that ranks the trials."""
    study, choices = context.study, compute_choices(context.study)
    if not choices or choices[0].chosen_by != (study.select_by or study.metric):
        return None
    return BestTrial(study, choices)


def tabulate(info: BestTrial) -> pd.DataFrame:
    """A row per choice, with all of its fields."""
    rows = [
        asdict(choice)
        | {"chosen_by": clean(choice.chosen_by), "score_optimism": choice.score_optimism}
        for choice in info.choices
    ]
    return pd.DataFrame(rows)


def show(info: BestTrial) -> tuple[Table, ...]:
    if len({choice.number for choice in info.choices}) < 2:
        return ()
    caption = "The trial that each score chooses; this study chooses as in the first row."
    return (make_table(tabulate(info)[list(_SHOWN)], caption=caption, csv="best_trial"),)


def describe(info: BestTrial) -> tuple[str, ...]:
    """Sentences on the best trial, on what another choice would report, and on the optimism."""
    best = " ".join(filter(None, (_describe_best(info), _describe_run(info))))
    return best, _describe_other(info), _describe_optimism(info)


def _describe_best(info: BestTrial) -> str:
    best, metric = info.choices[0], clean(info.study.metric)
    by = clean(best.chosen_by)
    ranked = f"Trials are ranked by {by} (select_by)."
    if not info.study.select_by:
        ranked = f"This study records no select_by: its trials are ranked by its metric, {by}."
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


TOPIC = Topic(
    name="best-trial",
    title="The best trial",
    group="Trials",
    compute=compute,
    csv={"best_trial": tabulate},
    text=describe,
    tables=show,
)
