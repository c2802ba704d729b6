"""What stands above the topics of a report: status, settings, terms and summary."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from analysis.frames import StudyFrames
from analysis.report.cells import clean, number
from analysis.report.context import StudyContext
from analysis.report.text import count
from analysis.report.topics import methods
from analysis.runs import completed_runs, format_mtd, is_missing, varied_settings

_MOST_VALUES = 12
_OF_GLOSSARY = ("ema_decay", "queue_size", "batch_size", "initial_queue_size")


def _span(levels: pd.Series) -> str:
    low, high = format_mtd(levels.min()), format_mtd(levels.max())
    return f"MTD {low}" if low == high else f"{len(levels)} levels of MTD from {low} to {high}"


def describe_status(study: StudyFrames) -> str:
    """How far the study is."""
    states = study.trials["state"].value_counts()
    done = int(states.get("COMPLETE", 0))
    failed = int(states.get("FAIL", 0))
    ended = f"{done:,} of {count(study.planned, 'planned run')} completed"
    if failed:
        ended += f", {failed:,} failed"
    open_ = study.planned - int(sum(states.get(name, 0) for name in ("COMPLETE", "FAIL", "PRUNED")))
    running = int(states.get("RUNNING", 0))
    if open_ <= 0 and not running:
        return ended + "."
    return f"Still running: {ended}, {running:,} running now, {max(open_ - running, 0):,} to come."


def describe_settings(study: StudyFrames) -> Mapping[str, str]:
    """What was varied, with the values tried, many of them as a range."""
    trials, settings = study.trials, {}
    for name in [*varied_settings(trials, study.settings), "seed"]:
        values = sorted(trials[name][~is_missing(trials[name])].unique(), key=_sort_key)
        numeric = pd.api.types.is_numeric_dtype(trials[name])
        texts = [number(float(value)) if numeric else clean(str(value)) for value in values]
        if len(texts) > _MOST_VALUES:
            texts = [f"{len(texts):,} values from {texts[0]} to {texts[-1]}"]
        settings[clean(name)] = ", ".join(texts) or "none yet"
    return settings


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
        "seed": "Seed of all random number generators of a run.",
        "score": f"{clean(study.metric)}, x 100; higher is better.",
    }


def _sentence(description: str) -> str:
    """A setting's description as a sentence, without the marks of code."""
    text = clean(description.replace("`", ""))
    return f"{text[:1].upper()}{text[1:]}."


def _sort_key(value: object) -> tuple[float, str]:
    return (float(value), "") if isinstance(value, int | float | np.number) else (0.0, str(value))


def _describe_no_traced(context: StudyContext) -> str:
    states, untraced = context.trials["state"], context.untraced
    if len(states) and (states == "FAIL").all():
        return f"All {count(len(states), 'run')} failed, so there is nothing to compare."
    if len(untraced):
        return (
            f"{count(len(untraced), 'run')} of {context.untraced_methods} completed, with a mean "
            f"score of {untraced['score'].mean():.2f}. They have no MTD, so there is no curve."
        )
    return "No run has completed with a score yet."


def _describe_runs(context: StudyContext) -> str:
    scored = context.traced
    if not len(scored):
        return _describe_no_traced(context)
    seeds = int(scored["seed"].nunique())
    return (
        f"{count(len(scored), 'run')} completed with a score, at "
        f"{_span(context.curve['mtd'])}, with {count(seeds, 'seed')}."
    )


def _describe_training(runs: pd.DataFrame) -> str:
    before, after = runs["score_before"], runs["score"]
    both = np.isfinite(before.astype("float64"))
    if not both.any():
        return "The score of the untrained encoder was not recorded."
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


def title_summary(context: StudyContext) -> str:
    """The heading of the summary: the verdict, or what was compared where MTD did not vary."""
    if context.verdict.levels < 2 and methods.compute(context) is not None:
        return "Methods compared"
    return f"Verdict: {context.verdict.verdict}"


def summarise_study(context: StudyContext) -> tuple[str, ...]:
    """The verdict on the score against MTD, the runs it rests on, and the effect of training.

    Where methods were compared, how they differ; that alone where MTD did not vary.
    """
    compared = methods.compute(context)
    differences = methods.describe(compared) if compared is not None else ()
    if compared is not None and context.verdict.levels < 2:
        runs = completed_runs(context.trials)
        text = f"{count(len(runs), 'run')} completed, {count(runs['seed'].nunique(), 'seed')}."
        return (*differences, text)
    if not len(context.traced):
        return (_describe_runs(context), *differences)
    training = _describe_training(context.traced)
    return (context.verdict.sentence, *differences, _describe_runs(context), training)
