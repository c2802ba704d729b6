"""The answer of a study in full sentences, and the terms of its page."""

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pandas as pd

from analysis.frames import StudyFrames
from analysis.report.cells import clean
from analysis.report.context import StudyContext, describe_splits
from analysis.report.findings import Infos
from analysis.report.text import count
from analysis.report.topics import comparison, methods
from analysis.report.topics.base import Info, Topic
from analysis.runs import completed_runs, format_mtd, varied_settings

_OF_GLOSSARY = ("ema_decay", "queue_size", "batch_size", "initial_queue_size")


def _span(levels: pd.Series) -> str:
    low, high = format_mtd(levels.min()), format_mtd(levels.max())
    return f"MTD {low}" if low == high else f"{len(levels)} levels of MTD from {low} to {high}"


def list_terms(study: StudyFrames) -> Mapping[str, str]:
    """The terms of the page: MTD, the settings that make it up or were varied, seed and score.

    Settings are described as they are declared; one without a description is left out.
    """
    varied = varied_settings(study.trials, study.settings)
    names = dict.fromkeys([*_OF_GLOSSARY, *varied])
    settings = [study.settings[name] for name in names if name in study.settings]
    return {
        "MTD": (
            "Maximum traceable distance, 1/(1 − η) + K/N: the expected age, in training steps, "
            "of the weights that encoded the oldest keys of the queue."
        ),
        **{
            clean(setting.label): _sentence(setting.description)
            for setting in settings
            if setting.description
        },
        "seed": "Seed of all random number generators of a trial.",
        "score": f"{clean(study.metric)}, in points; higher is better.",
    }


def _sentence(description: str) -> str:
    """A setting's description as a sentence, without the marks of code."""
    text = clean(description.replace("`", ""))
    return f"{text[:1].upper()}{text[1:]}."


def _describe_no_traced(context: StudyContext) -> str:
    states, untraced = context.trials["state"], context.untraced
    if len(states) and (states == "FAIL").all():
        return f"All {count(len(states), 'trial')} failed, so there is nothing to compare."
    if len(untraced):
        return (
            f"{count(len(untraced), 'trial')} of {context.untraced_methods} completed, with a mean "
            f"score of {untraced['score'].mean():.2f}. They have no MTD, so there is no curve."
        )
    return "No trial has completed with a score yet."


def _describe_runs(context: StudyContext) -> str:
    scored = context.traced
    if not len(scored):
        return _describe_no_traced(context)
    seeds = int(scored["seed"].nunique())
    return (
        f"{count(len(scored), 'trial')} completed with a score, at "
        f"{_span(context.curve['mtd'])}, with {count(seeds, 'seed')}."
    )


def _describe_training(runs: pd.DataFrame, program: str) -> str:
    before, after = runs["score_before"], runs["score"]
    both = np.isfinite(before.astype("float64"))
    if not both.any():
        return "" if program else "The score of the untrained encoder was not recorded."
    change = float((after - before)[both].mean())
    text = (
        f"Training {'raised' if change > 0 else 'changed'} the mean score from "
        f"{before[both].mean():.2f} to "
        f"{after[both].mean():.2f} ({change:+.2f} points)"
    )
    seeds = runs.groupby("seed")["score"].mean()
    if len(seeds) > 1:
        text += f"; the standard deviation of the per-seed means is {seeds.std():.2f} points"
    return text + "."


def summarise_study(context: StudyContext, infos: Infos = MappingProxyType({})) -> tuple[str, ...]:
    """The verdict on the score against MTD, the trials it rests on, and the effect of training.

    infos  what topics have computed, by their names; the others are computed here.

    Where methods were compared, how they differ; that alone where MTD did not vary. Where only
    other settings varied, how the configurations differ. Last, for a metric of the user's own,
    what was reported and what selected.
    """
    return (*_summary(context, infos), *filter(None, (describe_splits(context.study),)))


def _summary(context: StudyContext, infos: Infos) -> tuple[str, ...]:
    compared = _info(methods.TOPIC, context, infos)
    differences = methods.describe(compared) if compared is not None else ()
    if compared is not None and context.verdict.levels < 2:
        return (*differences, _count_completed(context))
    configurations = _info(comparison.TOPIC, context, infos)
    if configurations is not None:
        return (*comparison.describe(configurations), _count_completed(context))
    if not len(context.traced):
        return (_describe_runs(context), *differences)
    training = _describe_training(context.traced, context.study.program)
    texts = (context.verdict.sentence, *differences, _describe_runs(context), training)
    return tuple(filter(None, texts))


def _info(topic: Topic[Info], context: StudyContext, infos: Infos) -> Info | None:
    found: Info | None = infos[topic.name] if topic.name in infos else topic.compute(context)
    return found


def _count_completed(context: StudyContext) -> str:
    runs = completed_runs(context.trials)
    return f"{count(len(runs), 'trial')} completed, {count(runs['seed'].nunique(), 'seed')}."
